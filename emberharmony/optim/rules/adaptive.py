"""Optimizers with a rate for each element: Adagrad, Adadelta, RMSprop and Rprop; and averaged descent, ASGD."""

from dataclasses import KW_ONLY, InitVar
from typing import Annotated, Any

from emberharmony import ops
from emberharmony.core.types import Tensor
from emberharmony.optim import numbers
from emberharmony.optim.declarations import elementwise
from emberharmony.optim.groups import State
from emberharmony.optim.optimizer import Hyper, Optimizer
from emberharmony.optim.options import AnyNumber, LearningRate, Limit, NotNegative, Share, add_init_and_limits
from emberharmony.optim.terms import (
    average_of_squares,
    decayed_gradient,
    descent_gradient,
    moving_average,
    step_along,
    zero_state,
)

_ETAS = Limit("two numbers with 0 < etas[0] < 1 < etas[1]", lambda etas: len(etas) == 2 and 0 < etas[0] < 1 < etas[1])
_SIZES = Limit("two numbers with 0 <= sizes[0] <= sizes[1]", lambda x: len(x) == 2 and 0 <= x[0] <= x[1])


@elementwise
def adagrad(gradient: Tensor, parameter: Tensor, state: State, hyper: Hyper) -> tuple[Tensor, State]:
    """Returns a parameter and its state after one step of Adagrad."""
    gradient = decayed_gradient(gradient, parameter, hyper)
    sum_of_squares = ops.add(state["sum"], ops.square(gradient))
    rate_divisor = numbers.add(1.0, numbers.multiply(state["step"], hyper["lr_decay"]))
    direction = ops.divide(gradient, ops.add(ops.sqrt(sum_of_squares), hyper["eps"]))
    new_parameter = step_along(parameter, direction, numbers.divide(hyper["lr"], rate_divisor))
    return new_parameter, {"step": numbers.add(state["step"], 1), "sum": sum_of_squares}


@add_init_and_limits
class Adagrad(Optimizer):
    """Adagrad: steps by the gradient, divided by the root of the sum of all its squares so far.

    Args:
        lr: the learning rate, or a schedule, a function of the number of steps so far.
        lr_decay: the rate is divided by `1 + steps * lr_decay`.
        weight_decay: the factor of an L2 penalty: this share of the parameter is added to its gradient.
        initial_accumulator_value: the sum of squares before the first step.
        eps: what is added to the root, so that nothing is divided by 0.
        maximize: whether the loss is maximized, by steps along the gradient.

    Source: `torch.optim.Adagrad`; Duchi et al., "Adaptive Subgradient Methods", 2011.
    """

    params: InitVar[Any] = None
    lr: InitVar[LearningRate] = 1e-2
    lr_decay: InitVar[NotNegative] = 0.0
    weight_decay: InitVar[NotNegative] = 0.0
    initial_accumulator_value: InitVar[NotNegative] = 0.0
    eps: InitVar[NotNegative] = 1e-10
    _: KW_ONLY
    maximize: InitVar[bool] = False
    rule = staticmethod(adagrad)

    @staticmethod
    def initial(parameter: Tensor, hyper: Hyper) -> State:
        """Returns the state of a parameter before its first step."""
        return {"step": 0, "sum": ops.full_like(parameter, hyper["initial_accumulator_value"])}


@elementwise
def adadelta(gradient: Tensor, parameter: Tensor, state: State, hyper: Hyper) -> tuple[Tensor, State]:
    """Returns a parameter and its state after one step of Adadelta."""
    gradient = decayed_gradient(gradient, parameter, hyper)
    rho, eps = hyper["rho"], hyper["eps"]
    mean_square = average_of_squares(state["square_avg"], gradient, rho)
    step_ratio = ops.divide(ops.sqrt(ops.add(state["acc_delta"], eps)), ops.sqrt(ops.add(mean_square, eps)))
    step_change = ops.multiply(step_ratio, gradient)
    average_of_changes = average_of_squares(state["acc_delta"], step_change, rho)
    new_parameter = step_along(parameter, step_change, hyper["lr"])
    return new_parameter, {
        "step": numbers.add(state["step"], 1),
        "square_avg": mean_square,
        "acc_delta": average_of_changes,
    }


