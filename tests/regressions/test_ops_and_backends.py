"""Faults of ops and backends that users met or that measurements found, each as the program that showed it."""

import math
from typing import Any

import numpy as np
import pytest

from emberharmony import Parameter, errors, ops

EVERY = [name for name in ("numpy", "torch", "mlx", "jax", "dask") if name in ops.available_backends()]
"""All installed backends, JAX and Dask too, which tests with the fixture `backend` leave out."""


@pytest.mark.parametrize("name", EVERY)
def test_inverse_functions_of_a_complex_nan_are_nan(name: str) -> None:
    z = np.array([complex(math.nan, 1), complex(1, math.nan), complex(math.nan, math.nan)], np.complex64)
    with ops.use_backend(name):
        for op in (ops.arcsin, ops.arccos, ops.arctan, ops.arccosh, ops.arctanh, ops.arcsinh):
            found = ops.to_numpy(op(z))
            assert np.isnan(found.real).all(), op.__name__
            assert np.isnan(found.imag).all(), op.__name__


@pytest.mark.parametrize("name", EVERY)
def test_inverse_functions_of_complex_infinities_keep_their_limits(name: str) -> None:
    inf, nan, right = math.inf, math.nan, math.pi / 2
    z = np.array([complex(inf, 1), complex(-1, inf), complex(nan, inf), complex(inf, nan)], np.complex64)
    with ops.use_backend(name):
        found = ops.to_numpy(ops.arctan(z)).real, ops.to_numpy(ops.arctanh(z)).imag
        ends = ops.to_numpy(ops.arcsinh(z))
    np.testing.assert_allclose(found[0][[0, 1, 3]], [right, -right, right], rtol=1e-6)
    np.testing.assert_allclose(found[1][:3], [right, right, right], rtol=1e-6)
    assert np.isnan([found[0][2], found[1][3]]).all()
    assert np.isinf(ends.real).all()


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("op", ["var", "std"])
def test_the_variance_over_no_axes_is_nan_where_an_element_is_not_finite(name: str, op: str) -> None:
    with ops.use_backend(name):
        spread = getattr(ops, op)
        for dtype in ("float32", "float16", "complex64"):
            x = ops.cast([math.nan, math.inf, 2.0], dtype)
            np.testing.assert_array_equal(ops.to_numpy(spread(x, axis=())), [math.nan, math.nan, 0.0])
        assert math.isnan(spread(ops.asarray(math.nan)))
        assert math.isnan(spread(ops.asarray(math.nan), keepdims=True))
        assert float(spread(ops.asarray(2.0))) == 0.0


@pytest.mark.parametrize("name", EVERY)
def test_cumulative_sums_and_products_of_dtype_bool_are_truth_values(name: str) -> None:
    with ops.use_backend(name):
        some, every = ops.cumsum([0.0, 0.5, -0.5], dtype="bool"), ops.cumprod([2.0, 0.0, 3.0], dtype="bool")
        assert ops.dtype(some) == ops.dtype(every) == "bool"
        assert ops.to_numpy(some).tolist() == [False, True, True]
        assert ops.to_numpy(every).tolist() == [True, False, False]
        assert ops.to_numpy(ops.cumsum(ops.ones(300), dtype="bool")).all()


@pytest.mark.parametrize("name", EVERY)
def test_remainders_of_zero_have_the_sign_of_the_divisor_and_zero_has_the_sign_zero(name: str) -> None:
    with ops.use_backend(name):
        for dtype in ("float32", "float64", "float16"):
            zeros, ones = ops.cast([-0.0, 0.0, -0.0], dtype), ops.cast([1.0, -1.0, -2.0], dtype)
            assert np.signbit(ops.to_numpy(ops.remainder(zeros, ones))).tolist() == [False, True, True]
            assert not np.signbit(ops.to_numpy(ops.sign(zeros))).any()
        by = ops.grad(lambda a, b: ops.sum(ops.remainder(a, b)), (0, 1))([-0.0, 0.0, 3.0], [1.0, -2.0, -2.0])
        np.testing.assert_array_equal(ops.to_numpy(by[0]), [1.0, 1.0, 1.0])
        np.testing.assert_array_equal(ops.to_numpy(by[1]), [0.0, 0.0, 2.0])


