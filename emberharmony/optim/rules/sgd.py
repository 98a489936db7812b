"""SGD, stochastic gradient descent with optional momentum."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, InitVar
from typing import Any, ClassVar

from emberharmony import ops
from emberharmony.core.errors import ArgumentError
from emberharmony.core.types import Tensor
from emberharmony.optim import numbers
from emberharmony.optim.declarations import computed_by
from emberharmony.optim.groups import State
from emberharmony.optim.optimizer import Hyper, Optimizer
from emberharmony.optim.options import AnyNumber, LearningRate, NotNegative, add_init_and_limits
from emberharmony.optim.terms import decayed_gradient, step_along, times


@computed_by("sgd")
def sgd(gradient: Tensor, parameter: Tensor, state: State, hyper: Hyper) -> tuple[Tensor, State]:
    """Returns a parameter and its state after one step of gradient descent, with momentum if the option is not 0."""
    gradient = decayed_gradient(gradient, parameter, hyper)
    momentum = hyper["momentum"]
    if not momentum:
        return step_along(parameter, gradient, hyper["lr"]), {}
    step, dampened_gradient = state["step"], gradient
    if hyper["dampening"]:  # the first gradient is not dampened
        gradient_share = numbers.subtract(1.0, numbers.multiply(hyper["dampening"], numbers.minimum(step, 1)))
        dampened_gradient = times(gradient, gradient_share)
    momentum_buffer = ops.add(ops.multiply(state["momentum_buffer"], momentum), dampened_gradient)
    direction = ops.add(gradient, ops.multiply(momentum_buffer, momentum)) if hyper["nesterov"] else momentum_buffer
    return step_along(parameter, direction, hyper["lr"]), {
        "step": numbers.add(step, 1),
        "momentum_buffer": momentum_buffer,
    }


@add_init_and_limits
class SGD(Optimizer):
    """Stochastic gradient descent, with momentum if asked: `v = momentum * v + g; p = p - lr * v`.

    Args:
        lr: the learning rate, or a schedule, a function of the number of steps so far.
        momentum: the factor of the last step's direction.
        dampening: what is taken off the factor 1 of the gradient in the direction, from the second step on.
        weight_decay: the factor of an L2 penalty: this share of the parameter is added to its gradient.
        nesterov: whether the step looks ahead by the momentum.
        maximize: whether the loss is maximized, by steps along the gradient.

    Raises:
        ArgumentError: if `nesterov` is given without momentum or with dampening; see also `Optimizer`.

    Example:
        >>> from emberharmony import Parameter, ops, optim
        >>> weight = Parameter([1.0, 2.0])
        >>> optimizer = optim.SGD([weight], lr=0.25)
        >>> loss = ops.backward(lambda: ops.sum(ops.square(weight)), weight)
        >>> optimizer.step()
        >>> weight.value.tolist()
        [0.5, 1.0]

    Source: `torch.optim.SGD`; Sutskever et al., "On the importance of initialization and momentum", 2013.
    """

    params: InitVar[Any] = None
    lr: InitVar[LearningRate] = 1e-3
    momentum: InitVar[NotNegative] = 0.0
    dampening: InitVar[AnyNumber] = 0.0
    weight_decay: InitVar[NotNegative] = 0.0
    nesterov: InitVar[bool] = False
    _: KW_ONLY
    maximize: InitVar[bool] = False
    unsaved: ClassVar[Mapping[str, float]] = {"step": 1}
    rule = staticmethod(sgd)

    @staticmethod
    def initial(parameter: Tensor, hyper: Hyper) -> State:
        """Returns the state of a parameter before its first step."""
        return {"step": 0, "momentum_buffer": ops.zeros_like(parameter)} if hyper["momentum"] else {}

    def allowed_options(self, options: dict[str, Any]) -> dict[str, Any]:
        """Returns the options of a group after checks of each option, and of `nesterov` with momentum and dampening.

        Args:
            options: all options of the group, by name.
        """
        allowed_by_name = super().allowed_options(options)
        if allowed_by_name["nesterov"] and (not allowed_by_name["momentum"] or allowed_by_name["dampening"]):
            raise ArgumentError(
                f"{self._head}nesterov=True needs momentum > 0 and dampening=0, got "
                f"momentum={allowed_by_name['momentum']} and dampening={allowed_by_name['dampening']}"
            )
        return allowed_by_name
