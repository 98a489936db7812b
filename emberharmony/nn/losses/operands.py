"""What all losses share: their operands in one dtype, the checks of shapes and options, and the reduction."""

import math
import warnings
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from emberharmony import ops
from emberharmony.backend.host import host_indices, plain_array
from emberharmony.backend.shared.neural.losses import check_class_ids, unignored_mask
from emberharmony.core import selection
from emberharmony.core.cells.cell import Cell
from emberharmony.core.dtypes import DType
from emberharmony.core.errors import (
    ArgumentError,
    ArgumentTypeError,
    DTypeError,
    IndexOutOfBoundsError,
    ShapeError,
    TrainingWarning,
    brief,
    suggest,
)
from emberharmony.core.numeric.promotion import as_inexact
from emberharmony.core.tracing import TensorProxy, is_traced
from emberharmony.core.types import Tensor, TensorLike
from emberharmony.nn.locate import fault

Reduction: TypeAlias = Literal["none", "mean", "sum"]
"""The type of the option `reduction`: "mean", "sum" or "none"."""

REDUCTIONS = ("none", "mean", "sum")

LOOKS: list[Callable[[str, Any, int | None], None]] = []
"""Functions that `fit` adds for its first step: losses call the last one with name, logits and class axis."""


def require_reduction(name: str, reduction: Any, known: tuple[str, ...] = REDUCTIONS) -> None:
    """Checks the option `reduction` of a loss.

    Raises:
        ArgumentError: if it is unknown; the message has the nearest name.
    """
    if reduction not in known:
        names_text = ", ".join(map(repr, known))
        hint = suggest(reduction, known)
        raise fault(ArgumentError(f"{name}(): reduction is {brief(reduction)}, expected one of {names_text}{hint}"))


def require_option(name: str, option: str, value: Any, is_allowed: bool, expected_text: str) -> None:
    """Raises an error with the expected values if an option of a loss is not allowed.

    Raises:
        ArgumentError: if it is not allowed.
    """
    if not is_allowed:
        raise fault(ArgumentError(f"{name}(): {option} is {brief(value)}, expected {expected_text}"))


def convert_operands(name: str, *values: TensorLike) -> tuple[list[Tensor], DType]:
    """Converts the operands of a loss to tensors of one dtype, and returns them and the dtype of the result.

    Half precision is computed in float32, and integers in the default float.

    Raises:
        DTypeError: if an operand is complex.
    """
    # A traced tensor is used as it is, because converting it would be a further call on its tape.
    tensors: list[Any] = [value if isinstance(value, TensorProxy) else ops.convert_to_tensor(value) for value in values]
    dtypes = [selection.current().dtype_of(x) for x in tensors]
    result_dtype = dtypes[0] if dtypes.count(dtypes[0]) == len(dtypes) else ops.result_type(*tensors)
    if result_dtype.is_floating and result_dtype.bits > 16 and all(dtype is result_dtype for dtype in dtypes):
        return tensors, result_dtype
    result_dtype = as_inexact(result_dtype)
    if result_dtype.is_complex:
        raise fault(
            DTypeError(f"{name}(): expected real tensors, got {result_dtype.name}; pass ops.real(x) and ops.imag(x)")
        )
    wide_dtype = ops.float32 if result_dtype.bits == 16 else result_dtype
    return [
        x if own_dtype == wide_dtype else ops.cast(x, wide_dtype) for x, own_dtype in zip(tensors, dtypes, strict=True)
    ], result_dtype


def convert_matching_operands(name: str, **values: TensorLike) -> tuple[list[Tensor], DType]:
    """Converts the operands of a loss as `convert_operands` does, after a check that they have the same shape.

    Raises:
        ShapeError: if the shapes differ.
    """
    tensors, result_dtype = convert_operands(name, *values.values())
    (first_name, *other_names), shape = values, tuple(tensors[0].shape)
    for other_name, x in zip(other_names, tensors[1:], strict=True):
        if tuple(x.shape) != shape:
            hint = _shape_hint(other_name, tuple(x.shape), shape)
            raise fault(ShapeError(f"{name}(): {other_name} has shape {tuple(x.shape)}, {first_name} {shape}{hint}"))
    return tensors, result_dtype


