"""Checks of indices and of the keys of `get_item`, made on the host before a tensor library uses them."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from emberharmony.backend.host import host_indices, plain_array
from emberharmony.backend.shared.arrays.shape import FURTHEST, as_shape, clip_offset, require_matrices
from emberharmony.backend.shared.device import ADDRESSABLE, check_memory
from emberharmony.core.axes import INDEX_RANGE, as_index
from emberharmony.core.deferred import Deferred
from emberharmony.core.errors import (
    ArgumentError,
    ArgumentTypeError,
    AxisError,
    IndexOutOfBoundsError,
    RangeError,
    ShapeError,
    brief,
)

if TYPE_CHECKING:
    import numpy as np
else:
    np = Deferred("numpy")

_FAR = 2**31
"""The magnitude from which a number does not fit the 32 bits of MLX's indices."""
_LONG = 2**30
"""From this length on, the sum of a length and a step may not fit 32 bits."""
MaskAxes = Callable[[Any], int | None]
_BASIC = (int, slice, type(None), type(Ellipsis))
"""The classes of the parts of a key that are no arrays."""


def is_basic_key(key: Any, shape: Any) -> bool:
    """Returns whether a key consists only of forward slices, None, and integers within bounds."""
    axis_count, ndim = 0, len(shape)
    for key_part in key if key.__class__ is tuple else (key,):
        if key_part.__class__ is slice:
            if not (_fits_32_bits(key_part.start) and _fits_32_bits(key_part.stop) and _fits_32_bits(key_part.step)):
                return False
            if key_part.step is not None and (key_part.step <= 0 or (axis_count < ndim and shape[axis_count] >= _LONG)):
                return False
        elif key_part is None:
            continue
        elif (
            key_part.__class__ is not int
            or axis_count >= ndim
            or not -shape[axis_count] <= key_part < shape[axis_count]
        ):
            return False
        axis_count += 1
    return axis_count <= ndim


def _fits_32_bits(number: Any) -> bool:
    return number is None or (number.__class__ is int and -_FAR < number < _FAR)


def slice_within(part: slice, length: int) -> slice:
    """Returns a slice that selects the same of an axis of this length, with start, stop and step within the length.

    Raises:
        RangeError: if the slice has a step and the axis is so long that their sum may not fit 32 bits.
    """
    if length >= _LONG and part.step not in (None, 1):
        raise RangeError(f"an axis of length {length} takes slices of step 1 only: the backend counts in 32 bits")
    start, stop, step = part.indices(length)
    if start < 0:
        # A slice that goes backwards from before the first element is empty.
        return slice(0, 0)
    last_length = max(length, 1)
    return slice(start, None if stop < 0 else stop, max(min(step, last_length), -last_length))


def key_parts_of(key: Any, shape: Any, mask_axes: MaskAxes) -> Iterator[tuple[Any, int, bool]]:
    """Yields the parts of a key, checked, each with the first axis it reads and whether it is a mask.

    Integers are yielded as indices from 0 up; lists, tuples and NumPy arrays as arrays of booleans, or of int64 from 0
    up; None, Ellipsis, slices and the backend's own tensors unchanged. Values of the backend's tensors are not read.

    Args:
        key: the expression in the brackets.
        shape: of the tensor that is read.
        mask_axes: returns the number of axes of a mask of the backend, -1 for its other tensors, None for others.

    Raises:
        ArgumentError: if a slice has step 0, or the key has two ellipses.
        ArgumentTypeError: if a part is not an index.
        AxisError: if there are more indices than axes.
        IndexOutOfBoundsError: if an index is out of bounds.
        ShapeError: if the shape of a mask does not fit the axes that it reads.
    """
    key_parts = [_part_on_host(key_part, mask_axes) for key_part in (key if isinstance(key, tuple) else (key,))]
    if sum(part is Ellipsis for part in key_parts) > 1:
        raise ArgumentError("a key has at most one ellipsis")
    mask_axis_counts = [None if isinstance(part, _BASIC) else mask_axes(part) for part in key_parts]
    are_masks = [_is_mask(part, axes) for part, axes in zip(key_parts, mask_axis_counts, strict=True)]
    axis_counts = [_count_axes_read(part, is_mask) for part, is_mask in zip(key_parts, are_masks, strict=True)]
    if sum(axis_counts) > len(shape):
        raise AxisError(f"{sum(axis_counts)} indices for a tensor of {len(shape)} axes")
    axis = 0
    for part, mask_axis_count, is_mask, axis_count in zip(
        key_parts, mask_axis_counts, are_masks, axis_counts, strict=True
    ):
        if is_mask:
            read_lengths = tuple(shape[axis : axis + axis_count])
            if tuple(part.shape) != read_lengths:
                raise ShapeError(
                    f"a mask of shape {tuple(part.shape)} does not fit the axes of shape {read_lengths} it reads"
                )
        elif type(part) is int:
            part = nonnegative_index(part, shape[axis])
        elif mask_axis_count is None and not isinstance(part, _BASIC):  # so it is an array on the host
            part = nonnegative_indices(part, shape[axis])
        yield part, axis, is_mask
        axis += len(shape) - sum(axis_counts) if part is Ellipsis else axis_count


