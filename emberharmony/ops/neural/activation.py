"""Activation functions.

Shape: that of the input. Dtype: integers become the default float.
"""

from __future__ import annotations

from emberharmony.backend.promote import nonnegative_axes
from emberharmony.core.dispatch import alias, op
from emberharmony.core.errors import ArgumentError
from emberharmony.core.numeric.promotion import as_inexact
from emberharmony.core.options import is_number
from emberharmony.core.types import Axis, Tensor, TensorLike, Varying
from emberharmony.ops.arrays.creation import arange
from emberharmony.ops.arrays.indexing import where
from emberharmony.ops.arrays.shape import moveaxis, split
from emberharmony.ops.device import get_device
from emberharmony.ops.dtype import cast_option, dtype
from emberharmony.ops.elementwise.elementary import erf, exp, expm1, log, log1p, tanh
from emberharmony.ops.flow.transforms import stop_gradient
from emberharmony.ops.logic.comparison import greater, less, less_equal
from emberharmony.ops.math import (
    absolute,
    add,
    clip,
    divide,
    hypot,
    maximum,
    minimum,
    multiply,
    negative,
    sqrt,
    square,
    subtract,
)
from emberharmony.ops.reductions.reduction import cumsum, max, sum
from emberharmony.ops.reductions.sorting import sort
from emberharmony.ops.tensor import cast


@op(elementwise=True, finite="yes")
def relu(x: TensorLike) -> Tensor:
    """Returns `max(x, 0)`.

    Args:
        x: a tensor of any shape, not complex; integers stay integers.

    See also: `nn.ReLU`, the layer; `leaky_relu`, with a slope; `softplus`, smooth.

    Example:
        >>> ops.relu([-1.0, 2.0]).tolist()
        [0.0, 2.0]
    """
    return maximum(x, 0)


@op(elementwise=True, finite="yes")
def relu6(x: TensorLike) -> Tensor:
    """Returns `min(max(x, 0), 6)`.

    Args:
        x: a tensor of any shape, not complex; integers stay integers.

    See also: `nn.ReLU6`, the layer; `relu`, without a limit.

    Example:
        >>> ops.relu6([-1.0, 8.0]).tolist()
        [0.0, 6.0]
    """
    return clip(relu(x), None, 6)


@op(elementwise=True)
def leaky_relu(x: TensorLike, negative_slope: Varying = 0.2) -> Tensor:
    """Returns `x` where it is positive, else `negative_slope * x`.

    Args:
        negative_slope: the factor where `x` is not positive: a number, or a tensor that broadcasts.

    See also: `nn.LeakyReLU`, the layer; `relu`, without a slope.

    Example:
        >>> ops.leaky_relu([-1.0, 2.0], 0.5).tolist()
        [-0.5, 2.0]
    """
    return where(greater(x, 0), add(x, 0.0), multiply(x, cast_option("negative_slope", negative_slope, x)))


@op(elementwise=True)
def elu(x: TensorLike, alpha: Varying = 1.0) -> Tensor:
    """Returns `x` where it is positive, else `alpha * (exp(x) - 1)`.

    Args:
        alpha: minus the limit at minus infinity: a number, or a tensor that broadcasts.

    See also: `nn.ELU`, the layer; `celu`, with a continuous derivative; `selu`, self-normalizing.

    Example:
        >>> ops.elu([0.0, 2.0]).tolist()
        [0.0, 2.0]
    """
    is_positive = greater(x, 0)
    return where(is_positive, add(x, 0.0), multiply(expm1(where(is_positive, 0, x)), cast_option("alpha", alpha, x)))


@op(elementwise=True, takes="real", gives="float")
def selu(x: TensorLike) -> Tensor:
    """Returns the `elu` scaled so that mean 0 and variance 1 are preserved from layer to layer.

    See also: `nn.SELU`, the layer; `elu`, unscaled.

    Source: Klambauer et al., Self-normalizing neural networks, 2017.
    """
    return multiply(elu(x, 1.6732632423543772), 1.0507009873554805)


@op(elementwise=True)
def celu(x: TensorLike, alpha: Varying = 1.0) -> Tensor:
    """Returns `max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0)`.

    Args:
        alpha: minus the limit at minus infinity: a number that is not 0, or a tensor that broadcasts.

    See also: `nn.CELU`, the layer; `elu`, by another scale.

    Example:
        >>> ops.celu([0.0, 2.0]).tolist()
        [0.0, 2.0]
    """
    alpha_option = cast_option("alpha", alpha, x)
    return add(maximum(x, 0.0), multiply(expm1(minimum(divide(x, alpha_option), 0.0)), alpha_option))


