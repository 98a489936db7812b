"""Default bodies of reading by index: the host computes places, and `take` reads them from the flattened tensor."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from emberharmony.backend.fallback.tools import along, body, float_dtype, on_host, picked, placed, places_of, reading
from emberharmony.backend.host import host_indices
from emberharmony.backend.promote import normalized
from emberharmony.backend.shared.indexing import block, checked, class_count, inside, parts_of, unraveled
from emberharmony.backend.shared.shape import FURTHEST, as_shape, held, matrices
from emberharmony.core.errors import ShapeError
from emberharmony.core.options import dense


def host_key(backend: Any, key: Any, shape: Any) -> tuple[Any, ...]:
    """Returns a checked key, whose tensors became host arrays.

    Raises:
        EmberError: if it does not fit the shape.
    """
    parts = key if isinstance(key, tuple) else (key,)
    host = tuple(on_host(backend, part) for part in parts)
    return tuple(part for part, _, _ in parts_of(host, shape, lambda part: None))


@body
def get_item(backend: Any, x: Any, key: Any) -> Any:
    """Takes the places that the key selects."""
    return picked(backend, x, np.asarray(places_of(x.shape)[host_key(backend, key, tuple(x.shape))]))


@reading
def take_along_axis(backend: Any, x: Any, indices: Any, axis: int | None = -1) -> Any:
    """Takes places in the flattened tensor."""
    x, axis = along(backend, x, axis)
    (axis,) = normalized(axis, len(x.shape))
    where = checked(host_indices(on_host(backend, indices)), x.shape[axis])
    inside(x.shape[axis], where.size)
    if where.ndim != len(x.shape):
        raise ShapeError(f"indices of shape {where.shape} need as many axes as shape {tuple(x.shape)}")
    return picked(backend, x, np.take_along_axis(places_of(x.shape), where, axis))


@reading
def nonzero(backend: Any, x: Any) -> tuple[Any, ...]:
    """Reads the tensor on the host, because the shape depends on it."""
    if not x.shape:
        raise ShapeError("a tensor without axes has no indices")
    found = np.nonzero(on_host(backend, backend.bound.not_equal(x, 0)))
    return tuple(placed(backend, each, backend.dtypes["int64"]) for each in found)


@body
def slice_(backend: Any, inputs: Any, start_indices: Sequence[int], shape: Sequence[int]) -> Any:
    """Takes the block."""
    return backend.bound.get_item(inputs, block(tuple(inputs.shape), on_host(backend, start_indices), shape))


@body
def diagonal(backend: Any, x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """Takes the places of the diagonal."""
    places = places_of(matrices(x).shape).diagonal(held(offset, FURTHEST, FURTHEST), axis1, axis2)
    return picked(backend, x, places.copy())


def _triangle(backend: Any, lower: bool, n: int, k: int, m: int | None) -> tuple[Any, Any]:
    rows, columns = as_shape((n, n if m is None else m))
    found = (np.tril_indices if lower else np.triu_indices)(rows, held(k, rows, columns), columns)
    first, second = (placed(backend, each, backend.dtypes["int64"]) for each in found)
    return first, second


@body
def tril_indices(backend: Any, n: int, k: int = 0, m: int | None = None) -> tuple[Any, Any]:
    """Computes on the host."""
    return _triangle(backend, True, n, k, m)


@body
def triu_indices(backend: Any, n: int, k: int = 0, m: int | None = None) -> tuple[Any, Any]:
    """Computes on the host."""
    return _triangle(backend, False, n, k, m)


@reading
def unravel_index(backend: Any, indices: Any, shape: Sequence[int]) -> tuple[Any, ...]:
    """Computes on the host."""
    found = unraveled(host_indices(on_host(backend, indices)), shape)
    return tuple(placed(backend, each, backend.dtypes["int64"]) for each in found)


@body
def one_hot(backend: Any, x: Any, num_classes: int, axis: int = -1, dtype: Any = None, sparse: bool = False) -> Any:
    """Compares with all classes."""
    dense("sparse", sparse)
    ops = backend.bound
    hits = ops.equal(ops.expand_dims(x, -1), ops.arange(class_count(num_classes)))
    hits = hits if axis == -1 else ops.moveaxis(hits, -1, axis)
    return ops.cast(hits, float_dtype(backend, dtype))