def _part_on_host(part: Any, mask_axes: MaskAxes) -> Any:
    if part is None or part is Ellipsis or isinstance(part, (bool, int)) or mask_axes(part) is not None:
        return part
    if isinstance(part, slice):
        if part.step == 0:
            raise ArgumentError("the step of a slice must not be 0")
        for end in (part.start, part.stop, part.step):
            if end is not None and not hasattr(end, "__index__"):
                raise ArgumentTypeError(f"a slice consists of integers or None, not {brief(end)}")
        return part
    if isinstance(part, (list, tuple, range, np.ndarray, np.generic)):
        array = plain_array(part)
        return array if array.dtype == bool else host_indices(part)
    try:
        return as_index(part)
    except TypeError as error:
        raise ArgumentTypeError(
            f"{brief(part)} is not an index: indices are integers, slices, masks, Ellipsis or None"
        ) from error


def _is_mask(part: Any, axes: int | None) -> bool:
    if axes is not None:
        return axes >= 0
    return not isinstance(part, _BASIC) and bool(part.dtype == bool)


def _count_axes_read(part: Any, is_mask: bool) -> int:
    """Returns how many axes a part of a key reads."""
    if is_mask:
        return int(part.ndim)
    return 0 if part is None or part is Ellipsis or isinstance(part, bool) else 1


def nonnegative_indices(indices: np.ndarray, length: int) -> np.ndarray:
    """Returns an array of indices, some of which may be negative, as int64 indices from 0 to length - 1.

    Raises:
        IndexOutOfBoundsError: if one is out of bounds; the message names the first.
    """
    # Viewed as unsigned, negative indices are the largest numbers, so one maximum checks both bounds.
    if indices.size and int(np.maximum.reduce(indices.view(np.uint64), None)) < length:
        return indices
    is_outside = (indices < -length) | (indices >= length)
    if is_outside.any():
        first_outside = np.unravel_index(int(np.argmax(is_outside)), is_outside.shape)
        location = f", at {tuple(map(int, first_outside))} of indices of shape {indices.shape}" if indices.ndim else ""
        raise IndexOutOfBoundsError(
            f"index {int(indices[is_outside].flat[0])} is out of bounds for an axis of length {length}{location}; "
            f"{INDEX_RANGE}"
        )
    return np.where(indices < 0, indices + length, indices)


def nonnegative_index(index: int, length: int) -> int:
    """Returns an index, which may be negative, as one from 0 to length - 1.

    Raises:
        IndexOutOfBoundsError: if it is out of bounds.
    """
    if not -length <= index < length:
        raise IndexOutOfBoundsError(f"index {index} is out of bounds for an axis of length {length}; {INDEX_RANGE}")
    return index % length


def block_slices(shape: Sequence[int], start: Sequence[Any], lengths: Sequence[int]) -> tuple[slice, ...]:
    """Returns the slice of each axis that selects a block of a tensor, by its first indices and its lengths.

    Args:
        shape: of the tensor.
        start: the first index of the block along each axis.
        lengths: the shape of the block.

    Raises:
        IndexOutOfBoundsError: if the block exceeds the tensor.
        ShapeError: if the numbers of axes differ.
    """
    if len(start) != len(shape) or len(lengths) != len(shape):
        raise ShapeError(
            f"expected {len(shape)} start indices and lengths for shape {tuple(shape)}, got start {start} and shape "
            f"{tuple(lengths)}"
        )
    slices = []
    for start_on_axis, n, axis_length in zip(start, lengths, shape, strict=True):
        start_index = start_on_axis if start_on_axis.__class__ is int else as_index(start_on_axis)
        stop_index = start_index + (n if n.__class__ is int else as_index(n))
        if not 0 <= start_index <= stop_index <= axis_length:
            raise IndexOutOfBoundsError(f"the block at {start} of shape {tuple(lengths)} exceeds shape {tuple(shape)}")
        slices.append(slice(start_index, stop_index))
    return tuple(slices)


