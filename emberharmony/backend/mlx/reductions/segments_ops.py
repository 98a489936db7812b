"""Reductions of segments, that is of groups of slices, on MLX."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import mlx.core as mx

from emberharmony.backend.host import host_indices
from emberharmony.backend.mlx.arrays.indices import indices_or_length, integer_indices, read_if_checked, write_rows
from emberharmony.backend.mlx.device_ops import check_memory
from emberharmony.backend.mlx.dtypes import DTYPES, of_host
from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import fast
from emberharmony.core.state.checked_mode import checking

if TYPE_CHECKING:
    import numpy as np

    from emberharmony.backend.shared.reductions import segments as shared_segments
else:
    np = Deferred("numpy")
    shared_segments = Deferred("emberharmony.backend.shared.reductions.segments")


def _segment_reduction_op(reduction: str) -> Callable[..., mx.array]:
    """Returns the op that reduces the slices of each segment."""

    def reduce_segments(
        data: mx.array, segment_ids: Any, num_segments: int | None = None, sorted: bool = False
    ) -> mx.array:
        neutral_number = shared_segments.neutral_element(DTYPES.neutral[data.dtype], reduction)
        segment_ids = read_if_checked(segment_ids)
        is_unread = isinstance(segment_ids, mx.array)
        # With a known number of segments, ids in a tensor stay unread, which keeps them lazy.
        if is_unread and num_segments is not None:
            shared_segments.check_segments(segment_ids.shape, data.shape)
            num_segments = shared_segments.segment_count(num_segments)
            ids = indices_or_length(segment_ids, num_segments)
        else:
            host_ids = host_indices(np.asarray(integer_indices(segment_ids)) if is_unread else segment_ids)
            shared_segments.check_segments(host_ids.shape, data.shape)
            num_segments, is_unread = shared_segments.count_segments(host_ids, num_segments), False
            ids = of_host(host_ids)
        check_memory((num_segments, *data.shape[1:]), data.itemsize)
        if num_segments == 0:
            return mx.zeros((0, *data.shape[1:]), data.dtype)
        # Half precision is combined in float32, to keep its digits.
        is_half_precision = data.dtype in (mx.float16, mx.bfloat16)
        sum_dtype = mx.float32 if is_half_precision else data.dtype
        # An extra row takes the slices of ids out of range.
        rows_shape = (num_segments + is_unread, *data.shape[1:])
        initial_rows = (
            mx.zeros(rows_shape, sum_dtype)
            if not neutral_number
            else mx.full(rows_shape, of_host(np.asarray(neutral_number), sum_dtype))
        )
        reduced_rows = write_rows(initial_rows, ids, data.astype(sum_dtype), reduction, False).astype(data.dtype)
        return reduced_rows[:num_segments] if is_unread else reduced_rows

    return reduce_segments


_general_sum = _segment_reduction_op("add")


def _quick_segment_sum(data: mx.array, segment_ids: mx.array, num_segments: int, _sorted: bool) -> mx.array:
    """Returns the sums of slices of float32; with no more segments than slices, they need not be checked for memory."""
    data_shape = data.shape
    if not data.size or not 0 < num_segments <= data_shape[0] or segment_ids.shape != data_shape[:1] or checking():
        return _general_sum(data, segment_ids, num_segments)
    initial_rows = mx.zeros((num_segments + 1, *data_shape[1:]), mx.float32)
    return initial_rows.at[indices_or_length(segment_ids, num_segments)].add(data)[:num_segments]


_PLAIN = "{0}.dtype == native_float32 and {1}.__class__ is native_type and {2}.__class__ is int"


class MLXSegmentsOps:
    """Holds the ops of `ops/reductions/segments.py`.

    MLX scatters in one kernel; the bodies take 1.1 to 3 times as long, for few elements.
    """

    segment_sum = staticmethod(fast(_quick_segment_sum, _PLAIN)(_general_sum))
    segment_prod = staticmethod(_segment_reduction_op("mul"))
    segment_max = staticmethod(_segment_reduction_op("max"))
    segment_min = staticmethod(_segment_reduction_op("min"))