@pytest.mark.parametrize("name", EVERY)
def test_a_cell_that_is_first_read_in_a_compiled_function_keeps_its_value(name: str) -> None:
    if name == "torch":  # whose compiler takes seconds; tests/core/cells/test_moves_in_transforms.py has it
        pytest.skip("another test has it")
    with ops.use_backend("numpy"):
        w = Parameter([1.0, 2.0])
        with ops.use_backend(name):
            assert ops.to_numpy(ops.compile(lambda t: ops.multiply(w, t))(ops.ones(2))).tolist() == [1.0, 2.0]
            assert ops.to_numpy(ops.multiply(w, ops.ones(2))).tolist() == [1.0, 2.0]
        assert w.value.tolist() == [1.0, 2.0]


def test_second_derivatives_take_a_native_array_on_the_left(backend: str) -> None:
    a, y = ops.ones((4, 2)), ops.ones(4)

    def loss(w: Any) -> Any:
        return ops.sum((a @ w - y) ** 2)

    w, v, full = ops.zeros(2), ops.array([1.0, 0.5]), [[8.0, 8.0], [8.0, 8.0]]
    assert ops.hessian(loss)(w).tolist() == full
    assert ops.jacobian(ops.grad(loss))(w).tolist() == full
    assert ops.jacfwd(ops.grad(loss))(w).tolist() == full
    assert ops.jvp(ops.grad(loss), (w,), (v,))[1].tolist() == [12.0, 12.0]
    assert ops.grad(lambda w: ops.jvp(loss, (w,), (v,))[1])(w).tolist() == [12.0, 12.0]
    assert ops.vmap(ops.hessian(loss))(ops.zeros((3, 2))).tolist() == [full] * 3
    assert ops.grad(lambda w: ops.sum(ops.grad(loss)(w)))(w).tolist() == [16.0, 16.0]
    with ops.checked():
        assert ops.grad(loss)(w).tolist() == [-8.0, -8.0]
        assert ops.hessian(loss)(w).tolist() == full


def test_derivatives_by_mlx_alone_draw_the_numbers_of_the_tape(backend: str) -> None:
    a = ops.ones(2)

    def noisy(w: Any) -> Any:
        noise = ops.random.uniform(2)
        return ops.sum(a * w * w * noise)

    ops.random.seed(3)
    drawn = ops.random.uniform(2).tolist()
    ops.random.seed(3)
    assert np.allclose(np.diag(ops.to_numpy(ops.hessian(noisy)(ops.ones(2)))), np.multiply(2, drawn))
    ops.random.seed(3)
    with ops.checked():
        assert np.allclose(ops.to_numpy(ops.grad(noisy)(ops.ones(2))), np.multiply(2, drawn))


def test_a_jacobian_of_an_assignment_is_zero_where_it_writes(backend: str) -> None:
    x, row = ops.ones((2, 3)), ops.array([1.0, 2.0, 3.0])
    key = (slice(None), slice(1, 2))
    for fn in (
        lambda x: ops.set_item(x, 0, 5.0),
        lambda x: ops.slice_update(x, (0, 0), ops.zeros((1, 3))),
        lambda x: ops.set_item(x, key, ops.zeros((2, 1))),
    ):
        wanted = np.diag((ops.to_numpy(fn(ops.zeros((2, 3)))) == 0).ravel() & (ops.to_numpy(fn(x)) == 1).ravel())
        for jacobian in (ops.jacobian, ops.jacfwd, lambda fn: ops.hessian(lambda x: ops.sum(fn(x) ** 2) / 2)):
            found = ops.to_numpy(jacobian(fn)(x))
            assert np.array_equal(found.reshape(6, 6), wanted)
    written = ops.jacobian(lambda row: ops.set_item(x, 1, row))(row)
    assert np.array_equal(ops.to_numpy(written).reshape(6, 3), np.eye(6)[:, 3:])


