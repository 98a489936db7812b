"""Norms beyond the sample rows: errors, range and gradients at zero."""

from collections.abc import Callable

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.core import errors

X = np.ones((2, 3, 4), np.float32)
ERRORS: list[tuple[Callable[[], object], type[Exception]]] = [
    (lambda: ops.norm(X, axis=4), errors.AxisError),
    (lambda: ops.norm(X, 1, (0, 0)), errors.AxisError),
    (lambda: ops.norm(X, 1), errors.ArgumentError),
    (lambda: ops.norm(X[0], "fronk"), errors.ArgumentError),
    (lambda: ops.norm(X[0, 0], "fro"), errors.ArgumentError),
    (lambda: ops.matrix_norm(X, 3), errors.ArgumentError),
    (lambda: ops.matrix_norm(X[0, 0]), errors.AxisError),
    (lambda: ops.vector_norm(X[:0], None, False, -np.inf), errors.ShapeError),
    (lambda: ops.normalize(X, 3), errors.AxisError),
    (lambda: ops.cdist(X, X[..., :2]), errors.ShapeError),
    (lambda: ops.linalg.cond(np.ones((2, 2)), 1), errors.LinAlgError),
    (lambda: ops.linalg.cond(np.ones((0, 0))), errors.ShapeError),
    (lambda: ops.linalg.cond(np.ones((2, 2)), 5), errors.ArgumentError),
]


@pytest.mark.parametrize("call, typed", ERRORS)
def test_bad_input_raises_a_typed_error(call: Callable[[], object], typed: type[Exception], backend: str) -> None:
    with pytest.raises(typed, match=rf"\(\) on backend '{backend}'"):
        ops.eval(call())  # Dask raises when a block is computed


def test_squares_in_a_norm_neither_overflow_nor_underflow(backend: str) -> None:
    for size in (1e30, 1e-30):
        assert float(ops.norm(np.float32([3 * size, 4 * size]))) == pytest.approx(5 * size, rel=1e-6)
    many = ops.cast(np.full(70_000, 2.0), "float16")
    assert float(ops.norm(many)) == pytest.approx(2 * 70_000**0.5, rel=1e-3)


def test_the_norm_of_a_long_vector_is_precise(backend: str) -> None:
    x = np.random.default_rng(0).random(1_000_000, np.float32)
    assert float(ops.norm(x)) == pytest.approx(float(np.linalg.norm(x.astype(np.float64))), rel=1e-6)


def test_a_norm_over_no_axes_is_the_absolute_value(backend: str) -> None:
    assert ops.vector_norm([-1.0, 2.0], ()).tolist() == [1.0, 2.0]


def test_the_condition_number_of_a_singular_matrix_is_infinite(backend: str) -> None:
    assert float(ops.linalg.cond(np.zeros((2, 2), np.float32) + np.diag([1.0, 0.0]).astype(np.float32))) == np.inf


def test_a_matrix_norm_accepts_axes_in_any_order(backend: str) -> None:
    x = np.random.default_rng(1).standard_normal((2, 3, 4)).astype(np.float32)
    kept = ops.norm(x, 1, (2, 0), True)
    assert tuple(kept.shape) == (1, 3, 1)
    assert np.array_equal(ops.to_numpy(kept).ravel(), ops.to_numpy(ops.norm(x, 1, (2, 0))))


def test_the_gradient_at_zero_is_zero_on_torch() -> None:
    torch = pytest.importorskip("torch")
    x = torch.zeros(2, requires_grad=True)
    with ops.use_backend("torch"):
        ops.norm(x).backward()
    assert x.grad.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("order", [2, 3])
def test_the_gradient_at_zero_is_zero_on_mlx(order: float) -> None:
    mx = pytest.importorskip("mlx.core")
    with ops.use_backend("mlx"):
        assert mx.grad(lambda x: ops.vector_norm(x, ord=order))(mx.zeros(2)).tolist() == [0.0, 0.0]


