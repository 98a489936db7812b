"""Beam search, compared with the sum over all alignments."""

import itertools

import numpy as np

from emberharmony.backend.shared.neural.sequences import beam_search


def test_a_wide_beam_finds_the_sum_over_all_alignments() -> None:
    logits = np.random.default_rng(2).standard_normal((1, 4, 3))
    blank, rows = 2, logits[0] - np.logaddexp.reduce(logits[0], -1, keepdims=True)
    totals: dict[tuple[int, ...], float] = {}
    for alignment in itertools.product(range(3), repeat=4):
        labels = tuple(label for label, _ in itertools.groupby(alignment) if label != blank)
        score = sum(rows[step, label] for step, label in enumerate(alignment))
        totals[labels] = float(np.logaddexp(totals.get(labels, -np.inf), score))
    best = sorted(totals.items(), key=lambda pair: -pair[1])[:3]
    paths, scores = beam_search(logits, np.array([4]), 100, 3, blank)
    assert [tuple(path[path >= 0].tolist()) for path in paths[:, 0]] == [labels for labels, _ in best]
    np.testing.assert_allclose(scores[0], [score for _, score in best], rtol=1e-12)


def test_missing_sequences_are_filled_with_minus_one() -> None:
    paths, scores = beam_search(np.zeros((1, 2, 1)), np.array([2]), 2, 2, 0)
    assert paths.tolist() == [[[-1, -1]], [[-1, -1]]]
    assert scores.tolist() == [[0.0, -np.inf]]