@op(elementwise=True, finite="yes")
def sigmoid(x: TensorLike) -> Tensor:
    """Returns `1 / (1 + exp(-x))` without overflow.

    See also: `logit`, the inverse; `nn.Sigmoid`, the layer; `log_sigmoid`, without underflow; `hard_sigmoid`, of
    straight lines.

    Example:
        >>> ops.sigmoid([0.0]).tolist()
        [0.5]
    """
    exponential = exp(negative(absolute(add(x, 0.0))))  # + 0.0 makes it a float first: negating unsigned integers wraps
    return divide(where(less(x, 0), exponential, 1.0), add(exponential, 1.0))


@op(elementwise=True, takes="real", gives="float", autocast="float32")
def log_sigmoid(x: TensorLike) -> Tensor:
    """Returns `log(sigmoid(x))`, accurate where the sigmoid is close to 0.

    See also: `nn.LogSigmoid`, the layer; `sigmoid`, itself; `softplus`, the negative.
    """
    return subtract(minimum(x, 0.0), log1p(exp(negative(absolute(add(x, 0.0))))))


log_expit = alias("log_expit", log_sigmoid)


@op(elementwise=True, autocast="float32")
def softplus(x: TensorLike) -> Tensor:
    """Returns `log(1 + exp(x))` without overflow.

    See also: `nn.Softplus`, the layer; `relu`, with a kink; `squareplus`, by a root.
    """
    return add(maximum(x, 0.0), log1p(exp(negative(absolute(add(x, 0.0))))))


@op(elementwise=True)
def softsign(x: TensorLike) -> Tensor:
    """Returns `x / (1 + abs(x))`.

    Args:
        x: a tensor of any shape and dtype; integers become the default float.

    See also: `nn.Softsign`, the layer; `tanh`, with exponential tails.

    Example:
        >>> ops.softsign([1.0]).tolist()
        [0.5]
    """
    x = _as_inexact_tensor(x)
    return divide(x, add(absolute(x), 1.0))


@op(elementwise=True)
def silu(x: TensorLike) -> Tensor:
    """Returns `x * sigmoid(x)`.

    See also: `nn.SiLU`, the layer; `gelu`, with the normal distribution; `hard_silu`, of straight lines.

    Example:
        >>> ops.silu([0.0]).tolist()
        [0.0]
    """
    return multiply(x, sigmoid(x))


swish = alias("swish", silu)


@op(elementwise=True)
def gelu(x: TensorLike, approximate: bool = True) -> Tensor:
    """Returns `x` times the cumulative distribution function of the standard normal distribution at `x`.

    Args:
        x: a tensor of any shape and dtype; integers become the default float.
        approximate: whether to approximate the distribution function by `tanh`; False computes it by `erf`.

    See also: `nn.GELU`, the layer; `silu`, with the sigmoid.

    Example:
        >>> ops.gelu([0.0]).tolist()
        [0.0]

    Source: Hendrycks and Gimpel, Gaussian error linear units, 2016.
    """
    x = _as_inexact_tensor(x)
    if approximate:
        tanh_argument = multiply(add(x, multiply(multiply(square(x), x), 0.044715)), 0.7978845608028654)
        return multiply(multiply(x, 0.5), add(tanh(tanh_argument), 1.0))
    return multiply(multiply(x, 0.5), add(erf(multiply(x, 0.7071067811865476)), 1.0))


@op(elementwise=True, finite="yes")
def hard_sigmoid(x: TensorLike) -> Tensor:
    """Returns `clip(x / 6 + 1 / 2, 0, 1)`.

    See also: `nn.Hardsigmoid`, the layer; `sigmoid`, smooth.

    Example:
        >>> ops.hard_sigmoid([0.0]).tolist()
        [0.5]
    """
    return clip(add(divide(x, 6.0), 0.5), 0.0, 1.0)


@op(elementwise=True)
def hard_silu(x: TensorLike) -> Tensor:
    """Returns `x * hard_sigmoid(x)`.

    See also: `nn.Hardswish`, the layer; `silu`, smooth.

    Example:
        >>> ops.hard_silu([3.0]).tolist()
        [3.0]
    """
    return multiply(x, hard_sigmoid(x))


hard_swish = alias("hard_swish", hard_silu)


@op(elementwise=True, finite="yes")
def hard_tanh(x: TensorLike) -> Tensor:
    """Returns `clip(x, -1, 1)`.

    Args:
        x: a tensor of any shape, not complex; integers stay integers.

    See also: `nn.Hardtanh`, the layer; `tanh`, smooth; `clip`, with any limits.

    Example:
        >>> ops.hard_tanh([-2.0, 0.5]).tolist()
        [-1.0, 0.5]
    """
    return clip(x, -1, 1)


