"""Activation functions with thresholds as layers: they cut values off, or set them to constants beyond a bound."""

from emberharmony import ops
from emberharmony.core.errors import ArgumentError
from emberharmony.nn.layers.activation_base import Activation
from emberharmony.nn.locate import fault
from emberharmony.types import Tensor, TensorLike


class Hardtanh(Activation, op=ops.clip):
    """Returns `x` limited to the range from `min_val` to `max_val`.

    Args:
        min_val: the lower limit of the result.
        max_val: the upper limit of the result.

    Raises:
        ArgumentError: if `min_val` is not less than `max_val`.

    Example:
        >>> nn.Hardtanh(-1.0, 2.0)([-2.0, 0.5, 3.0]).tolist()
        [-1.0, 0.5, 2.0]
    """

    min_val: float = -1.0
    max_val: float = 1.0

    def check_options(self) -> None:
        if self.min_val >= self.max_val:
            raise fault(ArgumentError(f"min_val {self.min_val} must be less than max_val {self.max_val}"))


class Hardsigmoid(Activation, op=ops.hard_sigmoid):
    """Returns `x / 6 + 1 / 2` limited to the range from 0 to 1.

    Example:
        >>> nn.Hardsigmoid()([-4.0, 0.0]).tolist()
        [0.0, 0.5]
    """


class Hardswish(Activation, op=ops.hard_silu):
    """Returns `x * hard_sigmoid(x)`.

    Example:
        >>> nn.Hardswish()([0.0, 3.0]).tolist()
        [0.0, 3.0]
    """


class Hardshrink(Activation, op=ops.hard_shrink):
    """Returns `x`, but 0 where `abs(x)` is at most `lambd`.

    Args:
        lambd: the largest magnitude that becomes 0.

    Example:
        >>> nn.Hardshrink()([0.25, 2.0]).tolist()
        [0.0, 2.0]
    """

    lambd: float = 0.5


class Softshrink(Activation, op=ops.soft_shrink):
    """Returns `x` moved towards 0 by `lambd`; 0 where `abs(x)` is at most `lambd`.

    Args:
        lambd: by how much magnitudes shrink, at least 0.

    Raises:
        ArgumentError: if `lambd` is negative.

    Example:
        >>> nn.Softshrink()([0.25, 2.0]).tolist()
        [0.0, 1.5]
    """

    lambd: float = 0.5

    def check_options(self) -> None:
        if self.lambd < 0:
            raise fault(ArgumentError(f"lambd must be at least 0, got {self.lambd}"))


class Threshold(Activation, op=ops.threshold):
    """Returns `x` where it is above the threshold, else `value`.

    Args:
        threshold: the number that `x` must exceed to stay.
        value: the result where the input is not above the threshold.

    Example:
        >>> nn.Threshold(2.0, 0.0)([1.0, 3.0]).tolist()
        [0.0, 3.0]
    """

    threshold: float
    value: float


def _heaviside(x: TensorLike, threshold: float) -> Tensor:
    x = ops.add(x, 0.0)
    return ops.cast(ops.greater(x, threshold), x.dtype)


class Heaviside(Activation, op=_heaviside):
    """Returns 1 where `x` is above the threshold, else 0; the gradient is 0.

    Args:
        threshold: the number that `x` must exceed for a 1.

    Example:
        >>> nn.Heaviside()([-1.0, 2.0]).tolist()
        [0.0, 1.0]

    Source: `mlx.nn.Step`, a name that is taken here.
    """

    threshold: float = 0.0
