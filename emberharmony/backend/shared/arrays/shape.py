"""Checks of shapes and axes, made on the host before a tensor library is called."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from emberharmony.backend.host import host_indices, is_integer
from emberharmony.backend.promote import Promotion, nonnegative_axes
from emberharmony.backend.shared.device import check_memory, memory_limit
from emberharmony.core.axes import as_index, as_length, broadcast_shape
from emberharmony.core.deferred import Deferred
from emberharmony.core.errors import (
    ArgumentError,
    ArgumentTypeError,
    AxisError,
    OutOfMemoryError,
    ShapeError,
    brief,
)

if TYPE_CHECKING:
    import numpy as np
else:
    np = Deferred("numpy")

FURTHEST = 2**31 - 1
"""The largest offset of a diagonal that NumPy 2.4 and MLX 0.32 accept; -2**31 crashes the process in NumPy."""
_FAR = 2**62
"""A length that no axis can exceed."""
_MOST = 2**63
"""The smallest length that does not fit into the integers of the libraries."""
_MOST_PARTS = 2**16
"""The largest number of parts into which an axis with fewer elements is split."""
PAD_MODES = ("constant", "reflect", "symmetric", "edge", "wrap")


def _shape_advice(shape: Any) -> str:
    """Returns advice for the error about a value that is not a shape, or an empty string."""
    lengths = shape if isinstance(shape, (tuple, list)) else (shape,)
    if any(length is None for length in lengths):
        return "; write the number of rows in the place of None"
    if any(isinstance(part, (float, str)) for part in lengths):
        return "; int(n) makes an integer, and n // 2 divides to one; is it in the place of another argument?"
    return "; the shape comes first"


def as_shape(shape: Any) -> tuple[int, ...]:
    """Returns a shape, given as one length or a sequence of lengths, as a tuple.

    Raises:
        ArgumentTypeError: if a length is not an integer.
        OutOfMemoryError: if a length is 2**63 or more.
        ShapeError: if a length is negative.
    """
    if shape.__class__ is tuple:
        for n in shape:
            if n.__class__ is not int or not 0 <= n < _MOST:
                break
        else:
            return shape
    try:
        lengths: tuple[int, ...] = (as_length(shape),)
    except TypeError:
        try:
            lengths = tuple(as_length(n) for n in shape)
        except TypeError as error:
            raise ArgumentTypeError(
                f"a shape is an integer or a sequence of them, not {brief(shape)}{_shape_advice(shape)}"
            ) from error
    if any(n < 0 for n in lengths):
        raise ShapeError(f"shape {lengths} has a negative length")
    if any(n >= _MOST for n in lengths):
        raise OutOfMemoryError(f"shape {lengths} has a length that no memory holds")
    return lengths


def check_copy(copy: Any) -> None:
    """Checks that the option `copy` of `reshape` is a boolean or None: in `reshape(x, 2, 3)` it is a length instead.

    Raises:
        ArgumentTypeError: if it is not True, False or None.
    """
    if copy.__class__ is not bool and copy is not None and not isinstance(copy, np.bool_):
        raise ArgumentTypeError(
            f"copy is True, False or None, not {brief(copy)}; a shape of several lengths is one argument, as in "
            f"reshape(x, (2, 3))"
        )


def part_bounds(length: int, indices_or_sections: Any) -> list[tuple[int, int]]:
    """Returns the bounds (start, stop) of each part into which `split` divides an axis.

    Args:
        length: of the axis.
        indices_or_sections: the number of equal parts, or the indices at which to cut.

    Raises:
        ShapeError: if the axis does not divide into equal parts.
    """
    if is_integer(indices_or_sections):
        part_count = _count_of_parts(length, indices_or_sections)
        if length % part_count:
            raise ShapeError(
                f"an axis of length {length} does not split into {part_count} equal parts; use ops.array_split"
            )
        part_length = length // part_count
        return [(i * part_length, (i + 1) * part_length) for i in range(part_count)]
    cut_indices = [as_index(p) for p in indices_or_sections]
    cut_indices = [min(max(p + length, 0) if p < 0 else p, length) for p in cut_indices]
    edges = [0, *cut_indices, length]
    return [(a, max(a, b)) for a, b in pairwise(edges)]


def cut_indices_of(length: int, indices_or_sections: Any) -> list[int]:
    """Returns the indices at which to cut an axis; if the parts cannot be equal, the first ones are longer by one.

    Raises:
        ShapeError: if the number of parts is below 1.
    """
    if not is_integer(indices_or_sections):
        return list(indices_or_sections)
    part_count = _count_of_parts(length, indices_or_sections)
    part_length, longer_count = divmod(length, part_count)
    return [i * part_length + min(i, longer_count) for i in range(1, part_count)]


def _count_of_parts(length: int, sections: Any) -> int:
    """Returns the number of parts into which to divide an axis, checked.

    Raises:
        ArgumentError: if there are so many empty parts that a list of them would exhaust the memory.
        ShapeError: if there are no parts.
    """
    if sections < 1:
        raise ShapeError(f"an axis of length {length} cannot be split into {brief(sections)} parts")
    if sections > (most_parts := max(length, _MOST_PARTS)):
        raise ArgumentError(f"expected at most {most_parts} parts of an axis of length {length}, got {brief(sections)}")
    return int(sections)


def clip_offset(offset: Any, rows: int = _FAR, columns: int = _FAR) -> int:
    """Returns a diagonal's offset, clipped to the first diagonal outside of the matrix, because all those are empty.

    Raises:
        ArgumentTypeError: if the offset is not an integer.
    """
    try:
        return max(-rows, min(as_index(offset), columns))
    except TypeError as error:
        raise ArgumentTypeError(f"the offset of a diagonal is an integer, not {offset!r:.60}") from error


def plane_axes(axes: Sequence[int], ndim: int) -> tuple[int, int]:
    """Returns the two axes of a plane, checked to differ and counted from 0.

    Raises:
        AxisError: if there are not two axes, or one is repeated or out of range.
    """
    two_axes = nonnegative_axes(tuple(axes), ndim)
    if len(two_axes) != 2:
        raise AxisError(f"expected two axes, got {tuple(axes)}")
    return two_axes[0], two_axes[1]


def _is_pad_pair(pair: Any) -> bool:
    """Returns whether `pair` is a tuple of two valid pad widths."""
    return pair.__class__ is tuple and len(pair) == 2 and all(n.__class__ is int and n >= 0 for n in pair)


def pad_pairs(pad_width: Any, ndim: int) -> list[tuple[int, int]]:
    """Returns the pad widths (before, after) of each axis.

    Raises:
        ArgumentTypeError: if a width is not an integer.
        ShapeError: if a width is negative, or the widths do not broadcast to (ndim, 2).
    """
    if pad_width.__class__ is int and pad_width >= 0:
        return [(pad_width, pad_width)] * ndim
    if pad_width.__class__ in (list, tuple) and len(pad_width) == ndim and all(map(_is_pad_pair, pad_width)):
        return list(pad_width)
    try:
        pad_widths = np.broadcast_to(host_indices(pad_width), (ndim, 2)).tolist()
    except ValueError as error:
        raise ShapeError(f"pad_width {pad_width!r} does not fit a tensor of {ndim} axes") from error
    if any(a < 0 or b < 0 for a, b in pad_widths):
        raise ShapeError(f"pad_width {pad_width!r} has a negative number")
    return [(a, b) for a, b in pad_widths]


def pad_indices(length: int, before: int, after: int, mode: str) -> np.ndarray:
    """Returns, for each element of a padded axis, the index of the element that it copies, in the non-constant modes.

    Raises:
        ShapeError: if the axis is empty.
    """
    positions = np.arange(-before, length + after)
    if length == 0 and positions.size:
        raise ShapeError(f"an empty axis cannot be padded in mode {mode!r}")
    if mode == "edge":
        return np.clip(positions, 0, max(length - 1, 0))
    if mode == "wrap":
        return positions % length
    period = 2 * length if mode == "symmetric" else max(2 * length - 2, 1)
    positions = positions % period
    return np.where(positions < length, positions, period - positions - (1 if mode == "symmetric" else 0))


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """Returns the shape to which shapes broadcast.

    Raises:
        ArgumentTypeError: if a length is not an integer.
        ShapeError: if they do not broadcast, or a length is negative.
    """
    return broadcast_shape([as_shape(shape) for shape in shapes])


def check_pad(mode: str, constant_values: Any) -> bool:
    """Checks the options of `pad`, and returns whether the constant values are a tensor or a list.

    Raises:
        ArgumentError: if the mode is unknown, or takes no constant values.
        ArgumentTypeError: if the constant values are not a number, a tensor or a list.
    """
    if mode not in PAD_MODES:
        raise ArgumentError(f"mode is one of {', '.join(PAD_MODES)}, not {mode!r}")
    if constant_values is None:
        return False
    has_many_constants = hasattr(constant_values, "shape") or isinstance(constant_values, list)
    if not has_many_constants and not isinstance(constant_values, (int, float, complex)):
        raise ArgumentTypeError(f"constant_values is a number or a tensor, not {type(constant_values).__name__}")
    if mode != "constant":
        raise ArgumentError(f"constant_values goes with mode 'constant', not {mode!r}")
    return has_many_constants and not isinstance(constant_values, float)


def counts_per_slice(repeats: Any, length: int) -> np.ndarray:
    """Returns how often to repeat each slice of an axis of this length, given as one count or one per slice.

    Raises:
        ArgumentError: if a count is negative.
        ArgumentTypeError: if a count is not an integer.
        ShapeError: if there is neither one count nor one per slice.
    """
    repetitions = host_indices(repeats)
    if (repetitions < 0).any():
        raise ArgumentError(f"a slice cannot be repeated {int(repetitions.min())} times")
    if repetitions.ndim > 1 or repetitions.size not in (1, length):
        raise ShapeError(f"repeats of shape {repetitions.shape} do not fit an axis of length {length}")
    return np.broadcast_to(repetitions, (length,))


def total_repetitions(counts: np.ndarray) -> int:
    """Returns the sum of counts of repetitions, checked to be small enough for an array of indices.

    Raises:
        OutOfMemoryError: if no memory holds the indices.
    """
    total_count = int(counts.sum(dtype=np.float64))  # which does not overflow
    check_memory((total_count,), 8, memory_limit)
    return total_count


def repeated_places(repeats: Any, shape: Sequence[int], axis: int) -> np.ndarray:
    """Returns the places along an axis whose slices make a tensor of repeated slices.

    Raises:
        EmberError: if the counts are not integers that fit the axis, or no memory holds the result.
    """
    length = shape[axis]
    repetitions = counts_per_slice(host_indices(repeats), length)
    check_memory((total_repetitions(repetitions), *(n for a, n in enumerate(shape) if a != axis)), 1, memory_limit)
    return np.repeat(np.arange(length), repetitions)


def tile_shapes(repeats: Any, shape: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Returns three shapes for `tile`: with an axis of length 1 before each axis, with copies there, and joined.

    Raises:
        EmberError: if the counts are no integers from 0 up, or no memory holds the result.
    """
    repetitions = as_shape(repeats)
    ndim = max(len(repetitions), len(shape))
    repetitions, lengths = (1,) * (ndim - len(repetitions)) + repetitions, (1,) * (ndim - len(shape)) + tuple(shape)
    tiled_shape = tuple([n for pair in zip(repetitions, lengths, strict=True) for n in pair])
    check_memory(tiled_shape, 1, memory_limit)
    interleaved_shape = tuple([n for length in lengths for n in (1, length)])
    return interleaved_shape, tiled_shape, tuple([n * m for n, m in zip(repetitions, lengths, strict=True)])


