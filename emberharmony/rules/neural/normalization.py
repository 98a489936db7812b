"""Gradient rules of the ops in `ops/neural/normalization.py`.

The ops are composites, which need no rule. These have one because training calls them for each layer: the tape records
one node in place of ten, and keeps one tensor in place of five. The gradients of the bodies take 1.4 to 3.1 times as
long, for few elements.
"""

import math
from typing import Any

from emberharmony.backend.promote import nonnegative_axes
from emberharmony.backend.shared.neural.normalization import EPSILON
from emberharmony.ops.arrays.shape import reshape
from emberharmony.ops.dtype import cast_option, widen
from emberharmony.ops.math import add, divide, multiply, rsqrt, square, subtract
from emberharmony.ops.neural.normalization import align_weight
from emberharmony.ops.reductions.reduction import mean
from emberharmony.ops.reductions.reduction import sum as sum_
from emberharmony.rules.algebra.products import sum_of_products

T = Any


def _centre_and_scale(x: T, axes: Any, count: int, epsilon: Any) -> tuple[T, T]:
    """Returns `x` less its mean over `count` elements, and the reciprocal of the standard deviation."""
    centred_x = subtract(x, mean(x, axes, True))
    return centred_x, rsqrt(add(divide(sum_of_products(centred_x, centred_x, axes), count), epsilon))


def _weight_gradient(gradient: T, weight: T, axis: Any, x: T) -> T:
    """Returns the gradient of a weight from a tensor that broadcasts like `x`."""
    aligned_weight = align_weight(weight, axis, x)
    if aligned_weight is weight:
        return gradient
    unit_axes = tuple(axis for axis, n in enumerate(aligned_weight.shape) if n == 1)
    return reshape(sum_(gradient, unit_axes, True) if unit_axes else gradient, tuple(weight.shape))


def _layer_gradients(
    g: T,
    _y: T,
    x: T,
    gamma: T = None,
    beta: T = None,
    axis: Any = -1,
    epsilon: T = None,
    rms_scaling: bool = False,
) -> list[T]:
    widened_x = widen(x)
    layer_axes = nonnegative_axes(axis, len(x.shape))
    element_count = math.prod([x.shape[layer_axis] for layer_axis in layer_axes])
    centred_x, inverse_deviation = _centre_and_scale(
        widened_x, axis, element_count, EPSILON if epsilon is None else cast_option("epsilon", epsilon, widened_x)
    )
    normalized_x = multiply(widened_x if rms_scaling else centred_x, inverse_deviation)
    gamma_gradient = None if gamma is None else _weight_gradient(multiply(g, normalized_x), gamma, axis, x)
    beta_gradient = None if beta is None or rms_scaling else _weight_gradient(g, beta, axis, x)
    weighted_gradient = widen(g if gamma is None else multiply(g, align_weight(gamma, axis, x)))
    mean_product = divide(sum_of_products(weighted_gradient, normalized_x, axis), element_count)
    if rms_scaling:
        mean_part = multiply(multiply(centred_x, inverse_deviation), mean_product)
    else:
        mean_part = add(multiply(normalized_x, mean_product), mean(weighted_gradient, axis, True))
    x_gradient = multiply(subtract(weighted_gradient, mean_part), inverse_deviation)
    epsilon_gradient = (
        None if epsilon is None else multiply(multiply(mean_product, square(inverse_deviation)), -0.5 * element_count)
    )
    return [x_gradient, gamma_gradient, beta_gradient, None, epsilon_gradient, None]


def _batch_gradients(g: T, _y: T, x: T, axis: int, offset: T = None, scale: T = None, epsilon: T = 1e-3) -> list[T]:
    widened_x, y_cotangent = widen(x), widen(g[0])
    (axis_index,) = nonnegative_axes(axis, len(x.shape))
    other_axes = [a for a in range(len(x.shape)) if a != axis_index]
    element_count = math.prod(x.shape[a] for a in other_axes)
    centred_x, inverse_deviation = _centre_and_scale(
        widened_x, other_axes, element_count, cast_option("epsilon", epsilon, widened_x)
    )
    normalized_x = multiply(centred_x, inverse_deviation)
    offset_gradient, scale_gradient = (
        sum_(y_cotangent, other_axes, True),
        sum_(multiply(y_cotangent, normalized_x), other_axes, True),
    )
    mean_part = add(
        multiply(normalized_x, divide(scale_gradient, element_count)), divide(offset_gradient, element_count)
    )
    scaled_factor = (
        inverse_deviation if scale is None else multiply(inverse_deviation, reshape(scale, inverse_deviation.shape))
    )
    x_gradient = multiply(subtract(y_cotangent, mean_part), scaled_factor)
    epsilon_gradient = multiply(multiply(multiply(scale_gradient, scaled_factor), inverse_deviation), -0.5)
    flat_gradients = [reshape(t, (-1,)) for t in (offset_gradient, scale_gradient)]
    return [x_gradient, None, *flat_gradients, epsilon_gradient]


RULES: dict[str, Any] = {
    "layer_normalization": _layer_gradients,
    "batch_normalization_training": _batch_gradients,
}
