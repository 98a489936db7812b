"""Rare dtypes, options and states of ops on MLX have the outcomes of NumPy in float64."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest

from emberharmony import Parameter, errors, ops
from emberharmony.backend.choice import use_backend
from emberharmony.core import selection
from emberharmony.core.dispatch import fast
from tests.backend.mlx_outcomes import assert_as_numpy, drawn

mx = pytest.importorskip("mlx.core")
products_ops = pytest.importorskip("emberharmony.backend.mlx.algebra.products_ops")
derivatives = pytest.importorskip("emberharmony.backend.mlx.derivatives")
device_ops = pytest.importorskip("emberharmony.backend.mlx.device_ops")


def given(key: Any) -> Any:
    return ops.convert_to_tensor(key) if isinstance(key, np.ndarray) else key


def test_histograms_and_counts() -> None:
    x = drawn(40)
    for options in ({}, {"bins": 3}, {"range": (0.0, 1.0)}, {"bins": 4, "range": (-2.0, 3.0)}):
        for kind in ("float32", "float64"):
            for case in ([x], [drawn(0)], [drawn(2, 3)]):
                assert_as_numpy(
                    partial(ops.histogram, **options), case, kind, gradients=not options or "bins" in options
                )
    ids = np.array([0, 3, 3, 1])
    for weights, low in product((None, drawn(4), drawn(4).astype("float16")), (0, 6)):
        case = [drawn(1)] if weights is None else [weights]
        assert_as_numpy(lambda w, low=low, u=weights is None: ops.bincount(given(ids), None if u else w, low), case)


def test_variances_of_complex_numbers_and_of_nothing() -> None:
    numbers = (drawn(3, 70) + 1j * drawn(70, 3).T).astype("complex64")
    for name, axis, correction in product(("var", "std"), (None, 0, -1, ()), (0, 1)):
        assert_as_numpy(partial(getattr(ops, name), axis=axis, correction=correction), [numbers], gradients=False)
        assert_as_numpy(partial(getattr(ops, name), axis=axis, correction=correction), [drawn(90, 100)], eps=16.0)
    assert_as_numpy(lambda x, c: ops.var(x, correction=c), [drawn(5), np.asarray(2.0, np.float32)])


def test_transforms_of_fourier_and_elementary_functions() -> None:
    for name, kind, n in product(("fft", "ifft", "rfft", "irfft"), ("float32", "float16"), (None, 3, 8)):
        op = getattr(ops.fft, name)
        for part in (ops.real, ops.imag):
            if kind == "float32":
                assert_as_numpy(lambda x, op=op, part=part, n=n: part(op(x, n)), [drawn(2, 5)], eps=32.0)
        with use_backend("mlx"):
            x = ops.convert_to_tensor(drawn(2, 5).astype(kind))
            assert ops.dtype(op(x, n)) == ("float32" if name == "irfft" else "complex64")
            assert np.allclose(op(x, n), op(ops.cast(x, "float32"), n))
    numbers = (drawn(6) + 1j * drawn(6)[::-1]).astype("complex64")
    for name in ("expm1", "exp2", "exp", "sqrt", "log", "tanh"):
        with use_backend("mlx"):
            found = ops.to_numpy(getattr(ops, name)(mx.array(numbers)))
        with use_backend("numpy"):
            wanted = getattr(ops, name)(numbers.astype("complex128"))
        np.testing.assert_allclose(found, wanted, rtol=2e-6)


def test_updates_at_vectors_of_indices() -> None:
    x = drawn(4, 3)
    for reduction, places in product(
        (None, "add", "mul", "max", "min"), (np.array([[0], [2]]), np.array([[0, 1], [3, 2]]))
    ):
        updates = drawn(2, 3) if places.shape[1] == 1 else drawn(2)
        for hosted in (False, True):
            key = places.tolist() if hosted else places
            smooth = reduction in (None, "add")
            assert_as_numpy(
                lambda x, u, k=key, r=reduction: ops.scatter_update(x, given(k), u, r), [x, updates], gradients=smooth
            )
    with use_backend("mlx"):
        integers = ops.scatter_update(mx.array([1, 2, 3]), mx.array([[0], [0]]), mx.array([5, 4]), "max")
        assert integers.tolist() == [5, 2, 3]
        numbers = mx.array([1j, 2j])
        with pytest.raises(errors.DTypeError):
            ops.scatter_update(numbers, mx.array([[0]]), numbers[:1], "max")


def test_indices_are_read_in_checked_mode() -> None:
    with use_backend("mlx"), ops.checked():
        x, at = mx.arange(6.0).reshape(2, 3), mx.array([1, 0])
        assert ops.get_item(x, at).tolist() == [[3, 4, 5], [0, 1, 2]]
        assert ops.get_item(x, (at, mx.array([True, False, True]))).tolist() == [3, 2]
        assert ops.put_along_axis(x, mx.array([[2], [0]]), 9.0, 1).tolist() == [[0, 1, 9], [9, 4, 5]]
        for wrong in (lambda: ops.get_item(x, mx.array([2])), lambda: ops.take(x, mx.array([5]), 1)):
            with pytest.raises(errors.IndexOutOfBoundsError):
                wrong()


def test_in_checked_mode_an_operator_with_a_native_array_is_differentiated_beside_indices() -> None:
    with use_backend("mlx"):
        table, x = Parameter([[1.0, 2.0], [3.0, 4.0]]), mx.zeros((2, 2))

        def loss() -> Any:
            return ops.sum(ops.square(x - ops.take(table, mx.array([1, 1]), axis=0)))

        with ops.checked():
            ops.backward(loss, table)
        assert table.grad.tolist() == [[0, 0], [12, 16]]


def test_numpy_multiplies_large_matrices_if_the_environment_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    short = partial(lambda further: fast(mx.matmul, f"{{0}}.size < 0{further}"))
    with pytest.raises(errors.SettingsError, match="to be 'numpy' or not set, got 'mkl'"):
        products_ops._matmul_for_environment(products_ops._matmul, short, "mkl")
    chosen = products_ops._matmul_for_environment(products_ops._matmul, short, "numpy")
    called = []
    native = np.matmul
    monkeypatch.setattr(np, "matmul", lambda *args: called.append(args) or native(*args))
    with use_backend("mlx"):
        x, y = mx.array(drawn(64, 64)), mx.array(drawn(64, 32))
        for one, other, by_numpy in (
            (x, y, True),
            (x[None], y, True),
            (x[:2, :3], y[:3], False),
            (x, y[:, 0], False),
            (x.astype(mx.float16), y.astype(mx.float16), False),
            (x, y.astype(mx.float64), False),
        ):
            called.clear()
            found = chosen(one, other)
            assert bool(called) is by_numpy
            np.testing.assert_allclose(
                np.array(found), np.array(one) @ np.array(other), rtol=2e-2 if one.itemsize < 4 else 1e-5, atol=1e-4
            )
        with pytest.raises(errors.ShapeError):
            chosen(x, y[:63])
        called.clear()
        gradient = mx.grad(lambda x: chosen(x, y).sum())(x)
        np.testing.assert_allclose(np.array(gradient), np.ones((64, 32)) @ np.array(y).T, rtol=1e-5, atol=1e-4)
        traced = mx.compile(products_ops.numpy_matmul)(x, y)
        np.testing.assert_allclose(np.array(traced), np.array(x) @ np.array(y), rtol=1e-5, atol=1e-4)


def test_a_function_with_other_derivatives_is_mapped_also_where_nothing_is() -> None:
    doubled = derivatives.with_transforms_of(lambda x, y: x * y, lambda x, y: x * y * 3)
    x, y = mx.array(drawn(2, 3)), mx.array(drawn(2, 3))
    assert mx.vmap(lambda a: doubled(y, y) + a)(x).shape == (2, 2, 3)
    assert mx.allclose(mx.vmap(doubled)(x, y), x * y * 3)
    assert mx.allclose(mx.grad(lambda a: doubled(a, y).sum())(x), 3 * y)
    assert mx.allclose(mx.jvp(lambda a: doubled(a, y), [x], [mx.ones_like(x)])[1][0], 3 * y)


def test_a_device_may_be_given_as_that_of_mlx() -> None:
    with use_backend("mlx"):
        assert ops.to_device(mx.ones(2), mx.Device(mx.cpu, 0)).tolist() == [1, 1]
        with ops.device(mx.Device(mx.cpu, 0)):
            assert ops.get_device(ops.ones(2)) == "cpu"
        ops.synchronize(mx.Device(mx.cpu, 0))


def test_a_tensor_that_another_thread_has_not_computed_is_named() -> None:
    def made() -> Any:
        with use_backend("mlx"):
            return ops.sin(ops.ones(5))

    def read(x: Any) -> None:
        with use_backend("mlx"):
            for each in (ops.to_numpy, ops.eval, ops.nonzero, selection.current().pack):
                with pytest.raises(errors.BackendExecutionError, match=r"call ops.eval\(x\) there first"):
                    each(x)

    # Neither is the thread of the tests, which shares its stream once a test has used arrays of the standard.
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as other:
        other.submit(read, one.submit(made).result()).result()


def test_a_write_into_memory_leaves_other_holders_of_the_tensor_as_they_are() -> None:
    with use_backend("mlx"):
        old = ops.zeros((2, 3))
        other = old
        made = selection.current().write_into(old, 1, ops.ones(3))
        assert made.tolist() == [[0, 0, 0], [1, 1, 1]]
        assert other.tolist() == [[0, 0, 0], [0, 0, 0]]


@pytest.mark.fresh_process
def test_asarray_of_a_wide_tensor_of_mlx_counts_as_its_first_use() -> None:
    program = (
        "import mlx.core as mx; from emberharmony import ops; ops.set_backend('mlx')\n"
        "assert 2e43 < ops.exp(ops.asarray(mx.array([100.0], mx.float64))).item() < 3e43\n"
        "x = ops.add(ops.asarray(mx.array([2**40], mx.uint64)), ops.ones(1, 'int64'))\n"
        "assert ops.dtype(x) == 'float64', x.dtype\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_only_tensors_that_may_be_too_large_are_compared_with_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[Any] = []
    monkeypatch.setattr(device_ops, "check_memory", lambda *given: compared.append(given))
    for length in (3, 2**30):
        x = mx.broadcast_to(mx.ones(1), (length,))
        assert device_ops.require_memory(x) is x
    assert compared == [((2**30,), 4)]


def test_the_derivative_of_a_singular_determinant_is_nan_and_not_an_error() -> None:
    with use_backend("mlx"):
        x = mx.ones((2, 2))
        assert mx.isnan(ops.grad(lambda x: ops.slogdet(x)[1])(x)).all()
        assert mx.isnan(ops.jvp(lambda x: ops.slogdet(x)[1], (x,), (x,))[1])
