"""Activations.

Dtype: integers take the default float. Shape: activations keep it.
"""

from __future__ import annotations

from emberharmony.backend.promote import normalized
from emberharmony.core.dispatch import alias, op
from emberharmony.core.options import number
from emberharmony.core.promotion import as_inexact
from emberharmony.core.types import Axis, Tensor, TensorLike
from emberharmony.ops.comparison import greater, less, less_equal
from emberharmony.ops.creation import arange
from emberharmony.ops.device import get_device
from emberharmony.ops.dtype import dtype
from emberharmony.ops.elementary import erf, exp, expm1, log, log1p, tanh
from emberharmony.ops.indexing import where
from emberharmony.ops.math import (
    absolute,
    add,
    clip,
    divide,
    maximum,
    minimum,
    multiply,
    negative,
    sqrt,
    square,
    subtract,
)
from emberharmony.ops.reduction import cumsum, max, sum
from emberharmony.ops.shape import moveaxis, split
from emberharmony.ops.sorting import sort
from emberharmony.ops.tensor import cast


@op
def relu(x: TensorLike) -> Tensor:
    """Returns `max(x, 0)`.

    Example:
        >>> ops.relu([-1.0, 2.0]).tolist()
        [0.0, 2.0]
    """
    return maximum(x, 0)


@op
def relu6(x: TensorLike) -> Tensor:
    """Returns `min(max(x, 0), 6)`.

    Example:
        >>> ops.relu6([-1.0, 8.0]).tolist()
        [0.0, 6.0]
    """
    return clip(relu(x), None, 6)


@op
def leaky_relu(x: TensorLike, negative_slope: float = 0.2) -> Tensor:
    """Returns `x` where it is positive, else `negative_slope * x`.

    Example:
        >>> ops.leaky_relu([-1.0, 2.0], 0.5).tolist()
        [-0.5, 2.0]
    """
    return where(greater(x, 0), add(x, 0.0), multiply(x, number("negative_slope", negative_slope)))


@op
def elu(x: TensorLike, alpha: float = 1.0) -> Tensor:
    """Returns `x` where it is positive, else `alpha * (exp(x) - 1)`.

    Example:
        >>> ops.elu([0.0, 2.0]).tolist()
        [0.0, 2.0]
    """
    above = greater(x, 0)
    return where(above, add(x, 0.0), multiply(expm1(where(above, 0, x)), number("alpha", alpha)))


@op
def selu(x: TensorLike) -> Tensor:
    """Returns the scaled `elu` that keeps mean and variance.

    Source: Klambauer et al., Self-normalizing neural networks, 2017.
    """
    return multiply(elu(x, 1.6732632423543772), 1.0507009873554805)


@op
def celu(x: TensorLike, alpha: float = 1.0) -> Tensor:
    """Returns `max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0)`.

    Example:
        >>> ops.celu([0.0, 2.0]).tolist()
        [0.0, 2.0]
    """
    factor = number("alpha", alpha)
    return add(maximum(x, 0.0), multiply(expm1(minimum(divide(x, factor), 0.0)), factor))


@op
def sigmoid(x: TensorLike) -> Tensor:
    """Returns `1 / (1 + exp(-x))`, without overflow.

    Example:
        >>> ops.sigmoid([0.0]).tolist()
        [0.5]
    """
    small = exp(negative(absolute(add(x, 0.0))))  # of a float: unsigned integers have no negative
    return divide(where(less(x, 0), small, 1.0), add(small, 1.0))


@op
def log_sigmoid(x: TensorLike) -> Tensor:
    """Returns `log(sigmoid(x))`, exact where that is small."""
    return subtract(minimum(x, 0.0), log1p(exp(negative(absolute(add(x, 0.0))))))


@op
def softplus(x: TensorLike) -> Tensor:
    """Returns `log(1 + exp(x))`, without overflow."""
    return add(maximum(x, 0.0), log1p(exp(negative(absolute(add(x, 0.0))))))