@add_init_and_limits
class Adadelta(Optimizer):
    """Adadelta: steps by the gradient times the ratio of the average change so far and the average gradient.

    Args:
        lr: the learning rate, or a schedule, a function of the number of steps so far.
        rho: the decay of both averages of squares.
        eps: what is added to them before the root.
        weight_decay: the factor of an L2 penalty: this share of the parameter is added to its gradient.
        maximize: whether the loss is maximized, by steps along the gradient.

    Source: `torch.optim.Adadelta`; Zeiler, "ADADELTA: An Adaptive Learning Rate Method", 2012.
    """

    params: InitVar[Any] = None
    lr: InitVar[LearningRate] = 1.0
    rho: InitVar[Share] = 0.9
    eps: InitVar[NotNegative] = 1e-6
    weight_decay: InitVar[NotNegative] = 0.0
    _: KW_ONLY
    maximize: InitVar[bool] = False
    rule = staticmethod(adadelta)

    @staticmethod
    def initial(parameter: Tensor, hyper: Hyper) -> State:
        """Returns the state of a parameter before its first step."""
        return zero_state(parameter, "square_avg", "acc_delta")


@elementwise
def rmsprop(gradient: Tensor, parameter: Tensor, state: State, hyper: Hyper) -> tuple[Tensor, State]:
    """Returns a parameter and its state after one step of RMSprop."""
    gradient = decayed_gradient(gradient, parameter, hyper)
    alpha, momentum = hyper["alpha"], hyper["momentum"]
    mean_square = variance = average_of_squares(state["square_avg"], gradient, alpha)
    new_state = {"step": numbers.add(state["step"], 1), "square_avg": mean_square}
    if hyper["centered"]:
        mean = new_state["grad_avg"] = moving_average(state["grad_avg"], gradient, alpha)
        variance = ops.subtract(mean_square, ops.square(mean))
    direction = ops.divide(gradient, ops.add(ops.sqrt(variance), hyper["eps"]))
    if momentum:
        direction = ops.add(ops.multiply(state["momentum_buffer"], momentum), direction)
        new_state["momentum_buffer"] = direction
    return step_along(parameter, direction, hyper["lr"]), new_state


@add_init_and_limits
class RMSprop(Optimizer):
    """RMSprop: steps by the gradient, divided by the root of the moving average of its squares.

    Args:
        lr: the learning rate, or a schedule, a function of the number of steps so far.
        alpha: the share of the old average of the squares that each step keeps, from 0 to 1.
        eps: what is added to the root, so that nothing is divided by 0.
        weight_decay: the factor of an L2 penalty: this share of the parameter is added to its gradient.
        momentum: the factor of the last step's direction.
        centered: whether the square of the average gradient is subtracted from the average of squares.
        maximize: whether the loss is maximized, by steps along the gradient.

    Source: `torch.optim.RMSprop`; Tieleman and Hinton, lecture 6.5 of "Neural Networks for Machine Learning", 2012.
    """

    params: InitVar[Any] = None
    lr: InitVar[LearningRate] = 1e-2
    alpha: InitVar[NotNegative] = 0.99
    eps: InitVar[NotNegative] = 1e-8
    weight_decay: InitVar[NotNegative] = 0.0
    momentum: InitVar[NotNegative] = 0.0
    centered: InitVar[bool] = False
    _: KW_ONLY
    maximize: InitVar[bool] = False
    rule = staticmethod(rmsprop)

    @staticmethod
    def initial(parameter: Tensor, hyper: Hyper) -> State:
        """Returns the state of a parameter before its first step."""
        momentum_names = ["momentum_buffer"] if hyper["momentum"] else []
        return zero_state(parameter, "square_avg", *momentum_names, *(["grad_avg"] if hyper["centered"] else []))


@elementwise
def rprop(gradient: Tensor, parameter: Tensor, state: State, hyper: Hyper) -> tuple[Tensor, State]:
    """Returns a parameter and its state after one step of Rprop."""
    gradient = descent_gradient(gradient, hyper)
    (decrease_factor, increase_factor), step_size = hyper["etas"], state["step_size"]
    sign_product = ops.multiply(gradient, state["prev"])
    sign_changed = ops.less(sign_product, 0.0)
    increased_size = ops.where(ops.greater(sign_product, 0.0), ops.multiply(step_size, increase_factor), step_size)
    step_size = ops.clip(
        ops.where(sign_changed, ops.multiply(step_size, decrease_factor), increased_size), *hyper["step_sizes"]
    )
    gradient = ops.where(sign_changed, ops.zeros_like(gradient), gradient)
    new_parameter = step_along(parameter, ops.sign(gradient), step_size)
    return new_parameter, {"step": numbers.add(state["step"], 1), "prev": gradient, "step_size": step_size}


