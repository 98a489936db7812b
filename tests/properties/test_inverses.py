"""Pairs of ops that undo each other, up to the error that their condition number allows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from emberharmony import ops
from tests.properties.strategies import (
    EPSILON,
    FLOATS,
    FULL_SHAPES,
    INSTALLED,
    INTEGERS,
    SHAPES,
    arrays,
    host,
    matrices,
    near,
    on,
    same,
)

PAIRS = {
    "exp": ("log", -20.0, 20.0),
    "log": ("exp", 2.0**-10, 2.0**10),
    "expm1": ("log1p", -0.5, 20.0),
    "log1p": ("expm1", -0.5, 20.0),
    "exp2": ("log2", -20.0, 20.0),
    "sqrt": ("square", 2.0**-10, 2.0**10),
    "reciprocal": ("reciprocal", 2.0**-10, 2.0**10),
    "sin": ("arcsin", -1.0, 1.0),
    "tan": ("arctan", -1.0, 1.0),
    "sinh": ("arcsinh", -5.0, 5.0),
    "tanh": ("arctanh", -1.0, 1.0),
    "arctan": ("tan", -5.0, 5.0),
    "erf": ("erfinv", -1.0, 1.0),
    "deg2rad": ("rad2deg", -360.0, 360.0),
}


@pytest.mark.parametrize("op", sorted(PAIRS))
@given(data=st.data())
def test_an_inverse_function_undoes_its_function(op: str, data: st.DataObject) -> None:
    inverse, low, high = PAIRS[op]
    dtype = data.draw(st.sampled_from(FLOATS))
    elements = st.floats(low, high, width=np.dtype(dtype).itemsize * 8, allow_subnormal=False)
    x = data.draw(hnp.arrays(dtype, SHAPES, elements=elements))
    for name in INSTALLED:
        with on(name):
            back = host(getattr(ops, inverse)(getattr(ops, op)(x)))
        assert near(back, x, 1 + np.abs(x.astype(np.float64)), 64), name


@given(data=st.data())
def test_an_inverse_fourier_transform_undoes_its_transform(data: st.DataObject) -> None:
    single = data.draw(st.sampled_from((("float32", "complex64"), ("float64", "complex128"))))
    shape = data.draw(FULL_SHAPES)
    real, whole = (data.draw(arrays(dtype, shape, size=10.0)) for dtype in single)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    norm = data.draw(st.sampled_from(("backward", "ortho", "forward")))
    for name in INSTALLED:
        with on(name):
            if name == "mlx" and single[0] == "float64":
                continue
            back = host(ops.fft.irfft(ops.fft.rfft(real, axis=axis, norm=norm), n=shape[axis], axis=axis, norm=norm))
            assert near(back, real, 1 + np.abs(real).max(), 64)
            back = host(ops.fft.ifft(ops.fft.fft(whole, axis=axis, norm=norm), axis=axis, norm=norm))
            assert near(back, whole, 1 + np.abs(whole).max(), 64)
            assert near(host(ops.fft.ifftn(ops.fft.fftn(whole))), whole, 1 + np.abs(whole).max(), 64)
            assert near(host(ops.fft.irfftn(ops.fft.rfftn(real), s=shape, axes=range(len(shape)))), real, 11, 64)
            assert same(host(ops.fft.ifftshift(ops.fft.fftshift(real))), real)
            # Parseval's theorem: the orthonormal transform keeps the norm.
            size = np.linalg.norm(whole.reshape(-1).astype(np.complex128))
            assert (
                abs(float(host(ops.norm(ops.fft.fftn(whole, norm="ortho")))) - size) <= 64 * EPSILON[single[1]] * size
            )


@given(data=st.data())
def test_inverses_and_solutions_multiply_back(data: st.DataObject) -> None:
    a = data.draw(matrices(data.draw(st.sampled_from(FLOATS))))
    n = a.shape[-1]
    b = data.draw(arrays(str(a.dtype), (*a.shape[:-1], 2), size=10.0))
    unit = np.broadcast_to(np.eye(n, dtype=a.dtype), a.shape)
    for name in INSTALLED:
        with on(name):
            assert near(host(ops.matmul(ops.inv(a), a)), unit, n, 64), name
            assert near(host(ops.inv(ops.inv(a))), a, 10.0 * n, 64)
            assert near(host(ops.matmul(a, ops.solve(a, b))), b, 1 + 10.0 * n, 64)
            assert near(host(ops.matmul(ops.matmul(a, ops.pinv(a)), a)), a, 10.0 * n, 64)
            assert near(host(ops.multiply(ops.det(a), ops.det(ops.inv(a)))), np.ones(a.shape[:-2], a.dtype), n, 256)


@given(data=st.data())
def test_the_product_of_the_factors_is_the_matrix(data: st.DataObject) -> None:
    a = data.draw(matrices(data.draw(st.sampled_from((*FLOATS, "complex64")))))
    n, scale = a.shape[-1], 40.0 * a.shape[-1]
    hermitian = a @ np.conj(a.swapaxes(-1, -2))
    for name in INSTALLED:
        with on(name):
            q, r = ops.qr(a)
            assert near(host(ops.matmul(q, r)), a, scale, 32), name
            u, s, vh = ops.svd(a, full_matrices=False)
            assert near(host(ops.matmul(ops.multiply(u, ops.expand_dims(s, -2)), vh)), a, scale, 32), name
            lower = ops.cholesky(hermitian)
            adjoint = ops.conj(ops.matrix_transpose(lower))
            assert near(host(ops.matmul(lower, adjoint)), hermitian, scale * n, 32), name
            values, vectors = ops.eigh(hermitian)
            product = ops.matmul(hermitian, vectors)
            scaled = host(ops.multiply(vectors, ops.expand_dims(values, -2)))
            assert near(host(product), scaled, scale * n * n, 32), name


@given(data=st.data())
def test_differences_undo_cumulative_sums(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(INTEGERS))
    x = data.draw(arrays(dtype, FULL_SHAPES))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    for name in INSTALLED:
        with on(name):
            running = ops.cumulative_sum(x, axis=axis, include_initial=True)
            assert same(host(ops.cast(ops.diff(running, axis=axis), dtype)), x)


@given(data=st.data())
def test_the_inverse_of_a_sort_order_restores_the_tensor(data: st.DataObject) -> None:
    x = data.draw(arrays(data.draw(st.sampled_from((*INTEGERS, *FLOATS))), FULL_SHAPES))
    axis, descending = data.draw(st.integers(-x.ndim, x.ndim - 1)), data.draw(st.booleans())
    for name in INSTALLED:
        with on(name):
            order = ops.argsort(x, axis, descending)
            ordered = ops.take_along_axis(x, order, axis)
            # Values are compared, not bits, because 0.0 and -0.0 are equal for a sort.
            assert np.array_equal(host(ordered), host(ops.sort(x, axis, descending)))
            assert same(host(ops.take_along_axis(ordered, ops.argsort(order, axis), axis)), x)
            values, inverse = ops.unique_inverse(x)
            assert np.array_equal(host(ops.take(values, inverse)), x)


@given(data=st.data())
def test_views_copies_and_dlpack_keep_the_bits(data: st.DataObject) -> None:
    z = data.draw(arrays("complex64", size=10.0))
    x = data.draw(arrays(data.draw(st.sampled_from((*INTEGERS, *FLOATS, "bool")))))
    for name in INSTALLED:
        with on(name):
            assert same(host(ops.view_as_complex(ops.view_as_real(z))), z)
            assert near(host(ops.polar(ops.abs(z), ops.angle(z))), z, 1 + np.abs(z), 8)
            assert same(host(ops.conj(ops.conj(z))), z)
            assert same(host(ops.convert_to_tensor(x)), x)
            assert same(host(ops.from_dlpack(ops.convert_to_tensor(x))), x)
            assert same(host(ops.copy(x)), x)
            if x.ndim and x.dtype.kind in "iuf":
                assert same(host(ops.view(ops.view(x, "uint8"), str(x.dtype))), x)


@given(data=st.data())
def test_bitwise_ops_undo_themselves_and_shifts_undo_each_other(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(INTEGERS))
    x = data.draw(arrays(dtype))
    key = np.asarray(data.draw(st.integers(int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))), dtype)
    count = data.draw(st.integers(0, np.dtype(dtype).itemsize * 8 - 1))
    small = x >> np.asarray(count + 1, dtype) if count + 1 < np.dtype(dtype).itemsize * 8 else x * np.asarray(0, dtype)
    for name in INSTALLED:
        with on(name):
            assert same(host(ops.bitwise_not(ops.bitwise_not(x))), x)
            assert same(host(ops.bitwise_xor(ops.bitwise_xor(x, key), key)), x)
            assert same(host(ops.bitwise_right_shift(ops.bitwise_left_shift(small, count), count)), small)
