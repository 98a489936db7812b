"""Adam and the optimizers that follow from it: AdamW, Adamax, NAdam and RAdam."""

import math
from dataclasses import KW_ONLY, InitVar
from typing import Any

from emberharmony import ops
from emberharmony.core.types import Tensor
from emberharmony.optim import numbers
from emberharmony.optim.declarations import computed_by, elementwise
from emberharmony.optim.groups import State
from emberharmony.optim.numbers import one_minus_power
from emberharmony.optim.optimizer import Hyper, Optimizer
from emberharmony.optim.options import Decays, LearningRate, NotNegative, add_init_and_limits
from emberharmony.optim.schedules import Rate
from emberharmony.optim.terms import (
    average_of_squares,
    decayed_gradient,
    decayed_parameter,
    descent_gradient,
    moving_average,
    step_along,
    zero_state,
)


def _decayed_gradient_and_parameter(gradient: Tensor, parameter: Tensor, hyper: Hyper) -> tuple[Tensor, Tensor]:
    """Returns the gradient and the parameter after weight decay of the one or, if decoupled, of the other."""
    if hyper["decoupled_weight_decay"]:
        return descent_gradient(gradient, hyper), decayed_parameter(parameter, hyper)
    return decayed_gradient(gradient, parameter, hyper), parameter


@computed_by("adam")
def adam(gradient: Tensor, parameter: Tensor, state: State, hyper: Hyper) -> tuple[Tensor, State]:
    """Returns a parameter and its state after one step of Adam or AdamW."""
    beta1, beta2 = hyper["betas"]
    step = numbers.add(state["step"], 1)
    gradient, parameter = _decayed_gradient_and_parameter(gradient, parameter, hyper)
    mean = moving_average(state["exp_avg"], gradient, beta1)
    mean_square = largest_mean_square = average_of_squares(state["exp_avg_sq"], gradient, beta2)
    new_state = {"step": step, "exp_avg": mean, "exp_avg_sq": mean_square}
    if hyper["amsgrad"]:
        largest_mean_square = new_state["max_exp_avg_sq"] = ops.maximum(state["max_exp_avg_sq"], mean_square)
    denominator = ops.divide(ops.sqrt(largest_mean_square), numbers.sqrt(one_minus_power(beta2, step)))
    corrected_rate = numbers.divide(hyper["lr"], one_minus_power(beta1, step))
    return step_along(parameter, ops.divide(mean, ops.add(denominator, hyper["eps"])), corrected_rate), new_state


@add_init_and_limits
class Adam(Optimizer):
    """Adam: steps by the moving average of the gradients, divided by the root of that of their squares.

    Args:
        lr: the learning rate, or a schedule, a function of the number of steps so far.
        betas: the decays of the average of the gradients and of that of their squares.
        eps: what is added to the root, so that nothing is divided by 0.
        weight_decay: the factor of an L2 penalty: this share of the parameter is added to its gradient.
        amsgrad: whether the largest average of squares so far is used.
        maximize: whether the loss is maximized, by steps along the gradient.
        decoupled_weight_decay: whether the parameter decays by itself, as in AdamW, instead of by a penalty.

    Example:
        >>> from emberharmony import Parameter, ops, optim
        >>> weight = Parameter([1.0, -2.0])
        >>> optimizer = optim.Adam([weight], lr=0.5)
        >>> loss = ops.backward(lambda: ops.sum(ops.square(weight)), weight)
        >>> optimizer.step()
        >>> [round(x, 4) for x in weight.value.tolist()]
        [0.5, -1.5]

    Source: `torch.optim.Adam`; Kingma and Ba, "Adam", 2015; Reddi et al., "On the Convergence of Adam
    and Beyond", 2018.
    """

    params: InitVar[Any] = None
    lr: InitVar[LearningRate] = 1e-3
    betas: InitVar[Decays] = (0.9, 0.999)
    eps: InitVar[NotNegative] = 1e-8
    weight_decay: InitVar[NotNegative] = 0.0
    amsgrad: InitVar[bool] = False
    _: KW_ONLY
    maximize: InitVar[bool] = False
    decoupled_weight_decay: InitVar[bool] = False
    rule = staticmethod(adam)

    @staticmethod
    def initial(parameter: Tensor, hyper: Hyper) -> State:
        """Returns the state of a parameter before its first step."""
        maximum_names = ["max_exp_avg_sq"] if hyper["amsgrad"] else []
        return zero_state(parameter, "exp_avg", "exp_avg_sq", *maximum_names)