def class_count(num_classes: int, ids: Any) -> int:
    """Returns the number of classes as an int, and checks that class ids are integers.

    Raises:
        ArgumentTypeError: if it is not an integer, or the ids are no integers.
        ArgumentError: if it is negative.
        OutOfMemoryError: if no memory holds so many.
    """
    try:
        num_classes = as_index(num_classes)
    except TypeError as error:
        raise ArgumentTypeError(f"num_classes is an integer, not {num_classes!r:.60}") from error
    dtype_name = str(ids.dtype).rpartition(".")[2]
    is_empty = 0 in tuple(ids.shape)  # an empty list has a float dtype
    if dtype_name.startswith(("float", "bfloat", "complex")) and not is_empty:
        raise ArgumentTypeError(f"class ids are integers, not {dtype_name}: ops.cast(x, 'int64')")
    if num_classes < 0:
        raise ArgumentError(f"the number of classes is at least 0, not {num_classes}")
    if num_classes > ADDRESSABLE:
        check_memory((num_classes,), 1)
    return num_classes


def check_index_vectors(indices: Sequence[int], shape: Sequence[int]) -> None:
    """Checks that indices can name positions in a tensor: one index for each of its first k axes.

    Args:
        indices: the shape of the indices, (..., k).
        shape: of the tensor.

    Raises:
        ShapeError: if the indices have no last axis, or its length k is 0 or larger than the number of axes.
    """
    if not indices or not 0 < indices[-1] <= len(shape):
        raise ShapeError(
            f"indices of shape {tuple(indices)} do not name positions in shape {tuple(shape)}: their last axis must "
            f"have a length from 1 to {len(shape)}"
        )


def index_columns(indices: Any, shape: Sequence[int]) -> tuple[np.ndarray, ...]:
    """Returns indices of shape (..., k) as k arrays, one for each of the first k axes, checked against their lengths.

    Raises:
        IndexOutOfBoundsError: if an index is out of bounds.
        ShapeError: if k is 0 or larger than the number of axes.
    """
    index_vectors = host_indices(indices)
    check_index_vectors(index_vectors.shape, shape)
    return tuple(
        nonnegative_indices(index_vectors[..., axis], int(shape[axis])) for axis in range(index_vectors.shape[-1])
    )


def checked_reduction(reduction: str | None, reductions: Container[str]) -> str | None:
    """Returns the name of a reduction, after a check that it is one of the given reductions, or None.

    Raises:
        ArgumentError: if it is not None and unknown.
    """
    if reduction is not None and reduction not in reductions:
        raise ArgumentError(f"the reduction {reduction!r} is unknown; use None, 'add', 'mul', 'max' or 'min'")
    return reduction


def require_elements(length: int, count: int) -> None:
    """Checks that an axis has elements if any are read from it.

    Args:
        length: of the axis.
        count: the number of indices.

    Raises:
        IndexOutOfBoundsError: if there are indices, but the axis is empty.
    """
    if length == 0 and count:
        raise IndexOutOfBoundsError("an axis of length 0 has no elements to index")


def flat_indices(shape: Sequence[int]) -> np.ndarray:
    """Returns, for each element of a tensor of this shape, its index in the flattened tensor."""
    return np.arange(math.prod(shape)).reshape(shape)


def flat_selection(key: tuple[Any, ...], shape: Sequence[int]) -> np.ndarray:
    """Returns the indices in the flattened tensor of the elements that a key on the host selects.

    Raises:
        EmberError: if the key does not fit the shape.
    """
    host_key = tuple(key_part for key_part, _, _ in key_parts_of(key, shape, lambda part: None))
    return np.asarray(flat_indices(shape)[host_key])


def places_along(indices: Any, shape: Sequence[int], axis: int) -> np.ndarray:
    """Returns the indices in the flattened tensor of the elements that `take_along_axis` would read.

    Raises:
        IndexOutOfBoundsError: if an index is out of bounds.
        ShapeError: if the indices have another number of axes.
    """
    positions = nonnegative_indices(host_indices(indices), shape[axis])
    require_elements(shape[axis], positions.size)
    if positions.ndim != len(shape):
        raise ShapeError(f"indices of shape {positions.shape} need as many axes as shape {tuple(shape)}")
    return np.take_along_axis(flat_indices(shape), positions, axis)


