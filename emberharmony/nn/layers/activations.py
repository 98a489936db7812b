"""Activation functions as layers."""

from collections.abc import Callable
from typing import Any

from emberharmony import Parameter, ops
from emberharmony.core.errors import ArgumentError, ShapeError
from emberharmony.core.types import DTypeLike
from emberharmony.nn import rngs, spatial
from emberharmony.nn.layers.activation_base import Activation
from emberharmony.nn.locate import fault
from emberharmony.nn.module import Module
from emberharmony.nn.options import choice_option, length_option, number_option
from emberharmony.types import Tensor, TensorLike


class ReLU(Activation, op=ops.relu):
    """Returns `max(x, 0)`.

    Example:
        >>> nn.ReLU()([-1.0, 2.0]).tolist()
        [0.0, 2.0]
    """


class ReLU6(Activation, op=ops.relu6):
    """Returns `min(max(x, 0), 6)`.

    Example:
        >>> nn.ReLU6()([-1.0, 8.0]).tolist()
        [0.0, 6.0]
    """


class ReLU2(Activation, op=lambda x: ops.square(ops.relu(x))):
    """Returns `max(x, 0)**2`.

    Example:
        >>> nn.ReLU2()([-1.0, 3.0]).tolist()
        [0.0, 9.0]

    Source: So et al., Primer: searching for efficient transformers, 2021.
    """


class LeakyReLU(Activation, op=ops.leaky_relu):
    """Returns `x` where it is positive, else `negative_slope * x`.

    Args:
        negative_slope: the factor where `x` is not positive.

    Example:
        >>> nn.LeakyReLU(0.5)([-1.0, 2.0]).tolist()
        [-0.5, 2.0]
    """

    negative_slope: float = 0.01


class ELU(Activation, op=ops.elu):
    """Returns `x` where it is positive, else `alpha * (exp(x) - 1)`.

    Args:
        alpha: minus the limit at minus infinity.

    Example:
        >>> nn.ELU()([0.0, 2.0]).tolist()
        [0.0, 2.0]
    """

    alpha: float = 1.0


class CELU(Activation, op=ops.celu):
    """Returns `max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0)`.

    Args:
        alpha: minus the limit at minus infinity, above 0.

    Raises:
        ArgumentError: if alpha is not above 0.

    Example:
        >>> nn.CELU(2.0)([0.0, 2.0]).tolist()
        [0.0, 2.0]
    """

    alpha: float = 1.0

    def check_options(self) -> None:
        if self.alpha <= 0:
            raise fault(ArgumentError(f"alpha must be above 0, got {self.alpha}"))


class SELU(Activation, op=ops.selu):
    """Returns the `ELU` scaled so that mean 0 and variance 1 are preserved from layer to layer; see `ops.selu`.

    Example:
        >>> nn.SELU()([0.0]).tolist()
        [0.0]
    """


class GELU(Activation, op=lambda x, approximate: ops.gelu(x, approximate == "tanh")):
    """Returns `x` times the cumulative distribution function of the standard normal distribution at `x`.

    Args:
        approximate: `"none"` computes the function by `erf`, `"tanh"` approximates it by `tanh`.

    Raises:
        ArgumentError: if `approximate` is something else.

    Example:
        >>> nn.GELU("tanh")([0.0]).tolist()
        [0.0]
    """

    approximate: str = "none"

    def check_options(self) -> None:
        choice_option("approximate", self.approximate, ("none", "tanh"))


class SiLU(Activation, op=ops.silu):
    """Returns `x * sigmoid(x)`, which is also called swish.

    Example:
        >>> nn.SiLU()([0.0]).tolist()
        [0.0]
    """


class Mish(Activation, op=lambda x: ops.multiply(x, ops.tanh(ops.softplus(x)))):
    """Returns `x * tanh(softplus(x))`.

    Example:
        >>> nn.Mish()([0.0]).tolist()
        [0.0]

    Source: Misra, Mish: a self regularized non-monotonic activation function, 2019.
    """


def _gated_activation(gate: Callable[[Any], Any]) -> Callable[[Any, int], Any]:
    def multiply_by_gate(x: TensorLike, dim: int) -> Tensor:
        first_half, second_half = ops.split(x, 2, dim)
        return ops.multiply(first_half, gate(second_half))

    return multiply_by_gate


class GLU(Activation, op=ops.glu):
    """Returns the first half of the axis `dim` times the sigmoid of the second half.

    Shape: the axis `dim` has half of its length in the result.

    Args:
        dim: the axis that is halved, of even length.

    Raises:
        ShapeError: from the call, if the axis has an odd length.

    Example:
        >>> nn.GLU()([3.0, 0.0]).tolist()
        [1.5]
    """

    dim: int = -1