class AdamW(Adam):
    """Adam with decoupled weight decay: before each step a parameter is multiplied by `1 - lr * weight_decay`.

    Args:
        lr: the learning rate, or a schedule, a function of the number of steps so far.
        betas: the decays of the average of the gradients and of that of their squares.
        eps: what is added to the root, so that nothing is divided by 0.
        weight_decay: the factor of the decay.
        amsgrad: whether the largest average of squares so far is used.
        maximize: whether the loss is maximized, by steps along the gradient.

    Example:
        >>> from emberharmony import Parameter, ops, optim
        >>> weight = Parameter([1.0, -2.0])
        >>> optimizer = optim.AdamW([weight], lr=optim.schedules.cosine(0.5, T_max=100))
        >>> for _ in range(100):
        ...     loss = ops.backward(lambda: ops.sum(ops.square(weight)), weight)
        ...     optimizer.step()
        >>> loss.tolist() < 1e-4
        True

    Source: `torch.optim.AdamW`; Loshchilov and Hutter, "Decoupled Weight Decay Regularization", 2019.
    """

    def __init__(
        self,
        params: Any = None,
        lr: Rate = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize, decoupled_weight_decay=True)


@elementwise
def adamax(gradient: Tensor, parameter: Tensor, state: State, hyper: Hyper) -> tuple[Tensor, State]:
    """Returns a parameter and its state after one step of Adamax."""
    beta1, beta2 = hyper["betas"]
    step = numbers.add(state["step"], 1)
    gradient = decayed_gradient(gradient, parameter, hyper)
    mean = moving_average(state["exp_avg"], gradient, beta1)
    largest_gradient = ops.maximum(ops.multiply(state["exp_inf"], beta2), ops.add(ops.abs(gradient), hyper["eps"]))
    corrected_rate = numbers.divide(hyper["lr"], one_minus_power(beta1, step))
    new_parameter = step_along(parameter, ops.divide(mean, largest_gradient), corrected_rate)
    return new_parameter, {"step": step, "exp_avg": mean, "exp_inf": largest_gradient}


@add_init_and_limits
class Adamax(Optimizer):
    """Adamax: Adam with the decaying maximum of the gradients' magnitudes instead of the root of their mean square.

    Args:
        lr: the learning rate, or a schedule, a function of the number of steps so far.
        betas: the decays of the average of the gradients and of their maximum.
        eps: what is added to the absolute gradients.
        weight_decay: the factor of an L2 penalty: this share of the parameter is added to its gradient.
        maximize: whether the loss is maximized, by steps along the gradient.

    Source: `torch.optim.Adamax`; Kingma and Ba, "Adam", 2015.
    """

    params: InitVar[Any] = None
    lr: InitVar[LearningRate] = 2e-3
    betas: InitVar[Decays] = (0.9, 0.999)
    eps: InitVar[NotNegative] = 1e-8
    weight_decay: InitVar[NotNegative] = 0.0
    _: KW_ONLY
    maximize: InitVar[bool] = False
    rule = staticmethod(adamax)

    @staticmethod
    def initial(parameter: Tensor, hyper: Hyper) -> State:
        """Returns the state of a parameter before its first step."""
        return zero_state(parameter, "exp_avg", "exp_inf")


