"""Calls of each family, rare ones and errors over the standard, on Dask, on JAX, and of `eval_shape`, against NumPy."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.backend import Backend
from emberharmony.core.errors import EmberError
from tests.backend.activation import LIBRARIES, active

X = np.array([[3.0, -1.0, 2.0], [0.5, 4.0, -2.0]])
V = np.array([2, 0, 1])
Z = X[:, :2] @ X[:, :2].T + np.eye(2)
B = X > 0


Call = Callable[[Any, Any], Any]


def whole(x: Any, dtype: str = "int32") -> Any:
    return ops.cast(ops.multiply(x, 2.0), dtype)


def matrix() -> Any:
    return ops.convert_to_tensor(Z)


def mask() -> Any:
    return ops.convert_to_tensor(B)


def none_of(x: Any) -> Any:
    """Returns the first 0 elements of a tensor."""
    return ops.get_item(x, slice(0))


RARE: dict[str, Call] = {
    "range of step 0": lambda x, v: ops.arange(0, 5, 0),
    "range of one number": lambda x, v: ops.arange(2**62, 2**62 + 1),
    "range on a device": lambda x, v: ops.arange(5, device="cpu"),
    "ones on a device": lambda x, v: ops.ones((2, 3), device="cpu"),
    "identity on a device": lambda x, v: ops.eye(3, device="cpu"),
    "fewer numbers than 0": lambda x, v: ops.linspace(0.0, 1.0, -1),
    "diagonal of three axes": lambda x, v: ops.diag(ops.expand_dims(x, 0)),
    "diagonal of no elements": lambda x, v: ops.diagonal(none_of(x)),
    "all elements joined": lambda x, v: ops.concatenate([x, x], axis=None),
    "tensors of several shapes": lambda x, v: ops.stack([x, none_of(x)]),
    "all elements by index": lambda x, v: ops.take(x, v),
    "all elements along no axis": lambda x, v: ops.take_along_axis(x, v, None),
    "floats as indices": lambda x, v: ops.take(v, x),
    "indices of fewer axes": lambda x, v: ops.take_along_axis(x, v, 1),
    "new axis and integer": lambda x, v: ops.get_item(x, (None, 1)),
    "mask of no axes": lambda x, v: ops.get_item(x, (ops.greater(ops.sum(x), 0.0), 1)),
    "indices of a number": lambda x, v: ops.nonzero(ops.sum(x)),
    "two open lengths": lambda x, v: ops.reshape(x, (-1, -1)),
    "open length that does not fit": lambda x, v: ops.reshape(x, (4, -1)),
    "maximum of no elements": lambda x, v: ops.max(none_of(x), axis=0),
    "product of no elements": lambda x, v: ops.matmul(ops.transpose(none_of(x)), none_of(x)),
    "sums of products of no elements": lambda x, v: ops.einsum("ij,kj->ik", none_of(x), none_of(x)),
    "cumulative sums of no elements": lambda x, v: ops.cumsum(none_of(x), axis=1),
    "joined tensors of no elements": lambda x, v: ops.concatenate([none_of(x), none_of(x)]),
    "signs of floats": lambda x, v: ops.signbit(ops.multiply(x, 0.0)),
    "signs of integers": lambda x, v: ops.signbit(ops.subtract(v, 1)),
    "signs of natural numbers": lambda x, v: ops.signbit(ops.cast(v, "uint8")),
    "no repetition": lambda x, v: ops.tile(x, (2, 0)),
    "repeated by one count": lambda x, v: ops.repeat(x, np.array([2]), axis=1),
    "repeated by counts": lambda x, v: ops.repeat(x, np.array([2, 0, 1]), axis=1),
    "another number of parts": lambda x, v: ops.unstack(x, 4),
    "sorted matrix": lambda x, v: ops.searchsorted(x, x),
    "counts by weights": lambda x, v: ops.bincount(v, ops.cast(v, "float64"), minlength=5),
    "counts of no elements": lambda x, v: ops.bincount(none_of(v), minlength=2),
    "weights of no elements": lambda x, v: ops.bincount(none_of(v), ops.cast(none_of(v), "float64"), minlength=2),
    "histogram of no elements": lambda x, v: ops.histogram(none_of(x), 3),
    "no bins": lambda x, v: ops.histogram(x, 0),
    "segments of unknown number": lambda x, v: ops.segment_sum(ops.transpose(x), v),
    "nothing written": lambda x, v: ops.set_item(x, (slice(0), 1), 0.0),
    "misfit written": lambda x, v: ops.set_item(x, 0, ops.ones(4)),
    "singular values alone": lambda x, v: ops.svd(x, compute_uv=False),
    "whole matrices": lambda x, v: ops.svd(x, full_matrices=True)[1],
    "singular values of infinity": lambda x, v: ops.svd(x / 0.0),
    "factor of an indefinite matrix": lambda x, v: ops.cholesky(-ops.matmul(x, ops.transpose(x))),
    "factor of NaN": lambda x, v: ops.cholesky(ops.matmul(x, ops.transpose(x)) * np.nan),
    "product along an axis of one": lambda x, v: ops.prod(ops.full((2, 1), complex(np.inf, 1.0), "complex64"), axis=1),
    "product of kept axes": lambda x, v: ops.prod(ops.expand_dims(x, 1), axis=(1, 2), keepdims=True),
    "product of axes": lambda x, v: ops.prod(ops.expand_dims(x, 1), axis=(1, 2)),
    "axis of one in a sum of products": lambda x, v: ops.einsum("ij,ij->i", x, ops.get_item(x, slice(1))),
    "boolean of an integer": lambda x, v: ops.full((2,), 7, "bool"),
    "boolean as a length": lambda x, v: ops.reshape(x, (6, True)),
    "empty spectrum": lambda x, v: ops.irfft(ops.zeros((2, 0), "complex64"), 4),
    "floats as classes": lambda x, v: ops.one_hot(x, 3),
    "classes beyond memory": lambda x, v: ops.one_hot(v, 2**62),
    "range of three ends": lambda x, v: ops.histogram(x, 3, (0.0, 1.0, 2.0)),
    "length None": lambda x, v: ops.zeros((None, 2)),  # type: ignore[arg-type]
    "text as a length": lambda x, v: ops.zeros((2, "float32")),  # type: ignore[arg-type]
    "length beyond memory": lambda x, v: ops.zeros((2**62, 4)),
    "malformed pattern": lambda x, v: ops.rearrange(x, "a-b c -> c"),
    "text as decimals": lambda x, v: ops.round(x, "2"),  # type: ignore[arg-type]
    "output padding of another number": lambda x, v: ops.conv_transpose(
        ops.ones((1, 4, 4, 1)), ops.ones((2, 2, 1, 1)), 2, "valid", (1, 0, 0)
    ),
    "quantiles of infinity": lambda x, v: ops.quantile(x * np.inf, 0.5),
    "value wider than rows of one": lambda x, v: ops.set_item(x[:, :1], ops.greater(x[:, 0], 1.0), ops.ones(3)),
    "values of more rows than a mask selects": lambda x, v: ops.set_item(
        x, ops.greater(x[:, 0], 1.0), ops.ones((2, 3))
    ),
    "least of complex numbers written": lambda x, v: ops.set_item(ops.cast(x, "complex64"), 0, 0.0, "min"),
    "powers of a matrix": lambda x, v: ops.vander(x),
    "diagonal of a number": lambda x, v: ops.diag(ops.sum(x)),
    "axis of steps by position": lambda x, v: ops.linspace(ops.min(x, 0), ops.max(x, 0), 4, True, False, None, -1),
    "axis of factors by position": lambda x, v: ops.logspace(ops.min(x, 0), ops.max(x, 0), 4, True, 2.0, None, -1),
    "order of all": lambda x, v: ops.argsort(x, None),
    "order of a number": lambda x, v: ops.argsort(ops.sum(x)),
    "moved axis of a number": lambda x, v: ops.moveaxis(ops.sum(x), 0, 0),
    "open length beside 0": lambda x, v: ops.reshape(none_of(x), (0, -1)),
    "length that is no tuple": lambda x, v: ops.reshape(x, 6),
    "sums of small unsigned integers": lambda x, v: ops.sum(ops.cast(v, "uint8"), 0),
    "boolean of complex numbers": lambda x, v: ops.cast(ops.multiply(ops.cast(x, "complex64"), 1j), "bool"),
    "rectangle with another diagonal": lambda x, v: ops.eye(2, 3, 1, "int32"),
    "factors of no elements": lambda x, v: (ops.cholesky(ops.zeros((0, 0))), ops.lu_factor(ops.zeros((0, 0)))[1]),
    "derivative of an empty determinant": lambda x, v: ops.grad(ops.det)(ops.zeros((0, 0))),
    "roots of no elements": lambda x, v: (*ops.svd(ops.zeros((0, 3))), *ops.eigh(ops.zeros((2, 0, 0)))),
    "membership in many": lambda x, v: ops.isin(ops.arange(3000), ops.arange(0, 6000, 2)),
    "segments of no elements": lambda x, v: ops.segment_max(none_of(x), none_of(v), 2),
    "histogram of a range": lambda x, v: ops.histogram(x, 3, (0.0, 2.0)),
    "lengths that differ": lambda x, v: ops.concatenate([x, ops.transpose(x)]),
    "joined with no elements": lambda x, v: ops.concatenate([x, none_of(x)]),
    "shape that does not fit": lambda x, v: ops.broadcast_to(x, (3, 3)),
    "integers between floats": lambda x, v: ops.clip(v, 0.5, 1.5),
    "complex padding": lambda x, v: ops.pad(ops.cast(x, "complex64"), 1, "constant", 2j),
    "square factor": lambda x, v: ops.qr(ops.transpose(x), mode="complete")[1],
}
USUAL: dict[str, Call] = {
    "many equal numbers": lambda x, v: ops.get_item(ops.ones(2**16 + 1), slice(2)),
    "likenesses": lambda x, v: [ops.zeros_like(x), ops.ones_like(x, "int32"), ops.full_like(x, 7.0)],
    "triangle of indices": lambda x, v: [*ops.tril_indices(3), *ops.triu_indices(3, 1, 4)],
    "diagonal of a matrix": lambda x, v: ops.diag(x, 1),
    "matrix of a diagonal": lambda x, v: ops.diag(v, -1),
    "boolean updates": lambda x, v: ops.scatter_update(mask(), [[0], [1]], ops.logical_not(mask()), "add"),
    "equal indices": lambda x, v: ops.scatter_update(v, [[0], [0], [2]], v),
    "updates of nothing": lambda x, v: ops.scatter_update(x, ops.zeros((0, 1), "int64"), ops.zeros((0, 3), "float64")),
    "block of a tensor": lambda x, v: ops.slice(x, (0, 1), (2, 2)),
    "block written": lambda x, v: ops.slice_update(x, (0, 1), ops.ones((2, 2))),
    "row by a number": lambda x, v: ops.get_item(x, 1),
    "rows by a slice": lambda x, v: [
        ops.get_item(v, key) for key in (slice(1, 3), slice(None, None, -1), slice(0, None, 2), ...)
    ],
    "mask and number": lambda x, v: ops.set_item(x, (ops.convert_to_tensor([True, False]), 1), 9.0),
    "numbers written": lambda x, v: [
        ops.set_item(x, (0, slice(1, None)), 5.0, mode) for mode in ("set", "add", "multiply")
    ],
    "negative length": lambda x, v: ops.reshape(x, (-2, 3)),
    "repeated elements": lambda x, v: ops.repeat(x, 2),
    "broadcast pair": lambda x, v: list(ops.broadcast_arrays(x, v)),
    "moved axes": lambda x, v: [ops.moveaxis(x, 0, 1), ops.swapaxes(x, 0, -1), ops.matrix_transpose(x)],
    "padding by edges": lambda x, v: ops.pad(x, ((0, 0), (2, 1)), mode="edge"),
    "padding by a tensor": lambda x, v: ops.pad(x, 1, constant_values=ops.sum(x)),
    "parts": lambda x, v: [*ops.split(x, [1, 2], axis=1), *ops.unstack(x)],
    "complex parts of reals": lambda x, v: [ops.real(x), ops.imag(x), ops.conj(x), ops.angle(x)],
    "hyperbolic inverses": lambda x, v: [
        ops.arcsinh(x),
        ops.arctanh(ops.tanh(x)),
        ops.arccosh(ops.add(ops.abs(x), 1.0)),
    ],
    "complex functions": lambda x, v: [
        f(ops.cast(x, "complex128")) for f in (ops.arcsinh, ops.exp2, ops.expm1, ops.sign)
    ],
    "functions near 0": lambda x, v: [
        *(f(y) for f in (ops.expm1, ops.sinh) for y in (x, ops.cast(x, "complex128"))),
        ops.arctanh(ops.cast(ops.tanh(x), "float32")),
    ],
    "special functions": lambda x, v: [
        f(ops.add(ops.abs(x), 0.5)) for f in (ops.gammaln, ops.digamma, ops.erfc, ops.i0)
    ],
    "rounded": lambda x, v: [ops.round(x, 1), ops.round(ops.multiply(x, 100.0), -2), ops.round(whole(x))],
    "next numbers": lambda x, v: ops.nextafter(x, ops.zeros_like(x)),
    "binary exponents": lambda x, v: [ops.ldexp(x, v), ops.ldexp(x, ops.cast(v, "uint64"))],
    "replaced NaN": lambda x, v: [
        ops.nan_to_num(ops.divide(x, 0.0), 1.0, 2.0, -2.0),
        ops.nan_to_num(ops.cast(ops.divide(x, 0.0), "complex128")),
        ops.nan_to_num(ops.log(x), ops.sum(x)),
        ops.nan_to_num(v),
    ],
    "integer quotients": lambda x, v: [
        f(
            whole(ops.abs(x) if dtype == "uint8" else x, dtype),
            ops.cast(ops.subtract(v, 1 if dtype == "int32" else 0), dtype),
        )
        for f in (ops.floor_divide, ops.mod, ops.fmod)
        for dtype in ("int32", "uint8")
    ],
    "quotients": lambda x, v: [
        f(x, ops.subtract(ops.cast(v, "float64"), 1.0)) for f in (ops.floor_divide, ops.mod, ops.fmod)
    ],
    "integer powers": lambda x, v: [
        ops.power(whole(x), ops.cast(ops.subtract(v, 1), "int32")),
        ops.power(ops.cast(ops.add(v, 1), "uint8"), ops.cast(v, "uint8")),
    ],
    "powers": lambda x, v: [
        ops.power(ops.abs(x), 0.5),
        ops.power(ops.cast(x, "complex128"), 2.0),
    ],
    "divisors": lambda x, v: [
        ops.gcd(ops.multiply(v, 6), 4),
        ops.lcm(v, 4),
        ops.divide_no_nan(x, ops.cast(v, "float64")),
    ],
    "sides": lambda x, v: [
        ops.hypot(x, 2.0),
        ops.heaviside(x, 0.5),
        ops.copysign(x, -1.0),
        ops.signbit(x),
        ops.square(mask()),
    ],
    "one bound": lambda x, v: [ops.clip(x, 0.0), ops.clip(x, None, 1.0), ops.clip(v, 1, 1)],
    "close integers": lambda x, v: [ops.isclose(v, v), ops.allclose(v, 0)],
    "close numbers": lambda x, v: [ops.isclose(x, x), ops.allclose(x, 0.0), ops.array_equal(x, x), ops.isin(v, [0, 2])],
    "sorted": lambda x, v: [
        ops.sort(x, descending=True),
        *ops.top_k(x, 2),
        ops.argsort(x),
        ops.unique(v),
        ops.sort(ops.sum(x)),
    ],
    "inserted": lambda x, v: [ops.searchsorted(ops.sort(v), v, "right"), ops.searchsorted(v, v, sorter=ops.argsort(v))],
    "spread by a tensor": lambda x, v: [ops.var(x, axis=0, correction=ops.get_item(v, 1)), ops.std(x), ops.var(mask())],
    "histogram": lambda x, v: list(ops.histogram(x, 4)),
    "segments": lambda x, v: [
        ops.segment_sum(ops.transpose(x), v, 4),
        ops.segment_max(ops.transpose(x), v, 3),
        ops.segment_sum(x, [1, 0]),
    ],
    "segments of nothing": lambda x, v: ops.segment_sum(ops.zeros((0, 2)), ops.zeros(0, "int64"), 2),
    "logarithm of a sum": lambda x, v: [ops.logsumexp(x), ops.softmax(x, -1), ops.cumsum(x, axis=1), ops.cumprod(v)],
    "factors": lambda x, v: [
        ops.cholesky(matrix()),
        ops.cholesky(matrix(), upper=True),
        *ops.qr(x),
        *ops.eigh(matrix()),
    ],
    "determinants": lambda x, v: [
        ops.det(matrix()),
        *ops.slogdet(matrix()),
        ops.inv(matrix()),
        ops.svd(x, compute_uv=False),
    ],
    "systems": lambda x, v: [
        ops.solve(matrix(), x),
        ops.solve(matrix(), [1.0, 2.0]),
        ops.solve_triangular(matrix(), x, lower=True),
    ],
    "inverse of NaN": lambda x, v: ops.inv(ops.multiply(matrix(), np.nan)),
    "determinants of nothing": lambda x, v: [*ops.slogdet(ops.zeros((0, 0))), *ops.lu_factor(matrix())],
    "systems of nothing": lambda x, v: ops.solve_triangular(ops.zeros((0, 0)), ops.zeros((0, 2))),
    "gradients of factors": lambda x, v: [
        ops.grad(lambda a, f=f: ops.sum(ops.square(f(a))))(matrix())
        for f in (ops.cholesky, ops.inv, lambda a: ops.svd(a)[1], lambda a: ops.qr(a)[1], lambda a: ops.eigh(a)[0])
    ],
    "gradients of updates": lambda x, v: [
        ops.grad(lambda y, u, how=how: ops.sum(ops.scatter_update(y, [[0], [0], [1]], u, how)), (0, 1))(
            x, ops.full((3, 3), 2.0, "float64")
        )
        for how in ("add", "mul", "max")
    ],
    "gradient of edges": lambda x, v: ops.grad(lambda y: ops.sum(ops.square(ops.histogram(y, 4)[1])))(x),
    "gradient of different numbers": lambda x, v: ops.grad(lambda y: ops.sum(ops.square(ops.unique(y))))(
        ops.maximum(x, 0.0)
    ),
    "gradient of what is read": lambda x, v: ops.grad(lambda y: ops.sum(ops.to_numpy(y)))(x),
    "casts": lambda x, v: [ops.cast(ops.cast(x, "complex128"), "float32"), ops.cast(x, "bool"), ops.cast(v, "int8")],
    "gradient of bits": lambda x, v: ops.grad(lambda y: ops.sum(ops.view(y, "float32")))(x),
    "singular system": lambda x, v: ops.solve(ops.zeros((2, 2)), [1.0, 2.0]),
    "singular triangle": lambda x, v: ops.solve_triangular(ops.zeros((2, 2)), ops.ones((2, 1))),
    "factors of nothing": lambda x, v: [f(ops.zeros((0, 0))) for f in (ops.cholesky, ops.inv, ops.det, ops.eigvals)],
    "singular values of nothing": lambda x, v: [
        *ops.svd(ops.zeros((0, 2))),
        ops.svd(ops.zeros((0, 2)), compute_uv=False),
    ],
    "products": lambda x, v: [
        ops.matmul(x, ops.transpose(x)),
        ops.einsum("ij->j", x),
        ops.tensordot(x, x),
        ops.outer(v, v),
    ],
    "bits": lambda x, v: [ops.view(x, "int64"), ops.view(x, "float64"), ops.view(ops.cast(x, "complex128"), "float64")],
    "copies": lambda x, v: [ops.copy(x), ops.convert_to_tensor(x, "float32"), ops.asarray(x, copy=True)],
    "half powers": lambda x, v: ops.power(ops.cast(ops.abs(x), "float16"), ops.cast(2.0, "float16")),
}
"""Calls of each family of ops; the tests of ops leave JAX and Dask out."""
INDEXED: dict[str, Call] = {
    "elements by index": lambda x, v: [ops.take(x, v, axis=1), ops.get_item(x, (slice(None), v)), ops.get_item(v, v)],
    "elements along an axis": lambda x, v: ops.take_along_axis(x, ops.stack([v, v]), 1),
    "written along an axis": lambda x, v: ops.put_along_axis(x, ops.stack([v, v]), 5.0, 1),
    "updates by index": lambda x, v: [
        ops.scatter_update(x, ops.reshape(ops.minimum(v, 1), (3, 1)), ops.ones((3, 3)), how)
        for how in (None, "add", "mul", "max", "min")
    ],
    "indices of axes": lambda x, v: list(ops.unravel_index(v, (2, 3))),
    "segments by index": lambda x, v: ops.segment_sum(ops.transpose(x), v, 4),
    "special functions known late": lambda x, v: [
        f(ops.add(ops.abs(x), 0.5)) for f in (ops.gammaln, ops.digamma, ops.erfcx, ops.exp2)
    ],
    "segments by index alone": lambda x, v: ops.segment_sum(ops.transpose(x), v),
    "bits known late": lambda x, v: [
        ops.view(x, "int64"),
        ops.view(ops.cast(x, "complex128"), "float64"),
        ops.view(ops.concatenate([x, x], 1), "complex128"),
        ops.view(ops.sum(x), "int64"),
    ],
    "classes": lambda x, v: ops.one_hot(v, 4),
    "edges of a histogram": lambda x, v: list(ops.histogram(x, 4, (-2.0, 4.0))),
}
"""Calls whose indices a compiled function knows only when it runs."""
CALLS = {**RARE, **USUAL, **INDEXED}
COUNTS = ("counts by weights", "counts of no elements", "weights of no elements")
MASKS = ("mask of no axes", "value wider than rows of one", "values of more rows than a mask selects")
UNKNOWN = (
    *("indices of a number", "repeated by counts", "segments of unknown number", "segments by index alone", "sorted"),
    "gradient of different numbers",
    *MASKS,
    *COUNTS,
)
"""The shapes of these results, or of what they write, depend on values."""
OF_VALUES = (
    "singular values of infinity",
    "factor of an indefinite matrix",
    "factor of NaN",
    "length beyond memory",
    "singular system",
    "singular triangle",
    "gradient of bits",
    "gradient of what is read",
)
"""The errors of these depend on values, or on the memory."""


@pytest.fixture
def another(request: pytest.FixtureRequest) -> Iterator[Backend]:
    """Makes the backend of a test's parameter active, such as "dask", "jax", or "strict" over the array API."""
    pytest.importorskip(LIBRARIES.get(request.param, request.param))
    with active(request.param) as backend:
        yield backend