class SwiGLU(Activation, op=_gated_activation(ops.silu)):
    """Returns the first half of the axis `dim` times the `SiLU` of the second half.

    Shape: the axis `dim` has half of its length in the result.

    Args:
        dim: the axis that is halved, of even length.

    Raises:
        ShapeError: from the call, if the axis has an odd length.

    Example:
        >>> nn.SwiGLU()([3.0, 0.0]).tolist()
        [0.0]

    Source: Shazeer, GLU variants improve transformer, 2020.
    """

    dim: int = -1


class GEGLU(Activation, op=_gated_activation(lambda x: ops.gelu(x, False))):
    """Returns the first half of the axis `dim` times the `GELU` of the second half.

    Shape: the axis `dim` has half of its length in the result.

    Args:
        dim: the axis that is halved, of even length.

    Raises:
        ShapeError: from the call, if the axis has an odd length.

    Example:
        >>> nn.GEGLU()([3.0, 0.0]).tolist()
        [0.0]

    Source: Shazeer, GLU variants improve transformer, 2020.
    """

    dim: int = -1


def _softplus(x: TensorLike, beta: float, threshold: float) -> Tensor:
    scaled_x = ops.multiply(x, beta)
    return ops.where(ops.greater(scaled_x, threshold), ops.add(x, 0.0), ops.divide(ops.softplus(scaled_x), beta))


class Softplus(Activation, op=_softplus):
    """Returns `log(1 + exp(beta * x)) / beta`, and `x` where `beta * x` is above the threshold.

    Args:
        beta: how sharp the kink is: the factor of `x`, not 0.
        threshold: the value of `beta * x` above which the result is `x` itself.

    Raises:
        ArgumentError: if beta is 0.

    Example:
        >>> nn.Softplus()([-200.0, 30.0]).tolist()
        [0.0, 30.0]
    """

    beta: float = 1.0
    threshold: float = 20.0

    def check_options(self) -> None:
        if self.beta == 0:
            raise fault(ArgumentError("beta must not be 0, because the result is divided by it"))


class Softsign(Activation, op=ops.softsign):
    """Returns `x / (1 + abs(x))`.

    Example:
        >>> nn.Softsign()([1.0]).tolist()
        [0.5]
    """


def _op_with_default_axis(op: Callable[[Any, int], Tensor]) -> Callable[[Any, int | None], Any]:
    """Wraps a function of an axis so that None means axis 0 for inputs with 0, 1 or 3 axes, else axis 1."""

    def apply_over_axis(x: TensorLike, dim: int | None) -> Tensor:
        return op(x, (0 if ops.ndim(x) in (0, 1, 3) else 1) if dim is None else dim)

    return apply_over_axis


class Softmax(Activation, op=_op_with_default_axis(ops.softmax)):
    """Returns `exp(x) / sum(exp(x))` over the axis `dim`.

    Args:
        dim: the axis; None is that of PyTorch: 0 for inputs with 0, 1 or 3 axes, else 1.

    Example:
        >>> nn.Softmax(-1)([0.0, 0.0]).tolist()
        [0.5, 0.5]
    """

    dim: int | None = None


class Softmin(Activation, op=_op_with_default_axis(lambda x, dim: ops.softmax(ops.multiply(x, -1.0), dim))):
    """Returns the softmax of `-x` over the axis `dim`.

    Args:
        dim: the axis; None is that of PyTorch: 0 for inputs with 0, 1 or 3 axes, else 1.

    Example:
        >>> nn.Softmin(-1)([0.0, 0.0]).tolist()
        [0.5, 0.5]
    """

    dim: int | None = None


class LogSoftmax(Activation, op=_op_with_default_axis(ops.log_softmax)):
    """Returns the logarithm of the softmax over the axis `dim`, accurate where the softmax is close to 0.

    Args:
        dim: the axis; None is that of PyTorch: 0 for inputs with 0, 1 or 3 axes, else 1.

    Example:
        >>> nn.LogSoftmax(-1)([0.0, -500.0]).tolist()
        [0.0, -500.0]
    """

    dim: int | None = None


def _softmax2d(x: TensorLike) -> Tensor:
    x = spatial.to_tensor(x)
    if len(x.shape) not in (3, 4):
        raise fault(ShapeError(f"expected images (batch, channels, height, width), got shape {tuple(x.shape)}"))
    return ops.softmax(x, -3)


class Softmax2d(Activation, op=_softmax2d):
    """Returns the softmax over the channels at each place of images.

    Shape: (batch, channels, height, width), or without the batch.

    Raises:
        ShapeError: from the call, if the input has another number of axes.

    Example:
        >>> nn.Softmax2d()([[[0.0]], [[0.0]]]).tolist()
        [[[0.5]], [[0.5]]]
    """