@op(elementwise=True, finite="yes")
def hard_shrink(x: TensorLike, threshold: Varying = 0.5) -> Tensor:
    """Returns `x`, but 0 where `abs(x)` is at most the threshold.

    Args:
        x: a tensor of any shape and dtype; integers stay integers.
        threshold: the largest magnitude that becomes 0: a number, or a tensor that broadcasts.

    See also: `nn.Hardshrink`, the layer; `soft_shrink`, continuous.

    Example:
        >>> ops.hard_shrink([0.25, 2.0]).tolist()
        [0.0, 2.0]
    """
    return where(less_equal(absolute(x), threshold), 0, x)


@op(elementwise=True, finite="yes")
def soft_shrink(x: TensorLike, threshold: Varying = 0.5) -> Tensor:
    """Returns `x` moved towards 0 by the threshold; 0 where `abs(x)` is at most the threshold.

    Args:
        threshold: by how much magnitudes shrink: a number, or a tensor that broadcasts.

    See also: `nn.Softshrink`, the layer; `hard_shrink`, without a shift.

    Example:
        >>> ops.soft_shrink([0.25, 2.0]).tolist()
        [0.0, 1.5]
    """
    threshold_bound = cast_option("threshold", threshold, x)
    if threshold_bound.__class__ is float:
        return subtract(x, clip(x, -threshold_bound, threshold_bound))
    x = _as_inexact_tensor(x)
    return subtract(x, clip(x, negative(threshold_bound), threshold_bound))


@op(elementwise=True)
def tanh_shrink(x: TensorLike) -> Tensor:
    """Returns `x - tanh(x)`.

    Args:
        x: a tensor of any shape and dtype; integers become the default float.

    See also: `nn.Tanhshrink`, the layer; `tanh`, by which it shrinks.

    Example:
        >>> ops.tanh_shrink([0.0]).tolist()
        [0.0]
    """
    return subtract(x, tanh(x))


@op(elementwise=True, finite="yes")
def threshold(x: TensorLike, threshold: Varying, default_value: Varying) -> Tensor:
    """Returns `x` where it is above the threshold, else the default value.

    Args:
        x: a tensor of any shape, not complex; integers stay integers.
        threshold: what `x` must exceed to stay: a number, or a tensor that broadcasts.
        default_value: the result elsewhere: a number, or a tensor that broadcasts.

    See also: `nn.Threshold`, the layer; `where`, by any condition.

    Example:
        >>> ops.threshold([1.0, 3.0], 2.0, 0.0).tolist()
        [0.0, 3.0]
    """
    default_option = default_value if is_number(default_value) else cast_option("default_value", default_value, x)
    return where(less_equal(x, threshold), default_option, x)


@op(elementwise=True)
def squareplus(x: TensorLike, b: Varying = 4) -> Tensor:
    """Returns `(x + sqrt(x**2 + b)) / 2` without overflow.

    Args:
        x: a tensor of any shape and dtype; integers become the default float.
        b: how smooth the kink is; 0 gives `relu`. A number, or a tensor that broadcasts.

    Raises:
        ArgumentError: if `b` is a negative number; the values of a tensor are not read.

    See also: `softplus`, by an exponential; `relu`, with a kink.

    Example:
        >>> ops.squareplus([0.0]).tolist()
        [1.0]
    """
    b = cast_option("b", b, x)
    x = _as_inexact_tensor(x)
    half_x = multiply(x, 0.5)
    if b.__class__ is not float:
        # Not `hypot(half, sqrt(b) / 2)`, whose derivative by `b` is NaN at 0. The scale prevents overflow.
        scale = stop_gradient(maximum(absolute(half_x), 1.0))
        scaled_quarter_b = divide(divide(b, scale), multiply(scale, 4.0))
        return add(half_x, multiply(sqrt(add(square(divide(half_x, scale)), scaled_quarter_b)), scale))
    if b < 0:
        raise ArgumentError(f"expected b of 0 or more, got {b!r}: the square root would be undefined near x = 0")
    if dtype(half_x).is_complex:
        return add(half_x, sqrt(add(square(half_x), float(b) / 4)))
    return add(half_x, hypot(half_x, float(b) ** 0.5 / 2))


@op
def glu(x: TensorLike, axis: int = -1) -> Tensor:
    """Returns the first half of an axis times the sigmoid of the second half.

    Args:
        axis: the axis that is halved, of even length; by default the last.

    Raises:
        ShapeError: if the axis has an odd length.

    See also: `nn.GLU`, the layer; `sigmoid`, of the gate.
    """
    first_half, second_half = split(x, 2, axis)
    return multiply(first_half, sigmoid(second_half))