def test_norms_over_an_empty_axis_are_zero_or_infinite(backend: str) -> None:
    nothing = np.ones((3, 0), np.float32)
    for ord, wanted in ((2, 0.0), (0, 0.0), (1, 0.0), (np.inf, 0.0), (-1, np.inf), (-2, np.inf)):
        with np.errstate(divide="ignore"):
            assert ops.vector_norm(nothing, 1, ord=ord).tolist() == [wanted] * 3
            assert ops.vector_norm(nothing, 0, ord=ord).tolist() == []


@pytest.mark.parametrize("order", [2, 3, 0.5, -2, 12])
@pytest.mark.parametrize(
    "dtype, size", [("float64", 1e200), ("float64", 1e-200), ("float32", 1e30), ("float32", 1e-30)]
)
def test_powers_in_a_norm_and_its_derivatives_stay_in_range(
    dtype: str, size: float, order: float, backend: str
) -> None:
    x = np.array([3 * size, 4 * size], dtype)
    unit = np.array([3.0, 4.0])
    wanted = (unit**order).sum() ** (1 / order)
    np.testing.assert_allclose(ops.to_numpy(ops.vector_norm(x, ord=order)), wanted * x[0] / 3, rtol=1e-5)
    np.testing.assert_allclose(ops.to_numpy(ops.normalize(x, order=order, epsilon=0.0)), unit / wanted, rtol=1e-5)
    derivative = (unit / wanted) ** (order - 1)
    found = ops.to_numpy(ops.grad(lambda x: ops.vector_norm(x, ord=order))(x))
    np.testing.assert_allclose(found, derivative, rtol=1e-5)
    pushed = ops.jvp(lambda x: ops.vector_norm(x, ord=order), (x,), (np.ones(2, dtype),))[1]
    np.testing.assert_allclose(ops.to_numpy(pushed), derivative.sum(), rtol=1e-5)


def test_an_order_that_is_not_a_number_is_refused(backend: str) -> None:
    for call, name in (
        (lambda order: ops.vector_norm([1.0, 2.0], ord=order), "ord"),
        (lambda order: ops.linalg.vector_norm([1.0, 2.0], ord=order), "ord"),
        (lambda order: ops.normalize([1.0, 2.0], order=order), "order"),
        (lambda order: ops.cdist([[1.0]], [[2.0]], order), "p"),
    ):
        for wrong in ("a", "2", 1j):
            with pytest.raises(errors.ArgumentError, match=rf"\b{name} is a number, not {wrong!r}"):
                call(wrong)
    assert float(ops.vector_norm([3.0, 4.0], ord=np.float32(2))) == 5.0


def test_norms_of_empty_zero_infinite_and_nan_vectors(backend: str) -> None:
    for dtype in ("float32", "float64"):
        for values, wanted in (([], 0.0), ([0.0, 0.0], 0.0), ([np.inf, 1.0], np.inf), ([np.nan, 1.0], np.nan)):
            for order in (2, 12):
                found = ops.vector_norm(np.array(values, dtype), ord=order)
                np.testing.assert_equal(float(found), wanted)


@pytest.mark.parametrize("ord", [100, 2**31, 2**70, 1e9])
def test_norms_of_high_order_neither_overflow_nor_underflow(ord: float, backend: str) -> None:
    x = np.array([1.0, -200.0, 1e-30], np.float32)
    assert float(ops.vector_norm(x, ord=ord)) == pytest.approx(200.0, rel=1e-5)
    with np.errstate(all="ignore"):
        assert float(ops.vector_norm(x[:2], ord=-ord)) == pytest.approx(1.0, rel=1e-5)


@pytest.mark.parametrize("ord", [2, 1, -1, -np.inf])
def test_a_norm_over_no_axes_keeps_the_shape_of_an_empty_tensor(ord: float, backend: str) -> None:
    assert ops.shape(ops.vector_norm(ops.zeros((0, 4)), axis=(), ord=ord)) == (0, 4)