def _shape_hint(name: str, shape: tuple[int, ...], expected_shape: tuple[int, ...]) -> str:
    """Returns a hint for messages on how an operand of a loss gets the shape of the first operand."""
    if math.prod(shape) == math.prod(expected_shape):
        return f"; use ops.reshape({name}, {expected_shape})"
    if len(shape) == len(expected_shape) and shape[:-1] == expected_shape[:-1]:
        return f"; the last layer has {expected_shape[-1]} outputs, expected {shape[-1]}"
    ids_hint = "; class ids go to nn.losses.cross_entropy(logits, ids)" if shape == expected_shape[:-1] else ""
    return f"; expected one shape{ids_hint}"


def warn_of_order(name: str, x: Any, target: Any) -> None:
    """Warns if target and model output seem to be exchanged, as Keras orders them: only the target has a derivative."""
    if not _has_derivative(x) and (_has_derivative(target) or _are_labels(x, target)):
        warnings.warn(
            f"{name}(): the order is (output, target), unlike in Keras; here the target is what depends on the model",
            TrainingWarning,
            stacklevel=3,
        )


def _has_derivative(x: Any) -> bool:
    return isinstance(x, TensorProxy) or is_traced(x)


def _are_labels(x: Any, target: Any) -> bool:
    """Returns whether the first operand consists of 0 and 1 and the second does not, if the host can read both."""
    if _has_derivative(target):
        return False
    backend = selection.current()
    labels, probabilities = backend.array_if_cheap(x), backend.array_if_cheap(target)
    if labels is None or probabilities is None or not labels.size or {labels.min(), labels.max()} != {0.0, 1.0}:
        return False
    return bool(((labels == 0.0) | (labels == 1.0)).all() and ((probabilities > 0.0) & (probabilities < 1.0)).all())


def require_probabilities(name: str, which: str, x: Any) -> None:
    """Checks that the elements of a tensor are from 0 to 1, if the host can read them without waiting.

    Raises:
        ArgumentError: if one is not.
    """
    host_array = None if isinstance(x, TensorProxy) or is_traced(x) else selection.current().array_if_cheap(x)
    if host_array is None or not host_array.size or not (host_array.min() < 0.0 or host_array.max() > 1.0):
        return
    hint = "logits go to binary_cross_entropy_with_logits" if which == "input" else "labels are 0 and 1, not -1 and 1"
    raise fault(
        ArgumentError(
            f"{name}(): {which} has elements from {host_array.min():.4g} to {host_array.max():.4g}, expected "
            f"probabilities from 0 to 1; {hint}"
        )
    )


def option_tensor(name: str, option: str, value: Any, x: Tensor) -> Tensor:
    """Returns a tensor option of a loss cast to the dtype of `x`, after a check that it broadcasts to its shape.

    Raises:
        ShapeError: if it does not broadcast.
    """
    option_value = ops.cast(ops.convert_to_tensor(value), ops.dtype(x))
    own_shape, shape = tuple(option_value.shape), tuple(x.shape)
    length_pairs = zip(reversed(own_shape), reversed(shape), strict=False)
    if len(own_shape) > len(shape) or any(a not in (1, b) for a, b in length_pairs):
        raise fault(
            ShapeError(f"{name}(): {option} has shape {own_shape}, which does not broadcast to that of input, {shape}")
        )
    return option_value


def class_weight(name: str, weight: Any, classes: int, x: Tensor) -> Tensor:
    """Returns the vector of class weights cast to the dtype of `x`, after a check of its length.

    Raises:
        ShapeError: if it is not a vector with one element for each class.
    """
    weight_tensor = ops.cast(ops.convert_to_tensor(weight), ops.dtype(x))
    if tuple(weight_tensor.shape) != (classes,):
        raise fault(
            ShapeError(
                f"{name}(): weight has shape {tuple(weight_tensor.shape)}, expected ({classes},), one for each class"
            )
        )
    return weight_tensor


def class_axis(name: str, x: Tensor, axis: int | None) -> int:
    """Returns the class axis: the given one after a check, by default 1, or 0 for a vector.

    Raises:
        ShapeError: if `x` has no such axis.
    """
    rank = len(x.shape)
    resolved_axis = (0 if rank == 1 else 1) if axis is None else axis
    if not -rank <= resolved_axis < rank:
        raise fault(
            ShapeError(
                f"{name}(): input has shape {tuple(x.shape)}, so it has no axis {resolved_axis} with the classes"
            )
        )
    return resolved_axis % rank


