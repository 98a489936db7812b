"""Statistics, on MLX."""

from typing import Any

import mlx.core as mx
import numpy as np

from emberharmony.backend.mlx.dtypes import promotion
from emberharmony.backend.promote import nonempty, normalized
from emberharmony.backend.quantiles import edges, places


class MLXStatisticsOps:
    """Holds the ops of `ops/statistics.py`."""

    @staticmethod
    def quantile(x: mx.array, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False) -> mx.array:
        x = promotion.floats(x)
        axes = normalized(axis, x.ndim)
        nonempty(x.shape, axes)
        kept = [a for a in range(x.ndim) if a not in axes]
        rest = [x.shape[a] for a in kept]
        flat = mx.transpose(x, [*kept, *axes]).reshape([*rest, -1])
        ordered = mx.sort(flat, -1)
        host_q = np.asarray(q)
        low, high, weight = places(host_q.reshape(-1), flat.shape[-1], method)
        weights = mx.array(weight, x.dtype)
        below, above = mx.take(ordered, mx.array(low), -1), mx.take(ordered, mx.array(high), -1)
        result = below + (above - below) * weights
        # Equal neighbours, infinite ones too, have nothing between them.
        result = mx.where(below == above, below, result)
        last = ordered[..., -1:]
        result = mx.where(mx.isnan(last), last, result)
        result = mx.moveaxis(result, -1, 0)
        if keepdims:
            rest = [1 if a in axes else x.shape[a] for a in range(x.ndim)]
        return result.reshape([*host_q.shape, *rest])

    @staticmethod
    def bincount(x: mx.array, weights: mx.array | None = None, minlength: int = 0) -> mx.array:
        if weights is None:
            return mx.array(np.bincount(np.asarray(x), None, minlength))
        weights = promotion.floats(weights)
        counts = np.bincount(np.asarray(x), np.asarray(weights.astype(mx.float32)), minlength)
        return mx.array(counts, weights.dtype)

    @staticmethod
    def histogram(x: mx.array, bins: int = 10, range: tuple[float, float] | None = None) -> tuple[mx.array, mx.array]:
        x = promotion.floats(x)
        low, high = (float(mx.min(x)), float(mx.max(x))) if x.size else (0.0, 1.0)
        steps = mx.array(edges(low, high, bins, range), x.dtype)
        counts, _ = np.histogram(np.asarray(x), np.asarray(steps))
        return mx.array(counts), steps