def require_matrices(x: Any) -> Any:
    """Returns a tensor, checked to have at least two axes.

    Raises:
        ShapeError: if it has fewer.
    """
    if x.ndim < 2:
        raise ShapeError(f"expected a tensor with at least two axes, got shape {tuple(x.shape)}")
    return x


def cast_for_join(tensors: list[Any], promotion: Promotion) -> list[Any]:
    """Returns tensors cast to their common dtype, for `concatenate` and `stack`.

    Raises:
        ShapeError: if the list is empty.
    """
    if not tensors:
        raise ShapeError("expected at least one tensor to join, got an empty list")
    dtype = tensors[0].dtype
    for x in tensors:
        if x.dtype != dtype:
            return promotion.common(*tensors)
    return tensors


def shifts_and_axes(shift: Any, axes: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Returns shifts and axes of equal number: one shift applies to all axes, and all shifts to a single axis.

    Raises:
        ShapeError: if the numbers differ and neither is 1.
    """
    shifts = tuple(as_index(n) for n in (shift if isinstance(shift, (tuple, list)) else (shift,)))
    if not axes and len(shifts) < 2:
        return (), ()
    pair_count = max(len(shifts), len(axes))
    if len(shifts) not in (1, pair_count) or len(axes) not in (1, pair_count):
        raise ShapeError(f"{len(shifts)} shifts do not fit {len(axes)} axes")
    return shifts * (pair_count // len(shifts)), axes * (pair_count // len(axes))


def axis_order(axes: Sequence[Any], ndim: int) -> tuple[int, ...]:
    """Returns a permutation of all axes, checked and counted from 0.

    Raises:
        AxisError: if an axis is out of range, repeated or left out.
    """
    permutation = nonnegative_axes(tuple(axes), ndim)
    if len(permutation) != ndim:
        raise AxisError(f"axes {tuple(axes)} name {len(permutation)} of the {ndim} axes; all must be named once")
    return permutation


def expanded_shape(shape: Sequence[int], axis: Any) -> list[int]:
    """Returns a shape with axes of length 1 inserted; `axis` counts in the resulting shape.

    Raises:
        AxisError: if an axis is out of range or repeated.
    """
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    lengths = list(shape)
    for new_axis in sorted(nonnegative_axes(axes, len(shape) + len(axes))):
        lengths.insert(new_axis, 1)
    return lengths


def squeezed_shape(shape: Sequence[int], axes: Sequence[int]) -> list[int]:
    """Returns a shape without these axes, which must have length 1.

    Raises:
        ShapeError: if one has another length.
    """
    for axis in axes:
        if shape[axis] != 1:
            raise ShapeError(f"axis {axis} has length {shape[axis]} and cannot be squeezed")
    return [n for axis, n in enumerate(shape) if axis not in axes]


def axes_and_places(source: Any, destination: Any, ndim: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Returns the axes to move and their new places, both counted from 0.

    Raises:
        AxisError: if an axis is out of range or repeated, or if the numbers differ.
    """
    sources, destinations = nonnegative_axes(source, ndim), nonnegative_axes(destination, ndim)
    if len(sources) != len(destinations):
        raise AxisError(
            f"source and destination must have the same number of axes, got {len(sources)} and {len(destinations)}"
        )
    return sources, destinations


def unstack_axis(num: int | None, axis: int, shape: Sequence[int]) -> int:
    """Returns the axis to unstack, counted from 0.

    Raises:
        AxisError: if it is out of range.
        ShapeError: if it has another length than `num`.
    """
    (axis,) = nonnegative_axes(axis, len(shape))
    if num not in (None, shape[axis]):
        raise ShapeError(f"expected axis {axis} to have length {num}, got {shape[axis]}; leave out num")
    return axis


def check_complex_pairs(shape: Sequence[int]) -> None:
    """Checks that the last axis has length 2, for the real and the imaginary part.

    Raises:
        ShapeError: if it does not.
    """
    if tuple(shape[-1:]) != (2,):
        raise ShapeError(f"shape {tuple(shape)} must end in 2, the real and the imaginary part")


def fits_linear(x: Any, weight: Any, bias: Any, transposed: bool) -> bool:
    """Returns whether the shapes of the arguments of `linear` fit together."""
    lengths = weight.shape
    if len(lengths) != 2 or not len(x.shape):
        return False
    input_axis, output_axis = (1, 0) if transposed else (0, 1)
    return x.shape[-1] == lengths[input_axis] and (bias is None or bias.shape == lengths[output_axis : output_axis + 1])
