"""Statistics, on PyTorch."""

from typing import Any

import numpy as np
import torch

from emberharmony.backend.promote import nonempty, normalized
from emberharmony.backend.quantiles import edges, places
from emberharmony.backend.torch.dtypes import promotion


class TorchStatisticsOps:
    """Holds the ops of `ops/statistics.py`."""

    @staticmethod
    def quantile(
        x: torch.Tensor, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False
    ) -> torch.Tensor:
        x = promotion.floats(x)
        axes = normalized(axis, x.ndim)
        nonempty(x.shape, axes)
        kept = [a for a in range(x.ndim) if a not in axes]
        rest = [x.shape[a] for a in kept]
        flat = x.permute(*kept, *axes).reshape([*rest, -1])
        ordered = torch.sort(flat, dim=-1).values
        host_q = np.asarray(q.detach().cpu() if isinstance(q, torch.Tensor) else q)
        low, high, weight = places(host_q.reshape(-1), flat.shape[-1], method)
        weights = torch.from_numpy(weight).to(x)
        below, above = ordered[..., torch.from_numpy(low)], ordered[..., torch.from_numpy(high)]
        result = below + (above - below) * weights
        # Equal neighbours, infinite ones too, have nothing between them.
        result = torch.where(below == above, below, result)
        last = ordered[..., -1:]
        result = torch.where(torch.isnan(last), last, result)
        result = torch.moveaxis(result, -1, 0)
        if keepdims:
            rest = [1 if a in axes else x.shape[a] for a in range(x.ndim)]
        return result.reshape([*host_q.shape, *rest])

    @staticmethod
    def bincount(x: torch.Tensor, weights: torch.Tensor | None = None, minlength: int = 0) -> torch.Tensor:
        counts = torch.bincount(x, weights, minlength)
        return counts if weights is None else counts.to(promotion.floats(weights).dtype)

    @staticmethod
    def histogram(
        x: torch.Tensor, bins: int = 10, range: tuple[float, float] | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        x = promotion.floats(x)
        low, high = (float(x.min()), float(x.max())) if x.numel() else (0.0, 1.0)
        steps = torch.from_numpy(edges(low, high, bins, range)).to(x)
        values = x.reshape(-1)
        values = values[(values >= steps[0]) & (values <= steps[-1])]
        places = (torch.searchsorted(steps, values, right=True) - 1).clamp_max(bins - 1)
        return torch.bincount(places, minlength=bins), steps
