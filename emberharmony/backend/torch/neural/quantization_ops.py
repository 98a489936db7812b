"""Products by quantised matrices, on PyTorch: their gradients compute the values of the matrix again."""

from collections.abc import Callable
from typing import Any

import torch
from torch.autograd import forward_ad

_OPTIONS = 4
"""How many arguments of `_Product` are not tensors: the composite and its options."""


class TorchQuantizationOps:
    """Holds the ops of `ops/neural/quantization.py`.

    For its gradient the body would keep the values of the whole matrix; the function of this class computes them again.
    """

    composed: Callable[[str], Callable[..., torch.Tensor]]

    def quantized_matmul(
        self,
        x: torch.Tensor,
        w: torch.Tensor,
        scales: torch.Tensor,
        biases: torch.Tensor,
        *,
        transpose: bool = True,
        group_size: int = 64,
        bits: int = 4,
    ) -> torch.Tensor:
        composite = self.composed("quantized_matmul")
        if torch.compiler.is_compiling() or forward_ad._current_level >= 0 or not torch.is_grad_enabled():
            # torch.compile (PyTorch 2.13) chooses by itself what it keeps for the gradient.
            return composite(x, w, scales, biases, transpose=transpose, group_size=group_size, bits=bits)
        product: torch.Tensor = _Product.apply(  # type: ignore[no-untyped-call]
            composite, transpose, group_size, bits, x, w, scales, biases
        )
        return product


class _Product(torch.autograd.Function):
    """Multiplies by a quantised matrix, and keeps the packed integers for the gradient."""

    generate_vmap_rule = True

    @staticmethod
    def forward(
        composite: Any,
        transpose: bool,
        group_size: int,
        bits: int,
        x: torch.Tensor,
        w: torch.Tensor,
        scales: torch.Tensor,
        biases: torch.Tensor,
    ) -> torch.Tensor:
        """Returns the product."""
        product: torch.Tensor = composite(x, w, scales, biases, transpose=transpose, group_size=group_size, bits=bits)
        return product

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        """Saves the arguments."""
        ctx.options = inputs[:_OPTIONS]
        ctx.save_for_backward(*inputs[_OPTIONS:])

    @staticmethod
    def backward(ctx: Any, cotangent: torch.Tensor) -> Any:
        """Returns the gradients by `x`, the scales and the biases."""
        composite, transpose, group_size, bits = ctx.options
        x, w, scales, biases = ctx.saved_tensors
        by_x = by_scales = by_biases = None
        if ctx.needs_input_grad[_OPTIONS]:
            gradient: torch.Tensor = _Product.apply(  # type: ignore[no-untyped-call]
                composite, not transpose, group_size, bits, cotangent, w, scales, biases
            )
            by_x = gradient.to(x.dtype)
        if any(ctx.needs_input_grad[_OPTIONS + 2 :]):
            wide = torch.promote_types(torch.promote_types(x.dtype, cotangent.dtype), torch.float32)
            left, right = (
                rows.to(wide).reshape(-1, rows.shape[-1]) for rows in ((cotangent, x) if transpose else (x, cotangent))
            )
            by_groups = (left.mT @ right).reshape(*scales.shape, group_size)
            by_biases = by_groups.sum(-1).to(biases.dtype)
            by_scales = (by_groups * integers(w, bits).reshape(by_groups.shape)).sum(-1).to(scales.dtype)
        return *(None,) * _OPTIONS, by_x, None, by_scales, by_biases


def integers(w: torch.Tensor, bits: int) -> torch.Tensor:
    """Returns packed integers of 4 or 8 bits as uint8."""
    small = w.contiguous().view(torch.uint8)
    return small if bits == 8 else torch.stack([small & 15, small >> 4], -1)
