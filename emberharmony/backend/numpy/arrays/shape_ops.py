"""Changes of shapes and of the order of elements, on NumPy."""

import math
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from emberharmony.backend.host import host_indices
from emberharmony.backend.numpy.dtypes import promotion
from emberharmony.backend.numpy.folding import check_axis
from emberharmony.backend.promote import nonnegative_axes
from emberharmony.backend.shared.arrays.shape import (
    as_shape,
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
    unstack_axis,
)
from emberharmony.backend.shared.device import check_memory, memory_limit
from emberharmony.core.axes import as_index
from emberharmony.core.dispatch import fast
from emberharmony.core.errors import ArgumentError, ShapeError

_LARGE = 2**40
"""From this number of elements on, NumPy itself checks the shape of a view."""


def _roll(x: np.ndarray, shift: Any, axis: Any = None) -> np.ndarray:
    if isinstance(axis, (tuple, list)) and not axis:
        # np.roll (NumPy 2.4) raises a broadcasting error of its own for several shifts along no axes.
        shifts_and_axes(shift, ())
        return x.copy()
    # np.roll would take a shift of 1.5 for 1, so check that shifts are integers.
    shifts = tuple(map(as_index, shift)) if isinstance(shift, (tuple, list)) else as_index(shift)
    return np.roll(x, shifts, axis)


