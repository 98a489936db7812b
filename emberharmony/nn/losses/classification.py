"""Losses of classes: cross-entropies of ids, probabilities and logits, and the overlap of masks."""

import math
import warnings
from typing import Any

from emberharmony import ops
from emberharmony.core import selection
from emberharmony.core.dtypes import DType
from emberharmony.core.errors import ArgumentTypeError, ShapeError, TrainingWarning
from emberharmony.core.tracing import TensorProxy
from emberharmony.core.types import Axis, Tensor, TensorLike
from emberharmony.nn.locate import fault
from emberharmony.nn.losses.operands import (
    LOOKS,
    REDUCTIONS,
    Reduction,
    cast_to_result_dtype,
    checked_class_ids,
    class_axis,
    class_ids_and_mask,
    class_weight,
    convert_matching_operands,
    convert_operands,
    is_floating,
    option_tensor,
    reduce_losses,
    require_class_ids,
    require_option,
    require_probabilities,
    require_reduction,
    warn_of_order,
)

_LEAST_LOG = -100.0
"""The value used for the logarithm of probability 0, as in torch."""

_LEAST_PRODUCT = 1e-12
"""The smallest divisor `p * (1 - p)` in the gradient of a binary cross-entropy, as in torch."""


def cross_entropy(
    input: TensorLike,
    target: TensorLike,
    weight: TensorLike | None = None,
    *,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: Reduction = "mean",
    axis: int | None = None,
) -> Tensor:
    """Returns the cross-entropies of logits with class ids or probabilities, by default their mean.

    Args:
        input: logits, of shape `(classes,)`, `(batch, classes)` or `(batch, classes, ...)`.
        target: integers are class ids, in the shape of `input` without the axis of the classes; floating numbers are
            the probability of each class, in the shape of `input`.
        weight: the weight of each class, `(classes,)`. The mean over class ids is divided by the sum of their weights.
            None is 1 for all.
        ignore_index: a class id whose positions do not count. If none counts, the mean is NaN and its gradient 0.
        label_smoothing: the share, from 0 to 1, of the target that is spread over all classes.
        reduction: "none" gives each loss, "mean" their mean, and "sum" their sum.
        axis: the axis of the classes; by default 1, or 0 if `input` has one axis. Pass -1 for channels last.

    Raises:
        ArgumentError: if `label_smoothing` is out of range.
        IndexOutOfBoundsError: if an id is not a class; MLX checks a tensor of ids in checked mode (`ops.checked`) only.
        ShapeError: if the shapes do not fit.

    Example:
        >>> from emberharmony import nn
        >>> logits = [[0.0, 0.0], [0.0, 100.0]]
        >>> round(nn.losses.cross_entropy(logits, [0, 1]).tolist(), 4)
        0.3466
        >>> round(nn.losses.cross_entropy(logits, [[1.0, 0.0], [0.0, 1.0]], reduction="sum").tolist(), 4)
        0.6931

    Source: `torch.nn.functional.cross_entropy`.
    """
    if LOOKS:
        LOOKS[-1]("cross_entropy", input, axis)
    backend = selection.active().backend
    tensor_class = backend.tensor_type
    is_tensor_target = target.__class__ is tensor_class and (
        input.__class__ is tensor_class or isinstance(input, TensorProxy)
    )
    if is_tensor_target and axis is None and len(input.shape) in (1, 2) and backend.kinds[target.dtype] != "float":
        return ops.cross_entropy(input, target, weight, reduction, ignore_index, label_smoothing)  # checks the ids
    name = "cross_entropy"
    if is_floating(target):
        return _cross_entropy_of_probabilities(input, target, weight, label_smoothing, reduction, axis)
    x: Any = input if isinstance(input, TensorProxy) else ops.convert_to_tensor(input)
    class_axis_number = class_axis(name, x, axis)
    ids = checked_class_ids(name, target, x.shape[class_axis_number], ignore_index)
    shifted_axis = -1 if class_axis_number == len(x.shape) - 1 else class_axis_number
    return ops.cross_entropy(x, ids, weight, reduction, ignore_index, label_smoothing, shifted_axis)


