"""Indices and the keys of `get_item`, checked on the host before a tensor library reads by them."""

import math
import operator
from collections.abc import Callable, Container, Iterator, Sequence
from typing import Any

import numpy as np

from emberharmony.backend.host import host_indices, plain
from emberharmony.backend.shared.device import ADDRESSABLE, check_memory
from emberharmony.backend.shared.shape import as_shape
from emberharmony.core.errors import (
    ArgumentError,
    ArgumentTypeError,
    AxisError,
    IndexOutOfBoundsError,
    RangeError,
    ShapeError,
    brief,
)

_FAR, _LONG = 2**31, 2**30
MaskAxes = Callable[[Any], int | None]


def is_plain(key: Any, shape: Any) -> bool:
    """Returns whether a key is made of slices forwards, None and integers within a shape alone."""
    axes, ndim = 0, len(shape)
    for part in key if key.__class__ is tuple else (key,):
        if part.__class__ is slice:
            if not (_is_near(part.start) and _is_near(part.stop) and _is_near(part.step)):
                return False
            if part.step is not None and (part.step <= 0 or (axes < ndim and shape[axes] >= _LONG)):
                return False
        elif part is None:
            continue
        elif part.__class__ is not int or axes >= ndim or not -shape[axes] <= part < shape[axes]:
            return False
        axes += 1
    return axes <= ndim


def _is_near(number: Any) -> bool:
    return number is None or (number.__class__ is int and -_FAR < number < _FAR)


def within(part: slice, length: int) -> slice:
    """Returns the slice that reads the same of an axis of a length, in numbers no greater than the length.

    Raises: RangeError for steps along an axis so long that 32 bits do not hold the sum of both.
    """
    if length >= _LONG and part.step not in (None, 1):
        raise RangeError(f"an axis of length {length} is read in steps of 1 only: the backend counts in 32 bits")
    start, stop, step = part.indices(length)
    if start < 0:
        # Backwards from before the first element.
        return slice(0, 0)
    most = max(length, 1)
    return slice(start, None if stop < 0 else stop, max(min(step, most), -most))


def parts_of(key: Any, shape: Any, mask_axes: MaskAxes) -> Iterator[tuple[Any, int, bool]]:
    """Yields the parts of a key, each with the first axis it reads and whether it is a mask; host parts are checked.

    Integers come from 0 up; lists, tuples and NumPy arrays as arrays of int64 from 0 up or of booleans; None, Ellipsis
    and slices as they are; a backend's own tensors unread.

    Args:
        key: what stands in the brackets.
        shape: that of the tensor read.
        mask_axes: returns the number of axes of a mask of the backend's own, -1 for its other tensors, None for others.

    Raises: AxisError for too many indices; IndexOutOfBoundsError; ShapeError for a mask of another shape;
    ArgumentError for a step of 0 or two ellipses; ArgumentTypeError for what is no index.
    """
    parts = [_host(part, mask_axes) for part in (key if isinstance(key, tuple) else (key,))]
    if sum(part is Ellipsis for part in parts) > 1:
        raise ArgumentError("a key has at most one ellipsis")
    masks = [_is_mask(part, mask_axes) for part in parts]
    widths = [_width(part, mask) for part, mask in zip(parts, masks, strict=True)]
    if sum(widths) > len(shape):
        raise AxisError(f"{sum(widths)} indices for a tensor of {len(shape)} axes")
    axis = 0
    for part, mask, width in zip(parts, masks, widths, strict=True):
        if mask:
            read = tuple(shape[axis : axis + width])
            if tuple(part.shape) != read:
                raise ShapeError(f"a mask of shape {tuple(part.shape)} does not fit the axes of shape {read} it reads")
        elif isinstance(part, np.ndarray):
            part = checked(part, shape[axis])
        elif type(part) is int:
            part = single(part, shape[axis])
        yield part, axis, mask
        axis += len(shape) - sum(widths) if part is Ellipsis else width


def _host(part: Any, mask_axes: MaskAxes) -> Any:
    if part is None or part is Ellipsis or isinstance(part, (bool, int)) or mask_axes(part) is not None:
        return part
    if isinstance(part, slice):
        if part.step == 0:
            raise ArgumentError("the step of a slice must not be 0")
        for end in (part.start, part.stop, part.step):
            if end is not None and not hasattr(end, "__index__"):
                raise ArgumentTypeError(f"a slice is of integers or None, not {brief(end)}")
        return part
    if isinstance(part, (list, tuple, range, np.ndarray, np.generic)):
        array = plain(part)
        return array if array.dtype == bool else host_indices(part)
    try:
        return operator.index(part)
    except TypeError as error:
        raise ArgumentTypeError(f"{brief(part)} is no index: indices are integers, slices, masks or None") from error