@op
def softsign(x: TensorLike) -> Tensor:
    """Returns `x / (1 + abs(x))`.

    Example:
        >>> ops.softsign([1.0]).tolist()
        [0.5]
    """
    x = _inexact(x)
    return divide(x, add(absolute(x), 1.0))


@op
def silu(x: TensorLike) -> Tensor:
    """Returns `x * sigmoid(x)`.

    Example:
        >>> ops.silu([0.0]).tolist()
        [0.0]
    """
    return multiply(x, sigmoid(x))


swish = alias("swish", silu)


@op
def gelu(x: TensorLike, approximate: bool = True) -> Tensor:
    """Returns `x` times the normal distribution function of `x`; by default through `tanh`.

    Source: Hendrycks and Gimpel, Gaussian error linear units, 2016.

    Example:
        >>> ops.gelu([0.0]).tolist()
        [0.0]
    """
    x = _inexact(x)
    if approximate:
        inner = multiply(add(x, multiply(multiply(square(x), x), 0.044715)), 0.7978845608028654)
        return multiply(multiply(x, 0.5), add(tanh(inner), 1.0))
    return multiply(multiply(x, 0.5), add(erf(multiply(x, 0.7071067811865476)), 1.0))


@op
def hard_sigmoid(x: TensorLike) -> Tensor:
    """Returns `clip(x / 6 + 1 / 2, 0, 1)`.

    Example:
        >>> ops.hard_sigmoid([0.0]).tolist()
        [0.5]
    """
    return clip(add(divide(x, 6.0), 0.5), 0.0, 1.0)


@op
def hard_silu(x: TensorLike) -> Tensor:
    """Returns `x * hard_sigmoid(x)`.

    Example:
        >>> ops.hard_silu([3.0]).tolist()
        [3.0]
    """
    return multiply(x, hard_sigmoid(x))


hard_swish = alias("hard_swish", hard_silu)


@op
def hard_tanh(x: TensorLike) -> Tensor:
    """Returns `clip(x, -1, 1)`.

    Example:
        >>> ops.hard_tanh([-2.0, 0.5]).tolist()
        [-1.0, 0.5]
    """
    return clip(x, -1, 1)


@op
def hard_shrink(x: TensorLike, threshold: float = 0.5) -> Tensor:
    """Returns `x`, but 0 where its magnitude is at most the threshold.

    Example:
        >>> ops.hard_shrink([0.25, 2.0]).tolist()
        [0.0, 2.0]
    """
    return where(less_equal(absolute(x), threshold), 0, x)


@op
def soft_shrink(x: TensorLike, threshold: float = 0.5) -> Tensor:
    """Returns `x` moved towards 0 by the threshold, but not beyond.

    Example:
        >>> ops.soft_shrink([0.25, 2.0]).tolist()
        [0.0, 1.5]
    """
    bound = number("threshold", threshold)
    return subtract(x, clip(x, -bound, bound))


@op
def tanh_shrink(x: TensorLike) -> Tensor:
    """Returns `x - tanh(x)`.

    Example:
        >>> ops.tanh_shrink([0.0]).tolist()
        [0.0]
    """
    return subtract(x, tanh(x))


@op
def threshold(x: TensorLike, threshold: float, default_value: float) -> Tensor:
    """Returns `x` where it is above the threshold, else the default value.

    Example:
        >>> ops.threshold([1.0, 3.0], 2.0, 0.0).tolist()
        [0.0, 3.0]
    """
    return where(less_equal(x, threshold), default_value, x)


@op
def squareplus(x: TensorLike, b: float = 4) -> Tensor:
    """Returns `(x + sqrt(x**2 + b)) / 2`.

    Example:
        >>> ops.squareplus([0.0]).tolist()
        [1.0]
    """
    x = _inexact(x)
    return multiply(add(x, sqrt(add(square(x), number("b", b)))), 0.5)


