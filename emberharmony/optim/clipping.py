"""Limits gradients before a step, by value or by norm."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from emberharmony import ops
from emberharmony.core.cells.cell import Cell
from emberharmony.core.deferred import Deferred
from emberharmony.core.errors import ArgumentError
from emberharmony.core.state.commits import commit
from emberharmony.core.types import Tensor
from emberharmony.optim.terms import at_least_float32

if TYPE_CHECKING:
    from emberharmony.transforms import derivatives
else:
    derivatives = Deferred("emberharmony.transforms.derivatives")

_SAFE = 1e15
"""The bound of norms: below it and above its inverse, squares in float32 neither overflow nor underflow."""
POLICIES = ("raise", "skip", "zero")


class NonFiniteGradientError(ArgumentError):
    """Raised when a gradient has NaN or an infinity, and the policy is "raise"."""


def clip_by_value(params: Any, limit: float) -> None:
    """Clips each element of the gradients of all parameters in a tree to `[-limit, limit]`; a NaN stays.

    Args:
        params: a tree, or any object that holds parameters in its attributes, such as a module.
        limit: the largest magnitude that an element may have, at least 0.

    Raises:
        ArgumentError: if the limit is negative.

    Example:
        >>> from emberharmony import Parameter, ops, optim
        >>> weight = Parameter([1.0, 1.0])
        >>> weight.grad = ops.convert_to_tensor([-3.0, 0.5])
        >>> optim.clip_by_value(weight, 1.0)
        >>> weight.grad.tolist()
        [-1.0, 0.5]
    """
    _require_positive_limit("clip_by_value", limit)
    _replace_gradients(params, lambda gradient: ops.clip(gradient, -limit, limit))


def clip_by_norm(params: Any, limit: float, *, norm_type: float = 2.0) -> None:
    """Scales the gradient of each parameter in a tree separately, so that its norm is at most `limit`.

    Args:
        params: a tree with parameters.
        limit: the largest norm.
        norm_type: the order of the norm; `float("inf")` is the largest absolute element.

    Raises:
        ArgumentError: if the limit is negative.

    Example:
        >>> from emberharmony import Parameter, ops, optim
        >>> weight = Parameter([1.0, 1.0])
        >>> weight.grad = ops.convert_to_tensor([6.0, 8.0])
        >>> optim.clip_by_norm(weight, 5.0)
        >>> [round(x, 4) for x in weight.grad.tolist()]
        [3.0, 4.0]
    """
    _require_positive_limit("clip_by_norm", limit)
    _replace_gradients(
        params, lambda gradient: _scaled_gradient(gradient, _clip_factor(_joint_norm([gradient], norm_type), limit))
    )


def clip_by_global_norm(params: Any, limit: float, *, norm_type: float = 2.0, nonfinite: str = "raise") -> Tensor:
    """Scales the gradients of all parameters in a tree by one factor to a joint norm of at most `limit`.

    As in torch the factor is `limit / (norm + 1e-6)`, if that is less than 1.

    Args:
        params: a tree with parameters.
        limit: the largest norm of all gradients as one vector.
        norm_type: the order of the norm; `float("inf")` is the largest absolute element.
        nonfinite: what happens if the norm is not finite: "raise" an error and change nothing; "skip": make all
            gradients None, so that the next step changes nothing; "zero": set all gradients to zeros.

    Returns:
        The norm of the gradients before, without axes, of float32 or float64; 0 if there are none.

    Raises:
        ArgumentError: if the limit is negative, or `nonfinite` has another value; if the norm is not finite and
            `nonfinite` is "raise", the subclass `optim.NonFiniteGradientError`.

    Example:
        >>> from emberharmony import Parameter, ops, optim
        >>> model = [Parameter(1.0), Parameter([1.0, 1.0])]
        >>> model[0].grad, model[1].grad = ops.ones(()), ops.convert_to_tensor([2.0, 2.0])
        >>> optim.clip_by_global_norm(model, 1.5).tolist()
        3.0
        >>> [round(x, 4) for x in model[1].grad.tolist()]
        [1.0, 1.0]

    Source: `torch.nn.utils.clip_grad_norm_`.
    """
    _require_positive_limit("clip_by_global_norm", limit)
    if nonfinite not in POLICIES:
        raise ArgumentError(f"clip_by_global_norm(): nonfinite is {nonfinite!r}, expected one of {POLICIES}")
    norm = gradient_norm(params, norm_type)
    if not math.isfinite(ops.to_numpy(norm)):
        if nonfinite == "raise":
            raise _nonfinite_error(norm, params)
        _replace_gradients(params, (lambda gradient: None) if nonfinite == "skip" else ops.zeros_like)
        return norm
    scale_gradients(params, norm, limit)
    return norm


def gradient_norm(params: Any, norm_type: float = 2.0) -> Tensor:
    """Returns the norm of the gradients of all parameters in a tree as one vector, without axes; 0 if there are none.

    Args:
        params: a tree with parameters.
        norm_type: the order of the norm.
    """
    gradients = [cell.grad for cell in _cells_with_gradient(params)]
    if gradients and norm_type == 2:
        sums_of_squares = [ops.sum(ops.square(at_least_float32(gradient))) for gradient in gradients]
        norm = ops.sqrt(ops.sum(ops.stack(sums_of_squares)))
        if 1 / _SAFE < ops.to_numpy(norm) < _SAFE:
            return norm
    return _joint_norm(gradients, norm_type)


def scale_gradients(params: Any, norm: Tensor, limit: float) -> None:
    """Scales the gradients of all parameters in a tree by one factor, so that their known joint norm is within a limit.

    Args:
        params: a tree with parameters.
        norm: the norm of their gradients, which is finite.
        limit: the largest norm that they may have.
    """
    factor = _clip_factor(norm, limit)
    _replace_gradients(params, lambda gradient: _scaled_gradient(gradient, factor))


def _nonfinite_error(norm: Tensor, params: Any) -> NonFiniteGradientError:
    """Returns the error that names up to five parameters whose gradients are not finite."""
    message_start = f"clip_by_global_norm(): the norm of the gradients is {ops.to_numpy(norm)}"
    parameter_texts = [repr(cell) for cell in _cells_with_gradient(params) if not _is_finite(cell.grad)]
    if not parameter_texts:
        return NonFiniteGradientError(f"{message_start}, because their squares exceed the range of the dtype")
    return NonFiniteGradientError(
        f"{message_start}; those of {', '.join(parameter_texts[:5])} are not finite: lower the learning rate, or pass "
        f"nonfinite='skip' or 'zero'"
    )


def _is_finite(gradient: Tensor) -> bool:
    return not _element_count(gradient) or math.isfinite(ops.to_numpy(ops.max(ops.abs(gradient))))


def _require_positive_limit(name: str, limit: float) -> None:
    """Checks that the limit of a gradient's value or norm is a positive number.

    Raises:
        ArgumentError: if it is not at least 0.
    """
    if not limit >= 0:
        raise ArgumentError(f"{name}(): the limit is {limit}, expected a number >= 0")


def _cells_with_gradient(params: Any) -> list[Cell]:
    return [cell for cell in derivatives.parameters_of(params) if cell.grad is not None]


def _replace_gradients(params: Any, change: Callable[[Any], Any]) -> None:
    """Replaces the gradients of all parameters in a tree by those that a function returns for them, all at once."""
    cells = _cells_with_gradient(params)
    new_gradients = []
    for cell in cells:
        # Making a cell of the new gradient checks it, and finds the backend that it belongs to.
        gradient = change(cell.grad)
        new_gradients.append(None if gradient is None else Cell(gradient).tensor_and_home())
    ops.eval([new_gradient[0] for new_gradient in new_gradients if new_gradient is not None])
    commit(cell.exchange_grad_step(new_gradient) for cell, new_gradient in zip(cells, new_gradients, strict=True))


def _joint_norm(gradients: list[Any], norm_type: float) -> Tensor:
    """Returns the joint norm of all elements of gradients, computed in float32 or wider."""
    if not gradients:
        return ops.zeros(())
    norms = [
        ops.norm(at_least_float32(ops.ravel(gradient)), norm_type) if _element_count(gradient) else None
        for gradient in gradients
    ]
    norms_present = [norm for norm in norms if norm is not None]
    if not norms_present:
        return ops.zeros(())
    return norms_present[0] if len(norms_present) == 1 else ops.norm(ops.stack(norms_present), norm_type)


def _element_count(gradient: Any) -> int:
    return int(ops.size(gradient))


def _clip_factor(norm: Any, limit: float) -> Any:
    return ops.minimum(ops.divide(limit, ops.add(norm, 1e-6)), 1.0)


def _scaled_gradient(gradient: Any, factor: Any) -> Any:
    return ops.cast(ops.multiply(gradient, factor), ops.dtype(gradient))
