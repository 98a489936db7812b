"""Losses of predictions against targets.

Dtype: integers become the default float.
"""

from __future__ import annotations

import math
from typing import Any

from emberharmony.core.dispatch import op
from emberharmony.core.errors import ArgumentError
from emberharmony.core.numeric.promotion import as_inexact
from emberharmony.core.options import is_number
from emberharmony.core.types import Tensor, TensorLike, Varying
from emberharmony.ops.activation import log_softmax, softplus
from emberharmony.ops.comparison import greater_equal, less, logical_and
from emberharmony.ops.dtype import option, result_type
from emberharmony.ops.elementary import log, log10
from emberharmony.ops.indexing import take_along_axis, where
from emberharmony.ops.math import add, clip, divide, multiply, negative, square, subtract
from emberharmony.ops.normalization import inexact, widened
from emberharmony.ops.reduction import mean, sum
from emberharmony.ops.shape import expand_dims, squeeze
from emberharmony.ops.tensor import cast

EPSILON = 1e-7
"""Probabilities are clipped to this distance from 0 and 1."""


@op
def binary_crossentropy(target: TensorLike, output: TensorLike, from_logits: bool = False) -> Tensor:
    """Returns `-(t log p + (1 - t) log(1 - p))`, element by element.

    Args:
        target: t, from 0 to 1.
        output: the probability p, which is clipped to [1e-7, 1 - 1e-7], or its logit.
        from_logits: whether `output` is the logit.
    """
    if from_logits:
        return subtract(softplus(output), multiply(target, inexact(output)))
    output = clip(output, EPSILON, 1.0 - EPSILON)
    lost = multiply(subtract(1.0, target), log(subtract(1.0, output)))
    return negative(add(multiply(target, log(output)), lost))


@op
def categorical_crossentropy(
    target: TensorLike, output: TensorLike, from_logits: bool = False, axis: int = -1
) -> Tensor:
    """Returns `-sum(t log p)` over the classes along an axis.

    Args:
        target: the probability t of each class.
        output: probabilities, which are normalised to sum 1 and clipped to [1e-7, 1 - 1e-7], or logits.
        from_logits: whether `output` holds logits.
    """
    if not from_logits:
        output = divide(output, sum(output, axis, True))
        return negative(sum(multiply(target, log(clip(output, EPSILON, 1.0 - EPSILON))), axis))
    return negative(sum(multiply(target, log_softmax(output, axis)), axis))


@op
def sparse_categorical_crossentropy(
    target: TensorLike, output: TensorLike, from_logits: bool = False, axis: int = -1
) -> Tensor:
    """Returns `-log p` of the class that each integer in `target` names; 0 if it is not a class.

    Args:
        target: the index of the class; its shape is that of `output` without `axis`.
        output: see `categorical_crossentropy`.
        from_logits: whether `output` holds logits.

    Example:
        >>> ops.sparse_categorical_crossentropy([1, -1], [[0.0, 1.0], [0.5, 0.5]]).tolist()[1]
        0.0
    """
    known = logical_and(greater_equal(target, 0), less(target, output.shape[axis]))
    place = expand_dims(cast(where(known, target, 0), "int64"), axis)
    if from_logits:
        lost = negative(take_along_axis(log_softmax(output, axis), place, axis))
    else:
        share = take_along_axis(divide(output, sum(output, axis, True)), place, axis)
        lost = negative(log(clip(share, EPSILON, 1.0 - EPSILON)))
    return where(known, squeeze(lost, axis), 0)


@op
def psnr(x1: TensorLike, x2: TensorLike, max_val: Varying) -> Tensor:
    """Returns the peak signal-to-noise ratio of two tensors in decibels; infinite if they are equal.

    Args:
        max_val: the largest possible difference between two elements, for example 255 for 8-bit images.

    Raises:
        ArgumentError: if `max_val` is a number that is not positive; the values of a tensor are not read.

    Example:
        >>> ops.psnr([0.0, 0.0], [1.0, -1.0], 10.0).tolist()
        20.0
    """
    error = mean(square(subtract(widened(x1), widened(x2))))
    limit = option("max_val", max_val, error)
    if is_number(limit):
        if not limit > 0:
            raise ArgumentError(f"max_val is a positive number, not {max_val!r:.60}")
        peak: Any = 20.0 * math.log10(limit)
    else:
        peak = multiply(log10(limit), 20.0)
    ratio = subtract(peak, multiply(log10(error), 10.0))
    return cast(ratio, as_inexact(result_type(x1, x2)))
