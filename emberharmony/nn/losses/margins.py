"""Losses with a margin: by signs, by ranks, and by the scores of classes."""

from emberharmony import ops
from emberharmony.core.errors import ArgumentTypeError, ShapeError
from emberharmony.core.types import Tensor, TensorLike
from emberharmony.nn.locate import fault
from emberharmony.nn.losses.classification import binary_cross_entropy_with_logits
from emberharmony.nn.losses.operands import (
    Reduction,
    class_ids_and_mask,
    class_weight,
    convert_matching_operands,
    convert_operands,
    option_tensor,
    reduce_losses,
    require_option,
    shortfall,
)


def hinge(input: TensorLike, target: TensorLike, *, margin: float = 1.0, reduction: Reduction = "mean") -> Tensor:
    """Returns `max(0, margin - target * input)`, by default the mean.

    Args:
        input: scores, a tensor of any shape.
        target: 1 or -1, in a tensor of the same shape.
        margin: the score from which on there is no loss.
        reduction: "none" gives each loss, "mean" their mean, and "sum" their sum.

    Raises:
        ShapeError: if the shapes differ.

    Example:
        >>> from emberharmony import nn
        >>> nn.losses.hinge([0.5, 2.0], [1.0, -1.0], reduction="none").tolist()
        [0.5, 3.0]
    """
    (x, t), result_dtype = convert_matching_operands("hinge", input=input, target=target)
    return reduce_losses("hinge", shortfall(ops.multiply(t, x), margin), reduction, result_dtype)


def soft_margin(input: TensorLike, target: TensorLike, *, reduction: Reduction = "mean") -> Tensor:
    """Returns `log(1 + exp(-target * input))`, by default the mean; large scores do not overflow.

    Args:
        input: scores, a tensor of any shape.
        target: 1 or -1, in a tensor of the same shape.
        reduction: "none" gives each loss, "mean" their mean, and "sum" their sum.

    Raises:
        ShapeError: if the shapes differ.

    Example:
        >>> from emberharmony import nn
        >>> nn.losses.soft_margin([1e4, -1e4], [-1.0, -1.0], reduction="none").tolist()
        [10000.0, 0.0]

    Source: `torch.nn.functional.soft_margin_loss`.
    """
    (x, t), result_dtype = convert_matching_operands("soft_margin", input=input, target=target)
    return reduce_losses("soft_margin", ops.softplus(ops.negative(ops.multiply(t, x))), reduction, result_dtype)


def margin_ranking(
    input1: TensorLike,
    input2: TensorLike,
    target: TensorLike,
    margin: float = 0.0,
    *,
    reduction: Reduction = "mean",
) -> Tensor:
    """Returns `max(0, margin - target * (input1 - input2))`, by default the mean.

    Args:
        input1, input2: scores, tensors of one shape.
        target: 1 where the first score should be larger, -1 where the second should; all have one shape.
        margin: by how much it should be larger.
        reduction: "none" gives each loss, "mean" their mean, and "sum" their sum.

    Raises:
        ShapeError: if the shapes differ.

    Example:
        >>> from emberharmony import nn
        >>> nn.losses.margin_ranking([1.0], [3.0], [1.0], 0.5).tolist()
        2.5

    Source: `torch.nn.functional.margin_ranking_loss`.
    """
    (x, y, t), result_dtype = convert_matching_operands("margin_ranking", input1=input1, input2=input2, target=target)
    loss = shortfall(ops.multiply(t, ops.subtract(x, y)), margin)
    return reduce_losses("margin_ranking", loss, reduction, result_dtype)


def multi_margin(
    input: TensorLike,
    target: TensorLike,
    p: int = 1,
    margin: float = 1.0,
    weight: TensorLike | None = None,
    *,
    reduction: Reduction = "mean",
) -> Tensor:
    """Returns the sum of `max(0, margin - input[target] + input[i]) ** p / classes` over other classes i, or the mean.

    Args:
        input: the score of each class, `(classes,)` or `(batch, classes)`.
        target: the class ids, `()` or `(batch,)`.
        p: the power, 1 or 2.
        margin: by how much the score of the class should exceed those of the others.
        weight: the weight of each class, `(classes,)`; None is 1 for all.
        reduction: "none" gives each loss, "mean" their mean, and "sum" their sum.

    Raises:
        ArgumentError: if `p` is neither 1 nor 2.
        IndexOutOfBoundsError: if an id is not a class; MLX checks a tensor of ids in checked mode (`ops.checked`) only.
        ShapeError: if the shapes do not fit.

    Example:
        >>> from emberharmony import nn
        >>> nn.losses.multi_margin([[0.5, 1.0, -3.0]], [0]).tolist()
        0.5

    Source: `torch.nn.functional.multi_margin_loss`.
    """
    name = "multi_margin"
    require_option(name, "p", p, p in (1, 2), "1 or 2")
    (x,), result_dtype = convert_operands(name, input)
    _require_classes(name, x)
    class_count = x.shape[-1]
    target_ids, _ = class_ids_and_mask(name, target, tuple(x.shape), len(x.shape) - 1)
    target_scores = ops.take_along_axis(x, ops.expand_dims(target_ids, -1), -1)
    class_losses = shortfall(ops.subtract(target_scores, x), margin)
    if p == 2:
        class_losses = ops.square(class_losses)
    is_other_class = ops.not_equal(ops.expand_dims(target_ids, -1), ops.arange(class_count))
    loss = ops.divide(ops.sum(ops.where(is_other_class, class_losses, 0.0), -1), class_count)
    if weight is not None:
        loss = ops.multiply(loss, ops.take(class_weight(name, weight, class_count, x), target_ids, 0))
    return reduce_losses(name, loss, reduction, result_dtype)


