"""Edges of histograms, vectors of counts, and their argument checks."""

import numpy as np
import pytest

from emberharmony.backend.shared.reductions import histograms
from emberharmony.errors import ArgumentError, DTypeError, ShapeError


def test_the_edges_of_a_histogram_agree_with_numpy() -> None:
    assert histograms.histogram_edges(1.0, 3.0, 4, None).tolist() == np.histogram_bin_edges([1.0, 3.0], 4).tolist()
    assert histograms.histogram_edges(2.0, 2.0, 2, None).tolist() == [1.5, 2.0, 2.5]
    assert histograms.histogram_edges(0.0, 1.0, 2, (0.0, 4.0)).tolist() == [0.0, 2.0, 4.0]
    for low, high, bins in ((0.0, np.inf, 2), (0.0, 1.0, 0), (2.0, 1.0, 2)):
        with pytest.raises(ArgumentError):
            histograms.histogram_edges(low, high, bins, None)


def test_only_vectors_of_natural_numbers_can_be_counted() -> None:
    assert histograms.integers_to_count(np.array([True, False])).dtype == np.int64
    for wrong, error in (
        (np.zeros((2, 2), int), ShapeError),
        (np.zeros(2), DTypeError),
        (np.array([-1]), ArgumentError),
    ):
        with pytest.raises(error):
            histograms.integers_to_count(wrong)
