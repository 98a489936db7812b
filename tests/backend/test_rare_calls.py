"""Rare calls and errors over the array API standard, on Dask, on JAX, and of `eval_shape`, against NumPy."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.backend import Backend, discovery, from_array_api
from emberharmony.core.errors import EmberError

X = np.array([[3.0, -1.0, 2.0], [0.5, 4.0, -2.0]])
V = np.array([2, 0, 1])


def none_of(x: Any) -> Any:
    """Returns the first 0 elements of a tensor."""
    return ops.get_item(x, slice(0))


CALLS: dict[str, Callable[[Any, Any], Any]] = {
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
COUNTS = ("counts by weights", "counts of no elements", "weights of no elements")
MASKS = ("mask of no axes", "value wider than rows of one", "values of more rows than a mask selects")
UNKNOWN = ("indices of a number", "repeated by counts", "segments of unknown number", *MASKS, *COUNTS)
"""The shapes of these results, or of what they write, depend on values."""
OF_VALUES = ("singular values of infinity", "factor of an indefinite matrix", "factor of NaN", "length beyond memory")
"""The errors of these depend on values, or on the memory."""


@pytest.fixture
def another(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Backend]:
    """Makes the backend of a test's parameter: "dask", "jax", or "strict" over the array API."""
    library = pytest.importorskip({"strict": "array_api_strict"}.get(request.param, request.param))
    if request.param == "strict":
        made = from_array_api("strict", library, tensor_type=type(library.asarray(0)))
        monkeypatch.setitem(discovery._LOADED, "strict", made)
    with ops.use_backend(request.param) as backend:
        yield backend


@functools.cache
def outcome_on_numpy(name: str) -> Any:
    with ops.use_backend("numpy"):
        return outcome(CALLS[name])


def outcome(call: Callable[[Any, Any], Any]) -> Any:
    """Returns the results of a call as arrays, or the class of its error."""
    try:
        with np.errstate(all="ignore"):
            result = call(ops.convert_to_tensor(X), ops.convert_to_tensor(V))
            return [ops.to_numpy(x) for x in ops.tree_leaves(result)]
    except EmberError as error:
        return type(error)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("another", ["torch", "mlx", "strict", "dask", "jax"], indirect=True)
@pytest.mark.parametrize("name", CALLS)
def test_a_rare_call_does_what_it_does_on_numpy(name: str, another: Backend) -> None:
    wanted, found = outcome_on_numpy(name), outcome(CALLS[name])
    if isinstance(wanted, type) or isinstance(found, type):
        assert found is wanted
        return
    for x, y in zip(found, wanted, strict=True):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        np.testing.assert_allclose(x, y, 1e-12)


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
