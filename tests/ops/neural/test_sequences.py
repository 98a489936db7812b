"""CTC loss and decoding: the loss is a negative log probability, and beam search agrees with a plain search."""

from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.core.errors import ArgumentError, IndexOutOfBoundsError, ShapeError

LOGITS = np.sin(np.arange(12.0)).reshape(1, 4, 3)


def test_the_probabilities_of_all_targets_sum_to_one(backend: str) -> None:
    targets = [[], [1], [2], [1, 1], [1, 2], [2, 1], [2, 2]]
    targets += [[a, b, c] for a in (1, 2) for b in (1, 2) for c in (1, 2)]
    targets += [[a, b, a, b] for a, b in ((1, 2), (2, 1))]
    total = 0.0
    for target in targets:
        padded = np.array([target + [0] * (4 - len(target))])
        loss = ops.ctc_loss(padded, LOGITS, np.array([len(target)]), np.array([4]))
        total += float(np.exp(-ops.to_numpy(loss)[0]))
    assert np.isclose(total, 1.0, atol=1e-5)


def test_the_loss_of_a_target_that_is_too_long_is_huge(backend: str) -> None:
    loss = ops.to_numpy(ops.ctc_loss(np.array([[1, 1, 1]]), LOGITS, np.array([3]), np.array([4])))
    assert loss[0] > 1e6


def test_beam_search_agrees_with_a_plain_implementation(backend: str) -> None:
    logits = 2 * np.sin(np.arange(60.0)).reshape(1, 12, 5)
    log = logits[0] - np.log(np.exp(logits[0]).sum(-1, keepdims=True))
    beam: dict[tuple[int, ...], tuple[float, float]] = {(): (1.0, 0.0)}
    for row in np.exp(log):
        grown: dict[tuple[int, ...], list[float]] = {}
        for labels, (closed, still) in beam.items():
            for label, chance in enumerate(row):
                if label == 0:
                    grown.setdefault(labels, [0.0, 0.0])[0] += (closed + still) * chance
                elif labels and labels[-1] == label:
                    grown.setdefault(labels, [0.0, 0.0])[1] += still * chance
                    grown.setdefault((*labels, label), [0.0, 0.0])[1] += closed * chance
                else:
                    grown.setdefault((*labels, label), [0.0, 0.0])[1] += (closed + still) * chance
        best = sorted(grown.items(), key=lambda entry: -sum(entry[1]))[:3]
        beam = {labels: (closed, still) for labels, (closed, still) in best}
    paths, scores = ops.ctc_decode(logits, [12], "beam_search", 3, 3)
    found = [tuple(label for label in path[0] if label >= 0) for path in ops.to_numpy(paths).tolist()]
    assert found == list(beam)
    assert np.allclose(ops.to_numpy(scores)[0], [np.log(sum(both)) for both in beam.values()])


def test_the_score_of_a_path_is_its_negative_loss(backend: str) -> None:
    paths, scores = ops.ctc_decode(LOGITS, [4], "beam_search", 200, 5)
    for path, score in zip(ops.to_numpy(paths)[:, 0], ops.to_numpy(scores)[0], strict=True):
        loss = ops.ctc_loss(np.where(path < 0, 0, path)[None], LOGITS, [(path >= 0).sum()], [4])
        assert np.isclose(ops.to_numpy(loss)[0], -score, rtol=1e-5)


def test_missing_sequences_are_filled_with_minus_one(backend: str) -> None:
    paths, scores = ops.ctc_decode([[[0.0, 0.0]]], [1], "beam_search", 5, 4)
    assert paths.tolist() == [[[-1]], [[1]], [[-1]], [[-1]]]
    assert np.allclose(ops.to_numpy(scores), [[np.log(0.5), np.log(0.5), -np.inf, -np.inf]])


def test_an_impossible_class_is_never_decoded(backend: str) -> None:
    paths, scores = ops.ctc_decode([[[0.0, 1.0, -np.inf]] * 4], [4], "beam_search", 100, 100)
    assert 2 not in ops.to_numpy(paths)
    assert np.isclose(np.exp(ops.to_numpy(scores)).sum(), 1.0, atol=1e-6)


