"""Checks of the arguments of losses, the same on all backends."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from emberharmony.core.axes import nonnegative_axes
from emberharmony.core.deferred import Deferred
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
from emberharmony.core.options import as_number

if TYPE_CHECKING:
    import numpy as np
else:
    np = Deferred("numpy")

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
        hint = suggest(reduction, REDUCTIONS)
        raise ArgumentError(f"reduction is {brief(reduction)}, expected one of 'none', 'mean', 'sum'{hint}")
    if not 0.0 <= as_number("label_smoothing", smoothing) <= 1.0:
        raise ArgumentError(f"label_smoothing is {brief(smoothing)}, expected a number from 0 to 1")
    shape = tuple(x.shape)
    (class_axis,) = nonnegative_axes(axis, len(shape))
    if dtype_of(x).is_complex:
        raise DTypeError("input is complex, expected real logits; pass ops.real(x) or ops.abs(x)")
    check_class_ids(tuple(target.shape), dtype_of(target), shape, class_axis)
    if weight is not None and tuple(weight.shape) != (shape[class_axis],):
        raise ShapeError(f"weight has shape {tuple(weight.shape)}, expected ({shape[class_axis]},), one for each class")
    return class_axis


def check_class_ids(shape: tuple[int, ...], ids_dtype: DType, of_input: tuple[int, ...], class_axis: int) -> None:
    """Checks that class ids are integers of the input's shape without the class axis.

    Args:
        shape: the shape of the ids.
        ids_dtype: their dtype.
        of_input: the shape of the logits.
        class_axis: the axis of the classes there.

    Raises:
        ArgumentTypeError: if they are not integers.
        ShapeError: if there is not one for each position of the logits.
    """
    if not ids_dtype.is_integer:
        raise ArgumentTypeError(f"class ids must be integers, got {ids_dtype.name}: ops.cast(target, 'int64')")
    expected_shape = of_input[:class_axis] + of_input[class_axis + 1 :]
    if shape == expected_shape:
        return
    hint = ""
    if shape == of_input and len(of_input) > 1 and of_input[class_axis] == 1:
        hint = (
            f"; input has one class and must have one for each, at least 2; ids are ops.squeeze(target, {class_axis})"
        )
    elif shape == of_input and len(of_input) > 1:
        hint = (
            f"; rows of one 1 become ids by ops.argmax(target, {class_axis if class_axis < len(of_input) - 1 else -1})"
        )
    elif shape[-1:] == (1,) and shape[:-1] == expected_shape:
        hint = "; remove the last axis by ops.squeeze(target, -1)"
    elif shape == of_input[:-1]:
        hint = f"; the classes of input are on its last axis: pass axis=-1, or ops.moveaxis(input, -1, {class_axis})"
    elif len(of_input) == 1 and len(shape) == 1:
        hint = "; input lacks the axis of the classes: pass (batch, classes), the outputs and not their argmax"
    elif shape[:1] != expected_shape[:1]:
        hint = "; take the rows of both from the same batch, as in for x, y in batches"
    raise ShapeError(f"target has shape {shape}, expected {expected_shape}: an id for each position of input{hint}")


def unignored_mask(ids: np.ndarray, classes: int, ignored: int | None) -> np.ndarray | None:
    """Returns a mask of the class ids that are not ignored, after a check of their range; None if none is ignored.

    Raises:
        IndexOutOfBoundsError: if an id is neither a class nor ignored.
    """
    ids = ids.astype(np.int64, copy=False)
    keeps_all = ignored is None or not 0 <= ignored < classes
    if not ids.size or (keeps_all and np.maximum.reduce(ids.view(np.uint64), None) < classes):
        return None  # as unsigned integers, negative ids are too large
    is_kept = ids != (-1 if ignored is None else ignored)
    wrong_ids = ids[((ids < 0) | (ids >= classes)) & (is_kept if ignored is not None else True)]
    if wrong_ids.size:
        raise IndexOutOfBoundsError(_range_message(ids[is_kept], wrong_ids.flat[0], classes, ignored))
    return is_kept


def _range_message(ids: np.ndarray, wrong_id: int, classes: int, ignored: int | None) -> str:
    """Returns the message for an id that is not a class, with what usually causes it."""
    text = f"class {wrong_id} in target is out of range, expected 0 to {classes - 1}"
    if ignored is not None:
        text += f", or ignore_index={ignored}"
    lowest_id, highest_id = int(ids.min()), int(ids.max())
    if lowest_id == 1 and highest_id == classes:
        return f"{text}; ids begin with 0, so subtract 1"
    if lowest_id < 0:
        ignore_hint = "" if lowest_id < -1 else "; if -1 marks what does not count, pass ignore_index=-1"
        return f"{text}; ids begin with 0, and np.unique(labels, return_inverse=True)[1] gives such ids{ignore_hint}"
    outputs_text = "1 output" if classes == 1 else f"{classes} outputs"
    return f"{text}; the last layer has {outputs_text} and must have one for each class, at least {highest_id + 1}"
