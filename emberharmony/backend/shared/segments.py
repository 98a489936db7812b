"""Checks of segment ids, and the neutral element of each segment reduction."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from emberharmony.backend.shared.shape import as_shape
from emberharmony.core.dtypes import DType
from emberharmony.core.errors import (
    DTypeError,
    IndexOutOfBoundsError,
    ShapeError,
)
from emberharmony.core.numeric.finfo import IntegerInfo


def segments(ids: np.ndarray, num_segments: int | None) -> int:
    """Returns the number of segments, by default one more than the greatest id.

    Raises: IndexOutOfBoundsError for an id outside; ShapeError for a negative number.
    """
    # Read without a sign, negative ids are the greatest.
    greatest = int(np.maximum.reduce(ids.view(np.uint64))) if ids.size else -1
    if greatest >= 2**63:
        raise IndexOutOfBoundsError(f"segment id {greatest - 2**64} is out of bounds: ids count from 0")
    count = greatest + 1 if num_segments is None else segment_count(num_segments)
    if greatest >= count:
        raise IndexOutOfBoundsError(f"segment id {greatest} is out of bounds for {count} segments")
    return count


def segment_count(num_segments: Any) -> int:
    """Returns a number of segments.

    Raises: ArgumentTypeError if it is no integer; ShapeError if it is negative.
    """
    (count,) = as_shape((num_segments,))
    return count


def check_segments(ids: Sequence[int], data: Sequence[int]) -> None:
    """Checks that ids of one shape name the segments of the slices of data of another.

    Raises: ShapeError.
    """
    if len(ids) != 1 or not data or ids[0] != data[0]:
        raise ShapeError(f"segment_ids of shape {tuple(ids)} do not name a segment for each slice of {tuple(data)}")


def neutral_element(dtype: DType, reduction: str) -> float | int | bool:
    """Returns the number that changes nothing in a reduction: where no element is, it is the result.

    Raises: DTypeError for the extremes of complex numbers.
    """
    if reduction in ("add", "mul"):
        return int(reduction == "mul")
    if dtype.is_complex:
        raise DTypeError(f"{dtype.name} numbers have no order, and so no {reduction}")
    if dtype.is_floating:
        return -math.inf if reduction == "max" else math.inf
    if dtype.kind == "bool":
        return reduction == "min"
    info = IntegerInfo.of(dtype)
    return info.min if reduction == "max" else info.max
