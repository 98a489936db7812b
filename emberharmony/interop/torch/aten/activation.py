"""Activation functions of ATen, PyTorch's library of operators, computed by ops."""

from typing import Any

from emberharmony import ops
from emberharmony.interop.torch.aten.elementwise import scale
from emberharmony.interop.torch.aten.table import aten

aten("log_sigmoid")(ops.log_sigmoid)
aten("relu")(ops.relu)
aten("selu")(ops.selu)
aten("sigmoid", "special_expit")(ops.sigmoid)
aten("silu")(ops.silu)
aten("softsign")(ops.softsign)
aten("tanhshrink")(ops.tanh_shrink)


@aten("hardtanh")
def hardtanh(x: Any, min_val: float = -1, max_val: float = 1) -> Any:
    """Returns the elements clipped to bounds; at and beyond a bound the derivative is 0, unlike that of `clamp`."""
    return ops.where(ops.less_equal(x, min_val), min_val, ops.where(ops.greater_equal(x, max_val), max_val, x))


aten("relu6")(lambda x: hardtanh(x, 0, 6))


@aten("hardsigmoid")
def hardsigmoid(x: Any) -> Any:
    """Returns `x / 6 + 1 / 2` clipped to the interval from 0 to 1."""
    return ops.divide(hardtanh(ops.add(x, 3), 0, 6), 6)


@aten("hardswish")
def hardswish(x: Any) -> Any:
    """Returns `x * hardsigmoid(x)`, with the derivatives of the outer linear parts at -3 and 3."""
    middle_value = ops.multiply(x, ops.divide(ops.add(x, 3), 6))
    return ops.where(ops.less_equal(x, -3), 0, ops.where(ops.greater_equal(x, 3), x, middle_value))


@aten("hardshrink")
def hardshrink(x: Any, lambd: float = 0.5) -> Any:
    """Returns the elements with those from `-lambd` to `lambd` set to 0."""
    is_inside = ops.logical_and(ops.greater_equal(x, -lambd), ops.less_equal(x, lambd))
    return ops.where(is_inside, 0, x)


@aten("softshrink")
def softshrink(x: Any, lambd: float = 0.5) -> Any:
    """Returns the elements moved towards 0 by the distance `lambd`, and 0 for smaller ones."""
    return ops.where(
        ops.greater(x, lambd), ops.subtract(x, lambd), ops.where(ops.less(x, -lambd), ops.add(x, lambd), 0)
    )


@aten("threshold")
def threshold(x: Any, threshold: float, value: float) -> Any:
    """Returns the elements above a threshold, and a fixed value in place of the others."""
    return ops.where(ops.less_equal(x, threshold), value, x)


@aten("gelu")
def gelu(x: Any, approximate: str = "none") -> Any:
    """Returns `x` times the standard normal distribution function at `x`."""
    return ops.gelu(x, approximate == "tanh")


@aten("leaky_relu")
def leaky_relu(x: Any, negative_slope: float = 0.01) -> Any:
    """Returns the elements, of which negative ones are multiplied by `negative_slope`."""
    return ops.leaky_relu(x, negative_slope)


@aten("elu")
def elu(x: Any, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Any:
    """Returns the elements, with `alpha * (exp(x) - 1)` in place of negative ones."""
    if scale == input_scale == 1:
        return ops.elu(x, alpha)
    negative_value = ops.multiply(ops.expm1(ops.multiply(ops.minimum(x, 0), input_scale)), alpha)
    return ops.multiply(ops.where(ops.greater(x, 0), x, negative_value), scale)


@aten("celu")
def celu(x: Any, alpha: float = 1) -> Any:
    """Returns the elements, with `alpha * (exp(x / alpha) - 1)` in place of negative ones."""
    return ops.celu(x, alpha)


@aten("softplus")
def softplus(x: Any, beta: float = 1, threshold: float = 20) -> Any:
    """Returns `log(1 + exp(beta * x)) / beta`, and `x` itself where `beta * x` exceeds the threshold."""
    scaled_x = scale(x, beta)
    softplus_value = ops.softplus(scaled_x)
    return ops.where(
        ops.greater(scaled_x, threshold), x, softplus_value if beta == 1 else ops.divide(softplus_value, beta)
    )


@aten("mish")
def mish(x: Any) -> Any:
    """Returns `x * tanh(log(1 + exp(x)))`."""
    return ops.multiply(x, ops.tanh(ops.softplus(x)))


@aten("glu")
def glu(x: Any, dim: int = -1) -> Any:
    """Returns the first half of the elements along an axis times the sigmoid of the second half."""
    return ops.glu(x, dim)


@aten("prelu", "_prelu_kernel")
def prelu(x: Any, weight: Any) -> Any:
    """Returns the elements, of which negative ones are multiplied by learned weights, one for each channel."""
    if len(weight.shape) == 1 and len(x.shape) > 1:
        weight = ops.reshape(weight, (-1,) + (1,) * (len(x.shape) - 2))
    elif len(weight.shape) and not len(x.shape):
        weight = ops.reshape(weight, ())
    return ops.where(ops.greater(x, 0), x, ops.multiply(x, weight))


@aten("softmax", "_softmax", "softmax.int", "special_softmax")
def softmax(x: Any, dim: int, dtype: Any = None) -> Any:
    """Returns the softmax along an axis."""
    return ops.softmax(_cast(x, dtype), dim) if len(x.shape) else ops.ones_like(x)


@aten("log_softmax", "_log_softmax", "log_softmax.int", "special_log_softmax")
def log_softmax(x: Any, dim: int, dtype: Any = None) -> Any:
    """Returns the logarithm of the softmax along an axis."""
    return ops.log_softmax(_cast(x, dtype), dim) if len(x.shape) else ops.zeros_like(x)


def _cast(x: Any, dtype: Any) -> Any:
    """Returns a tensor cast to a dtype; unchanged for None, or for the flag that `_softmax` has in this place."""
    return x if dtype is None or isinstance(dtype, bool) else ops.cast(x, dtype)


@aten("_safe_softmax")
def safe_softmax(x: Any, dim: int, dtype: Any = None) -> Any:
    """Returns the softmax along an axis, which is 0 where all elements are negative infinity."""
    if not len(x.shape):
        return softmax(x, dim, dtype)
    is_all_masked = ops.all(ops.isneginf(x), axis=dim, keepdims=True)
    return ops.where(is_all_masked, 0, softmax(ops.where(is_all_masked, 0, x), dim, dtype))


@aten("rrelu_with_noise_functional", "rrelu_with_noise")
def rrelu_with_noise(x: Any, noise: Any, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False) -> Any:
    """Returns the elements with negative ones multiplied by random slopes in training, and the slopes."""
    if not training:
        return ops.leaky_relu(x, (lower + upper) / 2), noise
    slope = ops.cast(ops.random.uniform(tuple(x.shape), lower, upper), ops.dtype(x))
    slope = ops.where(ops.less_equal(x, 0), slope, 1)
    return ops.multiply(x, slope), slope