class LogSigmoid(Activation, op=ops.log_sigmoid):
    """Returns `log(sigmoid(x))`, accurate where the sigmoid is close to 0.

    Example:
        >>> nn.LogSigmoid()([-500.0]).tolist()
        [-500.0]
    """


class Sigmoid(Activation, op=ops.sigmoid):
    """Returns `1 / (1 + exp(-x))` without overflow.

    Example:
        >>> nn.Sigmoid()([0.0]).tolist()
        [0.5]
    """


class Tanh(Activation, op=ops.tanh):
    """Returns the hyperbolic tangent.

    Example:
        >>> nn.Tanh()([0.0]).tolist()
        [0.0]
    """


class Tanhshrink(Activation, op=ops.tanh_shrink):
    """Returns `x - tanh(x)`.

    Example:
        >>> nn.Tanhshrink()([0.0]).tolist()
        [0.0]
    """


class PReLU(Module):
    """Returns `x` where it is positive, else `weight * x`, with a weight that is trained.

    Shape: that of the input.

    Args:
        num_parameters: 1, or the number of channels, each of which then has a weight of its own.
        init: the initial value of the weight.
        data_format: whether the channels are the second axis of the input or the last one.
        dtype: the dtype of the weight; None is the default floating dtype.

    Attributes:
        weight: (num_parameters,).

    Raises:
        ArgumentError: if `num_parameters` is not positive.
        ShapeError: from the call, if the input has another number of channels.

    Example:
        >>> nn.PReLU(2, 0.5)([[-2.0, 3.0]]).tolist()
        [[-1.0, 3.0]]

    Source: He et al., Delving deep into rectifiers, 2015.
    """

    def __init__(
        self,
        num_parameters: int = 1,
        init: float = 0.25,
        *,
        data_format: spatial.DataFormat = "channels_first",
        dtype: DTypeLike | None = None,
    ) -> None:
        self.num_parameters = length_option("num_parameters", num_parameters)
        self.init = number_option("init", init)
        self.data_format = spatial.checked_data_format(data_format)
        self._axis = 1 if data_format == "channels_first" else -1
        self.weight = Parameter(ops.full((self.num_parameters,), self.init, dtype))

    def __call__(self, x: TensorLike) -> Tensor:
        x = spatial.to_tensor(x)
        weight: Any = self.weight
        if self.num_parameters == 1:
            weight = ops.reshape(weight, ())
        else:
            weight_shape = [1] * len(x.shape)
            if len(weight_shape) < 2 or x.shape[self._axis] != self.num_parameters:
                raise fault(
                    ShapeError(
                        f"expected {self.num_parameters} channels on axis {self._axis}, got shape {tuple(x.shape)}"
                    )
                )
            weight_shape[self._axis] = self.num_parameters
            weight = ops.reshape(weight, weight_shape)
        return ops.where(ops.greater(x, 0), x, ops.multiply(x, weight))


class RReLU(Module):
    """Returns `x` where it is positive, else `x` times a slope: a random one in training, later the mean of the range.

    Args:
        lower, upper: the range of the slope, which is drawn for each element.
        rng: draws the slopes; an `nn.Rngs` gives its stream `dropout`.

    Raises:
        ArgumentError: if `lower` is more than `upper`.

    Example:
        >>> layer = nn.RReLU(0.25, 0.75)
        >>> layer.eval()([-2.0, 3.0]).tolist()
        [-1.0, 3.0]
        >>> -1.5 <= float(layer.train()([-2.0])[0]) <= -0.5
        True

    Source: Xu et al., Empirical evaluation of rectified activations in convolutional network, 2015.
    """

    def __init__(
        self, lower: float = 1 / 8, upper: float = 1 / 3, *, rng: "rngs.Generator | rngs.Rngs | None" = None
    ) -> None:
        self.lower, self.upper = number_option("lower", lower), number_option("upper", upper)
        if self.lower > self.upper:
            raise fault(ArgumentError(f"lower {lower} must not be more than upper {upper}"))
        self.rng = rngs.generator(rng, "dropout")

    def __call__(self, x: TensorLike) -> Tensor:
        if not self.training:
            return ops.leaky_relu(x, (self.lower + self.upper) / 2)
        x = ops.add(x, 0.0)
        slopes = ops.random.uniform(x.shape, self.lower, self.upper, x.dtype, generator=self.rng)
        return ops.where(ops.greater(x, 0), x, ops.multiply(x, ops.to_device(slopes, ops.get_device(x))))
