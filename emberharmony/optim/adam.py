"""Adam and the optimizers that follow from it: AdamW, Adamax, NAdam and RAdam."""

from collections.abc import Mapping
from typing import Any, ClassVar

from emberharmony import ops
from emberharmony.core.types import Tensor
from emberharmony.optim import numbers
from emberharmony.optim.numbers import one_minus_power
from emberharmony.optim.optimizer import Hyper, Optimizer, State
from emberharmony.optim.options import AT_LEAST_0, DECAYS, FLAG, RATE, Limit
from emberharmony.optim.schedules import Rate
from emberharmony.optim.terms import ascent_or_descent, averaged, decayed, moved, squares_averaged, with_decay

_LIMITS = {"lr": RATE, "betas": DECAYS, "eps": AT_LEAST_0, "weight_decay": AT_LEAST_0}


def _begun(gradient: Tensor, parameter: Tensor, hyper: Hyper) -> tuple[Tensor, Tensor]:
    """Returns the gradient and the parameter after weight decay, which enters either the one or the other."""
    if hyper["decoupled_weight_decay"]:
        return ascent_or_descent(gradient, hyper), decayed(parameter, hyper)
    return with_decay(gradient, parameter, hyper), parameter


def adam(gradient: Tensor, parameter: Tensor, state: State, hyper: Hyper) -> tuple[Tensor, State]:
    """Returns a parameter and its state after one step of Adam or AdamW."""
    beta1, beta2 = hyper["betas"]
    step = numbers.add(state["step"], 1)
    gradient, parameter = _begun(gradient, parameter, hyper)
    mean = averaged(state["exp_avg"], gradient, beta1)
    square = largest = squares_averaged(state["exp_avg_sq"], gradient, beta2)
    found = {"step": step, "exp_avg": mean, "exp_avg_sq": square}
    if hyper["amsgrad"]:
        largest = found["max_exp_avg_sq"] = ops.maximum(state["max_exp_avg_sq"], square)
    root = ops.divide(ops.sqrt(largest), numbers.sqrt(one_minus_power(beta2, step)))
    rate = numbers.divide(hyper["lr"], one_minus_power(beta1, step))
    return moved(parameter, ops.divide(mean, ops.add(root, hyper["eps"])), rate), found


class Adam(Optimizer):
    """Adam: steps by the moving average of the gradients, divided by the root of that of their squares.

    Args:
        params: see `Optimizer`.
        lr: the learning rate, or a schedule.
        betas: the decays of the average of the gradients and of that of their squares.
        eps: what is added to the root.
        weight_decay: the factor of an L2 penalty.
        amsgrad: whether the largest average of squares so far is used.
        maximize: whether the loss is maximized.
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

    limits: ClassVar[Mapping[str, Limit]] = {
        **_LIMITS,
        "amsgrad": FLAG,
        "maximize": FLAG,
        "decoupled_weight_decay": FLAG,
    }
    rule = staticmethod(adam)

    def __init__(
        self,
        params: Any = None,
        lr: Rate = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        decoupled_weight_decay: bool = False,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas=betas,
            eps=eps,
            weight_decay=weight_decay,
            amsgrad=amsgrad,
            maximize=maximize,
            decoupled_weight_decay=decoupled_weight_decay,
        )

    @staticmethod
    def initial(parameter: Tensor, hyper: Hyper) -> State:
        """Returns the state of a parameter before its first step."""
        zeros = ops.zeros_like(parameter)
        state = {"step": 0, "exp_avg": zeros, "exp_avg_sq": zeros}
        return {**state, "max_exp_avg_sq": zeros} if hyper["amsgrad"] else state


class AdamW(Adam):
    """Adam with decoupled weight decay: before each step a parameter is multiplied by `1 - lr * weight_decay`.

    Args:
        params: see `Optimizer`.
        lr: the learning rate, or a schedule.
        betas: the decays of the average of the gradients and of that of their squares.
        eps: what is added to the root.
        weight_decay: the factor of the decay.
        amsgrad: whether the largest average of squares so far is used.
        maximize: whether the loss is maximized.

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
