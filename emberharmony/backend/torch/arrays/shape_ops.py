"""Changes of shape, on PyTorch."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

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
    squeezed_shape,
    total_repetitions,
    unstack_axis,
)
from emberharmony.backend.shared.device import check_memory, memory_limit
from emberharmony.backend.torch.arrays.indices import extend_by_signed, flip, index_select, int64_indices
from emberharmony.backend.torch.dtypes import promotion, to_host_array
from emberharmony.core.axes import as_length, missing_axis_hint
from emberharmony.core.dispatch import fast
from emberharmony.core.errors import ArgumentError, ShapeError

roll = extend_by_signed(torch.roll)
repeat_interleave = extend_by_signed(torch.repeat_interleave)
_SEQUENCES = (tuple, list)
_reshape, _moveaxis = torch.reshape, torch.moveaxis
"""Names of this module, because an attribute of the module `torch` costs 340 instructions more (CPython 3.11)."""


def _quick_split(x: torch.Tensor, count: int, axis: int) -> list[torch.Tensor]:
    """Returns equal parts of a tensor; PyTorch's own function of this name makes unequal ones of some lengths."""
    length = x.shape[axis]
    if count < 1 or not length or length % count:
        raise NotImplementedError
    return list(torch.chunk(x, count, axis))


class TorchShapeOps:
    """Holds the ops of `ops/arrays/shape.py`.

    PyTorch makes views, or copies at once, where the bodies gather: they take up to 9 times as long, for few elements.
    """

    composed: Callable[[str], Callable[..., torch.Tensor]]

    @staticmethod
    @fast(torch.swapaxes, "{0}.ndim")
    def swapaxes(x: torch.Tensor, axis1: int, axis2: int) -> torch.Tensor:
        # For a 0-d tensor PyTorch accepts the axes 0 and -1, which must raise.
        return torch.swapaxes(x, *(nonnegative_axes(axis, x.ndim)[0] for axis in (axis1, axis2)))

    @staticmethod
    def reshape(x: torch.Tensor, shape: Any, copy: bool | None = None) -> torch.Tensor:
        lengths: Any = shape
        if shape.__class__ not in _SEQUENCES and isinstance(shape, (int, np.integer)):
            lengths = (shape,)
        for n in lengths:
            if n.__class__ is bool:  # PyTorch 2.13 refuses a bool only as the first length
                as_length(n)  # raises
        if copy is None:
            return _reshape(x, lengths)
        check_copy(copy)
        if copy:
            return x.clone().reshape(lengths)
        try:
            return x.view(lengths)
        except RuntimeError as error:
            if "not compatible with input tensor's size and stride" not in str(error):
                raise
            raise ArgumentError("this shape needs a copy, which copy=False refuses") from error

    @staticmethod
    def transpose(x: torch.Tensor, axes: Sequence[int] | None = None) -> torch.Tensor:
        return torch.permute(x, tuple(range(x.ndim - 1, -1, -1)) if axes is None else tuple(axes))

    @staticmethod
    def matrix_transpose(x: torch.Tensor) -> torch.Tensor:
        return require_matrices(x).mT

    @staticmethod
    def moveaxis(x: torch.Tensor, source: Any, destination: Any) -> torch.Tensor:
        if x.ndim and source.__class__ is int and destination.__class__ is int:
            return _moveaxis(x, source, destination)
        sources, destinations = axes_and_places(source, destination, x.ndim)
        return torch.moveaxis(x, sources, destinations)

    @staticmethod
    def expand_dims(x: torch.Tensor, axis: Any = 0) -> torch.Tensor:
        return torch.unsqueeze(x, axis) if axis.__class__ is int else x.reshape(expanded_shape(x.shape, axis))

    @staticmethod
    def squeeze(x: torch.Tensor, axis: Any = None) -> torch.Tensor:
        if axis is None:
            return torch.squeeze(x)
        # PyTorch silently keeps an axis that is longer than 1, which must raise.
        if axis.__class__ is int and -x.ndim <= axis < x.ndim and x.shape[axis] == 1:
            return torch.squeeze(x, axis)
        return x.reshape(squeezed_shape(x.shape, nonnegative_axes(axis, x.ndim)))

    @staticmethod
    def broadcast_to(x: torch.Tensor, shape: Any) -> torch.Tensor:
        return torch.broadcast_to(x, as_shape(shape))

    @staticmethod
    def broadcast_arrays(*arrays: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(torch.broadcast_tensors(*arrays)) if arrays else ()  # type: ignore[no-untyped-call]

    @staticmethod
    def concatenate(xs: list[torch.Tensor], axis: int | None = 0) -> torch.Tensor:
        tensors = cast_for_join(xs, promotion)
        if axis is None:
            return torch.cat([x.reshape(-1) for x in tensors])
        ndim = tensors[0].ndim
        for x in tensors:
            if x.ndim != ndim or ndim == 0:
                # PyTorch ignores an empty vector, whatever the shapes of the others.
                shapes = [tuple(x.shape) for x in tensors]
                way_out = missing_axis_hint(shapes, axis) or "; reshape them, or use ops.stack"
                raise ShapeError(
                    f"expected tensors with the same number of axes, at least one, got shapes "
                    f"{', '.join(map(str, shapes))}{way_out}"
                )
        return torch.cat(tensors, *nonnegative_axes(axis, ndim))

    @staticmethod
    def stack(x: list[torch.Tensor], axis: int = 0) -> torch.Tensor:
        return torch.stack(cast_for_join(x, promotion), axis)

    @staticmethod
    @fast(_quick_split, "{1}.__class__ is {2}.__class__ is int", whole=True)
    def split(x: torch.Tensor, indices_or_sections: Any, axis: int = 0) -> list[torch.Tensor]:
        (axis,) = nonnegative_axes(axis, x.ndim)
        length = x.shape[axis]
        sections = indices_or_sections
        if sections.__class__ is int and 0 < sections <= length and length % sections == 0:
            return list(torch.split(x, length // sections, axis))
        bounds = part_bounds(length, sections)
        sizes = [stop - start for start, stop in bounds]
        if sum(sizes) == length:
            # The gradient of `torch.split` joins the parts; that of views fills a tensor with zeros for each.
            return list(torch.split(x, sizes, axis))
        return [torch.narrow(x, axis, start, stop - start) for start, stop in bounds]

    @staticmethod
    @fast(lambda x, num, axis: torch.unbind(x, axis), "{1} is None and {2}.__class__ is int")
    def unstack(x: torch.Tensor, num: int | None = None, axis: int = 0) -> tuple[torch.Tensor, ...]:
        axis = unstack_axis(num, axis, x.shape)
        return tuple(torch.unbind(x, axis))

    @staticmethod
    def tile(x: torch.Tensor, repeats: int | Sequence[int]) -> torch.Tensor:
        return torch.tile(x, as_shape(repeats))

    @staticmethod
    def repeat(x: torch.Tensor, repeats: Any, axis: int | None = None) -> torch.Tensor:
        if axis is None:
            x, axis = x.reshape(-1), 0
        (axis,) = nonnegative_axes(axis, x.ndim)
        if repeats.__class__ is int and repeats >= 0:
            return repeat_interleave(x, repeats, axis)
        if isinstance(repeats, torch.Tensor):
            repeats = to_host_array(int64_indices(repeats, torch.device("cpu")))
        counts = counts_per_slice(repeats, x.shape[axis])
        lengths = (*x.shape[:axis], total_repetitions(counts), *x.shape[axis + 1 :])
        if x.device.type == "cpu":
            check_memory(lengths, x.element_size(), memory_limit)
        return index_select(x, axis, torch.from_numpy(np.arange(len(counts)).repeat(counts)).to(x.device))

    @staticmethod
    def flip(x: torch.Tensor, axis: Any = None) -> torch.Tensor:
        return flip(x, nonnegative_axes(axis, x.ndim))

    @staticmethod
    def roll(x: torch.Tensor, shift: Any, axis: Any = None) -> torch.Tensor:
        if axis is None:
            return roll(x.reshape(-1), sum(shifts_and_axes(shift, (0,))[0]) % max(x.numel(), 1), 0).reshape(x.shape)
        axes = tuple(nonnegative_axes(a, x.ndim)[0] for a in (axis if isinstance(axis, (tuple, list)) else (axis,)))
        shifts, axes = shifts_and_axes(shift, axes)
        if any(n.bit_length() > 63 for n in shifts):
            # PyTorch takes shifts up to 64 bits, so reduce larger ones modulo the length.
            shifts = tuple(n % max(x.shape[a], 1) for n, a in zip(shifts, axes, strict=True))
        return roll(x, shifts, axes) if axes else x.clone()

    def pad(self, x: torch.Tensor, pad_width: Any, mode: str = "constant", constant_values: Any = None) -> torch.Tensor:
        if check_pad(mode, constant_values):
            return self.composed("pad")(x, pad_width, mode, constant_values)
        pad_widths = pad_pairs(pad_width, x.ndim)
        if mode == "constant":
            flat_widths = [n for pair in reversed(pad_widths) for n in pair]
            check_memory(
                [before + n + after for n, (before, after) in zip(x.shape, pad_widths, strict=True)], x.itemsize
            )
            if constant_values is None:
                return torch.nn.functional.pad(x, flat_widths)
            fill_number = promotion.fill_tensor(constant_values, x.dtype).item()
            if isinstance(fill_number, complex):
                # `functional.pad` takes no complex value (PyTorch 2.13).
                padded_parts = (
                    torch.nn.functional.pad(p, flat_widths, value=v)
                    for p, v in ((x.real, fill_number.real), (x.imag, fill_number.imag))
                )
                return torch.complex(*padded_parts)
            return torch.nn.functional.pad(x, flat_widths, value=fill_number)
        for axis, (before, after) in enumerate(pad_widths):
            if before or after:
                source_indices = pad_indices(x.shape[axis], before, after, mode)
                x = index_select(x, axis, torch.from_numpy(source_indices).to(x.device))
        return x