@elementwise
def nadam(gradient: Tensor, parameter: Tensor, state: State, hyper: Hyper) -> tuple[Tensor, State]:
    """Returns a parameter and its state after one step of NAdam."""
    beta1, beta2 = hyper["betas"]
    step = numbers.add(state["step"], 1)
    gradient, parameter = _decayed_gradient_and_parameter(gradient, parameter, hyper)
    mean = moving_average(state["exp_avg"], gradient, beta1)
    mean_square = average_of_squares(state["exp_avg_sq"], gradient, beta2)
    mu, mu_next = (
        _momentum_of_step(beta1, hyper["momentum_decay"], step_number) for step_number in (step, numbers.add(step, 1))
    )
    mu_product = numbers.multiply(state["mu_product"], mu)
    denominator = ops.add(ops.sqrt(ops.divide(mean_square, one_minus_power(beta2, step))), hyper["eps"])
    gradient_factor = numbers.divide(numbers.subtract(1.0, mu), numbers.subtract(1.0, mu_product))
    momentum_factor = numbers.divide(mu_next, numbers.subtract(1.0, numbers.multiply(mu_product, mu_next)))
    new_parameter = step_along(
        parameter, ops.divide(gradient, denominator), numbers.multiply(hyper["lr"], gradient_factor)
    )
    new_parameter = step_along(
        new_parameter, ops.divide(mean, denominator), numbers.multiply(hyper["lr"], momentum_factor)
    )
    return new_parameter, {"step": step, "mu_product": mu_product, "exp_avg": mean, "exp_avg_sq": mean_square}


def _momentum_of_step(beta: float, decay: float, step: numbers.Number) -> numbers.Number:
    """Returns NAdam's momentum factor of a step, which rises to `beta` with the steps."""
    return numbers.multiply(
        beta, numbers.subtract(1.0, numbers.multiply(0.5, numbers.power(0.96, numbers.multiply(step, decay))))
    )


@add_init_and_limits
class NAdam(Optimizer):
    """Adam with Nesterov momentum.

    Args:
        lr: the learning rate, or a schedule, a function of the number of steps so far.
        betas: the decays of the average of the gradients and of that of their squares.
        eps: what is added to the root, so that nothing is divided by 0.
        weight_decay: the factor of an L2 penalty, or of the decay.
        momentum_decay: how fast the momentum rises to `betas[0]`; a larger number is faster.
        decoupled_weight_decay: whether the parameter decays by itself, as in AdamW, instead of by a penalty.
        maximize: whether the loss is maximized, by steps along the gradient.

    Source: `torch.optim.NAdam`; Dozat, "Incorporating Nesterov Momentum into Adam", 2016.
    """

    params: InitVar[Any] = None
    lr: InitVar[LearningRate] = 2e-3
    betas: InitVar[Decays] = (0.9, 0.999)
    eps: InitVar[NotNegative] = 1e-8
    weight_decay: InitVar[NotNegative] = 0.0
    momentum_decay: InitVar[NotNegative] = 4e-3
    decoupled_weight_decay: InitVar[bool] = False
    _: KW_ONLY
    maximize: InitVar[bool] = False
    rule = staticmethod(nadam)

    @staticmethod
    def initial(parameter: Tensor, hyper: Hyper) -> State:
        """Returns the state of a parameter before its first step."""
        return {**zero_state(parameter, "exp_avg", "exp_avg_sq"), "mu_product": 1.0}