def nll(
    input: TensorLike,
    target: TensorLike,
    weight: TensorLike | None = None,
    *,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
    axis: int | None = None,
) -> Tensor:
    """Returns the negative log-likelihoods of class ids, by default their mean; `cross_entropy` takes logits.

    Args:
        input: the logarithm of the probability of each class, with the classes along `axis`.
        target: class ids, integers in the shape of `input` without `axis`.
        weight: the weight of each class, `(classes,)`. The mean is divided by the sum of their weights. None is 1 for
            all.
        ignore_index: an id whose positions do not count; their loss is 0.
        reduction: "none" gives the loss at each position, "mean" and "sum" one number.
        axis: the axis of the classes; None is 1, or 0 if `input` has one axis.

    Raises:
        IndexOutOfBoundsError: if an id is not a class; MLX checks a tensor of ids in checked mode (`ops.checked`) only.
        ShapeError: if the shapes do not fit.

    Example:
        >>> from emberharmony import nn
        >>> nn.losses.nll([[-1.0, -3.0], [-2.0, -0.5]], [1, 0]).tolist()
        2.5

    Source: `torch.nn.functional.nll_loss`.
    """
    require_reduction("nll", reduction)
    (x,), result_dtype = convert_operands("nll", input)
    if LOOKS:
        LOOKS[-1]("nll", x, axis)
    class_axis_number = class_axis("nll", x, axis)
    weights = None if weight is None else class_weight("nll", weight, x.shape[class_axis_number], x)
    valid_ids, is_kept = class_ids_and_mask("nll", target, tuple(x.shape), class_axis_number, ignore_index)
    losses, counted_weights = _weighted_losses_and_weights(
        _negative_log_of_class(x, valid_ids, class_axis_number), valid_ids, is_kept, weights
    )
    return _reduce_weighted("nll", losses, counted_weights, reduction, result_dtype)


def binary_cross_entropy(
    input: TensorLike, target: TensorLike, weight: TensorLike | None = None, *, reduction: Reduction = "mean"
) -> Tensor:
    """Returns `-(t log p + (1 - t) log(1 - p))` of probabilities p, by default the mean.

    As in torch, a logarithm is at least -100, and the gradient's divisor `p * (1 - p)` at least 1e-12. Logits are more
    precise: see `binary_cross_entropy_with_logits`.

    Args:
        input: probabilities p from 0 to 1; where the values are not read, others give NaN.
        target: t, of the same shape, from 0 to 1.
        weight: a factor of each loss, which broadcasts to the shape of `input`; None is 1.
        reduction: "none" gives each loss, "mean" their mean, and "sum" their sum.

    Raises:
        ArgumentError: if an element that the host has is not from 0 to 1.
        ShapeError: if the shapes do not fit.

    Example:
        >>> from emberharmony import nn
        >>> nn.losses.binary_cross_entropy([0.0, 1.0], [1.0, 1.0]).tolist()
        50.0

    Source: `torch.nn.functional.binary_cross_entropy`.
    """
    name = "binary_cross_entropy"
    (p, t), result_dtype = convert_matching_operands(name, input=input, target=target)
    warn_of_order(name, p, t)
    require_probabilities(name, "input", p)
    require_probabilities(name, "target", t)
    is_inside = ops.greater(ops.multiply(p, _one_minus(p)), _LEAST_PRODUCT)
    safe_p = ops.where(is_inside, p, 0.5)
    loss_inside = _binary_log_loss(t, ops.log(safe_p), ops.log1p(ops.negative(safe_p)))
    # Near probabilities 0 and 1 the value is that of clipped logarithms, and the gradient is that of a line.
    constant_p = ops.stop_gradient(p)
    linear_loss = ops.multiply(ops.subtract(p, constant_p), ops.divide(ops.subtract(constant_p, t), _LEAST_PRODUCT))
    clipped_logs = [ops.clip(ops.log(q), _LEAST_LOG, None) for q in (constant_p, _one_minus(constant_p))]
    loss = ops.where(is_inside, loss_inside, ops.add(_binary_log_loss(t, *clipped_logs), linear_loss))
    if weight is not None:
        loss = ops.multiply(loss, option_tensor(name, "weight", weight, p))
    return reduce_losses(name, loss, reduction, result_dtype)


