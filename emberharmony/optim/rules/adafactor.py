"""Adafactor: the averages of squares of a matrix as the product of a column and a row."""

from dataclasses import KW_ONLY, InitVar
from typing import Annotated, Any

from emberharmony import ops
from emberharmony.core.types import Tensor
from emberharmony.optim import numbers
from emberharmony.optim.groups import State
from emberharmony.optim.optimizer import Hyper, Optimizer
from emberharmony.optim.options import LearningRate, Limit, NotNegative, add_init_and_limits
from emberharmony.optim.terms import at_least_float32, decayed_parameter, descent_gradient, step_along

_EPS = Limit(
    "None or a number >= 0, and a number >= 0", lambda e: len(e) == 2 and (e[0] is None or e[0] >= 0) and e[1] >= 0
)
_AT_MOST_0 = Limit("a number <= 0", lambda value: value <= 0)
_AT_LEAST_1 = Limit("a number >= 1", lambda value: value >= 1)


def adafactor(gradient: Tensor, parameter: Tensor, state: State, hyper: Hyper) -> tuple[Tensor, State]:
    """Returns a parameter and its state after one step of Adafactor."""
    gradient = descent_gradient(gradient, hyper)
    step = numbers.add(state["step"], 1)
    step_share = numbers.power(step, hyper["beta2_decay"])
    eps1, eps2 = hyper["eps"]
    eps1 = ops.finfo(ops.dtype(parameter)).eps if eps1 is None else eps1
    squared_gradient = ops.square(gradient)
    new_state: State = {"step": step}
    if "row_var" in state:
        row_average = new_state["row_var"] = _running_average(
            state["row_var"], ops.mean(squared_gradient, axis=-1, keepdims=True), step_share
        )
        column_average = new_state["col_var"] = _running_average(
            state["col_var"], ops.mean(squared_gradient, axis=-2, keepdims=True), step_share
        )
        mean_of_rows = ops.maximum(ops.mean(row_average, axis=-2, keepdims=True), eps1)
        variance_estimate = ops.divide(ops.multiply(row_average, column_average), mean_of_rows)
    else:
        variance_estimate = new_state["variance"] = _running_average(state["variance"], squared_gradient, step_share)
    direction = ops.multiply(gradient, ops.rsqrt(ops.maximum(variance_estimate, eps1 * eps1)))
    rate = numbers.minimum(hyper["lr"], numbers.divide(1.0, numbers.sqrt(step)))
    step_size = ops.multiply(ops.maximum(_root_mean_square(parameter), eps2), rate)
    clip_ratio = ops.maximum(ops.divide(_root_mean_square(direction), hyper["d"]), 1.0)
    return step_along(decayed_parameter(parameter, hyper), direction, ops.divide(step_size, clip_ratio)), new_state


def _running_average(average: Tensor, x: Tensor, step_share: numbers.Number) -> Tensor:
    """Returns `average + share * (x - average)`."""
    return ops.add(average, ops.multiply(ops.subtract(x, average), step_share))


def _root_mean_square(x: Tensor) -> Tensor:
    return (
        ops.sqrt(ops.mean(ops.square(at_least_float32(x))))
        if ops.size(x)
        else ops.zeros((), ops.dtype(at_least_float32(x)))
    )


@add_init_and_limits
class Adafactor(Optimizer):
    """Adafactor: Adam without momentum, in which a matrix of n rows and m columns has a state of n + m numbers.

    Args:
        lr: the largest learning rate relative to the parameter, or a schedule of it; the rate is at most
            `1 / sqrt(step)`.
        beta2_decay: the power of the step count that is the share of the new squares in their average.
        eps: the least average of squares, as its root, by default the eps of the dtype; and the least size of a
            parameter to which steps are relative.
        d: the root mean square above which a step is scaled down.
        weight_decay: the factor of the decoupled decay.
        maximize: whether the loss is maximized, by steps along the gradient.

    Source: `torch.optim.Adafactor`; Shazeer and Stern, "Adafactor: Adaptive Learning Rates with Sublinear Memory
    Cost", 2018.
    """

    params: InitVar[Any] = None
    lr: InitVar[LearningRate] = 1e-2
    beta2_decay: InitVar[Annotated[float, _AT_MOST_0]] = -0.8
    eps: InitVar[Annotated[tuple[float | None, float], _EPS]] = (None, 1e-3)
    d: InitVar[Annotated[float, _AT_LEAST_1]] = 1.0
    weight_decay: InitVar[NotNegative] = 0.0
    _: KW_ONLY
    maximize: InitVar[bool] = False
    rule = staticmethod(adafactor)

    @staticmethod
    def initial(parameter: Tensor, hyper: Hyper) -> State:
        """Returns the state of a parameter before its first step."""
        zeros = ops.zeros_like(parameter)
        if len(parameter.shape) < 2:
            return {"step": 0, "variance": zeros}
        row_zeros, column_zeros = (ops.sum(zeros, axis=axis, keepdims=True) for axis in (-1, -2))
        return {"step": 0, "row_var": row_zeros, "col_var": column_zeros}
