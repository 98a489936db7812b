"""Checks of segment ids, and the neutral element of each segment reduction."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from emberharmony.backend.shared.arrays.shape import as_shape
from emberharmony.core.deferred import Deferred
from emberharmony.core.dtypes import DType
from emberharmony.core.errors import (
    DTypeError,
    IndexOutOfBoundsError,
    ShapeError,
)
from emberharmony.core.numeric.finfo import IntegerInfo

if TYPE_CHECKING:
    import numpy as np
else:
    np = Deferred("numpy")


def count_segments(ids: np.ndarray, num_segments: int | None) -> int:
    """Returns the number of segments, by default one more than the largest id, after a check of the ids.

    Raises:
        ArgumentTypeError: if `num_segments` is not an integer.
        IndexOutOfBoundsError: if an id is negative, or not less than the number of segments.
        ShapeError: if `num_segments` is negative.
    """
    # Read as unsigned, negative ids are the largest numbers, so one maximum checks both bounds.
    largest_id = int(np.maximum.reduce(ids.view(np.uint64))) if ids.size else -1
    if largest_id >= 2**63:
        raise IndexOutOfBoundsError(f"segment id {largest_id - 2**64} is out of bounds: ids start at 0")
    segment_total = largest_id + 1 if num_segments is None else segment_count(num_segments)
    if largest_id >= segment_total:
        raise IndexOutOfBoundsError(f"segment id {largest_id} is out of bounds for {segment_total} segments")
    return segment_total


def segment_count(num_segments: Any) -> int:
    """Returns a number of segments, checked.

    Raises:
        ArgumentTypeError: if it is not an integer.
        ShapeError: if it is negative.
    """
    (count,) = as_shape((num_segments,))
    return count


def check_segments(ids: Sequence[int], data: Sequence[int]) -> None:
    """Checks that there is one segment id for each slice of the data along axis 0.

    Args:
        ids: the shape of the ids.
        data: the shape of the data.

    Raises:
        ShapeError: if there is not.
    """
    if len(ids) != 1 or not data or ids[0] != data[0]:
        raise ShapeError(
            f"expected one segment id for each slice of data along axis 0, got segment_ids of shape {tuple(ids)} and "
            f"data of shape {tuple(data)}"
        )


def neutral_element(dtype: DType, reduction: str) -> float | int | bool:
    """Returns the neutral element of a reduction, which is the result for a segment without elements.

    Args:
        dtype: of the data.
        reduction: "add", "mul", "max" or "min".

    Raises:
        DTypeError: if the reduction is "max" or "min" and the dtype is complex.
    """
    if reduction in ("add", "mul"):
        return int(reduction == "mul")
    if dtype.is_complex:
        raise DTypeError(f"{dtype.name} numbers have no order, so they have no {reduction}")
    if dtype.is_floating:
        return -math.inf if reduction == "max" else math.inf
    if dtype.kind == "bool":
        return reduction == "min"
    integer_info = IntegerInfo.of_dtype(dtype)
    return integer_info.min if reduction == "max" else integer_info.max