class NumpyShapeOps:
    """Holds the ops of `ops/arrays/shape.py`.

    NumPy makes views, or copies at once, where the bodies gather: they take 1.3 to 25 times as long, for few elements.
    """

    composed: Callable[[str], Callable[..., np.ndarray]]

    transpose = staticmethod(lambda x, axes=None: x.transpose(axes))
    swapaxes = staticmethod(lambda x, axis1, axis2: x.swapaxes(axis1, axis2))
    moveaxis = staticmethod(np.moveaxis)
    roll = staticmethod(_roll)

    @staticmethod
    def reshape(x: np.ndarray, shape: Any, copy: bool | None = None) -> np.ndarray:
        for n in shape if shape.__class__ is tuple or shape.__class__ is list else (shape,):
            if n.__class__ is int and n < -1:
                # NumPy 2.4 treats every negative length as -1.
                raise ShapeError(f"shape {shape} has a negative length")
        if copy is None:
            return x.reshape(shape)
        check_copy(copy)
        try:
            return x.reshape(shape, copy=copy)
        except ValueError as error:
            if "Unable to avoid" not in str(error):
                raise
            raise ArgumentError("this shape needs a copy, which copy=False refuses") from error

    @staticmethod
    @fast(attrgetter("mT"), "{0}.ndim > 1")
    def matrix_transpose(x: np.ndarray) -> np.ndarray:
        return require_matrices(x).swapaxes(-1, -2)

    @staticmethod
    def expand_dims(x: np.ndarray, axis: Any = 0) -> np.ndarray:
        shape = x.shape
        if axis.__class__ is int and -x.ndim - 1 <= axis <= x.ndim:
            axis_index = axis if axis >= 0 else axis + x.ndim + 1
            return x.reshape((*shape[:axis_index], 1, *shape[axis_index:]))
        return x.reshape(expanded_shape(shape, axis))

    @staticmethod
    def squeeze(x: np.ndarray, axis: Any = None) -> np.ndarray:
        check_axis(axis, x.ndim)
        return x.squeeze(tuple(axis) if isinstance(axis, list) else axis)

    @staticmethod
    def broadcast_to(x: np.ndarray, shape: Any) -> np.ndarray:
        lengths = as_shape(shape)
        added_axis_count = len(lengths) - x.ndim
        # numpy.broadcast_to (NumPy 2.4) takes 9 µs; a view of zero strides takes 2.
        if added_axis_count >= 0 and x.size and x.flags.c_contiguous:
            strides = [0] * added_axis_count
            for old_length, new_length, stride in zip(x.shape, lengths[added_axis_count:], x.strides, strict=True):
                if old_length == new_length:
                    strides.append(stride)
                elif old_length == 1 and new_length > 1:
                    strides.append(0)
                else:
                    return np.broadcast_to(x, lengths)
            if math.prod(lengths) < _LARGE:
                view = np.ndarray(lengths, x.dtype, x, 0, strides)
                view.flags.writeable = False
                return view
        return np.broadcast_to(x, lengths)

    @staticmethod
    def concatenate(xs: list[np.ndarray], axis: int | None = 0) -> np.ndarray:
        joinable_arrays = cast_for_join(xs, promotion)
        check_axis(axis, joinable_arrays[0].ndim or 1)
        return np.concatenate(joinable_arrays, axis)

    @staticmethod
    def stack(x: list[np.ndarray], axis: int = 0) -> np.ndarray:
        return np.stack(cast_for_join(x, promotion), axis)

    @staticmethod
    def split(x: np.ndarray, indices_or_sections: Any, axis: int = 0) -> list[np.ndarray]:
        (axis,) = nonnegative_axes(axis, x.ndim)
        leading_slices = (slice(None),) * axis
        return [x[(*leading_slices, slice(a, b))] for a, b in part_bounds(x.shape[axis], indices_or_sections)]

    @staticmethod
    def unstack(x: np.ndarray, num: int | None = None, axis: int = 0) -> tuple[np.ndarray, ...]:
        axis = unstack_axis(num, axis, x.shape)
        rows = x if axis == 0 else np.moveaxis(x, axis, 0)
        return tuple(rows)

    @staticmethod
    def tile(x: np.ndarray, repeats: int | Sequence[int]) -> np.ndarray:
        repetitions = as_shape(repeats)
        # np.tile repeats along one axis after the other, and would fill the memory before it fails.
        check_memory((math.prod(repetitions), *x.shape), x.itemsize, memory_limit)
        return np.tile(x, repetitions)

    @staticmethod
    def repeat(x: np.ndarray, repeats: Any, axis: int | None = None) -> np.ndarray:
        if axis is None:
            x, axis = x.reshape(-1), 0
        check_axis(axis, x.ndim)
        if repeats.__class__ is int and 0 <= repeats < 2**31:
            return x.repeat(repeats, axis)
        repetitions = host_indices(repeats)
        # NumPy 2.4 writes outside of the result if its number of elements overflows 64 bits. Floats do not overflow.
        element_count = repetitions.sum(dtype=np.float64) * (x.size if repetitions.size == 1 else 1)
        check_memory((int(element_count),), x.itemsize, memory_limit)
        # NumPy checks a vector of counts by itself.
        return x.repeat(repetitions if repetitions.ndim == 1 else counts_per_slice(repetitions, x.shape[axis]), axis)

    @staticmethod
    def flip(x: np.ndarray, axis: Any = None) -> np.ndarray:
        axes = nonnegative_axes(axis, x.ndim)
        return x[tuple(slice(None, None, -1 if a in axes else 1) for a in range(x.ndim))]

    def pad(self, x: np.ndarray, pad_width: Any, mode: str = "constant", constant_values: Any = None) -> np.ndarray:
        if check_pad(mode, constant_values):
            return self.composed("pad")(x, pad_width, mode, constant_values)
        pad_widths = pad_pairs(pad_width, x.ndim)
        if mode == "constant":
            padded_shape = [before + n + after for n, (before, after) in zip(x.shape, pad_widths, strict=True)]
            if constant_values is None:
                padded_x = np.zeros(padded_shape, x.dtype)
            else:
                padded_x = np.empty(padded_shape, x.dtype)
                padded_x.fill(promotion.fill_tensor(constant_values, x.dtype))
            padded_x[tuple([slice(before, before + n) for n, (before, _) in zip(x.shape, pad_widths, strict=True)])] = x
            return padded_x
        for axis, (before, after) in enumerate(pad_widths):
            if before or after:
                x = x.take(pad_indices(x.shape[axis], before, after, mode), axis)
        return x