@op
def glu(x: TensorLike, axis: int = -1) -> Tensor:
    """Returns the first half of an axis times the sigmoid of the second.

    Raises: ShapeError if the axis has an odd length.
    """
    first, second = split(x, 2, axis)
    return multiply(first, sigmoid(second))


@op
def softmax(x: TensorLike, axis: Axis = -1) -> Tensor:
    """Returns `exp(x) / sum(exp(x))` over axes, without overflow.

    Example:
        >>> ops.softmax([0.0, 0.0]).tolist()
        [0.5, 0.5]
    """
    own, floating = dtype(x), as_inexact(dtype(x))
    x = x if own == floating else cast(x, floating)  # before the difference, which leaves the range of an integer
    largest = sum(x, axis, True) if 0 in x.shape else max(x, axis, True)  # of no elements there is no largest
    terms = exp(subtract(x, largest))
    return divide(terms, sum(terms, axis, True))


@op
def log_softmax(x: TensorLike, axis: Axis = -1) -> Tensor:
    """Returns `log(softmax(x))` over axes, exact where that is small.

    Example:
        >>> ops.log_softmax([0.0]).tolist()
        [0.0]
    """
    own, kind = dtype(x), as_inexact(dtype(x))
    wide = "float32" if kind.bits == 16 else kind
    x = x if own == wide else cast(x, wide)
    if 0 in x.shape:
        normalized(axis, len(x.shape))
    else:
        # The largest is subtracted first: added to the logarithm of the sum, it would cost that its digits.
        shifted = subtract(x, max(x, axis, True))
        x = subtract(shifted, log(sum(exp(shifted), axis, True)))
    return x if kind == wide else cast(x, kind)


@op
def sparse_plus(x: TensorLike) -> Tensor:
    """Returns 0 up to -1, `x` from 1 on, and `(x + 1)**2 / 4` between.

    Example:
        >>> ops.sparse_plus([-2.0, 0.0, 3.0]).tolist()
        [0.0, 0.25, 3.0]
    """
    x = add(x, 0.0)
    inner = square(multiply(add(clip(x, -1, 1), 1.0), 0.5))
    return where(greater(x, 1), x, inner)


@op
def sparse_sigmoid(x: TensorLike) -> Tensor:
    """Returns `clip((x + 1) / 2, 0, 1)`, the derivative of `sparse_plus`.

    Example:
        >>> ops.sparse_sigmoid([-2.0, 0.0, 3.0]).tolist()
        [0.0, 0.5, 1.0]
    """
    return clip(multiply(add(x, 1.0), 0.5), 0.0, 1.0)


@op
def sparsemax(x: TensorLike, axis: int = -1) -> Tensor:
    """Returns the nearest probabilities to `x` along an axis, many of which are 0.

    Source: Martins and Astudillo, From softmax to sparsemax, 2016, algorithm 1.

    Example:
        >>> ops.sparsemax([2.0, 1.5, -1.0]).tolist()
        [0.75, 0.25, 0.0]
    """
    moved = moveaxis(add(x, 0.0), axis, -1)
    # Relative to the largest, so that large values cost no digits.
    shifted = subtract(moved, max(moved, -1, True))
    ordered = negative(sort(negative(shifted), -1))
    ranks = arange(1, moved.shape[-1] + 1, dtype=dtype(moved), device=get_device(moved))
    supported = greater(add(multiply(ranks, ordered), 1.0), cumsum(ordered, -1))
    count = sum(cast(supported, dtype(moved)), -1, True)
    excess = divide(subtract(sum(where(supported, ordered, 0.0), -1, True), 1.0), count)
    return moveaxis(maximum(subtract(shifted, excess), 0.0), -1, axis)


def _inexact(x: Tensor) -> Tensor:
    """Returns integers, whose squares and sizes would wrap, in the default float; all else as it is."""
    return cast(x, as_inexact(dtype(x)))
