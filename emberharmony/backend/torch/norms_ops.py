"""Norms, on PyTorch: computed in float64, where no square of a float32 overflows and no digits are lost."""

from typing import Any

import torch

from emberharmony.backend.promote import nonempty, normalized
from emberharmony.backend.torch.dtypes import promotion


class TorchNormsOps:
    """Holds the ops of `ops/norms.py`."""

    @staticmethod
    def vector_norm(x: torch.Tensor, axis: Any = None, keepdims: bool = False, ord: float = 2) -> torch.Tensor:
        x = promotion.floats(x)
        axes = normalized(axis, x.ndim)
        if ord == -torch.inf:
            nonempty(x.shape, axis)
        if not x.numel() and ord == torch.inf:
            ord = 1  # 0 as well, and PyTorch has no maximum of nothing
        if not x.numel() and ord < 0:
            # The root of 0 of a negative degree; PyTorch refuses it.
            return torch.linalg.vector_norm(x, 1, axes, keepdims).add(torch.inf)
        if not axes:
            x, axes, keepdims = x.unsqueeze(-1), (-1,), False  # PyTorch takes no axes for all
        # Metal has no float64.
        wide = None if x.device.type == "mps" else torch.complex128 if x.is_complex() else torch.float64
        return torch.linalg.vector_norm(x, ord, axes, keepdims, dtype=wide).to(x.real.dtype)
