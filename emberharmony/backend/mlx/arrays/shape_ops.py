"""Changes of shape, on MLX."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import mlx.core as mx

from emberharmony.backend.host import is_integer
from emberharmony.backend.mlx.device_ops import check_memory, require_memory
from emberharmony.backend.mlx.dtypes import of_host, promotion
from emberharmony.backend.promote import nonnegative_axes
from emberharmony.backend.shared.arrays.shape import (
    as_shape,
    axes_and_places,
    cast_for_join,
    check_copy,
    check_pad,
    counts_per_slice,
    expanded_shape,
    pad_indices,
    pad_pairs,
    part_bounds,
    require_matrices,
    shifts_and_axes,
    total_repetitions,
    unstack_axis,
)
from emberharmony.core.axes import as_length
from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import fast
from emberharmony.core.errors import ShapeError

if TYPE_CHECKING:
    import numpy as np
else:
    np = Deferred("numpy")


def _infer_shape(size: int, shape: Any) -> tuple[int, ...]:
    """Returns a shape with its -1 replaced by the length that fits.

    `mx.reshape` (MLX 0.32) rejects -1 for an empty tensor, and accepts some other negative lengths.

    Raises:
        ArgumentTypeError: if a length is a boolean.
        ShapeError: if no length fits, or if another length is negative.
    """
    shape = (shape,) if is_integer(shape) else tuple(shape)
    for n in shape:
        if n.__class__ is bool:
            as_length(n)  # raises
    least_length = min(shape, default=0)
    if least_length >= 0:
        return shape
    known_size = -math.prod(shape)
    if least_length < -1 or shape.count(-1) > 1 or known_size == 0:
        raise ShapeError(f"a tensor of {size} elements cannot be reshaped to {shape}")
    if size % known_size:
        raise ShapeError(f"the {size} elements are no multiple of the {known_size} of the other axes of {shape}")
    return tuple(size // known_size if n == -1 else n for n in shape)


def _pad_with_zeros(x: mx.array, width: int, *_usual: Any) -> mx.array:
    return require_memory(mx.pad(x, width))


class MLXShapeOps:
    """Holds the ops of `ops/arrays/shape.py`.

    The bodies gather, or need several calls: they take up to 5 times as long, for few elements.
    """

    composed: Callable[[str], Callable[..., mx.array]]

    swapaxes = staticmethod(mx.swapaxes)

    @staticmethod
    def reshape(x: mx.array, shape: Any, copy: bool | None = None) -> mx.array:
        # Arrays are immutable, so it makes no difference whether they share memory.
        check_copy(copy)
        return mx.reshape(x, _infer_shape(x.size, shape))

    @staticmethod
    def transpose(x: mx.array, axes: Sequence[int] | None = None) -> mx.array:
        return mx.transpose(x, axes)

    @staticmethod
    def matrix_transpose(x: mx.array) -> mx.array:
        return mx.swapaxes(require_matrices(x), -1, -2)

    @staticmethod
    def moveaxis(x: mx.array, source: Any, destination: Any) -> mx.array:
        if source.__class__ is int and destination.__class__ is int:
            return mx.moveaxis(x, source, destination)
        sources, destinations = axes_and_places(source, destination, x.ndim)
        axis_order = [axis for axis in range(x.ndim) if axis not in sources]
        for destination_axis, axis in sorted(zip(destinations, sources, strict=True)):
            axis_order.insert(destination_axis, axis)
        return mx.transpose(x, axis_order)

    @staticmethod
    def expand_dims(x: mx.array, axis: Any = 0) -> mx.array:
        return mx.expand_dims(x, axis) if axis.__class__ is int else mx.reshape(x, expanded_shape(x.shape, axis))

    @staticmethod
    def squeeze(x: mx.array, axis: Any = None) -> mx.array:
        return mx.squeeze(x) if axis is None else mx.squeeze(x, nonnegative_axes(axis, x.ndim))

    @staticmethod
    def broadcast_to(x: mx.array, shape: Any) -> mx.array:
        return mx.broadcast_to(x, as_shape(shape))

    @staticmethod
    def broadcast_arrays(*arrays: mx.array) -> tuple[mx.array, ...]:
        return tuple(mx.broadcast_arrays(*arrays)) if arrays else ()

    @staticmethod
    def concatenate(xs: list[mx.array], axis: int | None = 0) -> mx.array:
        tensors = cast_for_join(xs, promotion)
        if axis is None:
            return require_memory(mx.concatenate([x.reshape(-1) for x in tensors]))
        if tensors[0].ndim == 0:
            raise ShapeError("expected tensors with at least one axis, got scalars; use ops.stack")
        if not (axis.__class__ is int and -tensors[0].ndim <= axis < tensors[0].ndim):
            # mx.concatenate (MLX 0.32) does not check the axis if there is only one tensor.
            (axis,) = nonnegative_axes(axis, tensors[0].ndim)
        return require_memory(mx.concatenate(tensors, axis))

    @staticmethod
    def stack(x: list[mx.array], axis: int = 0) -> mx.array:
        return require_memory(mx.stack(cast_for_join(x, promotion), axis))

    @staticmethod
    def split(x: mx.array, indices_or_sections: Any, axis: int = 0) -> list[mx.array]:
        (axis,) = nonnegative_axes(axis, x.ndim)
        section_bounds = part_bounds(x.shape[axis], indices_or_sections)
        return list(mx.split(x, [start for start, _ in section_bounds[1:]], axis))

    @staticmethod
    def unstack(x: mx.array, num: int | None = None, axis: int = 0) -> tuple[mx.array, ...]:
        axis = unstack_axis(num, axis, x.shape)
        return tuple(mx.unstack(x, axis=axis))

    @staticmethod
    def tile(x: mx.array, repeats: int | Sequence[int]) -> mx.array:
        repeat_counts = as_shape(repeats)
        check_memory((math.prod(repeat_counts), *x.shape), x.itemsize)
        return mx.tile(x, repeat_counts)

    @staticmethod
    def repeat(x: mx.array, repeats: Any, axis: int | None = None) -> mx.array:
        if axis is None:
            x, axis = x.reshape(-1), 0
        (axis,) = nonnegative_axes(axis, x.ndim)
        length = x.shape[axis]
        if repeats.__class__ is int and repeats >= 0:
            check_memory((repeats, *x.shape), x.itemsize)
            return mx.repeat(x, repeats, axis)
        repeat_counts = counts_per_slice(np.asarray(repeats) if isinstance(repeats, mx.array) else repeats, length)
        check_memory((*x.shape[:axis], total_repetitions(repeat_counts), *x.shape[axis + 1 :]), x.itemsize)
        return require_memory(mx.take(x, of_host(np.repeat(np.arange(length), repeat_counts)), axis))

    @staticmethod
    def flip(x: mx.array, axis: Any = None) -> mx.array:
        axes = nonnegative_axes(axis, x.ndim)
        return x[tuple(slice(None, None, -1) if a in axes else slice(None) for a in range(x.ndim))] if axes else x

    @staticmethod
    def roll(x: mx.array, shift: Any, axis: Any = None) -> mx.array:
        if not x.size:
            return x
        # A shift beyond 32 bits raises or, in a tuple, ends the process (MLX 0.32), so reduce it modulo the length.
        if axis is None:
            return mx.roll(x, sum(shifts_and_axes(shift, (0,))[0]) % x.size)
        if shift.__class__ is int and axis.__class__ is int and -x.ndim <= axis < x.ndim:
            return mx.roll(x, shift % x.shape[axis], axis)
        axes = tuple(nonnegative_axes(a, x.ndim)[0] for a in (axis if isinstance(axis, (tuple, list)) else (axis,)))
        shifts, axes = shifts_and_axes(shift, axes)
        wrapped_shifts = tuple(n % x.shape[a] for n, a in zip(shifts, axes, strict=True))
        return mx.roll(x, wrapped_shifts, axes)  # type: ignore[arg-type]  # MLX's stub allows tuples of length 1 only

    @fast(
        _pad_with_zeros,
        "{1}.__class__ is int and {1} > -1 and {2}.__class__ is str and {2} == 'constant' and {3} is None",
    )
    def pad(self, x: mx.array, pad_width: Any, mode: str = "constant", constant_values: Any = None) -> mx.array:
        if check_pad(mode, constant_values):
            return self.composed("pad")(x, pad_width, mode, constant_values)
        pad_widths = pad_pairs(pad_width, x.ndim)
        if mode == "constant":
            fill_tensor = promotion.fill_tensor(0 if constant_values is None else constant_values, x.dtype)
            try:
                padded_x = mx.pad(x, pad_widths, constant_values=fill_tensor)
            except (OverflowError, TypeError):
                # MLX counts lengths in 32 bits, so an error may mean that the result would not fit into memory.
                padded_shape = [before + n + after for n, (before, after) in zip(x.shape, pad_widths, strict=True)]
                check_memory(padded_shape, x.itemsize)
                raise
            check_memory(padded_x.shape, padded_x.itemsize)
            return padded_x
        for axis, (before, after) in enumerate(pad_widths):
            if before or after:
                x = require_memory(mx.take(x, of_host(pad_indices(x.shape[axis], before, after, mode)), axis))
        return x
