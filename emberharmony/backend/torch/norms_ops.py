"""Norms, on PyTorch: computed in float64, where no square of a float32 overflows and no digits are lost."""

from collections.abc import Callable
from typing import Any

import torch

from emberharmony.backend.promote import nonempty, normalized
from emberharmony.backend.shared.norms import leaves_float64, order_of, range_of
from emberharmony.backend.torch.dtypes import promotion


def _is_held(norms: torch.Tensor, ord: float) -> bool:
    """Returns whether the powers of which these are the norms are known to have stayed in the range of float64."""
    if torch.compiler.is_compiling() or not norms.is_cpu:
        return False
    low, high = range_of(ord)
    try:
        if not norms.ndim:
            return low < norms.item() < high
        return not norms.numel() or (low < norms.min().item() and norms.max().item() < high)
    except RuntimeError:  # inside a transform that maps over the tensor
        return False


def _norm(x: torch.Tensor, axes: tuple[int, ...], keepdims: bool, ord: float) -> torch.Tensor:
    if not x.numel() and ord == torch.inf:
        ord = 1  # 0 as well, and PyTorch has no maximum of nothing
    if not x.numel() and ord < 0:
        # The root of 0 of a negative degree; PyTorch refuses it.
        return torch.linalg.vector_norm(x, 1, axes, keepdims).add(torch.inf)
    if not axes:
        x, axes, keepdims = x.unsqueeze(-1), (-1,), False  # PyTorch takes no axes for all
    kind = x.real.dtype
    # Metal has no float64.
    wide = None if x.device.type == "mps" else torch.complex128 if x.is_complex() else torch.float64
    if wide is not None and ord not in (1, 2):
        x = x.to(wide)  # PyTorch would compute the derivative in the dtype of `x`, where its powers overflow
    return torch.linalg.vector_norm(x, ord, axes, keepdims, dtype=wide).to(kind)


class TorchNormsOps:
    """Holds the ops of `ops/norms.py`."""

    composed: Callable[[str], Callable[..., torch.Tensor]]

    def vector_norm(self, x: torch.Tensor, axis: Any = None, keepdims: bool = False, ord: float = 2) -> torch.Tensor:
        x, ord = promotion.floats(x), order_of(ord)
        axes = normalized(axis, x.ndim)
        if ord == -torch.inf:
            nonempty(x.shape, axis)
        result = _norm(x, axes, keepdims, ord)
        if not x.numel() or not leaves_float64(ord, x.real.itemsize * 8) or _is_held(result.detach(), ord):
            return result
        # The composite divides by the largest element, so that no power overflows.
        return self.composed("vector_norm")(x, axis, keepdims, ord)
