"""Reductions of segments, that is of groups of slices, on JAX."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from emberharmony.backend.host import host_indices
from emberharmony.backend.jax.arrays.indices import ON_ROWS, read_if_on_host, require_integers
from emberharmony.backend.jax.device_ops import check_memory
from emberharmony.backend.jax.dtypes import DTYPES, of_host, widen
from emberharmony.backend.jax.tracing import to_host_array
from emberharmony.backend.shared.reductions.segments import (
    check_segments,
    count_segments,
    neutral_element,
    segment_count,
)


def _segment_reduction_op(reduction: str) -> Callable[..., jax.Array]:
    """Returns the op that reduces the slices of each segment."""

    def reduce_segments(
        data: jax.Array, segment_ids: Any, num_segments: int | None = None, sorted: bool = False
    ) -> jax.Array:
        neutral_number = neutral_element(DTYPES.neutral[data.dtype], reduction)
        ids = read_if_on_host(segment_ids)
        if isinstance(ids, jax.Array) and num_segments is None:
            ids = to_host_array(require_integers(ids))
        if isinstance(ids, jax.Array):
            check_segments(ids.shape, data.shape)
            segment_total = segment_count(num_segments)
            # JAX would count a negative index from the end.
            ids = jnp.where(ids < 0, segment_total, ids)
        else:
            ids = host_indices(ids)
            check_segments(ids.shape, data.shape)
            segment_total = count_segments(ids, num_segments)
        check_memory((segment_total, *data.shape[1:]), data.dtype.itemsize)
        wide_data = widen(data)
        if not segment_total or not data.size:
            return jnp.broadcast_to(of_host(neutral_number, data.dtype), (segment_total, *data.shape[1:]))
        initial_rows = jnp.broadcast_to(of_host(neutral_number, wide_data.dtype), (segment_total, *data.shape[1:]))
        return ON_ROWS[reduction](initial_rows, (ids,), wide_data).astype(data.dtype)

    return reduce_segments


class JAXSegmentsOps:
    """Holds the ops of `ops/reductions/segments.py`.

    The bodies read the ids, so no compiled program has them; XLA scatters in one step.
    """

    segment_sum = staticmethod(_segment_reduction_op("add"))
    segment_prod = staticmethod(_segment_reduction_op("mul"))
    segment_max = staticmethod(_segment_reduction_op("max"))
    segment_min = staticmethod(_segment_reduction_op("min"))
