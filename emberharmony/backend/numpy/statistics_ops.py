"""Statistics, on NumPy."""

from typing import Any

import numpy as np

from emberharmony.backend.numpy.dtypes import promotion
from emberharmony.backend.promote import nonempty, normalized
from emberharmony.backend.quantiles import edges, places


class NumpyStatisticsOps:
    """Holds the ops of `ops/statistics.py`."""

    @staticmethod
    def quantile(x: np.ndarray, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False) -> np.ndarray:
        x = promotion.floats(x)
        axes = normalized(axis, x.ndim)
        nonempty(x.shape, axes)
        kept = [a for a in range(x.ndim) if a not in axes]
        rest = [x.shape[a] for a in kept]
        flat = x.transpose([*kept, *axes]).reshape([*rest, -1])
        ordered = np.sort(flat, -1)
        host_q = np.asarray(q)
        low, high, weight = places(host_q.reshape(-1), flat.shape[-1], method)
        weights = weight.astype(x.dtype)
        below, above = ordered[..., low], ordered[..., high]
        result = below + (above - below) * weights
        # Equal neighbours, infinite ones too, have nothing between them.
        result = np.where(below == above, below, result)
        last = ordered[..., -1:]
        result = np.where(np.isnan(last), last, result)
        result = np.moveaxis(result, -1, 0)
        if keepdims:
            rest = [1 if a in axes else x.shape[a] for a in range(x.ndim)]
        return result.reshape([*host_q.shape, *rest])

    @staticmethod
    def bincount(x: np.ndarray, weights: np.ndarray | None = None, minlength: int = 0) -> np.ndarray:
        counts = np.bincount(x, weights, minlength)
        return counts if weights is None else counts.astype(promotion.floats(weights).dtype)

    @staticmethod
    def histogram(
        x: np.ndarray, bins: int = 10, range: tuple[float, float] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        x = promotion.floats(x)
        steps = edges(float(x.min()) if x.size else 0.0, float(x.max()) if x.size else 1.0, bins, range)
        return np.histogram(x, steps.astype(x.dtype))
