"""Segment reductions, on Dask: data become one block along the first axis; the other axes stay chunked."""

from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np

from emberharmony.backend.dask.blocks import abstract_results, apply_to_whole_axes, require_known_lengths


def _segment_reduction_op(name: str) -> Callable[..., da.Array]:
    def reduce_segments(data: da.Array, segment_ids: Any, num_segments: Any = None, sorted: bool = False) -> da.Array:
        """Returns the reduced slices of each segment; computes the ids if `num_segments` does not give the shape."""
        ids = segment_ids
        if num_segments is None and isinstance(ids, da.Array):
            ids = np.asarray(require_known_lengths(ids).compute())
        result_specs = abstract_results(name, data, ids, num_segments, sorted)
        data_loops = [None, *range(data.ndim - 1)] if data.ndim else []
        loops = [data_loops, [None] * ids.ndim] if isinstance(ids, da.Array) else [data_loops]
        args = (data, ids, num_segments, sorted)
        reductions: da.Array = apply_to_whole_axes(name, args, {}, loops, result_specs, lambda place, ndim: data_loops)
        return reductions

    reduce_segments.__name__ = name
    return reduce_segments


class DaskSegmentsOps:
    """Holds the ops of `ops/reductions/segments.py`.

    These reduce the slices of each block; the bodies would read the ids.
    """

    segment_sum = staticmethod(_segment_reduction_op("segment_sum"))
    segment_prod = staticmethod(_segment_reduction_op("segment_prod"))
    segment_max = staticmethod(_segment_reduction_op("segment_max"))
    segment_min = staticmethod(_segment_reduction_op("segment_min"))
