"""Differences, interpolation, correlation, convolution and polynomials: edges, dtypes, gradients, transforms."""

from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.core import errors

XP, FP = np.float32([0.0, 1.0, 3.0]), np.float32([0.0, 10.0, 30.0])


def test_interp_of_complex_values_agrees_with_numpy(backend: str) -> None:
    values = np.array([1 + 2j, -1j, 4], np.complex64)
    at = np.float32([0.25, 2.0, 5.0, -1.0])
    found = ops.interp(at, XP, values)
    assert ops.dtype(found) == "complex64"
    np.testing.assert_allclose(ops.to_numpy(found), np.interp(at, XP, values), rtol=1e-6)


def test_interp_promotes_and_takes_tensors_for_the_ends(backend: str) -> None:
    assert ops.dtype(ops.interp([1], [0, 2], [0, 4])) == "float32"
    assert ops.dtype(ops.interp(np.float16([1]), np.float16([0, 2]), np.float16([0, 4]))) == "float16"
    found = ops.interp([-1.0, 1.0, 9.0], XP, FP, ops.convert_to_tensor(7.0), -7)
    assert found.tolist() == [7.0, 10.0, -7.0]


def test_interp_has_the_gradients_of_a_line(backend: str) -> None:
    def value(x: Any, xp: Any, fp: Any) -> Any:
        return ops.sum(ops.interp(x, xp, fp))

    by_x, by_xp, by_fp = ops.grad(value, argnums=(0, 1, 2))(np.float32([0.25, 2.0]), XP, FP)
    assert by_x.tolist() == [10.0, 10.0]
    np.testing.assert_allclose(ops.to_numpy(by_xp), [-7.5, -7.5, -5.0], rtol=1e-6)
    np.testing.assert_allclose(ops.to_numpy(by_fp), [0.75, 0.75, 0.5], rtol=1e-6)
    # At a point the slope is that to its right; beyond the points it is 0.
    slopes = ops.grad(lambda x: ops.sum(ops.interp(x, XP, ops.square(FP))))(np.float32([-1.0, 0.0, 1.0, 3.0, 9.0]))
    assert slopes.tolist() == [0.0, 100.0, 400.0, 0.0, 0.0]
    assert float(ops.grad(lambda end: ops.interp(-1.0, XP, FP, left=end))(2.0)) == 1.0


def test_interp_maps_and_has_directional_derivatives(backend: str) -> None:
    at = np.float32([[0.5, 2.0], [1.5, -4.0]])
    mapped = ops.vmap(lambda x: ops.interp(x, XP, FP))(at)
    np.testing.assert_allclose(ops.to_numpy(mapped), np.interp(at, XP, FP), rtol=1e-6)
    _, slope = ops.jvp(lambda x: ops.interp(x, XP, FP), (at,), (np.ones_like(at),))
    assert slope.tolist() == [[10.0, 10.0], [10.0, 0.0]]


@pytest.mark.parametrize("mode", ["valid", "same", "full"])
def test_convolve_agrees_with_numpy_for_all_lengths(backend: str, mode: Any) -> None:
    for n in range(1, 6):
        for m in range(1, 6):
            a, v = np.arange(n) + 1, (np.arange(m) - 2) ** 2
            assert ops.convolve(a, v, mode).tolist() == np.convolve(a, v, mode).tolist()


def test_polyval_of_a_constant_is_finite_everywhere(backend: str) -> None:
    assert ops.polyval([3.0], [1.0, float("inf")]).tolist() == [3.0, 3.0]
    assert ops.polyval(np.zeros(0, np.float32), [1.0, 2.0]).tolist() == [0.0, 0.0]
    assert ops.dtype(ops.polyval(np.int32([1, 2]), np.int32([3]))) == "int32"
    assert float(ops.grad(lambda x: ops.polyval([2.0, 0.0, 1.0], x))(3.0)) == 12.0


def test_correlate_of_integers_gives_integers(backend: str) -> None:
    found = ops.correlate(np.array([1, 2, 3], np.int32), np.array([2, 1], np.int32), "full")
    assert found.tolist() == np.correlate([1, 2, 3], [2, 1], "full").tolist()
    assert ops.dtype(found) == "int32"


@pytest.mark.parametrize("n", [1, 2])
def test_booleans_differ_if_they_are_not_equal(n: int, backend: str) -> None:
    x = np.array([[True, False, False, True], [True, True, False, True]])
    found = ops.diff(x, n)
    assert ops.dtype(found) == "bool"
    assert ops.to_numpy(found).tolist() == np.diff(x, n).tolist()
    assert ops.to_numpy(ops.diff(x, n, 0, prepend=x[:1])).tolist() == np.diff(x, n, 0, prepend=x[:1]).tolist()


def test_no_difference_is_the_tensor_itself(backend: str) -> None:
    assert np.diff(np.array([1, 4, 9]), 0, prepend=[0]).tolist() == [1, 4, 9]
    assert ops.to_numpy(ops.diff([1, 4, 9], 0, prepend=[0])).tolist() == [1, 4, 9]


def test_more_differences_than_elements_are_none(backend: str) -> None:
    squares = ops.square(ops.arange(4))
    for n in range(6):
        assert ops.diff(squares, n).tolist() == np.diff(np.arange(4) ** 2, n).tolist()
    assert ops.shape(ops.diff(ops.ones((2, 4)), 2**70, 0)) == (0, 4)
    assert ops.shape(ops.diff(ops.ones((2, 0)), 2**40)) == (2, 0)
    with pytest.raises(errors.ArgumentTypeError, match="diff"):
        ops.diff(squares, 7.5)  # type: ignore[arg-type]
    with pytest.raises(errors.AxisError, match="diff"):
        ops.diff(squares, 2**40, 1)


def test_wrong_arguments_of_diff_and_correlate_are_refused(backend: str) -> None:
    x = [1.0, 2.0]
    with pytest.raises(errors.ArgumentError):
        ops.diff(x, -1)
    with pytest.raises(errors.AxisError):
        ops.diff(x, axis=1)
    with pytest.raises(errors.ArgumentError):
        ops.correlate(x, x, "some")  # type: ignore[arg-type]
    with pytest.raises(errors.ShapeError):
        ops.correlate([x], x)
