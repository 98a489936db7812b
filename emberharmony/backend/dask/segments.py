"""Segments, on Dask: data are gathered along the first axis; the others stay chunked."""

from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np

from emberharmony.backend.dask.blocks import known, shapes_of, whole_axes


def _segment(name: str) -> Callable[..., da.Array]:
    def segment(data: da.Array, segment_ids: Any, num_segments: Any = None, sorted: bool = False) -> da.Array:
        """Combines slices; without `num_segments` it computes the ids, because the shape depends on them."""
        ids = segment_ids
        if num_segments is None and isinstance(ids, da.Array):
            ids = np.asarray(known(ids).compute())
        found = shapes_of(name, data, ids, num_segments, sorted)
        axes = [None, *range(data.ndim - 1)] if data.ndim else []
        loops = [axes, [None] * ids.ndim] if isinstance(ids, da.Array) else [axes]
        args = (data, ids, num_segments, sorted)
        made: da.Array = whole_axes(name, args, {}, loops, found, lambda place, ndim: axes)
        return made

    segment.__name__ = name
    return segment


class DaskSegmentsOps:
    """Holds the ops of `ops/reductions/segments.py`.

    These reduce the slices of each block; the bodies would read the ids.
    """

    segment_sum = staticmethod(_segment("segment_sum"))
    segment_prod = staticmethod(_segment("segment_prod"))
    segment_max = staticmethod(_segment("segment_max"))
    segment_min = staticmethod(_segment("segment_min"))