@elementwise
def radam(gradient: Tensor, parameter: Tensor, state: State, hyper: Hyper) -> tuple[Tensor, State]:
    """Returns a parameter and its state after one step of RAdam."""
    beta1, beta2 = hyper["betas"]
    step = numbers.add(state["step"], 1)
    gradient, parameter = _decayed_gradient_and_parameter(gradient, parameter, hyper)
    mean = moving_average(state["exp_avg"], gradient, beta1)
    mean_square = average_of_squares(state["exp_avg_sq"], gradient, beta2)
    new_state = {"step": step, "exp_avg": mean, "exp_avg_sq": mean_square}
    corrected_rate = numbers.divide(hyper["lr"], one_minus_power(beta1, step))
    length_limit = 2 / (1 - beta2) - 1
    if length_limit <= 5:  # the average length is below its limit
        return step_along(parameter, mean, corrected_rate), new_state
    average_length = _radam_average_length(beta2, length_limit, step)
    can_rectify = numbers.less(5.0, average_length)
    length_from_5 = numbers.maximum(average_length, 5.0)  # keeps the root real where it is not used
    squared_factor = numbers.divide(
        numbers.multiply(numbers.subtract(length_from_5, 4.0), numbers.subtract(length_from_5, 2.0)), length_from_5
    )
    rectification_factor = numbers.sqrt(
        numbers.multiply(squared_factor, length_limit / ((length_limit - 4) * (length_limit - 2)))
    )
    rectification_factor = numbers.multiply(rectification_factor, numbers.sqrt(one_minus_power(beta2, step)))
    adaptive_direction = ops.divide(
        ops.multiply(mean, rectification_factor), ops.add(ops.sqrt(mean_square), hyper["eps"])
    )
    return step_along(parameter, ops.where(can_rectify, adaptive_direction, mean), corrected_rate), new_state


def _radam_average_length(beta: float, limit: float, step: numbers.Number) -> numbers.Number:
    """Returns `limit - 2 * step * beta**step / (1 - beta**step)` without the cancellation that float32 would have.

    With `x = -step * log(beta)` the subtrahend is `2 * step / expm1(x)`, which is near `2 / -log(beta)` for small `x`.
    """
    length_scale = 2 / -math.log(beta)
    x = numbers.multiply(step, -math.log(beta))
    quotient = numbers.divide(numbers.multiply(x, numbers.exp(numbers.multiply(x, -1.0))), one_minus_power(beta, step))
    x_squared = numbers.multiply(x, x)
    series_sum: numbers.Number = 1 / 47900160
    for coefficient in (-1 / 1209600, 1 / 30240, -1 / 720, 1 / 12):
        series_sum = numbers.add(coefficient, numbers.multiply(x_squared, series_sum))
    value_near_0 = numbers.subtract(numbers.multiply(x, 0.5), numbers.multiply(x_squared, series_sum))
    one_minus_quotient = numbers.where(numbers.less(x, 0.5), value_near_0, numbers.subtract(1.0, quotient))
    return numbers.add(limit - length_scale, numbers.multiply(one_minus_quotient, length_scale))


@add_init_and_limits
class RAdam(Optimizer):
    """RAdam: Adam whose first steps omit the division by the root mean square, as its variance is too large there.

    Args:
        lr: the learning rate, or a schedule, a function of the number of steps so far.
        betas: the decays of the average of the gradients and of that of their squares.
        eps: what is added to the root, so that nothing is divided by 0.
        weight_decay: the factor of an L2 penalty, or of the decay.
        decoupled_weight_decay: whether the parameter decays by itself, as in AdamW, instead of by a penalty.
        maximize: whether the loss is maximized, by steps along the gradient.

    Source: `torch.optim.RAdam`; Liu et al., "On the Variance of the Adaptive Learning Rate and Beyond", 2020.
    """

    params: InitVar[Any] = None
    lr: InitVar[LearningRate] = 1e-3
    betas: InitVar[Decays] = (0.9, 0.999)
    eps: InitVar[NotNegative] = 1e-8
    weight_decay: InitVar[NotNegative] = 0.0
    decoupled_weight_decay: InitVar[bool] = False
    _: KW_ONLY
    maximize: InitVar[bool] = False
    rule = staticmethod(radam)

    @staticmethod
    def initial(parameter: Tensor, hyper: Hyper) -> State:
        """Returns the state of a parameter before its first step."""
        return zero_state(parameter, "exp_avg", "exp_avg_sq")