@functools.cache
def outcome_on_numpy(name: str) -> Any:
    with ops.use_backend("numpy"):
        return outcome(CALLS[name])


def outcome(call: Call) -> Any:
    """Returns the results of a call as arrays, or the class of its error."""
    try:
        with np.errstate(all="ignore"):
            result = call(ops.convert_to_tensor(X), ops.convert_to_tensor(V))
            return [ops.to_numpy(x) for x in ops.tree_leaves(result)]
    except EmberError as error:
        return type(error)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("another", "name"),
    [
        *((backend, name) for backend in ("torch", "mlx") for name in RARE),
        *((backend, name) for backend in ("dask", "jax") for name in CALLS),
        *(("strict", name) for name in CALLS if name != "half powers"),  # array_api_strict lacks float16
    ],
    indirect=["another"],
)
def test_a_call_gives_what_it_gives_on_numpy(another: Backend, name: str) -> None:
    require_equal(outcome(CALLS[name]), outcome_on_numpy(name))


def require_equal(found: Any, wanted: Any) -> None:
    if isinstance(wanted, type) or isinstance(found, type):
        assert found is wanted
        return
    for x, y in zip(found, wanted, strict=True):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        np.testing.assert_allclose(x, y, {"float16": 2e-3, "float32": 1e-6}.get(x.dtype.name, 1e-10), 1e-12)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", [name for name in CALLS if name not in (*UNKNOWN, *OF_VALUES)])
def test_the_shape_of_a_rare_call_is_that_of_its_result(name: str) -> None:
    wanted = outcome_on_numpy(name)
    with ops.use_backend("numpy"):
        if isinstance(wanted, type):
            with pytest.raises(wanted):
                ops.eval_shape(CALLS[name], X, V)
            return
        specs = ops.tree_leaves(ops.eval_shape(CALLS[name], X, V))
        assert [(spec.dtype.name, spec.shape) for spec in specs] == [(x.dtype.name, x.shape) for x in wanted]


@pytest.mark.parametrize("another", ["jax"], indirect=True)
@pytest.mark.parametrize("name", INDEXED)
def test_indices_that_are_known_late_give_what_known_ones_give(name: str, another: Backend) -> None:
    require_equal(outcome(ops.compile(INDEXED[name])), outcome_on_numpy(name))