def binary_cross_entropy_with_logits(
    input: TensorLike,
    target: TensorLike,
    weight: TensorLike | None = None,
    *,
    pos_weight: TensorLike | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """Returns the binary cross-entropies of logits, by default their mean; no logit overflows or loses digits.

    Args:
        input: logits, a tensor of any shape.
        target: the probabilities, of the same shape.
        weight: a factor of each loss, which broadcasts to the shape of `input`; None is 1.
        pos_weight: a factor of the losses of positive examples alone, which broadcasts to the shape of `input`; None is
            1.
        reduction: "none" gives each loss, "mean" their mean, and "sum" their sum.

    Raises:
        ArgumentError: if an element of `target` that the host has is not from 0 to 1.
        ShapeError: if the shapes do not fit.

    Example:
        >>> from emberharmony import nn
        >>> nn.losses.binary_cross_entropy_with_logits([1e4, -1e4], [0.0, 0.0], reduction="none").tolist()
        [10000.0, 0.0]

    Source: `torch.nn.functional.binary_cross_entropy_with_logits`.
    """
    name = "binary_cross_entropy_with_logits"
    (x, t), result_dtype = convert_matching_operands(name, input=input, target=target)
    if LOOKS:
        LOOKS[-1](name, x, None)
    warn_of_order(name, x, t)
    require_probabilities(name, "target", t)
    # With m = min(x, 0), softplus(-x) = log1p(exp(2 m - x)) - m. Adding the logarithm last keeps small losses exact.
    negative_part = ops.clip(x, None, 0.0)
    log_term = ops.log1p(ops.exp(ops.subtract(ops.multiply(negative_part, 2.0), x)))
    if pos_weight is not None:
        positive_factor = ops.add(
            ops.multiply(t, ops.subtract(option_tensor(name, "pos_weight", pos_weight, x), 1.0)), 1.0
        )
        log_term, negative_part = ops.multiply(log_term, positive_factor), ops.multiply(negative_part, positive_factor)
    loss = ops.add(ops.subtract(ops.multiply(_one_minus(t), x), negative_part), log_term)
    if weight is not None:
        loss = ops.multiply(loss, option_tensor(name, "weight", weight, x))
    return reduce_losses(name, loss, reduction, result_dtype)


def focal(
    input: TensorLike,
    target: TensorLike,
    *,
    alpha: float | None = 0.25,
    gamma: float = 2.0,
    reduction: Reduction = "mean",
) -> Tensor:
    """Returns the binary cross-entropies of logits, less where the prediction is good already, by default their mean.

    A loss is multiplied by `(1 - q) ** gamma`, where q is the probability that the logit gives to the target.

    Args:
        input: logits, a tensor of any shape.
        target: 0 or 1, in a tensor of the same shape.
        alpha: the factor of the losses of positive examples; that of the others is `1 - alpha`. None is no factor.
        gamma: how fast the factor falls with q.
        reduction: "none" gives each loss, "mean" their mean, and "sum" their sum.

    Raises:
        ArgumentError: if `alpha` is not from 0 to 1, or if `gamma` is negative.
        ShapeError: if the shapes differ.

    Example:
        >>> from emberharmony import nn
        >>> round(nn.losses.focal([0.0], [1.0]).tolist(), 4)
        0.0433

    Source: Lin et al., "Focal Loss for Dense Object Detection", 2017; `torchvision.ops.sigmoid_focal_loss`.
    """
    require_option("focal", "gamma", gamma, gamma >= 0, "a number >= 0")
    require_option("focal", "alpha", alpha, alpha is None or 0 <= alpha <= 1, "a number from 0 to 1, or None")
    (x, t), result_dtype = convert_matching_operands("focal", input=input, target=target)
    loss = binary_cross_entropy_with_logits(x, t, reduction="none")
    if gamma:
        wrong_probability = _mix_by_target(t, ops.sigmoid(ops.negative(x)), ops.sigmoid(x))
        # The probability is kept above 0, where the derivative of a power below 1 would be infinite.
        loss = ops.multiply(loss, ops.power(ops.clip(wrong_probability, 1e-30, None), gamma))
    if alpha is not None:
        loss = ops.multiply(loss, ops.add(ops.multiply(t, 2.0 * alpha - 1.0), 1.0 - alpha))
    return reduce_losses("focal", loss, reduction, result_dtype)


def dice(
    input: TensorLike,
    target: TensorLike,
    *,
    smooth: float = 1.0,
    axis: Axis = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """Returns `1 - (2 sum(p t) + smooth) / (sum(p) + sum(t) + smooth)` of each mask, by default the mean.

    Args:
        input: probabilities p, of shape `(batch, ...)`; apply `ops.sigmoid` or `ops.softmax` to logits.
        target: t, of the same shape: 0, 1 or probabilities.
        smooth: what is added to the numerator and the denominator; with a number above 0 an empty mask has a loss.
        axis: the axes that a mask spans; by default all but the first.
        reduction: "none" gives each loss, "mean" their mean, and "sum" their sum.

    Raises:
        ArgumentError: if `smooth` is negative.
        AxisError: if an axis is out of range.
        ShapeError: if the shapes differ.

    Example:
        >>> from emberharmony import nn
        >>> nn.losses.dice([[1.0, 1.0, 0.0]], [[1.0, 1.0, 1.0]], smooth=3.0).tolist()
        0.125

    Source: Milletari et al., "V-Net", 2016, with the sums of Dice in the denominator.
    """
    require_option("dice", "smooth", smooth, smooth >= 0, "a number >= 0")
    (p, t), result_dtype = convert_matching_operands("dice", input=input, target=target)
    summed_axes = tuple(range(1, len(p.shape))) if axis is None else axis
    intersection = ops.sum(ops.multiply(p, t), summed_axes)
    sum_of_both = ops.add(ops.sum(p, summed_axes), ops.sum(t, summed_axes))
    dice_share = ops.divide(ops.add(ops.multiply(intersection, 2.0), smooth), ops.add(sum_of_both, smooth))
    return reduce_losses("dice", _one_minus(dice_share), reduction, result_dtype)


def kl_div(
    input: TensorLike, target: TensorLike, *, log_target: bool = False, reduction: Reduction | str = "mean"
) -> Tensor:
    """Returns the terms of the Kullback-Leibler divergence `t (log t - input)`, by default their mean.

    Args:
        input: the logarithms of the predicted probabilities.
        target: the probabilities t, or their logarithms, of the same shape.
        log_target: whether `target` holds logarithms.
        reduction: "none", "mean", "sum", or "batchmean": the sum divided by the length of the first axis, which is the
            divergence as it is defined.

    Raises:
        ShapeError: if the shapes differ.

    Example:
        >>> from emberharmony import nn
        >>> nn.losses.kl_div([[-1.0, -2.0]], [[1.0, 0.0]], reduction="batchmean").tolist()
        1.0

    Source: `torch.nn.functional.kl_div`.
    """
    require_reduction("kl_div", reduction, (*REDUCTIONS, "batchmean"))
    (x, t), result_dtype = convert_matching_operands("kl_div", input=input, target=target)
    if LOOKS:
        LOOKS[-1]("kl_div", x, -1)
    if log_target:
        loss = ops.multiply(ops.exp(t), ops.subtract(t, x))
    else:
        loss = ops.subtract(ops.xlogy(t, t), ops.multiply(t, x))
    if reduction == "batchmean":
        if not x.shape:
            raise fault(ShapeError("kl_div(): reduction='batchmean' needs an axis of examples, but input has no axes"))
        return cast_to_result_dtype(ops.divide(ops.sum(loss), x.shape[0]), result_dtype)
    return reduce_losses("kl_div", loss, reduction, result_dtype)  # type: ignore[arg-type]


def _binary_log_loss(t: Tensor, log_p: Tensor, log_q: Tensor) -> Tensor:
    return ops.negative(_mix_by_target(t, log_p, log_q))


def _mix_by_target(t: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
    """Returns `t * positive + (1 - t) * negative`."""
    return ops.add(ops.multiply(t, positive), ops.multiply(_one_minus(t), negative))


def _one_minus(x: Tensor) -> Tensor:
    """Returns `1 - x`, computed as `-x + 1`, because a number as first operand takes the slow path of dispatch."""
    return ops.add(ops.negative(x), 1.0)


def _weights_along_axis(weights: Tensor, x: Tensor, class_axis: int) -> Tensor:
    return ops.reshape(weights, [-1 if i == class_axis else 1 for i in range(len(x.shape))])


def _cross_entropy_of_probabilities(
    input: TensorLike,
    target: TensorLike,
    weight: TensorLike | None,
    smoothing: float,
    reduction: Reduction,
    axis: int | None,
) -> Tensor:
    """Returns the cross-entropies of logits with class probabilities as targets, reduced."""
    name = "cross_entropy"
    require_option(name, "label_smoothing", smoothing, 0.0 <= smoothing <= 1.0, "a number from 0 to 1")
    require_reduction(name, reduction)
    (x,), result_dtype = convert_operands(name, input)
    class_axis_number = class_axis(name, x, axis)
    if x.shape[class_axis_number] == 1:
        warnings.warn(
            "cross_entropy() of one class is always 0: give the last layer one for each class, at least 2, or use "
            "nn.losses.binary_cross_entropy_with_logits(logits, targets) for one output",
            TrainingWarning,
            stacklevel=3,
        )
    if len(ops.shape(target)) == len(x.shape) + 1 and not is_floating(input):
        raise fault(ArgumentTypeError("cross_entropy() got class ids first: the order is cross_entropy(logits, ids)"))
    if len(ops.shape(target)) < len(x.shape) or ops.shape(target)[-1:] == (1,) != x.shape[-1:]:
        require_class_ids(name, target, tuple(x.shape), class_axis_number)  # a target of other shape has class ids
    weights = None if weight is None else class_weight(name, weight, x.shape[class_axis_number], x)
    log_probs = ops.log_softmax(x, class_axis_number)
    (log_probs, t), _ = convert_matching_operands(name, input=log_probs, target=ops.cast(target, ops.dtype(log_probs)))
    if smoothing:
        t = ops.add(ops.multiply(t, 1.0 - smoothing), smoothing / log_probs.shape[class_axis_number])
    loss_terms = ops.multiply(log_probs, t)
    if weights is not None:
        loss_terms = ops.multiply(loss_terms, _weights_along_axis(weights, log_probs, class_axis_number))
    loss = ops.negative(ops.sum(loss_terms, class_axis_number))
    if reduction == "none":
        return cast_to_result_dtype(loss, result_dtype)
    loss_sum = ops.sum(loss)
    return cast_to_result_dtype(
        ops.divide(loss_sum, math.prod(loss.shape)) if reduction == "mean" else loss_sum, result_dtype
    )


def _negative_log_of_class(logs: Tensor, class_ids: Tensor, class_axis: int) -> Tensor:
    """Returns the negative log-probability of the target class at each position."""
    return ops.negative(
        ops.squeeze(ops.take_along_axis(logs, ops.expand_dims(class_ids, class_axis), class_axis), class_axis)
    )


def _weighted_losses_and_weights(
    losses: Tensor, class_ids: Tensor, is_kept: Tensor | None, weights: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """Returns the weighted loss at each position, and the weights for the mean, or None if all are 1."""
    if weights is not None:
        counted_weights = ops.take(weights, class_ids, 0)
        losses = ops.multiply(losses, counted_weights)
        if is_kept is None:
            return losses, counted_weights
        return ops.where(is_kept, losses, 0.0), ops.where(is_kept, counted_weights, 0.0)
    return (
        (losses, None) if is_kept is None else (ops.where(is_kept, losses, 0.0), ops.cast(is_kept, ops.dtype(losses)))
    )


def _reduce_weighted(
    name: str, losses: Tensor, counted_weights: Tensor | None, reduction: Reduction, kind: DType
) -> Tensor:
    """Returns the losses reduced; a mean is the sum of the losses divided by the sum of the weights."""
    if counted_weights is None:
        return reduce_losses(name, losses, reduction, kind)
    if reduction == "none":
        return cast_to_result_dtype(losses, kind)
    loss_sum = ops.sum(losses)
    if reduction != "mean":
        return cast_to_result_dtype(loss_sum, kind)
    # If all weights are 0, the mean is NaN with the gradient 0; without this MLX gives a NaN gradient.
    divisor = ops.sum(counted_weights)
    has_weight = ops.not_equal(divisor, 0.0)
    mean = ops.divide(loss_sum, ops.where(has_weight, divisor, 1.0))
    return cast_to_result_dtype(ops.where(has_weight, mean, math.nan), kind)
