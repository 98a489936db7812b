"""Norms, on PyTorch: computed in float64, so that the square of a float32 cannot overflow and no digits are lost."""

from collections.abc import Callable
from typing import Any

import torch

from emberharmony.backend.promote import nonnegative_axes, require_nonempty
from emberharmony.backend.shared.algebra.norms import is_euclidean, may_leave_float64, norm_order, safe_norm_range
from emberharmony.backend.torch.dtypes import promotion
from emberharmony.core.options import constant


def _stays_in_range(norms: torch.Tensor, ord: float) -> bool:
    """Returns whether norms are known to be computed without overflow or underflow of their powers in float64."""
    if torch.compiler.is_compiling() or not norms.is_cpu:
        return False
    smallest_safe, largest_safe = safe_norm_range(ord)
    try:
        if not norms.ndim:
            return smallest_safe < norms.item() < largest_safe
        return not norms.numel() or (smallest_safe < norms.min().item() and norms.max().item() < largest_safe)
    except RuntimeError:  # torch.func.vmap cannot read values
        return False


def _norm(x: torch.Tensor, axes: tuple[int, ...], keepdims: bool, ord: float) -> torch.Tensor:
    if not axes:
        x, axes, keepdims = x.unsqueeze(-1), (-1,), False  # an empty tuple means all axes to PyTorch
    # PyTorch 2.13 raises for the norm of an empty tensor if `ord` is infinite or negative.
    if not x.numel() and ord == torch.inf:
        ord = 1  # also 0
    if not x.numel() and ord < 0:
        # The sum of no powers is 0, and 0 to a negative power is infinite.
        return torch.linalg.vector_norm(x, 1, axes, keepdims).add(torch.inf)
    dtype = x.real.dtype
    # Metal has no float64.
    wide_dtype = None if x.device.type == "mps" else torch.complex128 if x.is_complex() else torch.float64
    if wide_dtype is not None and ord not in (1, 2):
        x = x.to(wide_dtype)  # else PyTorch computes the derivative in the dtype of `x`, where powers overflow
    return torch.linalg.vector_norm(x, ord, axes, keepdims, dtype=wide_dtype).to(dtype)


class TorchNormsOps:
    """Holds the ops of `ops/algebra/norms.py`.

    The body takes 24 times as long for the usual orders, with few elements.
    """

    composed: Callable[[str], Callable[..., torch.Tensor]]

    def vector_norm(self, x: torch.Tensor, axis: Any = None, keepdims: bool = False, ord: float = 2) -> torch.Tensor:
        if x.is_cpu and is_euclidean(axis, keepdims, ord) and (x.dtype is torch.float32 or x.dtype is torch.float64):
            if x.dtype is torch.float32:
                return torch.linalg.vector_norm(x, dtype=torch.float64).to(torch.float32)
            euclidean_norm = torch.linalg.vector_norm(x)
            if _stays_in_range(euclidean_norm.detach(), 2):
                return euclidean_norm
        x, ord = promotion.floats(x), norm_order(constant("ord", ord))
        axes = nonnegative_axes(axis, x.ndim)
        if ord == -torch.inf:
            require_nonempty(x.shape, axis)
        norms = _norm(x, axes, keepdims, ord)
        if not x.numel() or not may_leave_float64(ord, x.real.itemsize * 8) or _stays_in_range(norms.detach(), ord):
            return norms
        # The composite divides by the largest element first, so no power overflows.
        return self.composed("vector_norm")(x, axis, keepdims, ord)
