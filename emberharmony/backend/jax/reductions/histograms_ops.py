"""Histograms, on JAX, whose shapes depend on values, so that they are counted on the host."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from emberharmony.backend.jax.dtypes import cast, is_complex, of_host, promotion, widen
from emberharmony.backend.jax.tracing import is_traced, to_host_array
from emberharmony.backend.shared.reductions.histograms import check_weights, histogram_edges, integers_to_count
from emberharmony.core.options import refuse_sparse


class JAXHistogramsOps:
    """Holds the ops of `ops/reductions/histograms.py`.

    The bodies compute on the host, so no compiled program has them; they take 2 times as long, for few elements.
    """

    max: Any
    min: Any

    @staticmethod
    def bincount(x: jax.Array, weights: jax.Array | None = None, minlength: int = 0, sparse: bool = False) -> jax.Array:
        refuse_sparse("sparse", sparse)
        host_x = integers_to_count(to_host_array(widen(x)))
        bin_counts = np.bincount(host_x, None, minlength)
        if weights is None:
            return of_host(bin_counts)
        check_weights(weights, x)
        weights = promotion.floats(weights)
        wide_weights = cast(
            weights, np.dtype(np.complex128 if is_complex(weights) else np.float64)
        )  # as the other backends add
        return cast(jnp.zeros(len(bin_counts), wide_weights.dtype).at[host_x].add(wide_weights), weights.dtype)

    def histogram(
        self, x: jax.Array, bins: int = 10, range: tuple[float, float] | None = None
    ) -> tuple[jax.Array, jax.Array]:
        x = promotion.floats(x)
        host_x = to_host_array(widen(x))
        smallest, largest = (float(host_x.min()), float(host_x.max())) if host_x.size else (0.0, 1.0)
        bin_edges = of_host(histogram_edges(smallest, largest, bins, range).astype(x.dtype))
        bin_counts, _ = np.histogram(host_x, np.asarray(widen(bin_edges)))
        if range is None and host_x.size and is_traced(x):
            unit_edges = of_host(np.linspace(0.0, 1.0, bins + 1), x.dtype)
            range_edges = self.min(x) * (1 - unit_edges) + self.max(x) * unit_edges
            bin_edges = bin_edges + (
                range_edges - lax.stop_gradient(range_edges)
            )  # adds 0, which carries the derivative of the edges
        return of_host(bin_counts), bin_edges
