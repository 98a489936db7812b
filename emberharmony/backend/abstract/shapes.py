"""The shapes of the results of the ops that change shapes, such as `reshape` and `concatenate`."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

from emberharmony.backend.abstract.rules import Rule, dtype_from, resized_shape
from emberharmony.backend.host import host_indices
from emberharmony.backend.promote import nonnegative_axes
from emberharmony.backend.shared.arrays.shape import (
    as_shape,
    axis_order,
    broadcast_shapes,
    check_copy,
    check_pad,
    counts_per_slice,
    expanded_shape,
    pad_pairs,
    part_bounds,
    shifts_and_axes,
    squeezed_shape,
)
from emberharmony.core.axes import as_length, broadcast_shape
from emberharmony.core.errors import ShapeError
from emberharmony.transforms.abstract_tensor import AbstractTensor, no_value_error


class AbstractShapes:
    """Holds the primitives of `ops/arrays/shape.py`."""

    tensor_of: Any
    adopt: Any

    def _with_shape(self, x: AbstractTensor, shape: Sequence[int]) -> AbstractTensor:
        return self.tensor_of(tuple(shape), x.dtype)

    def reshape(self, x: AbstractTensor, shape: Any, copy: bool | None = None) -> AbstractTensor:
        check_copy(copy)
        lengths = [as_length(n) for n in (shape if isinstance(shape, (tuple, list)) else (shape,))]
        unknown_axes = [i for i, n in enumerate(lengths) if n == -1]
        known_size = math.prod(n for n in lengths if n != -1)
        if any(n < -1 for n in lengths) or len(unknown_axes) > 1:
            raise ShapeError(
                f"shape {shape} has a negative length" if len(unknown_axes) < 2 else f"shape {shape} has two -1"
            )
        if unknown_axes and known_size and x.size % known_size == 0:
            lengths[unknown_axes[0]] = x.size // known_size
        if -1 in lengths or math.prod(lengths) != x.size:
            raise ShapeError(f"a tensor of shape {x.shape} has {x.size} elements and cannot take shape {shape}")
        return self._with_shape(x, lengths)

    def transpose(self, x: AbstractTensor, axes: Any = None) -> AbstractTensor:
        permutation = range(x.ndim)[::-1] if axes is None else axis_order(axes, x.ndim)
        return self._with_shape(x, [x.shape[a] for a in permutation])

    def swapaxes(self, x: AbstractTensor, axis1: int, axis2: int) -> AbstractTensor:
        (first_axis,), (second_axis,) = nonnegative_axes(axis1, x.ndim), nonnegative_axes(axis2, x.ndim)
        shape = list(x.shape)
        shape[first_axis], shape[second_axis] = shape[second_axis], shape[first_axis]
        return self._with_shape(x, shape)

    def expand_dims(self, x: AbstractTensor, axis: Any = 0) -> AbstractTensor:
        return self._with_shape(x, expanded_shape(x.shape, axis))

    def squeeze(self, x: AbstractTensor, axis: Any = None) -> AbstractTensor:
        axes = [a for a, n in enumerate(x.shape) if n == 1] if axis is None else nonnegative_axes(axis, x.ndim)
        return self._with_shape(x, squeezed_shape(x.shape, axes))

    def broadcast_to(self, x: AbstractTensor, shape: Any) -> AbstractTensor:
        target_shape = as_shape(shape)
        if len(x.shape) > len(target_shape) or broadcast_shape([x.shape, target_shape]) != target_shape:
            raise ShapeError(f"a tensor of shape {x.shape} does not broadcast to shape {target_shape}")
        return self._with_shape(x, target_shape)

    def broadcast_arrays(self, *arrays: AbstractTensor) -> tuple[AbstractTensor, ...]:
        shape = broadcast_shapes(*(x.shape for x in arrays))
        return tuple(self._with_shape(x, shape) for x in arrays)

    @Rule
    def concatenate(self: Any, name: str, xs: list[AbstractTensor], axis: int | None = 0) -> AbstractTensor:
        dtype = dtype_from(self, name, xs, axis)
        if axis is None:
            return self.tensor_of((sum(x.size for x in xs),), dtype)
        (axis_index,) = nonnegative_axes(axis, xs[0].ndim)
        for x in xs:
            if len(x.shape) != len(xs[0].shape) or resized_shape(x.shape, axis_index, 0) != resized_shape(
                xs[0].shape, axis_index, 0
            ):
                raise ShapeError(f"shapes {xs[0].shape} and {x.shape} differ in other axes than axis {axis}")
        return self.tensor_of(resized_shape(xs[0].shape, axis_index, sum(x.shape[axis_index] for x in xs)), dtype)

    @Rule
    def stack(self: Any, name: str, x: list[AbstractTensor], axis: int = 0) -> AbstractTensor:
        dtype = dtype_from(self, name, x, axis)
        if any(tensor.shape != x[0].shape for tensor in x):
            raise ShapeError(f"expected tensors of one shape, got {sorted({part.shape for part in x})}")
        (axis_index,) = nonnegative_axes(axis, x[0].ndim + 1)
        return self.tensor_of((*x[0].shape[:axis_index], len(x), *x[0].shape[axis_index:]), dtype)

    def split(self, x: AbstractTensor, indices_or_sections: Any, axis: int = 0) -> list[AbstractTensor]:
        (axis_index,) = nonnegative_axes(axis, x.ndim)
        return [
            self._with_shape(x, resized_shape(x.shape, axis_index, b - a))
            for a, b in part_bounds(x.shape[axis_index], indices_or_sections)
        ]

    def unstack(self, x: AbstractTensor, num: int | None = None, axis: int = 0) -> tuple[AbstractTensor, ...]:
        (axis_index,) = nonnegative_axes(axis, x.ndim)
        if num not in (None, x.shape[axis_index]):
            raise ShapeError(f"axis {axis} has length {x.shape[axis_index]}, not {num}")
        slice_tensor = self._with_shape(x, (*x.shape[:axis_index], *x.shape[axis_index + 1 :]))
        return (slice_tensor,) * x.shape[axis_index]

    def tile(self, x: AbstractTensor, repeats: Any) -> AbstractTensor:
        repetitions = as_shape(repeats)
        rank = max(len(repetitions), x.ndim)
        lengths = (1,) * (rank - x.ndim) + x.shape
        return self._with_shape(x, [*map(operator.mul, lengths, (1,) * (rank - len(repetitions)) + repetitions)])

    def repeat(self, x: AbstractTensor, repeats: Any, axis: int | None = None) -> AbstractTensor:
        shape = (x.size,) if axis is None else x.shape
        (axis_index,) = nonnegative_axes(0 if axis is None else axis, len(shape))
        repeats = self.adopt(repeats)
        if isinstance(repeats, AbstractTensor):
            if repeats.known is None:
                raise no_value_error("the length of the result is the sum of the repeats, which are a tensor")
            repeats = repeats.value("repeat()")
        repetitions = host_indices(repeats)
        if repetitions.ndim == 0 or repetitions.size == 1:
            return self._with_shape(
                x,
                resized_shape(shape, axis_index, shape[axis_index] * int(counts_per_slice(repetitions, 1).sum())),
            )
        return self._with_shape(
            x, resized_shape(shape, axis_index, int(counts_per_slice(repetitions, shape[axis_index]).sum()))
        )

    def flip(self, x: AbstractTensor, axis: Any = None) -> AbstractTensor:
        nonnegative_axes(axis, x.ndim)
        return self._with_shape(x, x.shape)

    def roll(self, x: AbstractTensor, shift: Any, axis: Any = None) -> AbstractTensor:
        shifts_and_axes(shift, (0,) if axis is None else nonnegative_axes(axis, x.ndim))
        return self._with_shape(x, x.shape)

    def pad(
        self, x: AbstractTensor, pad_width: Any, mode: str = "constant", constant_values: float | None = None
    ) -> AbstractTensor:
        check_pad(mode, constant_values)
        pad_widths = pad_pairs(pad_width, x.ndim)
        if mode != "constant" and any(n == 0 and any(widths) for n, widths in zip(x.shape, pad_widths, strict=True)):
            raise ShapeError(f"an empty axis cannot be padded in mode {mode!r}")
        return self._with_shape(x, [a + n + b for n, (a, b) in zip(x.shape, pad_widths, strict=True)])
