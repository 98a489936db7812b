"""Positions of quantiles, edges of histograms, and their argument checks."""

import numpy as np
import pytest

from emberharmony.backend.shared import statistics
from emberharmony.errors import ArgumentError, DTypeError, ShapeError


@pytest.mark.parametrize("method", statistics.METHODS)
@pytest.mark.parametrize("length", [1, 2, 5, 8])
def test_quantiles_agree_with_numpy(method: str, length: int) -> None:
    q, row = np.linspace(0, 1, 11), np.sort(np.random.default_rng(1).standard_normal(length))
    low, high, weight = statistics.places(q, length, method)
    found = row[low] + (row[high] - row[low]) * weight
    np.testing.assert_allclose(found, np.quantile(row, q, method=method), atol=1e-12)  # type: ignore[call-overload]


def test_a_wrong_method_or_quantile_is_refused() -> None:
    with pytest.raises(ArgumentError, match="method"):
        statistics.places(np.array(0.5), 3, "median")
    for q in (-0.1, 1.1, np.nan):
        with pytest.raises(ArgumentError):
            statistics.places(np.array(q), 3, "linear")


def test_the_edges_of_a_histogram_agree_with_numpy() -> None:
    assert statistics.edges(1.0, 3.0, 4, None).tolist() == np.histogram_bin_edges([1.0, 3.0], 4).tolist()
    assert statistics.edges(2.0, 2.0, 2, None).tolist() == [1.5, 2.0, 2.5]
    assert statistics.edges(0.0, 1.0, 2, (0.0, 4.0)).tolist() == [0.0, 2.0, 4.0]
    for low, high, bins in ((0.0, np.inf, 2), (0.0, 1.0, 0), (2.0, 1.0, 2)):
        with pytest.raises(ArgumentError):
            statistics.edges(low, high, bins, None)


def test_only_vectors_of_natural_numbers_can_be_counted() -> None:
    assert statistics.countable(np.array([True, False])).dtype == np.int64
    for wrong, error in (
        (np.zeros((2, 2), int), ShapeError),
        (np.zeros(2), DTypeError),
        (np.array([-1]), ArgumentError),
    ):
        with pytest.raises(error):
            statistics.countable(wrong)