def places_with_block(shape: Sequence[int], start: Any, lengths: Sequence[int]) -> np.ndarray:
    """Returns the flat index of each element after a block is replaced, in the flattened tensor followed by the block.

    Raises:
        EmberError: as `block_slices` does.
    """
    source_places = flat_indices(shape)
    source_places[block_slices(tuple(shape), start, tuple(lengths))] = source_places.size + flat_indices(lengths)
    return source_places


def places_on_diagonal(x: Any, offset: int, axis1: int, axis2: int) -> np.ndarray:
    """Returns the indices in the flattened tensor of the elements on a diagonal of two axes."""
    return (
        flat_indices(require_matrices(x).shape).diagonal(clip_offset(offset, FURTHEST, FURTHEST), axis1, axis2).copy()
    )


def triangle_indices(lower: bool, n: int, k: int, m: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Returns the rows and the columns of the elements of a matrix below or above a diagonal."""
    row_count, column_count = as_shape((n, n if m is None else m))
    row_indices, column_indices = (np.tril_indices if lower else np.triu_indices)(
        row_count, clip_offset(k, row_count, column_count), column_count
    )
    return row_indices, column_indices


class ScatterPlan:
    """A plan of a scatter: the rows that updates are written to, a row being the elements under one index vector.

    Attributes:
        shape: that of the indices without their last axis.
        rest: the axes of a row.
        count: the number of rows of the tensor.
        size: the number of its elements.
        places: the row of each update.
        order: the updates in the order of their rows.

    Raises:
        IndexOutOfBoundsError: if an index is out of bounds.
        ShapeError: if the indices do not name positions in the shape.
    """

    def __init__(self, indices: Any, shape: tuple[int, ...]) -> None:
        columns = index_columns(indices, shape)
        indexed_shape, self.row_shape = shape[: len(columns)], shape[len(columns) :]
        self.shape, self.count, self.size = columns[0].shape, math.prod(indexed_shape), math.prod(shape)
        self.places = (
            np.asarray(np.ravel_multi_index(columns, indexed_shape)).reshape(-1)
            if self.size
            else columns[0].reshape(-1)
        )
        self.order = np.argsort(self.places, kind="stable")

    def row_sources(self) -> np.ndarray:
        """Returns, for each row of the result, its index among the old rows followed by the updates."""
        source_rows = np.arange(self.count)
        source_rows[self.places[self.order]] = self.count + self.order
        return source_rows

    def row_sources_at(self, places: np.ndarray) -> np.ndarray:
        """Returns, for each row after new rows are written at places, its index among the old and the new rows."""
        source_rows = np.arange(self.count)
        source_rows[places] = self.count + np.arange(len(places))
        return source_rows

    def steps(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yields, for doubling distances, the index of each update's predecessor, and whether it has the same row."""
        ordered_places, distance, count = self.places[self.order], 1, len(self.order)
        while distance < count and (ordered_places[distance:] == ordered_places[:-distance]).any():
            is_repeated = np.concatenate(
                [np.zeros(distance, bool), ordered_places[distance:] == ordered_places[:-distance]]
            )
            yield np.maximum(np.arange(count) - distance, 0), is_repeated
            distance *= 2

    def last_updates(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns the index in `order` of the last update of each row that is written, and these rows."""
        ordered_places = self.places[self.order]
        last_positions = np.flatnonzero(np.concatenate([ordered_places[1:] != ordered_places[:-1], np.ones(1, bool)]))
        return last_positions, ordered_places[last_positions]


def unravel(indices: np.ndarray, shape: Sequence[int]) -> tuple[np.ndarray, ...]:
    """Returns positions in a flattened tensor of this shape as one array of indices per axis.

    Raises:
        IndexOutOfBoundsError: if a position is negative or too large.
    """
    shape = as_shape(shape)
    # np.unravel_index (NumPy 2.4) does not accept arrays of positions for the shape ().
    if not shape and not indices.any():
        return ()
    try:
        return tuple(map(np.asarray, np.unravel_index(indices, shape or (1,))))
    except ValueError as error:
        raise IndexOutOfBoundsError(
            f"a position is out of bounds for shape {shape}, which has {math.prod(shape)} elements: {error}"
        ) from error