def multilabel_margin(input: TensorLike, target: TensorLike, *, reduction: Reduction = "mean") -> Tensor:
    """Returns the sum of `max(0, 1 - input[j] + input[i]) / classes` over targets j and other classes i, or the mean.

    Args:
        input: the score of each class, `(classes,)` or `(batch, classes)`.
        target: class ids in the same shape; those of an example end before its first negative one.
        reduction: "none" gives each loss, "mean" their mean, and "sum" their sum.

    Raises:
        ArgumentTypeError: if the ids are not integers.
        IndexOutOfBoundsError: if an id is not a class; MLX checks it in checked mode (`ops.checked`) only.
        ShapeError: if the shapes differ.

    Example:
        >>> from emberharmony import nn
        >>> nn.losses.multilabel_margin([[0.5, 0.25, 1.0, 2.0]], [[3, 0, -1, 1]]).tolist()
        0.5625

    Source: `torch.nn.functional.multilabel_margin_loss`.
    """
    name = "multilabel_margin"
    (x,), result_dtype = convert_operands(name, input)
    _require_classes(name, x)
    ids = ops.convert_to_tensor(target)
    if not ops.dtype(ids).is_integer:
        raise fault(
            ArgumentTypeError(f"{name}(): target holds class ids, so expected integers, got {ops.dtype(ids).name}")
        )
    if tuple(ids.shape) != tuple(x.shape):
        raise fault(
            ShapeError(f"{name}(): target has shape {tuple(ids.shape)}, expected {tuple(x.shape)}, that of input")
        )
    ids, class_count = ops.cast(ids, "int64"), x.shape[-1]
    is_listed = ops.equal(ops.cumsum(ops.cast(ops.less(ids, 0), "int32"), -1), 0)
    valid_ids = ops.where(is_listed, ids, 0)
    target_scores = ops.expand_dims(ops.take_along_axis(x, valid_ids, -1), -1)
    is_id_of_class = ops.equal(ops.expand_dims(valid_ids, -1), ops.arange(class_count))
    is_target = ops.any(ops.logical_and(is_id_of_class, ops.expand_dims(is_listed, -1)), -2, keepdims=True)
    pair_losses = shortfall(ops.subtract(target_scores, ops.expand_dims(x, -2)), 1.0)
    is_counted = ops.logical_and(ops.expand_dims(is_listed, -1), ops.logical_not(is_target))
    loss = ops.divide(ops.sum(ops.where(is_counted, pair_losses, 0.0), (-2, -1)), class_count)
    return reduce_losses(name, loss, reduction, result_dtype)


def multilabel_soft_margin(
    input: TensorLike, target: TensorLike, weight: TensorLike | None = None, *, reduction: Reduction = "mean"
) -> Tensor:
    """Returns the binary cross-entropies of logits, averaged over the classes, by default the mean of all examples.

    Args:
        input: logits, `(..., classes)`.
        target: 0 or 1 for each class, in a tensor of the same shape.
        weight: the weight of each class, `(classes,)`; None is 1 for all.
        reduction: "none" gives each loss, "mean" their mean, and "sum" their sum.

    Raises:
        ShapeError: if the shapes do not fit.

    Example:
        >>> from emberharmony import nn
        >>> nn.losses.multilabel_soft_margin([[1e4, -1e4]], [[0.0, 0.0]]).tolist()
        5000.0

    Source: `torch.nn.functional.multilabel_soft_margin_loss`.
    """
    name = "multilabel_soft_margin"
    (x, t), result_dtype = convert_matching_operands(name, input=input, target=target)
    if not x.shape:
        raise fault(ShapeError(f"{name}(): input has no axes, expected shape (..., classes)"))
    loss = binary_cross_entropy_with_logits(x, t, reduction="none")
    if weight is not None:
        loss = ops.multiply(loss, option_tensor(name, "weight", weight, x))
    return reduce_losses(name, ops.mean(loss, -1), reduction, result_dtype)


def _require_classes(name: str, x: Tensor) -> None:
    """Checks that scores have a last axis of classes, and at most a batch axis before it.

    Raises:
        ShapeError: if it is neither (classes,) nor (batch, classes), or if there are no classes.
    """
    if len(x.shape) not in (1, 2) or not x.shape[-1]:
        raise fault(ShapeError(f"{name}(): input has shape {tuple(x.shape)}, expected (classes,) or (batch, classes)"))