def test_without_mask_index_the_last_class_is_the_blank(backend: str) -> None:
    logits = [[[0.0, 2.0], [3.0, 0.0], [0.0, 1.0]]]
    for strategy in ("greedy", "beam_search"):
        assert ops.ctc_decode(logits, [3], strategy, mask_index=None)[0].tolist() == [[[0, -1, -1]]]


def test_scores_of_half_precision_logits_are_float32(backend: str) -> None:
    for strategy in ("greedy", "beam_search"):
        labels, scores = ops.ctc_decode(np.zeros((2, 3, 4), np.float16), [3, 1], strategy)
        assert (ops.dtype(labels), ops.dtype(scores)) == (ops.int64, ops.float32)
        assert (ops.shape(labels), ops.shape(scores)) == ((1, 2, 3), (2, 1))


def test_decoding_refuses_wrong_options_and_shapes(backend: str) -> None:
    with pytest.raises(ArgumentError, match="expected strategy 'greedy' or 'beam_search', got 'viterbi'"):
        ops.ctc_decode(LOGITS, [4], "viterbi")
    with pytest.raises(ArgumentError, match="mask_index 3 is out of range for 3 classes"):
        ops.ctc_decode(LOGITS, [4], mask_index=3)
    with pytest.raises(ArgumentError, match="expected top_paths from 1 to beam_width=2, got 3"):
        ops.ctc_decode(LOGITS, [4], "beam_search", 2, 3)
    with pytest.raises(ShapeError, match=r"and lengths \(batch,\), got \(4, 3\) and \(1,\)"):
        ops.ctc_decode(LOGITS[0], [4])
    with pytest.raises(ShapeError, match=r"got \(1, 4, 3\) and \(2,\)"):
        ops.ctc_decode(LOGITS, [4, 4])


@pytest.mark.parametrize(
    ("target", "lengths", "what"),
    [
        ([[1, 3]], ([2], [3]), "label 3"),
        ([[-1, 2]], ([2], [3]), "label -1"),
        ([[1, 2]], ([7], [3]), "target length 7"),
        ([[1, 2]], ([2], [9]), "output length 9"),
    ],
)
def test_labels_and_lengths_on_the_host_that_are_out_of_range_are_refused(
    target: Any, lengths: Any, what: str, backend: str
) -> None:
    with pytest.raises(IndexOutOfBoundsError, match=what):
        ops.ctc_loss(target, ops.ones((1, 3, 3)), *lengths)


@pytest.mark.parametrize("mask_index", [99, 3, -4, 10**6, 2**70])
def test_a_mask_index_that_is_not_a_class_is_refused(mask_index: int, backend: str) -> None:
    with pytest.raises(IndexOutOfBoundsError, match=f"mask_index {mask_index}"):
        ops.ctc_loss([[1, 2]], LOGITS, [2], [4], mask_index)
    last, same = (ops.to_numpy(ops.ctc_loss([[1, 0]], LOGITS, [2], [4], index)) for index in (2, -1))
    assert np.array_equal(last, same)


@pytest.mark.parametrize(
    ("targets", "lengths"),
    [(np.ones((2, 2), int), ([2], [4])), (np.ones((1, 2), int), ([2, 2], [4])), (np.ones((1, 2), int), ([2], [[4]]))],
)
def test_targets_and_lengths_must_match_the_batch(targets: Any, lengths: Any, backend: str) -> None:
    for given in (targets, ops.convert_to_tensor(targets)):
        with pytest.raises(ShapeError, match="expected"):
            ops.ctc_loss(given, LOGITS, *lengths)


def test_a_label_out_of_range_in_a_tensor_is_refused_or_clipped_on_mlx(backend: str) -> None:
    for target, length in (([[1, 10**8]], [2]), ([[1, 2]], [10**8])):
        tensors = ops.convert_to_tensor(target), LOGITS, ops.convert_to_tensor(length), ops.convert_to_tensor([4])
        with ops.checked(), pytest.raises(IndexOutOfBoundsError):
            ops.eval(ops.ctc_loss(*tensors))  # Dask raises when a block is computed
        if backend == "mlx":
            # MLX does not read the tensors, so labels and lengths are clipped to the nearest valid ones.
            near = ops.ctc_loss([[1, 2]], LOGITS, [2], [4])
            assert np.array_equal(ops.to_numpy(ops.ctc_loss(*tensors)), ops.to_numpy(near))
