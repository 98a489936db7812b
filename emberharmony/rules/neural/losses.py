"""Gradient rules of the ops in `ops/neural/losses.py`.

The ops are composites, which need no rules. They have them because training calls them in each step; the gradients
of the bodies take 1.6 to 9.8 times as long, for few elements.
"""

import math
from typing import Any

from emberharmony.ops.arrays.indexing import one_hot, take, where
from emberharmony.ops.arrays.shape import expand_dims, reshape
from emberharmony.ops.dtype import dtype, widen
from emberharmony.ops.logic.comparison import greater_equal, less, less_equal, logical_and
from emberharmony.ops.math import add, divide, multiply, negative, subtract
from emberharmony.ops.neural.activation import log_softmax, softmax
from emberharmony.ops.neural.losses import EPSILON, broadcast_along, counted_mask
from emberharmony.ops.reductions.reduction import sum as sum_
from emberharmony.ops.tensor import cast
from emberharmony.transforms.rule_registry import SLOPES

T = Any


def _sparse_output_gradient(g: T, _y: T, target: T, output: T, from_logits: bool = False, axis: int = -1) -> T:
    class_count = output.shape[axis]
    is_class = logical_and(greater_equal(target, 0), less(target, class_count))
    integer_labels = target if dtype(target).is_integer else cast(target, "int64")
    one_hot_labels = one_hot(integer_labels, class_count, axis, dtype(output))
    if from_logits:
        gradient = subtract(softmax(output, axis), one_hot_labels)
    else:
        # The loss is -log(p / s), with the sum s of the outputs; clipped shares have no gradient.
        output_sum = sum_(output, axis, True)
        target_outputs = sum_(multiply(output, one_hot_labels), axis, True)
        probability = divide(target_outputs, output_sum)
        is_inside = logical_and(greater_equal(probability, EPSILON), less_equal(probability, 1.0 - EPSILON))
        safe_outputs = where(is_inside, target_outputs, 1.0)
        gradient = where(is_inside, subtract(divide(1.0, output_sum), divide(one_hot_labels, safe_outputs)), 0.0)
    return multiply(expand_dims(where(is_class, g, 0.0), axis), gradient)


def _position_gradients(g: T, x: T, ids: T, weight: T, reduction: str, ignore_index: int, class_axis: int) -> T:
    """Returns the gradient of the loss at each position, with the axis of the classes at length 1."""
    position_shape = (*x.shape[:class_axis], 1, *x.shape[class_axis + 1 :])
    is_kept, g = counted_mask(ids, x.shape[class_axis], ignore_index), cast(g, dtype(x))
    if reduction == "mean":
        weight_sum: Any = math.prod(position_shape)
        if weight is not None:
            position_weights = take(weight, ids if is_kept is None else where(is_kept, ids, 0), 0)
            weight_sum = sum_(position_weights if is_kept is None else where(is_kept, position_weights, 0.0))
        elif is_kept is not None:
            weight_sum = sum_(cast(is_kept, dtype(x)))
        g = divide(g, weight_sum)
    g = reshape(g, position_shape) if g.shape else g
    return g if is_kept is None else where(reshape(is_kept, position_shape), g, 0.0)


def _target_probabilities(x: T, ids: T, label_smoothing: float, class_axis: int) -> T:
    """Returns the probability of each class in the target."""
    one_hot_labels = one_hot(ids, x.shape[class_axis], class_axis, dtype(x))
    if not label_smoothing:
        return one_hot_labels
    return add(multiply(one_hot_labels, 1.0 - label_smoothing), label_smoothing / x.shape[class_axis])


def _logits_gradient(
    g: T,
    _y: T,
    input: T,
    target: T,
    weight: T = None,
    reduction: str = "mean",
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    axis: int = -1,
) -> T:
    x, ids, class_axis = widen(input), cast(target, "int64"), axis % len(input.shape)
    weight = weight if weight is None else cast(weight, dtype(x))
    probabilities, target_probabilities = (
        softmax(x, class_axis),
        _target_probabilities(x, ids, label_smoothing, class_axis),
    )
    if weight is not None:
        target_probabilities = multiply(target_probabilities, broadcast_along(weight, x, class_axis))
        probabilities = multiply(probabilities, sum_(target_probabilities, class_axis, True))
    return multiply(
        subtract(probabilities, target_probabilities),
        _position_gradients(g, x, ids, weight, reduction, ignore_index, class_axis),
    )


def _class_weight_gradient(
    g: T,
    y: T,
    input: T,
    target: T,
    weight: T,
    reduction: str = "mean",
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    axis: int = -1,
) -> T:
    x, ids, class_axis = widen(input), cast(target, "int64"), axis % len(input.shape)
    weight = cast(weight, dtype(x))
    losses = negative(multiply(log_softmax(x, class_axis), _target_probabilities(x, ids, label_smoothing, class_axis)))
    if reduction == "mean":  # it is divided by the sum of the weights
        losses = subtract(losses, multiply(_target_probabilities(x, ids, 0.0, class_axis), cast(y, dtype(x))))
    weighted_losses = multiply(losses, _position_gradients(g, x, ids, weight, reduction, ignore_index, class_axis))
    return sum_(weighted_losses, tuple(i for i in range(len(x.shape)) if i != class_axis))


SLOPES.add(_logits_gradient)
RULES: dict[str, Any] = {
    "sparse_categorical_crossentropy": (None, _sparse_output_gradient),
    "cross_entropy": (_logits_gradient, None, _class_weight_gradient),
}