@pytest.mark.parametrize("name", [name for name in EVERY if name != "torch"])  # torch.compile takes seconds
def test_ops_that_read_values_on_the_host_run_in_compiled_and_mapped_functions(name: str) -> None:
    x = np.diag([0.5, 1.0]).astype(np.float32)
    with ops.use_backend(name):
        wanted = ops.to_numpy(ops.expm(x))
        np.testing.assert_allclose(ops.to_numpy(ops.compile(ops.expm)(ops.asarray(x))), wanted, rtol=1e-6)
        np.testing.assert_allclose(ops.to_numpy(ops.vmap(ops.expm)(ops.stack([x, x])))[1], wanted, rtol=1e-6)
        slope = ops.compile(ops.grad(lambda x: ops.sum(ops.diagonal(ops.expm(x)))))(ops.asarray(x))
        np.testing.assert_allclose(ops.to_numpy(slope).diagonal(), wanted.diagonal(), rtol=1e-5)


@pytest.mark.parametrize("name", EVERY)
def test_smooth_functions_have_their_derivative_at_zero(name: str) -> None:
    with ops.use_backend(name):
        for op, wanted in ((ops.softplus, 0.5), (ops.log_sigmoid, 0.5), (ops.sigmoid, 0.25), (ops.silu, 0.5)):
            assert float(ops.grad(lambda x, op=op: ops.sum(op(x)))(ops.zeros(1))[0]) == pytest.approx(wanted)
        for op, at, wanted in ((ops.relu, 0.0, 0), (ops.absolute, 0.0, 0), (ops.fabs, 0.0, 0), (ops.hard_tanh, 1.0, 1)):
            assert float(ops.grad(lambda x, op=op: ops.sum(op(x)))(ops.full(1, at))[0]) == wanted, op.__name__
        guarded = ops.grad(lambda x: ops.sum(ops.sqrt(ops.maximum(x, 0.0))))([-1.0, 0.25])
        np.testing.assert_allclose(ops.to_numpy(guarded), [0.0, 1.0])
        if name != "dask":
            unique = ops.grad(lambda x: ops.sum(ops.unique(x) * ops.asarray([1.0, 2.0])))([3.0, 1.0, 3.0])
            assert ops.to_numpy(unique).tolist() == [2.0, 1.0, 0.0]


@pytest.mark.parametrize("name", [name for name in EVERY if name != "mlx"])
def test_indices_in_tensors_are_checked_in_keys_too(name: str) -> None:
    with ops.use_backend(name):
        x = ops.asarray([1.0, 2.0, 3.0])
        for far in (3, -4):
            with pytest.raises(errors.IndexOutOfBoundsError):
                ops.eval(ops.get_item(x, ops.asarray([0, far])))
        assert ops.to_numpy(ops.get_item(x, ops.asarray([0, -1]))).tolist() == [1.0, 3.0]


@pytest.mark.parametrize("name", EVERY)
def test_ranges_have_the_dtype_that_is_asked_for(name: str) -> None:
    with ops.use_backend(name):
        for dtype in ("float64", "float32", "int64", "int8"):
            found = ops.arange(3, dtype=dtype)
            assert ops.dtype(found) == ops.dtype(ops.to_numpy(found)) == dtype


@pytest.mark.parametrize("name", EVERY)
def test_weighted_counts_and_updates_without_elements(name: str) -> None:
    with ops.use_backend(name):
        counts = ops.bincount(np.zeros(100_000, np.int64), np.full(100_000, 0.1, np.float32))
        assert float(counts[0]) == pytest.approx(10_000, rel=1e-6)
        with pytest.raises(errors.ShapeError):
            ops.eval(ops.scatter_update(ops.ones((3, 0)), [[0], [2]], ops.ones((3, 0)), "add"))


@pytest.mark.parametrize("name", EVERY)
def test_imaginary_numbers_are_true(name: str) -> None:
    with ops.use_backend(name):
        x = ops.asarray([0.0j, 0.5j])
        assert (bool(ops.any(x)), bool(ops.all(x)), bool(ops.all(x[1:]))) == (True, False, True)