def class_ids_and_mask(
    name: str, target: Any, of_input: tuple[int, ...], class_axis: int, ignored: int | None = None
) -> tuple[Tensor, Tensor | None]:
    """Returns class ids as valid indices, and a mask of positions that are not ignored, or None if all count.

    Ids are checked where the host has them: in lists and arrays, in tensors of NumPy and of PyTorch on the CPU, and in
    checked mode in those of MLX. Elsewhere an id that is not a class becomes an index that is out of range.

    Args:
        name: of the loss.
        target: the ids.
        of_input: the shape of the logits.
        class_axis: the axis of the classes there.
        ignored: an id whose positions do not count; their index is 0.

    Raises:
        ArgumentTypeError: if the ids are not integers.
        IndexOutOfBoundsError: if an id that the host has is not a class.
        ShapeError: if the shape is another.
    """
    host_ids = None if _is_tensor_or_cell(target) else _host_ids(name, target)
    ids = ops.convert_to_tensor(target if host_ids is None else host_ids)
    ids_dtype = ops.dtype(ids)
    require_class_ids(name, ids, of_input, class_axis)
    class_count = of_input[class_axis]
    ids = ids if ids_dtype is ops.int64 else ops.cast(ids, "int64")
    if host_ids is None:
        host_ids = selection.current().array_if_cheap(ids)
    if host_ids is not None and _mask_of_counted_ids(name, host_ids, class_count, ignored) is None:
        return ids, None
    is_kept = None if ignored is None else ops.not_equal(ids, ignored)
    valid_ids = ids if is_kept is None else ops.where(is_kept, ids, 0)
    if host_ids is None:
        # A negative id would index from the last class, so it is replaced by an index out of range.
        valid_ids = ops.where(ops.less(valid_ids, 0), class_count, valid_ids)
    return valid_ids, is_kept


def _host_ids(name: str, target: Any) -> Any:
    """Returns class ids in a list or NumPy array as an int64 array, after a check that they are integers.

    Raises:
        ArgumentTypeError: if they are not integers.
    """
    try:
        return host_indices(target)
    except ArgumentTypeError as error:
        dtype = plain_array(target).dtype
        message = f"{name}(): class ids must be integers, got {dtype}: ops.cast(target, 'int64')"
        raise fault(ArgumentTypeError(message)) from error


def require_class_ids(name: str, ids: Any, of_input: tuple[int, ...], class_axis: int) -> None:
    """Checks that class ids have the right shape and range; errors name the loss and the layer."""
    try:
        check_class_ids(tuple(ids.shape), ops.dtype(ids), of_input, class_axis)
    except (ArgumentTypeError, ShapeError) as error:
        raise fault(type(error)(f"{name}(): {error}")) from None


def checked_class_ids(name: str, target: Any, classes: int, ignored: int | None) -> Any:
    """Returns class ids for an op that checks tensors itself; ids in lists and NumPy arrays are checked here.

    Raises:
        IndexOutOfBoundsError: if an id in a list or array is not a class.
    """
    if _is_tensor_or_cell(target):
        return target
    host_ids = _host_ids(name, target)
    _mask_of_counted_ids(name, host_ids, classes, ignored)
    return ops.convert_to_tensor(host_ids)


def _mask_of_counted_ids(name: str, ids: Any, classes: int, ignored: int | None) -> Any:
    try:
        return unignored_mask(ids, classes, ignored)
    except IndexOutOfBoundsError as error:
        raise fault(IndexOutOfBoundsError(f"{name}(): {error}")) from None


def is_floating(target: Any) -> bool:
    """Returns whether a target holds floating numbers: probabilities rather than class ids."""
    return bool(ops.dtype(target if _is_tensor_or_cell(target) else ops.convert_to_tensor(target)).is_floating)


def _is_tensor_or_cell(target: Any) -> bool:
    return bool(ops.is_tensor(target)) or isinstance(target, Cell)


def shortfall(x: Tensor, margin: float) -> Tensor:
    """Returns `max(0, margin - x)`, with the gradient of -1 where both are equal, as in torch."""
    return ops.clip(ops.add(ops.negative(x), margin), 0.0, None)


def reduce_losses(name: str, loss: Tensor, reduction: Reduction, kind: DType) -> Tensor:
    """Returns the losses, their mean or their sum, in the dtype of the result."""
    require_reduction(name, reduction)
    if reduction == "mean":
        loss = ops.mean(loss)
    elif reduction == "sum":
        loss = ops.sum(loss)
    return cast_to_result_dtype(loss, kind)


def cast_to_result_dtype(x: Tensor, kind: DType) -> Tensor:
    """Returns a loss cast to the dtype of the result; in an `ops.autocast` block it stays in float32."""
    active_selection = selection.active()
    return x if active_selection.backend.dtype_of(x) == kind or active_selection.variant else ops.cast(x, kind)
