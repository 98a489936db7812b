"""LAMB: Adam for large batches, whose step for each parameter is scaled by the parameter's norm."""

from dataclasses import KW_ONLY, InitVar
from typing import Any

from emberharmony import ops
from emberharmony.core.types import Tensor
from emberharmony.optim import numbers
from emberharmony.optim.groups import State
from emberharmony.optim.numbers import one_minus_power
from emberharmony.optim.optimizer import Hyper, Optimizer
from emberharmony.optim.options import Decays, LearningRate, NotNegative, add_init_and_limits
from emberharmony.optim.terms import (
    at_least_float32,
    average_of_squares,
    descent_gradient,
    moving_average,
    step_along,
    zero_state,
)


def lamb(gradient: Tensor, parameter: Tensor, state: State, hyper: Hyper) -> tuple[Tensor, State]:
    """Returns a parameter and its state after one step of LAMB."""
    gradient = descent_gradient(gradient, hyper)
    beta1, beta2 = hyper["betas"]
    step = numbers.add(state["step"], 1)
    mean = moving_average(state["exp_avg"], gradient, beta1)
    mean_square = average_of_squares(state["exp_avg_sq"], gradient, beta2)
    denominator = ops.add(ops.sqrt(ops.divide(mean_square, one_minus_power(beta2, step))), hyper["eps"])
    direction = ops.divide(ops.divide(mean, one_minus_power(beta1, step)), denominator)
    if hyper["weight_decay"]:
        direction = ops.add(direction, ops.multiply(parameter, hyper["weight_decay"]))
    direction_norm, parameter_norm = (
        ops.norm(at_least_float32(ops.ravel(direction))),
        ops.norm(at_least_float32(ops.ravel(parameter))),
    )
    is_trusted = ops.logical_and(ops.greater(parameter_norm, 0.0), ops.greater(direction_norm, 0.0))
    trust_ratio = ops.where(
        is_trusted,
        ops.divide(parameter_norm, ops.where(is_trusted, direction_norm, ops.ones_like(direction_norm))),
        ops.ones_like(parameter_norm),
    )
    new_parameter = step_along(parameter, direction, ops.multiply(trust_ratio, hyper["lr"]))
    return new_parameter, {"step": step, "exp_avg": mean, "exp_avg_sq": mean_square}


@add_init_and_limits
class LAMB(Optimizer):
    """LAMB: the step of Adam, scaled so that its length is the learning rate times the norm of the parameter.

    Args:
        lr: the learning rate, or a schedule, a function of the number of steps so far.
        betas: the decays of the average of the gradients and of that of their squares.
        eps: what is added to the root, so that nothing is divided by 0.
        weight_decay: the factor of the parameter that is added to the step of Adam.
        maximize: whether the loss is maximized, by steps along the gradient.

    Source: You et al., "Large Batch Optimization for Deep Learning: Training BERT in 76 minutes", 2020, algorithm 2,
    with the norm itself as its function of the norm.
    """

    params: InitVar[Any] = None
    lr: InitVar[LearningRate] = 1e-3
    betas: InitVar[Decays] = (0.9, 0.999)
    eps: InitVar[NotNegative] = 1e-6
    weight_decay: InitVar[NotNegative] = 0.0
    _: KW_ONLY
    maximize: InitVar[bool] = False
    rule = staticmethod(lamb)

    @staticmethod
    def initial(parameter: Tensor, hyper: Hyper) -> State:
        """Returns the state of a parameter before its first step."""
        return zero_state(parameter, "exp_avg", "exp_avg_sq")
