"""Histograms and counts beyond the sample rows: weights, NaN, errors."""

from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.core import errors

INF, NAN = float("inf"), float("nan")


def host(x: Any) -> Any:
    return ops.to_numpy(x).tolist()


def test_weighted_counts_are_added_in_float64(backend: str) -> None:
    n = 100_000
    counts = ops.bincount(np.zeros(n, np.int64), np.full(n, 0.1, np.float32))
    assert ops.dtype(counts) == "float32"
    assert host(counts)[0] == pytest.approx(n * float(np.float32(0.1)), rel=1e-6)
    exact = np.array([1 / 3, 0.5])
    assert host(ops.bincount([0, 1], exact)) == exact.tolist()


def test_histogram_ignores_nan_and_refuses_wrong_bins(backend: str) -> None:
    assert host(ops.histogram([0.0, 0.5, NAN, 1.0, 7.0], 2, (0.0, 1.0))[0]) == [1, 2]
    assert host(ops.histogram(ops.cast([0.0, 1.0], "bfloat16"), 2)[0]) == [1, 1]
    for bins, limits in ((0, None), (2, (1.0, 0.0)), (2, (0.0, INF))):
        with pytest.raises(errors.ArgumentError, match="histogram"):
            ops.histogram([1.0], bins, limits)


def test_the_edges_move_with_the_extremes_unless_a_range_is_given(backend: str) -> None:
    weights, x = ops.array([1.0, 2.0, 3.0, 4.0, 5.0]), ops.array([0.0, 1.0, 3.0, 1.0, 0.5])

    def edges(x: Any, limits: Any = None) -> Any:
        return ops.sum(ops.multiply(ops.histogram(x, 4, limits)[1], weights))

    assert [host(part) for part in ops.histogram(x, 4)] == [[2, 2, 0, 1], [0.0, 0.75, 1.5, 2.25, 3.0]]
    assert [host(part) for part in ops.histogram(x, 2, (0.0, 1.0))] == [[1, 3], [0.0, 0.5, 1.0]]
    assert [host(part) for part in ops.histogram(ops.array([4.0, 2.0, 3.0]), 2)] == [[1, 2], [2.0, 3.0, 4.0]]
    assert [host(part) for part in ops.histogram(ops.zeros((0,)), 2)] == [[0, 0], [0.0, 0.5, 1.0]]
    assert host(ops.grad(edges)(x)) == [5.0, 0.0, 10.0, 0.0, 0.0]
    assert host(ops.grad(edges)(x, (0.0, 1.0))) == [0.0] * 5


def test_counts_of_an_empty_vector_are_zero(backend: str) -> None:
    assert host(ops.bincount(ops.zeros((0,), "int64"), minlength=2)) == [0, 0]


def test_only_vectors_of_natural_numbers_are_counted(backend: str) -> None:
    with pytest.raises(errors.ArgumentError):
        ops.bincount([-1, 2])
    with pytest.raises(errors.DTypeError):
        ops.bincount([0.5])
    with pytest.raises(errors.ShapeError):
        ops.bincount([[1]])
    for weights in ([1.0], [1.0, 2.0, 3.0], [[1.0, 2.0]]):  # a library may broadcast some of them
        with pytest.raises(errors.ShapeError):
            ops.bincount([0, 1], weights)


def test_edges_move_with_the_ends_unless_these_are_given(backend: str) -> None:
    def edges(x: Any, limits: Any) -> Any:
        return ops.sum(ops.histogram(x, 2, limits)[1])

    x = ops.array([0.5, 0.0, 1.0])
    assert ops.grad(lambda x: edges(x, None))(x).tolist() == [0.0, 1.5, 1.5]
    assert ops.grad(lambda x: ops.add(edges(x, (0.0, 1.0)), ops.sum(x)))(x).tolist() == [1.0, 1.0, 1.0]
    assert ops.grad(lambda x: ops.add(edges(x, None), ops.sum(x)))(ops.zeros((0,))).tolist() == []


def test_numbers_of_float64_beside_an_edge_are_told_apart(backend: str) -> None:
    x = np.array([0.0, 0.5 - 1e-12, 0.5 + 1e-12, 1.0])
    assert ops.histogram(x, 2, (0.0, 1.0))[0].tolist() == [2, 2]
    assert ops.histogram(x[:2], 2, (0.0, 1.0))[0].tolist() == [2, 0]
