"""Default bodies of changes of shapes and of the order of elements."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from emberharmony.backend.fallback.tools import along, body, on_host, promotion_of
from emberharmony.backend.host import host_indices
from emberharmony.backend.promote import normalized, single
from emberharmony.backend.shared import shape as shared
from emberharmony.backend.shared.device import check_memory, memory_limit
from emberharmony.core.errors import ShapeError


@body
def matrix_transpose(backend: Any, x: Any) -> Any:
    """Exchanges the last two axes."""
    return backend.bound.swapaxes(shared.matrices(x), -1, -2)


@body
def swapaxes(backend: Any, x: Any, axis1: int, axis2: int) -> Any:
    """Transposes."""
    order = list(range(len(x.shape)))
    a, b = single(axis1, len(order)), single(axis2, len(order))
    order[a], order[b] = order[b], order[a]
    return backend.bound.transpose(x, tuple(order))


@body
def moveaxis(backend: Any, x: Any, source: Any, destination: Any) -> Any:
    """Transposes."""
    ndim = len(x.shape)
    sources, places = shared.moved(source, destination, ndim)
    order = [axis for axis in range(ndim) if axis not in sources]
    for place, axis in sorted(zip(places, sources, strict=True)):
        order.insert(place, axis)
    return backend.bound.transpose(x, tuple(order))


@body
def expand_dims(backend: Any, x: Any, axis: Any = 0) -> Any:
    """Reshapes."""
    return backend.bound.reshape(x, tuple(shared.expanded(x.shape, axis)))


@body
def squeeze(backend: Any, x: Any, axis: Any = None) -> Any:
    """Reshapes."""
    ones = tuple(a for a, n in enumerate(x.shape) if n == 1)
    axes = ones if axis is None else normalized(axis, len(x.shape))
    return backend.bound.reshape(x, tuple(shared.squeezed(x.shape, axes)))


@body
def broadcast_arrays(backend: Any, *arrays: Any) -> tuple[Any, ...]:
    """Broadcasts each one to the shape of all."""
    whole = shared.broadcast_shapes(*(tuple(x.shape) for x in arrays))
    return tuple(backend.bound.broadcast_to(x, whole) for x in arrays)


@body
def broadcast_shapes(backend: Any, *shapes: Any) -> tuple[int, ...]:
    """Computes on the host."""
    return shared.broadcast_shapes(*shapes)


@body
def stack(backend: Any, x: list[Any], axis: int = 0) -> Any:
    """Joins along a new axis."""
    tensors = shared.joinable(x, promotion_of(backend))
    if len({tuple(each.shape) for each in tensors}) > 1:
        raise ShapeError(f"tensors of shapes {', '.join(str(tuple(each.shape)) for each in tensors)} do not stack")
    axis = single(axis, len(tensors[0].shape) + 1)
    return backend.bound.concatenate([backend.bound.expand_dims(each, axis) for each in tensors], axis)


@body
def split(backend: Any, x: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """Takes slices."""
    (axis,) = normalized(axis, len(x.shape))
    head: tuple[slice, ...] = (slice(None),) * axis
    parts = shared.cuts(x.shape[axis], on_host(backend, indices_or_sections))
    return [backend.bound.get_item(x, (*head, slice(a, b))) for a, b in parts]


@body
def unstack(backend: Any, x: Any, num: int | None = None, axis: int = 0) -> tuple[Any, ...]:
    """Takes each index along the axis."""
    axis = shared.unstacked(num, axis, x.shape)
    head: tuple[slice, ...] = (slice(None),) * axis
    return tuple(backend.bound.get_item(x, (*head, i)) for i in range(x.shape[axis]))


@body
def tile(backend: Any, x: Any, repeats: int | Sequence[int]) -> Any:
    """Broadcasts along new axes."""
    counts, ops = shared.as_shape(repeats), backend.bound
    ndim = max(len(counts), len(x.shape))
    counts = (1,) * (ndim - len(counts)) + counts
    lengths = (1,) * (ndim - len(x.shape)) + tuple(x.shape)
    whole = tuple(n for pair in zip(counts, lengths, strict=True) for n in pair)
    check_memory(whole, 1, memory_limit)
    apart = ops.reshape(x, tuple(n for length in lengths for n in (1, length)))
    final = tuple(n * m for n, m in zip(counts, lengths, strict=True))
    return ops.reshape(ops.broadcast_to(apart, whole), final)


@body
def repeat(backend: Any, x: Any, repeats: Any, axis: int | None = None) -> Any:
    """Takes indices, each as often as the host counts."""
    x, axis = along(backend, x, axis)
    axis = single(axis, len(x.shape))
    length = x.shape[axis]
    given = host_indices(on_host(backend, repeats))
    counts = shared.counted(given, length)
    check_memory((shared.total(counts), *(n for a, n in enumerate(x.shape) if a != axis)), 1, memory_limit)
    return backend.bound.take(x, np.repeat(np.arange(length), counts), axis)


@body
def flip(backend: Any, x: Any, axis: Any = None) -> Any:
    """Takes indices backwards."""
    for a in normalized(axis, len(x.shape)):
        x = backend.bound.take(x, np.arange(x.shape[a])[::-1].copy(), a)
    return x


@body
def roll(backend: Any, x: Any, shift: Any, axis: Any = None) -> Any:
    """Takes rolled indices."""
    ops = backend.bound
    if axis is None:
        return ops.reshape(ops.roll(ops.reshape(x, (-1,)), shift, 0), tuple(x.shape))
    given = axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = tuple(single(a, len(x.shape)) for a in given)
    shifts, axes = shared.shifts_of(shift, axes)
    for n, a in zip(shifts, axes, strict=True):
        length = x.shape[a]
        x = ops.take(x, np.roll(np.arange(length), n % max(length, 1)), a) if length else x
    return x
