"""Pools: what is padded counts for nothing, NaN is passed on, bad arguments are refused."""

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.core.errors import ArgumentError, ShapeError


def test_padding_counts_for_nothing(backend: str) -> None:
    x = -np.ones((1, 5, 1), np.float32)
    assert ops.to_numpy(ops.max_pool(x, 3, 1, "same")).tolist() == x.tolist()
    assert ops.to_numpy(ops.average_pool(x, 3, 1, "same")).tolist() == x.tolist()


def test_nan_is_passed_on(backend: str) -> None:
    x = np.array([[[1.0], [np.nan], [2.0], [3.0]]], np.float32)
    assert np.isnan(ops.to_numpy(ops.max_pool(x, 2))).ravel().tolist() == [True, False]


def test_bad_arguments_are_refused(backend: str) -> None:
    with pytest.raises(ArgumentError, match="pool_size is an integer from 1 on"):
        ops.max_pool(np.ones((1, 4, 1)), 0)
    with pytest.raises(ShapeError, match="a window of 5 does not fit an axis of length 4"):
        ops.average_pool(np.ones((1, 4, 1)), 5)
    with pytest.raises(ArgumentError, match="output_size is an integer from 1 on"):
        ops.adaptive_max_pool(np.ones((1, 4, 1)), (2, 2))
