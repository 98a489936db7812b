"""Activations, normalisations and losses, on PyTorch: the fused kernels where they mean the same."""

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from emberharmony.backend.promote import normalized
from emberharmony.backend.torch.dtypes import promotion
from emberharmony.core.dispatch import fast


def _over_axes(native: Callable[[torch.Tensor, int], torch.Tensor]) -> Any:
    """Returns a softmax over one axis or several, which are joined to one."""

    @fast(native, "{1}.__class__ is int")
    def softmax(x: torch.Tensor, axis: Any = -1) -> torch.Tensor:
        x = promotion.floats(x)
        if isinstance(axis, int):
            return native(x, axis)
        axes = normalized(axis, x.ndim)
        kept = [a for a in range(x.ndim) if a not in axes]
        order = [*kept, *axes]
        moved = x.permute(*order)
        flat = native(moved.reshape([*moved.shape[: len(kept)], -1]), -1).reshape(moved.shape)
        return flat.permute(*sorted(range(x.ndim), key=order.__getitem__))

    return softmax


class TorchNnOps:
    """Holds the ops of `ops/nn.py`."""

    relu = staticmethod(torch.relu)
    sigmoid = staticmethod(promotion.unary(torch.sigmoid))
    silu = staticmethod(promotion.unary(functional.silu))
    log_sigmoid = staticmethod(promotion.unary(functional.logsigmoid))
    softmax = staticmethod(_over_axes(torch.softmax))
    log_softmax = staticmethod(_over_axes(torch.log_softmax))

    @staticmethod
    def gelu(x: torch.Tensor, approximate: bool = True) -> torch.Tensor:
        return functional.gelu(promotion.floats(x), approximate="tanh" if approximate else "none")
