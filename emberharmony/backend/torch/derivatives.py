"""Replacements for derivatives that PyTorch has wrong, in forward mode or in higher orders."""

from collections.abc import Sequence
from typing import Any

import torch
from torch._C._functorch import TransformType
from torch.autograd import forward_ad
from torch.overrides import has_torch_function


def is_nested_gradient(x: torch.Tensor) -> bool:
    """Returns whether a gradient of a gradient by `x` is being computed, by `torch.func` or by autograd around it.

    Some kernels then treat the values that they saved in the forward pass as constants: `layer_norm` does so with its
    mean and standard deviation (PyTorch 2.13).
    """
    if torch.compiler.is_compiling():
        return False
    level_count = sum(level.key() == TransformType.Grad for level in torch._C._functorch.get_interpreter_stack() or ())
    return level_count > 1 or (level_count == 1 and bool(torch._C._functorch.get_unwrapped(x).requires_grad))


_ENGINE: Any = torch.autograd.Variable._execution_engine


def run_engine(
    y: torch.Tensor, inputs: Sequence[torch.Tensor], cotangent: torch.Tensor, create_graph: bool, keep: bool = False
) -> Sequence[torch.Tensor | None]:
    """Returns the gradients of a tensor, None for an input on which it does not depend.

    Half of the time of `torch.autograd.grad` (PyTorch 2.13) in front of the engine is a copy of the context for the
    threads of accelerators, and another part the checks of its arguments. On the CPU the engine runs in this thread.

    Args:
        y: the tensor.
        inputs: what it is differentiated by.
        cotangent: of the shape of `y`.
        create_graph: whether the gradients will be differentiated.
        keep: whether the graph will be used again.
    """
    if create_graph or not y.is_cpu or has_torch_function((y, *inputs)):
        return torch.autograd.grad(y, inputs, cotangent, keep or create_graph, create_graph, allow_unused=True)
    gradients: Sequence[torch.Tensor | None] = _ENGINE.run_backward(
        (y,), (cotangent,), keep, False, tuple(inputs), allow_unreachable=True, accumulate_grad=False
    )
    return gradients


class _Multiplied(torch.autograd.Function):
    """An autograd function that multiplies rows by the updates at their indices, with a forward mode.

    The forward mode of PyTorch's `scatter_reduce` (2.13) silently returns a zero tangent for products. Here, second
    derivatives are 0 where two factors of a product are 0, even if the true ones are not.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(rows: torch.Tensor, places: torch.Tensor, updates: torch.Tensor) -> torch.Tensor:
        """Returns the rows multiplied by the updates at their indices."""
        return _scatter_product(rows, places, updates)

    @staticmethod
    def setup_context(ctx: Any, inputs: Sequence[torch.Tensor], output: torch.Tensor) -> None:
        """Saves the arguments for the derivatives."""
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, cotangent: torch.Tensor) -> Any:
        """Returns the gradients by the rows and the updates."""
        rows, row_indices, updates = ctx.saved_tensors
        row_slopes, slopes_of_updates = (slope.conj() for slope in _product_slopes(rows, row_indices, updates))
        return cotangent * row_slopes, None, cotangent[row_indices] * slopes_of_updates

    @staticmethod
    def jvp(ctx: Any, rows_tangent: torch.Tensor | None, _: None, updates_tangent: torch.Tensor | None) -> torch.Tensor:
        """Returns the tangent of the multiplied rows."""
        rows, row_indices, updates = ctx.saved_tensors
        row_slopes, slopes_of_updates = _product_slopes(rows, row_indices, updates)
        tangent = torch.zeros_like(rows) if rows_tangent is None else rows_tangent * row_slopes
        return (
            tangent
            if updates_tangent is None
            else tangent.index_add(0, row_indices, updates_tangent * slopes_of_updates)
        )


def _scatter_product(rows: torch.Tensor, row_places: torch.Tensor, updates: torch.Tensor) -> torch.Tensor:
    row_indices = row_places.reshape(-1, *(1,) * (rows.ndim - 1)).expand(updates.shape)
    return rows.scatter_reduce(0, row_indices, updates, "prod")


def _product_slopes(
    rows: torch.Tensor, places: torch.Tensor, updates: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the derivatives of rows multiplied by updates, with respect to the rows and to the updates.

    Each is the product of all other factors. Zeros are counted and left out, so that nothing is divided by zero.
    """
    is_zero = updates == 0
    factors = torch.where(is_zero, 1, updates)
    product = multiply_rows(torch.ones_like(rows), places, factors)
    zero_counts = torch.zeros_like(rows).index_add(0, places, is_zero.to(rows.dtype))
    slopes_of_updates = torch.where(zero_counts[places] == is_zero, product[places] / factors, 0)
    return torch.where(zero_counts > 0, 0, product), rows[places] * slopes_of_updates


def multiply_rows(rows: torch.Tensor, places: torch.Tensor, updates: torch.Tensor) -> torch.Tensor:
    """Returns rows multiplied by the updates at their indices, with a correct forward mode."""
    if forward_ad._current_level < 0:
        return _scatter_product(rows, places, updates)
    product: torch.Tensor = _Multiplied.apply(rows, places, updates)  # type: ignore[no-untyped-call]
    return product
