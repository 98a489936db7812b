"""Terms that the rules of several optimizers share, such as moving averages and weight decay."""

from typing import Any

from emberharmony import ops
from emberharmony.core.types import Tensor
from emberharmony.optim import numbers
from emberharmony.optim.groups import State
from emberharmony.optim.optimizer import Hyper


def zero_state(parameter: Tensor, *names: str) -> State:
    """Returns a state with the count of steps, 0, and tensors of zeros by these names.

    Each is a tensor of its own, because `torch.compile` compiles once more for arguments that are no longer the same.
    """
    return {"step": 0, **{name: ops.zeros_like(parameter) for name in names}}


def descent_gradient(gradient: Tensor, hyper: Hyper) -> Tensor:
    """Returns the gradient, negated if the option `maximize` is set."""
    return ops.negative(gradient) if hyper["maximize"] else gradient


def decayed_gradient(gradient: Tensor, parameter: Tensor, hyper: Hyper) -> Tensor:
    """Returns the gradient of the loss to minimize with an L2 penalty, whose factor is the option `weight_decay`."""
    gradient = descent_gradient(gradient, hyper)
    decay = hyper["weight_decay"]
    return ops.add(gradient, ops.multiply(parameter, decay)) if decay else gradient


def decayed_parameter(parameter: Tensor, hyper: Hyper) -> Tensor:
    """Returns the parameter after decoupled weight decay, whose factor is the rate times the option `weight_decay`."""
    decay = hyper["weight_decay"]
    if not decay:
        return parameter
    return ops.multiply(parameter, numbers.subtract(1.0, numbers.multiply(hyper["lr"], decay)))


def times(x: Tensor, factor: Any) -> Tensor:
    """Returns `factor * x`; for the Python number 1 the tensor itself, without a multiplication."""
    return x if numbers.is_python(factor) and factor == 1 else ops.multiply(x, factor)


def moving_average(average: Tensor, x: Tensor, decay: float) -> Tensor:
    """Returns the exponential moving average `average + (1 - decay) * (x - average)`."""
    return ops.add(average, ops.multiply(ops.subtract(x, average), 1 - decay))


def average_of_squares(average: Tensor, x: Tensor, decay: float) -> Tensor:
    """Returns the exponential moving average of squares, `decay * average + (1 - decay) * x * x`."""
    return ops.add(ops.multiply(average, decay), ops.multiply(ops.square(x), 1 - decay))


def at_least_float32(x: Tensor) -> Tensor:
    """Returns a tensor of a 16-bit dtype cast to float32, so that its norm is exact enough; any other unchanged."""
    return x if ops.dtype(x).bits > 16 else ops.cast(x, "float32")


def step_along(parameter: Tensor, direction: Tensor, rate: Any) -> Tensor:
    """Returns `parameter - rate * direction`."""
    return ops.subtract(parameter, ops.multiply(direction, rate))


def all_finite(tensors: list[Tensor]) -> Tensor:
    """Returns whether no tensor has a NaN or an infinity, as a boolean tensor without axes."""
    finite_flags = [ops.all(ops.isfinite(tensor)) for tensor in tensors]
    return ops.all(ops.stack(finite_flags)) if finite_flags else ops.convert_to_tensor(True)
