"""The checks of losses, on all backends."""

from collections.abc import Callable
from typing import Any

import numpy as np

from emberharmony.core.axes import nonnegative_axes
from emberharmony.core.dtypes import DType
from emberharmony.core.errors import (
    ArgumentError,
    ArgumentTypeError,
    DTypeError,
    IndexOutOfBoundsError,
    ShapeError,
    brief,
    suggest,
)
from emberharmony.core.options import number

REDUCTIONS = ("none", "mean", "sum")


def check_cross_entropy(
    dtype_of: Callable[[Any], DType], x: Any, target: Any, weight: Any, reduction: Any, smoothing: Any, axis: Any
) -> int:
    """Checks the arguments of `cross_entropy`, and returns the axis of the classes from 0 on.

    Raises:
        ArgumentError: if an option is unknown or out of range.
        ArgumentTypeError: if the ids are not integers.
        AxisError: if the axis is out of range.
        DTypeError: if the logits are complex.
        ShapeError: if the shapes do not fit.
        UnsupportedOpError: if the smoothing is being differentiated.
    """
    if reduction not in REDUCTIONS:
        hint = suggest(reduction, REDUCTIONS) if isinstance(reduction, str) else ""
        raise ArgumentError(f"reduction is {brief(reduction)}, expected one of 'none', 'mean', 'sum'{hint}")
    if not 0.0 <= number("label_smoothing", smoothing) <= 1.0:
        raise ArgumentError(f"label_smoothing is {brief(smoothing)}, expected a number from 0 to 1")
    shape = tuple(x.shape)
    (along,) = nonnegative_axes(axis, len(shape))
    if dtype_of(x).is_complex:
        raise DTypeError("input is complex, expected real logits; pass ops.real(x) or ops.abs(x)")
    if not dtype_of(target).is_integer:
        raise ArgumentTypeError(f"target holds class ids, so expected integers, got {dtype_of(target).name}")
    if tuple(target.shape) != shape[:along] + shape[along + 1 :]:
        raise ShapeError(
            f"target has shape {tuple(target.shape)}, expected {shape[:along] + shape[along + 1 :]}: an id for each "
            f"position of input"
        )
    if weight is not None and tuple(weight.shape) != (shape[along],):
        raise ShapeError(f"weight has shape {tuple(weight.shape)}, expected ({shape[along]},), one for each class")
    return along


def counting_on_host(ids: np.ndarray, classes: int, ignored: int | None) -> np.ndarray | None:
    """Returns which class ids count; None if all do.

    Raises:
        IndexOutOfBoundsError: if an id is neither a class nor ignored.
    """
    if ids.dtype.char not in "lq":
        ids = ids.astype(np.int64)
    inside = ignored is None or not 0 <= ignored < classes
    if not ids.size or (inside and np.maximum.reduce(ids.view(np.uint64), None) < classes):
        return None  # as unsigned integers, negative ids are too large
    kept = ids != (-1 if ignored is None else ignored)
    wrong = ids[((ids < 0) | (ids >= classes)) & (kept if ignored is not None else True)]
    if wrong.size:
        hint = "" if ignored is None else f", or ignore_index={ignored}"
        raise IndexOutOfBoundsError(
            f"class {wrong.flat[0]} in target is out of range, expected 0 to {classes - 1}{hint}"
        )
    return kept
