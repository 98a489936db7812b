"""Muon, an optimizer of matrices that steps by the orthogonalized momentum of the gradients."""

import math
from dataclasses import InitVar
from typing import Annotated, Any

from emberharmony import Parameter, ops
from emberharmony.core.errors import ShapeError
from emberharmony.core.types import Tensor
from emberharmony.optim import numbers
from emberharmony.optim.groups import State
from emberharmony.optim.optimizer import Hyper, Optimizer
from emberharmony.optim.options import LearningRate, Limit, NotNegative, Share, add_init_and_limits, limit_to_values
from emberharmony.optim.terms import at_least_float32, decayed_parameter, moving_average, step_along

_COEFFICIENTS = Limit("three numbers", lambda value: len(value) == 3 and all(math.isfinite(x) for x in value))
_STEPS = Limit("an integer in [0, 100)", lambda value: int(value) == value and 0 <= value < 100)


def muon(gradient: Tensor, parameter: Tensor, state: State, hyper: Hyper) -> tuple[Tensor, State]:
    """Returns a matrix and its state after one step of Muon."""
    if len(parameter.shape) != 2:
        raise ShapeError(f"Muon(): a parameter has shape {tuple(parameter.shape)}, expected 2 axes; use AdamW for it")
    momentum = hyper["momentum"]
    momentum_buffer = moving_average(state["momentum_buffer"], gradient, momentum)
    direction = moving_average(momentum_buffer, gradient, momentum) if hyper["nesterov"] else momentum_buffer
    direction = orthogonalize(direction, hyper["ns_coefficients"], hyper["ns_steps"], hyper["eps"])
    row_count, column_count = parameter.shape
    if hyper["adjust_lr_fn"] == "match_rms_adamw":
        size_factor = 0.2 * math.sqrt(max(row_count, column_count))
    else:
        size_factor = math.sqrt(max(1.0, row_count / max(column_count, 1)))
    new_parameter = step_along(
        decayed_parameter(parameter, hyper), direction, numbers.multiply(hyper["lr"], size_factor)
    )
    return new_parameter, {"momentum_buffer": momentum_buffer}


def orthogonalize(matrix: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float) -> Tensor:
    """Returns a matrix with the singular vectors of `matrix` and singular values near 1, by Newton-Schulz iterations.

    Each iteration applies the polynomial `a x + b x**3 + c x**5` to the singular values.

    Args:
        matrix: (rows, columns); matrices of 16 bits are computed in float32.
        coefficients: a, b and c.
        steps: the number of iterations.
        eps: the least norm by which the matrix is divided first.
    """
    a, b, c = coefficients
    x = at_least_float32(matrix)
    is_tall = x.shape[0] > x.shape[1]
    x = ops.transpose(x) if is_tall else x
    x = ops.divide(x, ops.maximum(ops.norm(ops.ravel(x)), eps))
    for _ in range(steps):
        gram = ops.matmul(x, ops.transpose(x))
        gram_polynomial = ops.add(ops.multiply(gram, b), ops.multiply(ops.matmul(gram, gram), c))
        x = ops.add(ops.multiply(x, a), ops.matmul(gram_polynomial, x))
    return ops.transpose(x) if is_tall else x


@add_init_and_limits
class Muon(Optimizer):
    """Muon, for matrices: momentum whose singular values are made equal before the step.

    It is meant for the hidden layers of a network. Give embeddings, the last layer, and parameters with another number
    of axes than 2 to AdamW. Unlike torch, which iterates in bfloat16, this computes in the dtype of the parameter, in
    float32 at least.

    Args:
        params: a module, parameters, a tree with parameters, pairs of name and parameter, or a list of groups; each
            parameter has 2 axes. None is for the pure form alone.
        lr: the learning rate, or a schedule, a function of the number of steps so far.
        weight_decay: the factor of the decoupled decay.
        momentum: the decay of the average of the gradients.
        nesterov: whether the step looks ahead by the momentum.
        ns_coefficients: the polynomial of an iteration, see `orthogonalize`.
        eps: the least norm by which a matrix is divided.
        ns_steps: the number of iterations.
        adjust_lr_fn: how the rate depends on the shape: "original", by the root of rows per column if that is above 1,
            which None means too; "match_rms_adamw", so that a step is as long as one of AdamW.

    Raises:
        ShapeError: if a parameter does not have 2 axes.

    Source: `torch.optim.Muon`; Jordan et al., "Muon: An optimizer for hidden layers in neural networks", 2024.
    """

    params: InitVar[Any] = None
    lr: InitVar[LearningRate] = 1e-3
    weight_decay: InitVar[NotNegative] = 0.1
    momentum: InitVar[Share] = 0.95
    nesterov: InitVar[bool] = True
    ns_coefficients: InitVar[Annotated[tuple[float, float, float], _COEFFICIENTS]] = (3.4445, -4.775, 2.0315)
    eps: InitVar[NotNegative] = 1e-7
    ns_steps: InitVar[Annotated[int, _STEPS]] = 5
    adjust_lr_fn: InitVar[Annotated[str | None, limit_to_values(None, "original", "match_rms_adamw")]] = None
    rule = staticmethod(muon)

    @staticmethod
    def initial(parameter: Tensor, hyper: Hyper) -> State:
        """Returns the state of a parameter before its first step."""
        return {"momentum_buffer": ops.zeros_like(parameter)}

    def check_parameter(self, parameter: Parameter) -> None:
        """Checks that a parameter is a matrix before it is added.

        Args:
            parameter: a parameter that shall be added.

        Raises:
            ShapeError: if it does not have 2 axes.
            DTypeError: if it is trainable, and not real and floating.
        """
        super().check_parameter(parameter)
        if len(parameter.value.shape) != 2:
            raise ShapeError(f"{self._head}{parameter!r} is given, expected 2 axes; use AdamW for it")