@op(autocast="float32")
def softmax(x: TensorLike, axis: Axis = -1) -> Tensor:
    """Returns `exp(x) / sum(exp(x))` over axes, without overflow.

    See also: `nn.Softmax`, the layer; `log_softmax`, without underflow; `sparsemax`, with zeros.

    Example:
        >>> ops.softmax([0.0, 0.0]).tolist()
        [0.5, 0.5]
    """
    x_dtype, float_dtype = dtype(x), as_inexact(dtype(x))
    x = (
        x if x_dtype == float_dtype else cast(x, float_dtype)
    )  # cast first, because the difference of two integers can wrap
    # The maximum of an empty tensor is undefined. The derivative by it is 0, which a sum of many terms would only miss.
    largest_x = sum(x, axis, True) if 0 in x.shape else stop_gradient(max(x, axis, True))
    exponentials = exp(subtract(x, largest_x))
    return divide(exponentials, sum(exponentials, axis, True))


@op(autocast="float32")
def log_softmax(x: TensorLike, axis: Axis = -1) -> Tensor:
    """Returns `log(softmax(x))` over axes, accurate where the softmax is close to 0.

    See also: `nn.LogSoftmax`, the layer; `softmax`, itself; `cross_entropy`, with class ids.

    Example:
        >>> ops.log_softmax([0.0]).tolist()
        [0.0]
    """
    x_dtype, float_dtype = dtype(x), as_inexact(dtype(x))
    wide_dtype = "float32" if float_dtype.bits == 16 else float_dtype
    x = x if x_dtype == wide_dtype else cast(x, wide_dtype)
    if 0 in x.shape:
        nonnegative_axes(axis, len(x.shape))
    else:
        # Subtract the maximum first: adding it to the small logarithm of the sum would cost digits.
        shifted_x = subtract(x, stop_gradient(max(x, axis, True)))
        x = subtract(shifted_x, log(sum(exp(shifted_x), axis, True)))
    return x if float_dtype == wide_dtype else cast(x, float_dtype)


@op(elementwise=True)
def sparse_plus(x: TensorLike) -> Tensor:
    """Returns 0 up to -1, `x` from 1 on, and `(x + 1)**2 / 4` between them.

    See also: `sparse_sigmoid`, the derivative; `softplus`, smooth everywhere.

    Example:
        >>> ops.sparse_plus([-2.0, 0.0, 3.0]).tolist()
        [0.0, 0.25, 3.0]
    """
    x = add(x, 0.0)
    middle_value = square(multiply(add(clip(x, -1, 1), 1.0), 0.5))
    return where(greater(x, 1), x, middle_value)


@op(elementwise=True)
def sparse_sigmoid(x: TensorLike) -> Tensor:
    """Returns `clip((x + 1) / 2, 0, 1)`, the derivative of `sparse_plus`.

    See also: `sparse_plus`, the integral; `hard_sigmoid`, of another width.

    Example:
        >>> ops.sparse_sigmoid([-2.0, 0.0, 3.0]).tolist()
        [0.0, 0.5, 1.0]
    """
    return clip(multiply(add(x, 1.0), 0.5), 0.0, 1.0)


@op
def sparsemax(x: TensorLike, axis: int = -1) -> Tensor:
    """Returns the probabilities along an axis that are nearest to `x`; many of them are 0.

    See also: `softmax`, without zeros.

    Example:
        >>> ops.sparsemax([2.0, 1.5, -1.0]).tolist()
        [0.75, 0.25, 0.0]

    Source: Martins and Astudillo, From softmax to sparsemax, 2016, algorithm 1.
    """
    x_axis_last = moveaxis(add(x, 0.0), axis, -1)
    # Subtract the maximum, so that large values do not lose digits.
    shifted_x = subtract(x_axis_last, max(x_axis_last, -1, True))
    descending_x = negative(sort(negative(shifted_x), -1))
    ranks = arange(1, x_axis_last.shape[-1] + 1, dtype=dtype(x_axis_last), device=get_device(x_axis_last))
    is_supported = greater(add(multiply(ranks, descending_x), 1.0), cumsum(descending_x, -1))
    support_size = sum(cast(is_supported, dtype(x_axis_last)), -1, True)
    support_threshold = divide(subtract(sum(where(is_supported, descending_x, 0.0), -1, True), 1.0), support_size)
    return moveaxis(maximum(subtract(shifted_x, support_threshold), 0.0), -1, axis)


def _as_inexact_tensor(x: Tensor) -> Tensor:
    """Returns integers in the default float, because their squares and absolute values would wrap.

    Other dtypes are returned unchanged.
    """
    x_dtype = dtype(x)
    return x if x_dtype.is_floating or x_dtype.is_complex else cast(x, as_inexact(x_dtype))
