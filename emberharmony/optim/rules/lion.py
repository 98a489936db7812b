"""Lion, an optimizer that steps by the sign of the momentum of the gradients."""

from dataclasses import KW_ONLY, InitVar
from typing import Any

from emberharmony import ops
from emberharmony.core.types import Tensor
from emberharmony.optim.declarations import elementwise
from emberharmony.optim.groups import State
from emberharmony.optim.optimizer import Hyper, Optimizer
from emberharmony.optim.options import Decays, LearningRate, NotNegative, add_init_and_limits
from emberharmony.optim.terms import decayed_parameter, descent_gradient, moving_average, step_along


@elementwise
def lion(gradient: Tensor, parameter: Tensor, state: State, hyper: Hyper) -> tuple[Tensor, State]:
    """Returns a parameter and its state after one step of Lion."""
    gradient = descent_gradient(gradient, hyper)
    beta1, beta2 = hyper["betas"]
    direction = ops.sign(moving_average(state["exp_avg"], gradient, beta1))
    new_parameter = step_along(decayed_parameter(parameter, hyper), direction, hyper["lr"])
    return new_parameter, {"exp_avg": moving_average(state["exp_avg"], gradient, beta2)}


@add_init_and_limits
class Lion(Optimizer):
    """Lion: each element steps by the learning rate, against the sign of a momentum, with decoupled weight decay.

    Args:
        lr: the learning rate, or a schedule; 3 to 10 times smaller than for AdamW.
        betas: the decay that weighs the momentum in a step, and the decay of the momentum itself.
        weight_decay: the factor of the decay; 3 to 10 times larger than for AdamW.
        maximize: whether the loss is maximized, by steps along the gradient.

    Example:
        >>> from emberharmony import Parameter, ops, optim
        >>> weight = Parameter([1.0, -2.0])
        >>> optim.Lion([weight], lr=0.5).step({weight: [0.001, -300.0]})
        >>> weight.value.tolist()
        [0.5, -1.5]

    Source: Chen et al., "Symbolic Discovery of Optimization Algorithms", 2023, algorithm 2.
    """

    params: InitVar[Any] = None
    lr: InitVar[LearningRate] = 1e-4
    betas: InitVar[Decays] = (0.9, 0.99)
    weight_decay: InitVar[NotNegative] = 0.0
    _: KW_ONLY
    maximize: InitVar[bool] = False
    rule = staticmethod(lion)

    @staticmethod
    def initial(parameter: Tensor, hyper: Hyper) -> State:
        """Returns the state of a parameter before its first step."""
        return {"exp_avg": ops.zeros_like(parameter)}