def _is_mask(part: Any, mask_axes: MaskAxes) -> bool:
    if isinstance(part, np.ndarray):
        return part.dtype == bool
    axes = mask_axes(part)
    return axes is not None and axes >= 0


def _width(part: Any, mask: bool) -> int:
    """Returns how many axes a part of a key reads."""
    if mask:
        return int(part.ndim)
    return 0 if part is None or part is Ellipsis or isinstance(part, bool) else 1


def checked(indices: np.ndarray, length: int) -> np.ndarray:
    """Returns indices from 0 to length - 1 for those from -length on.

    Raises: IndexOutOfBoundsError naming the first one outside.
    """
    # Read without a sign, negative indices are the greatest.
    if indices.size and int(np.maximum.reduce(indices.view(np.uint64), None)) < length:
        return indices
    outside = (indices < -length) | (indices >= length)
    if outside.any():
        raise IndexOutOfBoundsError(
            f"index {int(indices[outside].flat[0])} is out of bounds for an axis of length {length}"
        )
    return np.where(indices < 0, indices + length, indices)


def single(index: int, length: int) -> int:
    """Returns one index from 0 to length - 1 for one from -length on.

    Raises: IndexOutOfBoundsError.
    """
    if not -length <= index < length:
        raise IndexOutOfBoundsError(f"index {index} is out of bounds for an axis of length {length}")
    return index % length


def block(shape: Sequence[int], start: Sequence[Any], lengths: Sequence[int]) -> tuple[slice, ...]:
    """Returns the slices of a block within a shape.

    Raises: ShapeError if the numbers of axes differ; IndexOutOfBoundsError if the block leaves the shape.
    """
    if len(start) != len(shape) or len(lengths) != len(shape):
        raise ShapeError(f"a tensor of shape {tuple(shape)} has no block at {start} of shape {tuple(lengths)}")
    slices = []
    for at, n, whole in zip(start, lengths, shape, strict=True):
        first = at if at.__class__ is int else int(at)
        last = first + (n if n.__class__ is int else int(n))
        if not 0 <= first <= last <= whole:
            raise IndexOutOfBoundsError(f"the block at {start} of shape {tuple(lengths)} leaves shape {tuple(shape)}")
        slices.append(slice(first, last))
    return tuple(slices)


def class_count(num_classes: int) -> int:
    """Returns a number of classes.

    Raises: ArgumentError if it is negative; OutOfMemoryError if no memory holds so many.
    """
    if num_classes < 0:
        raise ArgumentError(f"the number of classes is from 0 on, not {num_classes}")
    if num_classes > ADDRESSABLE:
        check_memory((num_classes,), 1)
    return num_classes


def vectors(indices: Sequence[int], shape: Sequence[int]) -> None:
    """Checks that indices of shape (..., k) name positions in the first k axes of a shape.

    Raises: ShapeError.
    """
    if not indices or not 0 < indices[-1] <= len(shape):
        raise ShapeError(
            f"indices of shape {tuple(indices)} name no positions in shape {tuple(shape)}: their last axis counts axes"
        )


def columns(indices: Any, shape: Sequence[int]) -> tuple[np.ndarray, ...]:
    """Returns indices (..., k) as one array an axis, checked against the first k lengths of a shape.

    Raises: IndexOutOfBoundsError; ShapeError if they have no last axis or k is too large.
    """
    host = host_indices(indices)
    vectors(host.shape, shape)
    return tuple(checked(host[..., axis], int(shape[axis])) for axis in range(host.shape[-1]))


def reduction_of(reduction: str | None, known: Container[str]) -> str | None:
    """Returns the name of a reduction.

    Raises: ArgumentError for an unknown one.
    """
    if reduction is not None and reduction not in known:
        raise ArgumentError(f"there is no reduction {reduction!r}")
    return reduction


def inside(length: int, count: int) -> None:
    """Checks that an axis that indices are to be read from, of which there are so many, has any element.

    Raises: IndexOutOfBoundsError.
    """
    if length == 0 and count:
        raise IndexOutOfBoundsError("an axis of length 0 has no elements to index")


def unraveled(indices: np.ndarray, shape: Sequence[int]) -> tuple[np.ndarray, ...]:
    """Returns positions in the flattened form of a shape as one array of indices an axis.

    Raises: IndexOutOfBoundsError for a position outside, which negative ones are.
    """
    shape = as_shape(shape)
    if not shape and not indices.any():
        return ()
    try:
        return tuple(map(np.asarray, np.unravel_index(indices, shape or (1,))))
    except ValueError as error:
        raise IndexOutOfBoundsError(
            f"a position leaves shape {shape} of {math.prod(shape)} elements: {error}"
        ) from error