@add_init_and_limits
class Rprop(Optimizer):
    """Resilient backpropagation: steps by the sign of the gradient, by a size of each element's own.

    The size grows while the sign stays, and shrinks when it changes. It suits gradients of the whole data.

    Args:
        lr: the first size of the steps, or a schedule, whose first rate is it.
        etas: the factors by which a size shrinks and grows.
        step_sizes: the smallest and the largest size.
        maximize: whether the loss is maximized, by steps along the gradient.

    Source: `torch.optim.Rprop`; Riedmiller and Braun, "A Direct Adaptive Method for Faster Backpropagation", 1993.
    """

    params: InitVar[Any] = None
    lr: InitVar[LearningRate] = 1e-2
    etas: InitVar[Annotated[tuple[float, float], _ETAS]] = (0.5, 1.2)
    step_sizes: InitVar[Annotated[tuple[float, float], _SIZES]] = (1e-6, 50.0)
    _: KW_ONLY
    maximize: InitVar[bool] = False
    rule = staticmethod(rprop)

    @staticmethod
    def initial(parameter: Tensor, hyper: Hyper) -> State:
        """Returns the state of a parameter before its first step."""
        return {**zero_state(parameter, "prev"), "step_size": ops.full_like(parameter, hyper["lr"])}


@elementwise
def asgd(gradient: Tensor, parameter: Tensor, state: State, hyper: Hyper) -> tuple[Tensor, State]:
    """Returns a parameter and its state after one step of averaged gradient descent; the average is `ax`."""
    gradient = decayed_gradient(gradient, parameter, hyper)
    step, rate = numbers.add(state["step"], 1), state["eta"]
    decay_factor = numbers.subtract(1.0, numbers.multiply(hyper["lambd"], rate))
    new_parameter = step_along(ops.multiply(parameter, decay_factor), gradient, rate)
    average = ops.add(state["ax"], ops.multiply(ops.subtract(new_parameter, state["ax"]), state["mu"]))
    rate_divisor = numbers.add(1.0, numbers.multiply(numbers.multiply(hyper["lambd"], hyper["lr"]), step))
    eta = numbers.divide(hyper["lr"], numbers.power(rate_divisor, hyper["alpha"]))
    mu = numbers.divide(1.0, numbers.maximum(1.0, numbers.subtract(step, hyper["t0"])))
    return new_parameter, {"step": step, "eta": eta, "mu": mu, "ax": average}


@add_init_and_limits
class ASGD(Optimizer):
    """Averaged stochastic gradient descent; the average of the parameter is `ax` in its state.

    Args:
        lr: the learning rate, or a schedule, a function of the number of steps so far.
        lambd: the decay of the parameter in each step, as a factor of the rate.
        alpha: the power by which the rate falls.
        t0: the step after which the average begins.
        weight_decay: the factor of an L2 penalty: this share of the parameter is added to its gradient.
        maximize: whether the loss is maximized, by steps along the gradient.

    Source: `torch.optim.ASGD`; Polyak and Juditsky, "Acceleration of Stochastic Approximation by Averaging", 1992.
    """

    params: InitVar[Any] = None
    lr: InitVar[LearningRate] = 1e-2
    lambd: InitVar[AnyNumber] = 1e-4
    alpha: InitVar[AnyNumber] = 0.75
    t0: InitVar[AnyNumber] = 1e6
    weight_decay: InitVar[NotNegative] = 0.0
    _: KW_ONLY
    maximize: InitVar[bool] = False
    rule = staticmethod(asgd)

    @staticmethod
    def initial(parameter: Tensor, hyper: Hyper) -> State:
        """Returns the state of a parameter before its first step."""
        return {**zero_state(parameter, "ax"), "eta": float(hyper["lr"]), "mu": 1.0}
