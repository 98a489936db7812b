"""The op `linear`, on PyTorch: its kernel of a linear layer, which rounds once."""

from collections.abc import Callable

import torch
from torch.nn import functional

from emberharmony.backend.shared.arrays.shape import fits_linear


class TorchLayersOps:
    """Holds the ops of `ops/neural/layers.py`.

    PyTorch's kernel adds the bias with the product, so it rounds once, and is what `torch.nn.Linear` computes; the body
    rounds twice.
    """

    composed: Callable[[str], Callable[..., torch.Tensor]]

    def linear(
        self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, transposed: bool = False
    ) -> torch.Tensor:
        dtype = x.dtype
        is_plain = dtype.is_floating_point and weight.dtype is dtype and (bias is None or bias.dtype is dtype)
        if not (is_plain and fits_linear(x, weight, bias, transposed)):
            return self.composed("linear")(x, weight, bias, transposed)
        return functional.linear(x, weight if transposed else weight.mT, bias)
