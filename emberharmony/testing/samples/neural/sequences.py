"""Sample rows of `ops/neural/sequences.py`; the oracles add up the probabilities of all alignments one by one."""

import collections
import itertools
from typing import Any

import numpy as np
from scipy import special

from emberharmony.testing.sample import FLOATS, Sample, case, grid


def _ctc_oracle(target: Any, output: Any, target_length: Any, output_length: Any, mask_index: int = 0) -> Any:
    losses = []
    for labels, logits, n, steps in zip(target, output, target_length, output_length, strict=True):
        log_probabilities = special.log_softmax(logits, -1)
        path_probability = 0.0
        for path in itertools.product(range(logits.shape[-1]), repeat=int(steps)):
            merged_labels = [label for label, _ in itertools.groupby(path) if label != mask_index]
            if merged_labels == [int(label) for label in labels[: int(n)]]:
                path_probability += np.exp(sum(log_probabilities[t, label] for t, label in enumerate(path)))
        losses.append(-np.log(path_probability))
    return np.array(losses)


def _decode_greedily(logits: Any, merge: bool, blank: int) -> Any:
    best_labels = [int(label) for label in logits.argmax(-1)]
    distinct_labels = [label for label, _ in itertools.groupby(best_labels)] if merge else best_labels
    return [([label for label in distinct_labels if label != blank], -logits.max(-1).sum())]


def _decode_exhaustively(logits: Any, blank: int) -> Any:
    log_probabilities = special.log_softmax(logits, -1)
    probability_by_labels: dict[tuple[int, ...], float] = collections.defaultdict(float)
    for path in itertools.product(range(logits.shape[-1]), repeat=len(logits)):
        merged_labels = tuple(label for label, _ in itertools.groupby(path) if label != blank)
        probability_by_labels[merged_labels] += np.exp(sum(log_probabilities[t, label] for t, label in enumerate(path)))
    return [(labels, np.log(p)) for labels, p in sorted(probability_by_labels.items(), key=lambda entry: -entry[1])]


def _decode_oracle(
    inputs: Any,
    lengths: Any,
    strategy: str = "greedy",
    width: int = 0,
    paths: int = 1,
    merge: bool = True,
    blank: int = 0,
) -> Any:
    labels, scores = np.full((paths, *inputs.shape[:2]), -1), np.full((len(inputs), paths), -np.inf)
    for item_index, (logits, steps) in enumerate(zip(inputs, lengths, strict=True)):
        used_logits = logits[: int(steps)]
        ranked_labels = (
            _decode_greedily(used_logits, merge, blank)
            if strategy == "greedy"
            else _decode_exhaustively(used_logits, blank)
        )
        for index, (sequence, score) in enumerate(ranked_labels[:paths]):
            labels[index, item_index, : len(sequence)], scores[item_index, index] = sequence, score
    return labels, scores


_LOGITS = np.sin(grid(2, 40, 3 * 5 * 3)).reshape(3, 5, 3)

SAMPLES = [
    Sample(
        "ctc_loss",
        _ctc_oracle,
        (
            case(np.array([[1, 2], [1, 1], [2, 0]]), _LOGITS, np.array([2, 2, 1]), np.array([5, 4, 5])),
            case(np.array([[1, 0], [1, 1], [0, 1]]), _LOGITS, np.array([2, 2, 1]), np.array([5, 5, 3]), 2),
            case(np.array([[1], [2], [1]]), _LOGITS, np.array([0, 1, 0]), np.array([4, 1, 0])),
            case(np.zeros((3, 0), np.int64), _LOGITS, np.array([0, 0, 0]), np.array([5, 0, 3])),
        ),
        dtypes=FLOATS,
        tolerance=8,
        differentiable=True,
        left_out={"results of empty axes": "the target lengths exceed the number of labels, which is 0"},
    ),
    Sample(
        "ctc_decode",
        _decode_oracle,
        (
            case(_LOGITS, np.array([5, 4, 3])),
            case(_LOGITS, np.array([5, 5, 2]), "greedy", 100, 1, False, 2),
            case(_LOGITS, np.array([5, 4, 1]), "beam_search", 200, 4),
            case(_LOGITS, np.array([3, 0, 5]), "beam_search", 100, 3, True, 1),
        ),
        dtypes=FLOATS,
        tolerance=4,
        fixed=True,
        result=("int64", "promoted"),
        left_out={"results of empty axes": "the index of the blank must be one of the classes"},
    ),
]
