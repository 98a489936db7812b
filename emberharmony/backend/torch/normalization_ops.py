"""Normalisations, on PyTorch: the fused kernel where it gives the same results and is faster.

Two ops are left to the composites. The kernel of `batch_normalization` has no gradient of the statistics, and loses
digits where the mean is large (200 times the error at a mean of 1e4; PyTorch 2.13). The kernel of `rms_normalization`
is no faster.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from emberharmony.backend.shared.normalization import EPSILON, check_groups
from emberharmony.backend.torch.derivatives import is_nested
from emberharmony.core.options import is_number


class TorchNormalizationOps:
    """Holds the ops of `ops/normalization.py`."""

    composed: Callable[[str], Callable[..., torch.Tensor]]

    def layer_normalization(
        self,
        x: torch.Tensor,
        gamma: torch.Tensor | None = None,
        beta: torch.Tensor | None = None,
        axis: Any = -1,
        epsilon: Any = None,
        *,
        rms_scaling: bool = False,
    ) -> torch.Tensor:
        length = x.shape[-1:]
        plain = all(t is None or (t.dtype is x.dtype and t.shape == length) for t in (gamma, beta))
        plain = plain and axis == -1 and not rms_scaling
        if plain and (epsilon is None or is_number(epsilon)) and length and x.is_floating_point() and not is_nested(x):
            return functional.layer_norm(x, length, gamma, beta, EPSILON if epsilon is None else epsilon)
        return self.composed("layer_normalization")(x, gamma, beta, axis, epsilon, rms_scaling=rms_scaling)

    def group_normalization(
        self,
        x: torch.Tensor,
        groups: int,
        scale: torch.Tensor | None = None,
        offset: torch.Tensor | None = None,
        axis: int = -1,
        epsilon: Any = 1e-3,
    ) -> torch.Tensor:
        place = check_groups(x.shape, groups, axis, scale, offset)
        plain = all(t is None or t.dtype is x.dtype for t in (scale, offset)) and is_number(epsilon)
        # The second derivative of the kernel (PyTorch 2.13) fails for an offset without a scale.
        plain = plain and (scale is not None or offset is None)
        if plain and x.is_floating_point() and x.numel() and not is_nested(x):
            # It also fails for tensors that are not contiguous. functional.group_norm refuses groups of one element.
            rows = x.movedim(place, 1).contiguous()
            result = torch.group_norm(rows, groups, scale, offset, epsilon, torch.backends.cudnn.enabled)
            return result.movedim(1, place)
        return self.composed("group_normalization")(x, groups, scale, offset, axis, epsilon)
