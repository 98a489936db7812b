"""Special functions and their derivatives, on PyTorch, for those that lack an accurate kernel."""

import types
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from emberharmony.backend.shared.elementwise import special_integrals
from emberharmony.backend.shared.elementwise.special_binding import (
    compute_everywhere,
    shared_function_of,
    smooth_namespace,
    special_namespace,
)
from emberharmony.backend.shared.elementwise.special_derivatives import DERIVATIVES, no_gradient_error
from emberharmony.backend.torch.elementwise.elementary_ops import TorchElementaryOps
from emberharmony.backend.torch.elementwise.special_ops import (
    INPUTS,
    NATIVE,
    ROUNDED,
    TorchSpecialOps,
    are_orders_moderate,
    special_function,
)
from emberharmony.backend.torch.tracing import has_values

_BLOCK = 2**14
"""The number of elements computed at once on the CPU: the intermediate results then stay in the cache."""


def _compute_where(mask: torch.Tensor, function: Callable[..., torch.Tensor], *arguments: torch.Tensor) -> torch.Tensor:
    """Returns a tensor with a function's results where a mask is true, computed only there, and 0 elsewhere."""
    indices = mask.nonzero().reshape(-1)
    if len(indices) == len(mask):
        return function(*arguments)
    filled_tensor = torch.zeros_like(arguments[0])
    return (
        filled_tensor.index_copy_(0, indices, function(*(x[indices] for x in arguments)))
        if len(indices)
        else filled_tensor
    )


def _compute_namespace(digits: special_integrals.Digits, picks: bool) -> types.SimpleNamespace:
    """Returns the namespace of PyTorch's functions with which the shared special functions compute."""
    return special_namespace(
        torch,
        lambda numbers, x: torch.tensor(numbers, dtype=x.dtype, device=x.device).reshape(-1, *(1,) * x.ndim),
        lambda table, index: torch.tensor(table, dtype=index.dtype, device=index.device)[index.to(torch.int64)],
        digits,
        pick=_compute_where if picks else compute_everywhere,
        picks=picks,
        power=torch.pow,
    )


_NAMESPACES = {
    (double, picks): _compute_namespace(special_integrals.DOUBLE if double else special_integrals.SINGLE, picks)
    for double in (False, True)
    for picks in (False, True)
}
"""By whether the results need all digits of float64, and whether the namespace picks."""
_SHARED = {name: shared_function_of(name) for name in DERIVATIVES if name not in NATIVE}
"""Functions of a namespace and of float64 tensors of one shape."""


def _has_rounded_kernel(name: str, x: torch.Tensor) -> bool:
    """Returns whether a function of `ROUNDED`, of fewer digits, computes this function for orders like those of `x`."""
    return name in ROUNDED and (name not in ("gammainc", "gammaincc") or (has_values(x) and are_orders_moderate(x)))


def _compute_by_blocks(name: str, double: bool, tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Returns the result of a function of `backend.shared` for float64 tensors, on the CPU block by block."""
    function = _SHARED[name]
    if not all(map(has_values, tensors)):
        return function(_NAMESPACES[double, False], *tensors)
    xp, shape = _NAMESPACES[double, True], tensors[0].shape
    flat_tensors = [x.reshape(-1) for x in tensors]
    if len(flat_tensors[0]) <= _BLOCK:
        return function(xp, *flat_tensors).reshape(shape)
    blocks = zip(*(torch.split(x, _BLOCK) for x in flat_tensors), strict=True)
    return torch.cat([function(xp, *block) for block in blocks]).reshape(shape)


class Special(torch.autograd.Function):
    """The autograd function of a special function, computed in float64, with its shared derivatives."""

    generate_vmap_rule = True

    @staticmethod
    def forward(name: str, x: torch.Tensor, y: torch.Tensor | None, z: torch.Tensor | None) -> torch.Tensor:
        """Returns the result of the special function in the dtype of the tensors; arguments it does not take are None.

        Dynamo (PyTorch 2.13) passes the context as the first argument of a `forward` with `*tensors` if no argument
        needs a gradient.
        """
        tensors = [t for t in (x, y, z) if t is not None]
        # Compute in float32 on MPS, which has no float64.
        wide_dtype = torch.float32 if x.device.type == "mps" else torch.float64
        wide_tensors = [t.to(wide_dtype) for t in tensors]
        if len(wide_tensors) > 1:
            wide_tensors = list(torch.broadcast_tensors(*wide_tensors))  # type: ignore[no-untyped-call]
        if name in NATIVE:
            return NATIVE[name](*wide_tensors).to(x.dtype)
        if x.dtype is not wide_dtype and _has_rounded_kernel(name, wide_tensors[0]):
            return ROUNDED[name](*wide_tensors).to(x.dtype)
        return _compute_by_blocks(name, x.dtype is wide_dtype, wide_tensors).to(x.dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        """Saves the arguments and the result for the derivatives."""
        ctx.name, *tensors = inputs
        # Without this PyTorch passes zeros for missing tangents, also for those of arguments that have no gradient.
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors, output)
        ctx.save_for_forward(*tensors, output)

    @staticmethod
    def backward(ctx: Any, cotangent: torch.Tensor | None) -> Any:
        """Returns the gradients by the arguments of the special function."""
        tensors, y = _saved_tensors(ctx)
        if cotangent is None:
            return (None,) * INPUTS
        gradients = [
            (cotangent * _evaluate_derivative(derivative, tensors, y)).sum_to_size(x.shape) if needs_gradient else None
            for derivative, x, needs_gradient in zip(
                DERIVATIVES[ctx.name], tensors, ctx.needs_input_grad[1:], strict=False
            )
        ]
        return None, *gradients, *(None,) * (INPUTS - 1 - len(gradients))


class SpecialInBothModes(Special):
    """The same autograd function with a forward mode, which torch.compile (PyTorch 2.13) cannot trace."""

    @staticmethod
    def jvp(ctx: Any, _: None, *tangents: torch.Tensor | None) -> torch.Tensor:
        """Returns the tangent of the special function's result."""
        tensors, y = _saved_tensors(ctx)
        derivatives_and_tangents = zip(DERIVATIVES[ctx.name], tangents, strict=False)
        tangent_terms = [
            tangent * _evaluate_derivative(derivative, tensors, y)
            for derivative, tangent in derivatives_and_tangents
            if tangent is not None
        ]
        return sum(tangent_terms, torch.zeros_like(y))


def _saved_tensors(ctx: Any) -> tuple[list[torch.Tensor], torch.Tensor]:
    """Returns the saved arguments of a special function, and its result."""
    *primals, y = ctx.saved_tensors
    return [x for x in primals if x is not None], y


def _evaluate_derivative(derivative: Any, tensors: list[torch.Tensor], y: torch.Tensor) -> Any:
    if isinstance(derivative, str):
        raise no_gradient_error(derivative)
    return derivative(DERIVED, *tensors, y)


DERIVED = smooth_namespace(
    TorchSpecialOps, torch, lambda name: partial(special_function, name), i0=TorchElementaryOps.i0
)
"""What the derivatives compute with."""
