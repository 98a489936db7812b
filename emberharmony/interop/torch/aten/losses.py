"""Loss functions of ATen, computed by ops."""

from typing import Any

from emberharmony import ops
from emberharmony.interop.torch.aten.table import aten


def _reduce_by_number(values: Any, reduction: int) -> Any:
    """Returns values as they are, their mean or their sum, for PyTorch's reduction numbers 0, 1 and 2."""
    return ops.mean(values) if reduction == 1 else ops.sum(values) if reduction == 2 else values


@aten("mse_loss")
def mse_loss(x: Any, target: Any, reduction: int = 1) -> Any:
    """Returns the squared differences of two tensors, their mean or their sum."""
    return _reduce_by_number(ops.square(ops.subtract(x, target)), reduction)


@aten("l1_loss")
def l1_loss(x: Any, target: Any, reduction: int = 1) -> Any:
    """Returns the absolute differences of two tensors, their mean or their sum."""
    return _reduce_by_number(ops.absolute(ops.subtract(x, target)), reduction)


@aten("cross_entropy_loss")
def cross_entropy_loss(
    x: Any,
    target: Any,
    weight: Any = None,
    reduction: int = 1,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Any:
    """Returns the cross entropy of logits and classes, or probabilities of classes."""
    reduction_names: Any = ("none", "mean", "sum")
    axis = 1 if len(x.shape) > 1 else 0
    if ops.isdtype(ops.dtype(target), "real floating"):
        return _cross_entropy_of_probabilities(x, target, weight, reduction, label_smoothing, axis)
    return ops.cross_entropy(x, target, weight, reduction_names[reduction], ignore_index, label_smoothing, axis)


def _cross_entropy_of_probabilities(
    x: Any, target: Any, weight: Any, reduction: int, smoothing: float, axis: int
) -> Any:
    """Returns the cross entropy of logits and probabilities; its mean is that over the samples."""
    class_count = x.shape[axis]
    if smoothing:
        target = ops.add(ops.multiply(target, 1 - smoothing), smoothing / class_count)
    products = ops.multiply(ops.log_softmax(x, axis), target)
    if weight is not None:
        products = ops.multiply(products, ops.reshape(weight, (-1,) + (1,) * (len(x.shape) - axis - 1)))
    return _reduce_by_number(ops.negative(ops.sum(products, axis)), reduction)
