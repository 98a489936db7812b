"""Losses of predictions against targets.

Dtype: integers become the default float.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

from emberharmony.core import selection
from emberharmony.core.axes import as_index
from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import op
from emberharmony.core.errors import ArgumentError
from emberharmony.core.numeric.promotion import as_inexact
from emberharmony.core.options import is_number
from emberharmony.core.types import Tensor, TensorLike, Varying
from emberharmony.ops.arrays.indexing import take, take_along_axis, where
from emberharmony.ops.arrays.shape import expand_dims, reshape, squeeze
from emberharmony.ops.dtype import cast_option, dtype, result_type, to_inexact, widen
from emberharmony.ops.elementwise.elementary import log, log10
from emberharmony.ops.logic.comparison import greater_equal, less, logical_and, not_equal
from emberharmony.ops.math import add, clip, divide, multiply, negative, square, subtract
from emberharmony.ops.neural.activation import log_softmax, softplus
from emberharmony.ops.reductions.reduction import any, mean, sum
from emberharmony.ops.tensor import cast

if TYPE_CHECKING:
    from emberharmony.backend.shared.neural import losses as shared_losses
else:
    shared_losses = Deferred("emberharmony.backend.shared.neural.losses")

EPSILON = 1e-7
"""Probabilities are clipped to this distance from 0 and 1."""


@op(autocast="float32")
def binary_crossentropy(target: TensorLike, output: TensorLike, from_logits: bool = False) -> Tensor:
    """Returns `-(t log p + (1 - t) log(1 - p))`, element by element.

    Args:
        target: the probability t of the class, from 0 to 1, in the shape of `output`.
        output: the probability p, which is clipped to [1e-7, 1 - 1e-7], or its logit.
        from_logits: whether `output` is the logit; else it is the probability.

    See also: `nn.BCELoss`, the loss as a module; `categorical_crossentropy`, of several classes.
    """
    if from_logits:
        return subtract(softplus(output), multiply(target, to_inexact(output)))
    output = clip(output, EPSILON, 1.0 - EPSILON)
    second_term = multiply(subtract(1.0, target), log(subtract(1.0, output)))
    return negative(add(multiply(target, log(output)), second_term))


@op(autocast="float32")
def categorical_crossentropy(
    target: TensorLike, output: TensorLike, from_logits: bool = False, axis: int = -1
) -> Tensor:
    """Returns `-sum(t log p)` over the classes along an axis.

    Args:
        target: the probability t of each class, in the shape of `output`.
        output: probabilities, which are normalised to sum 1 and clipped to [1e-7, 1 - 1e-7], or logits.
        from_logits: whether `output` holds logits; else it holds probabilities.
        axis: the axis of the classes; by default the last.

    See also: `sparse_categorical_crossentropy`, with class ids; `nn.CrossEntropyLoss`, the loss as a module.
    """
    if not from_logits:
        output = divide(output, sum(output, axis, True))
        return negative(sum(multiply(target, log(clip(output, EPSILON, 1.0 - EPSILON))), axis))
    return negative(sum(multiply(target, log_softmax(output, axis)), axis))


@op(autocast="float32", reads="checks")
def sparse_categorical_crossentropy(
    target: TensorLike, output: TensorLike, from_logits: bool = False, axis: int = -1
) -> Tensor:
    """Returns `-log p` of the class that each integer in `target` names; 0 if it is not a class.

    Args:
        target: the index of the class; its shape is that of `output` without `axis`.
        output: probabilities, which are normalised to sum 1 and clipped to [1e-7, 1 - 1e-7], or logits.
        from_logits: whether `output` holds logits; else it holds probabilities.
        axis: the axis of the classes in `output`; by default the last.

    See also: `categorical_crossentropy`, with probabilities; `cross_entropy`, of logits.

    Example:
        >>> ops.sparse_categorical_crossentropy([1, -1], [[0.0, 1.0], [0.5, 0.5]]).tolist()[1]
        0.0
    """
    is_class = logical_and(greater_equal(target, 0), less(target, output.shape[axis]))
    valid_ids = expand_dims(cast(where(is_class, target, 0), "int64"), axis)
    if from_logits:
        losses = negative(take_along_axis(log_softmax(output, axis), valid_ids, axis))
    else:
        probability = take_along_axis(divide(output, sum(output, axis, True)), valid_ids, axis)
        losses = negative(log(clip(probability, EPSILON, 1.0 - EPSILON)))
    return where(is_class, squeeze(losses, axis), 0)


@op(autocast="float32", reads="checks")
def cross_entropy(
    input: TensorLike,
    target: TensorLike,
    weight: TensorLike | None = None,
    reduction: Literal["none", "mean", "sum"] = "mean",
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    axis: int = -1,
) -> Tensor:
    """Returns the cross-entropies of logits with class ids, by default their mean; half precision adds in float32.

    If no position counts, the mean is NaN and its gradient 0.

    Args:
        input: logits: a tensor of any shape, with the classes along `axis`; integers become the default float.
        target: class ids, integers in the shape of `input` without `axis`.
        weight: the weight of each class, (classes,); the mean is divided by the sum of the weights of the ids. None is
            1 for all.
        reduction: "none" gives the loss at each position.
        ignore_index: an id whose positions do not count; their loss is 0.
        label_smoothing: the share, from 0 to 1, of the target that is spread over all classes.
        axis: the axis of the classes.

    Raises:
        ArgumentError: if `reduction` is unknown or `label_smoothing` is out of range.
        ArgumentTypeError: if the ids are not integers.
        AxisError: if `axis` is out of range.
        IndexOutOfBoundsError: if an id is neither a class nor `ignore_index`. MLX checks a tensor of ids in checked
            mode only, PyTorch and MLX do not under `ops.vmap` and `ops.compile`; then its position does not count.
        ShapeError: if the shapes do not fit.

    See also: `nn.CrossEntropyLoss`, the loss as a module; `log_softmax`, without class ids;
    `sparse_categorical_crossentropy`, as in Keras.

    Example:
        >>> logits = [[0.0, 0.0], [0.0, 100.0], [3.0, 4.0]]
        >>> round(ops.nn.cross_entropy(logits, [0, 1, -100]).tolist(), 4)
        0.3466

    Source: `torch.nn.functional.cross_entropy`.
    """
    class_axis = shared_losses.check_cross_entropy(dtype, input, target, weight, reduction, label_smoothing, axis)
    class_count, class_ids = input.shape[class_axis], cast(target, "int64")
    is_counted = counted_mask(class_ids, class_count, as_index(ignore_index))
    valid_ids = class_ids if is_counted is None else where(is_counted, class_ids, 0)
    log_probabilities = log_softmax(widen(input), class_axis)
    losses = negative(
        squeeze(take_along_axis(log_probabilities, expand_dims(valid_ids, class_axis), class_axis), class_axis)
    )
    label_weights = None
    if weight is not None:
        weight = cast(weight, dtype(log_probabilities))
        label_weights = take(weight, valid_ids, 0)
        losses = multiply(losses, label_weights)
    if label_smoothing:
        log_probability_sum = sum(
            log_probabilities
            if weight is None
            else multiply(log_probabilities, broadcast_along(weight, log_probabilities, class_axis)),
            class_axis,
        )
        losses = subtract(
            multiply(losses, 1.0 - label_smoothing), multiply(log_probability_sum, label_smoothing / class_count)
        )
    if is_counted is not None:
        losses = where(is_counted, losses, 0.0)
        label_weights = (
            cast(is_counted, dtype(losses)) if label_weights is None else where(is_counted, label_weights, 0.0)
        )
    if reduction == "mean":
        losses = (
            mean(losses) if label_weights is None else _mean_of_counted(sum(losses), sum(label_weights), is_counted)
        )
    elif reduction == "sum":
        losses = sum(losses)
    return cast(losses, as_inexact(dtype(input)))


def _mean_of_counted(weighted_sum: Tensor, weight_sum: Tensor, is_counted: Tensor | None) -> Tensor:
    """Returns a quotient; NaN with gradient 0 if no position is kept, where MLX would give the gradient NaN."""
    if is_counted is None:
        return divide(weighted_sum, weight_sum)
    has_counted = any(is_counted)
    return where(has_counted, divide(weighted_sum, where(has_counted, weight_sum, 1.0)), math.nan)


def counted_mask(ids: Tensor, classes: int, ignored: int) -> Tensor | None:
    """Returns a mask of the class ids that count in the loss; None if all of them do.

    Raises:
        IndexOutOfBoundsError: if the host has the ids, and one is neither a class nor ignored.
    """
    host_ids = selection.current().array_if_cheap(ids)
    if host_ids is None:
        is_counted = logical_and(greater_equal(ids, 0), less(ids, classes))
        return logical_and(is_counted, not_equal(ids, ignored)) if 0 <= ignored < classes else is_counted
    return None if shared_losses.unignored_mask(host_ids, classes, ignored) is None else not_equal(ids, ignored)


def broadcast_along(weight: Tensor, x: Tensor, along: int) -> Tensor:
    """Returns a vector reshaped to broadcast along one axis of `x`; its other axes have length 1."""
    return reshape(weight, [-1 if i == along else 1 for i in range(len(x.shape))])


@op
def psnr(x1: TensorLike, x2: TensorLike, max_val: Varying) -> Tensor:
    """Returns the peak signal-to-noise ratio of two tensors in decibels; infinite if they are equal.

    Args:
        x1: a tensor of any shape; integers become the default float.
        x2: the tensor to compare with, which broadcasts against `x1`.
        max_val: the largest possible difference between two elements, for example 255 for 8-bit images.

    Raises:
        ArgumentError: if `max_val` is a number that is not positive; the values of a tensor are not read.

    See also: `ssim`, by structure.

    Example:
        >>> ops.psnr([0.0, 0.0], [1.0, -1.0], 10.0).tolist()
        20.0
    """
    mean_squared_error = mean(square(subtract(widen(x1), widen(x2))))
    value_range = cast_option("max_val", max_val, mean_squared_error)
    if is_number(value_range):
        if not value_range > 0:
            raise ArgumentError(f"max_val is a positive number, not {max_val!r:.60}")
        peak_decibels: Any = 20.0 * math.log10(value_range)
    else:
        peak_decibels = multiply(log10(value_range), 20.0)
    decibels = subtract(peak_decibels, multiply(log10(mean_squared_error), 10.0))
    return cast(decibels, as_inexact(result_type(x1, x2)))
