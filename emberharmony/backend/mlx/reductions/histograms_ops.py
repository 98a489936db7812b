"""Histograms, on MLX."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mlx.core as mx

from emberharmony.backend.mlx.derivatives import Arrays, with_own_derivatives
from emberharmony.backend.mlx.dtypes import of_host, promotion
from emberharmony.core import op_globals
from emberharmony.core.deferred import Deferred
from emberharmony.core.options import refuse_sparse

if TYPE_CHECKING:
    import numpy as np

    from emberharmony.backend.shared.reductions import histograms as shared_histograms
else:
    np = Deferred("numpy")
    shared_histograms = Deferred("emberharmony.backend.shared.reductions.histograms")


class MLXHistogramsOps:
    """Holds the ops of `ops/reductions/histograms.py`.

    These stay lazy; the bodies compute on the host, which has no gradient.
    """

    @staticmethod
    def bincount(x: mx.array, weights: mx.array | None = None, minlength: int = 0, sparse: bool = False) -> mx.array:
        refuse_sparse("sparse", sparse)
        host_x = shared_histograms.integers_to_count(
            np.asarray(x if promotion.kinds[x.dtype] != "float" else x.astype(mx.float32))
        )
        if weights is None:
            return of_host(np.bincount(host_x, None, minlength))
        shared_histograms.check_weights(weights, x)
        weights = promotion.floats(weights)

        def sum_weights(weights: mx.array) -> mx.array:
            weights_float32 = weights if weights.itemsize > 2 else weights.astype(mx.float32)
            return of_host(np.bincount(host_x, np.asarray(weights_float32), minlength), weights.dtype)

        def push_tangents(primals: Arrays, outputs: Arrays, tangents: Arrays) -> Arrays:
            return (mx.zeros_like(outputs[0]).at[of_host(host_x)].add(tangents[0]),)

        weighted_counts: mx.array = with_own_derivatives(sum_weights, push_tangents, hosted=True)(weights)
        return weighted_counts

    max: Any
    min: Any

    def histogram(
        self, x: mx.array, bins: int = 10, range: tuple[float, float] | None = None
    ) -> tuple[mx.array, mx.array]:
        x = promotion.floats(x)
        smallest, largest = (float(mx.min(x)), float(mx.max(x))) if x.size else (0.0, 1.0)
        bin_edges = mx.array(shared_histograms.histogram_edges(smallest, largest, bins, range), x.dtype)
        wide_dtype = mx.float64 if x.dtype == mx.float64 else mx.float32
        bin_counts, _ = np.histogram(np.asarray(x.astype(wide_dtype)), np.asarray(bin_edges.astype(wide_dtype)))
        if range is None and x.size and not op_globals.untransformed:
            unit_edges = mx.linspace(0.0, 1.0, bins + 1, dtype=x.dtype)
            range_edges = self.min(x) * (1 - unit_edges) + self.max(x) * unit_edges
            bin_edges = bin_edges + (
                range_edges - mx.stop_gradient(range_edges)
            )  # adds 0, which carries the derivative of the edges
        return of_host(bin_counts), bin_edges
