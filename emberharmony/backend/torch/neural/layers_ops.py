"""The ops `linear` and `embedding`, on PyTorch: its kernels of a linear layer, which rounds once, and of a table."""

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from emberharmony.backend.shared.arrays.shape import fits_linear
from emberharmony.backend.torch.tracing import HAS_VALUES
from emberharmony.core.dispatch import fast

_PLAIN_LAYER = (
    "{3} is False and {2}.__class__ is native_type and {2}.ndim == 1 "
    "and {0}.dtype is {1}.dtype is {2}.dtype and {0}.is_floating_point()"
)
"""When a layer has a bias, and a matrix in the layout of ops."""

_IDS_OF_TABLE = (
    f"{HAS_VALUES} and {{1}}.__class__ is native_type and {{0}}.itemsize > 2 and {{1}}.ndim == 2 "
    "and {1}.is_floating_point()"
)
"""When the kernel checks that each index is an integer from 0 to rows - 1; if one is not, it raises an error."""


def _quick_linear(x: torch.Tensor, weight: torch.Tensor, bias: Any, _transposed: bool) -> torch.Tensor:
    """Returns a linear layer; PyTorch raises if `x` and the matrix do not fit together."""
    if bias.shape != weight.shape[1:]:
        raise NotImplementedError
    return torch.addmm(bias, x, weight) if x.ndim == 2 else functional.linear(x, weight.mT, bias)


class TorchLayersOps:
    """Holds the ops of `ops/neural/layers.py`.

    PyTorch's kernel adds the bias with the product, so it rounds once, and is what `torch.nn.Linear` computes; the body
    rounds twice. Its kernel for rows of a table takes half the time of the body, for few elements.
    """

    composed: Callable[[str], Callable[..., torch.Tensor]]

    @fast(_quick_linear, _PLAIN_LAYER, whole=True)
    def linear(
        self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, transposed: bool = False
    ) -> torch.Tensor:
        dtype = x.dtype
        is_supported = dtype.is_floating_point and weight.dtype is dtype and (bias is None or bias.dtype is dtype)
        if not (is_supported and fits_linear(x, weight, bias, transposed)):
            return self.composed("linear")(x, weight, bias, transposed)
        return functional.linear(x, weight if transposed else weight.mT, bias)

    @fast(lambda indices, table: torch.embedding(table, indices), _IDS_OF_TABLE, whole=True)
    def embedding(self, indices: Any, table: torch.Tensor) -> torch.Tensor:
        return self.composed("embedding")(indices, table)
