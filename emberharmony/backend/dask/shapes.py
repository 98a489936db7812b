"""Shapes and the order of elements, on Dask: blocks are cut, moved and joined, and no element is computed."""

from typing import Any

import dask.array as da

from emberharmony.backend.dask.blocks import abstract_results, broadcast_by_blocks, require_known_lengths, zeros
from emberharmony.backend.dask.dtypes import promotion
from emberharmony.backend.promote import nonnegative_axes, nonnegative_axis
from emberharmony.backend.shared.arrays.shape import cast_for_join, check_copy, expanded_shape, squeezed_shape


class DaskShapeOps:
    """Holds the ops of `ops/arrays/shape.py`.

    These keep the chunks; the bodies reshape, which rechunks the tensor.
    """

    @staticmethod
    def reshape(x: da.Array, shape: Any, copy: bool | None = None) -> da.Array:
        check_copy(copy)
        return reshape_to(x, abstract_results("reshape", x, shape).shape)

    @staticmethod
    def expand_dims(x: da.Array, axis: Any = 0) -> da.Array:
        full_shape = expanded_shape(require_known_lengths(x).shape, axis)
        new_axes = nonnegative_axes(axis, len(full_shape))
        return x[tuple(None if a in new_axes else slice(None) for a in range(len(full_shape)))]

    @staticmethod
    def squeeze(x: da.Array, axis: Any = None) -> da.Array:
        axes_of_length_1 = tuple(a for a, n in enumerate(require_known_lengths(x).shape) if n == 1)
        axes = axes_of_length_1 if axis is None else nonnegative_axes(axis, x.ndim)
        squeezed_shape(x.shape, axes)
        return x[tuple(0 if a in axes else slice(None) for a in range(x.ndim))] if axes else x

    @staticmethod
    def broadcast_to(x: da.Array, shape: Any) -> da.Array:
        full_shape = abstract_results("broadcast_to", x, shape).shape
        if 0 in full_shape:
            return zeros(full_shape, x.dtype)
        return broadcast_by_blocks(x, full_shape)

    @staticmethod
    def concatenate(xs: list[da.Array], axis: int | None = 0) -> da.Array:
        tensors = [require_known_lengths(x) for x in cast_for_join(xs, promotion)]
        abstract_result = abstract_results("concatenate", tensors, axis)
        if axis is None:
            return da.concatenate([reshape_to(x, (x.size,)) for x in tensors])
        nonempty_tensors = [x for x in tensors if x.size]  # Dask drops the others, and with them the dtype and lengths
        if not nonempty_tensors:
            return zeros(abstract_result.shape, abstract_result.dtype)
        return da.concatenate(nonempty_tensors, axis=nonnegative_axis(axis, tensors[0].ndim))


def reshape_to(x: da.Array, shape: tuple[int, ...]) -> da.Array:
    """Returns a tensor reshaped to a shape; the shape (-1,) flattens it."""
    shape = (x.size,) if shape == (-1,) else shape
    if x.shape == shape:
        return x
    if not x.size:
        return zeros(shape, x.dtype)
    try:
        return da.reshape(x, shape)
    except NotImplementedError:  # Dask only merges or splits axes, so merge all of them first
        return da.reshape(da.reshape(x, (-1,)), shape)
