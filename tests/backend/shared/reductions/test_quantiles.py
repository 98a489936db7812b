"""Positions of quantiles, and their argument checks."""

import numpy as np
import pytest

from emberharmony.backend.shared.reductions import quantiles
from emberharmony.errors import ArgumentError


@pytest.mark.parametrize("method", quantiles.METHODS)
@pytest.mark.parametrize("length", [1, 2, 5, 8])
def test_quantiles_agree_with_numpy(method: str, length: int) -> None:
    q, row = np.linspace(0, 1, 11), np.sort(np.random.default_rng(1).standard_normal(length))
    low, high, weight = quantiles.quantile_neighbours(q, length, method)
    found = row[low] + (row[high] - row[low]) * weight
    np.testing.assert_allclose(found, np.quantile(row, q, method=method), atol=1e-12)  # type: ignore[call-overload]


def test_a_wrong_method_or_quantile_is_refused() -> None:
    with pytest.raises(ArgumentError, match="method"):
        quantiles.quantile_neighbours(np.array(0.5), 3, "median")
    for q in (-0.1, 1.1, np.nan):
        with pytest.raises(ArgumentError):
            quantiles.quantile_neighbours(np.array(q), 3, "linear")
