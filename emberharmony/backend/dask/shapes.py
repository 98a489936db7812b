"""Shapes and the order of elements, on Dask: blocks are cut, moved and joined, and no element is computed."""

from typing import Any

import dask.array as da

from emberharmony.backend.dask.blocks import known, shapes_of, spread, zeros
from emberharmony.backend.dask.dtypes import promotion
from emberharmony.backend.promote import normalized, single
from emberharmony.backend.shared.shape import check_copy, expanded, joinable, shifts_of, squeezed
from emberharmony.core.errors import ShapeError


class DaskShapeOps:
    """Holds the ops of `ops/shape.py`.

    These keep the chunks; the bodies reshape, which rechunks the tensor.
    """

    @staticmethod
    def reshape(x: da.Array, shape: Any, copy: bool | None = None) -> da.Array:
        check_copy(copy)
        return reshaped(x, shapes_of("reshape", x, shape).shape)

    @staticmethod
    def transpose(x: da.Array, axes: Any = None) -> da.Array:
        shapes_of("transpose", x, axes)
        return da.transpose(x, axes if axes is None else normalized(axes, x.ndim))

    @staticmethod
    def expand_dims(x: da.Array, axis: Any = 0) -> da.Array:
        whole = expanded(known(x).shape, axis)
        new = normalized(axis, len(whole))
        return x[tuple(None if a in new else slice(None) for a in range(len(whole)))]

    @staticmethod
    def squeeze(x: da.Array, axis: Any = None) -> da.Array:
        ones = tuple(a for a, n in enumerate(known(x).shape) if n == 1)
        axes = ones if axis is None else normalized(axis, x.ndim)
        squeezed(x.shape, axes)
        return x[tuple(0 if a in axes else slice(None) for a in range(x.ndim))] if axes else x

    @staticmethod
    def broadcast_to(x: da.Array, shape: Any) -> da.Array:
        whole = shapes_of("broadcast_to", x, shape).shape
        if 0 in whole:
            return zeros(whole, x.dtype)
        return spread(x, whole)

    @staticmethod
    def concatenate(xs: list[da.Array], axis: int | None = 0) -> da.Array:
        tensors = [known(x) for x in joinable(xs, promotion)]
        found = shapes_of("concatenate", tensors, axis)
        if axis is None:
            return da.concatenate([reshaped(x, (x.size,)) for x in tensors])
        filled = [x for x in tensors if x.size]  # Dask drops the others, and with them the dtype and lengths
        if not filled:
            return zeros(found.shape, found.dtype)
        return da.concatenate(filled, axis=single(axis, tensors[0].ndim)) if len(filled) > 1 else filled[0]

    @staticmethod
    def stack(x: list[da.Array], axis: int = 0) -> da.Array:
        tensors = [known(each) for each in joinable(x, promotion)]
        if len({each.shape for each in tensors}) > 1:
            raise ShapeError(f"tensors of shapes {', '.join(str(each.shape) for each in tensors)} do not stack")
        return da.stack(tensors, axis=single(axis, tensors[0].ndim + 1))

    @staticmethod
    def flip(x: da.Array, axis: Any = None) -> da.Array:
        axes = normalized(axis, known(x).ndim)
        return x[tuple(slice(None, None, -1 if a in axes else 1) for a in range(x.ndim))]

    @staticmethod
    def roll(x: da.Array, shift: Any, axis: Any = None) -> da.Array:
        shapes_of("roll", x, shift, axis)
        if axis is None:
            return reshaped(DaskShapeOps.roll(reshaped(x, (x.size,)), shift, 0), x.shape)
        given = axis if isinstance(axis, (tuple, list)) else (axis,)
        for n, a in zip(*shifts_of(shift, tuple(single(a, x.ndim) for a in given)), strict=True):
            at = x.shape[a] - n % max(x.shape[a], 1)
            head: tuple[slice, ...] = (slice(None),) * a
            if n % max(x.shape[a], 1):
                x = da.concatenate([x[(*head, slice(at, None))], x[(*head, slice(0, at))]], axis=a)
        return x


def reshaped(x: da.Array, shape: tuple[int, ...]) -> da.Array:
    """Returns a tensor with other lengths of axes and the same number of elements."""
    if x.shape == shape:
        return x
    if not x.size:
        return zeros(shape, x.dtype)
    try:
        return da.reshape(x, shape)
    except NotImplementedError:  # Dask only merges or splits axes, so merge all of them first
        return da.reshape(da.reshape(x, (-1,)), shape)
