"""Reductions of groups of slices, on NumPy."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from emberharmony.backend.host import host_indices
from emberharmony.backend.numpy.arrays.indexing_ops import UFUNCS
from emberharmony.backend.numpy.dtypes import DTYPES, cast
from emberharmony.backend.numpy.elementwise.elementary_ops import FEW
from emberharmony.backend.numpy.reductions.reduction_ops import widen_half
from emberharmony.core import op_globals
from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import fast

if TYPE_CHECKING:
    from emberharmony.backend.shared.reductions import segments as shared_segments
else:
    shared_segments = Deferred("emberharmony.backend.shared.reductions.segments")

op_globals.publish(int64_of_numpy=np.dtype(np.int64))
_MANY, _WIDE = 4096, 8
"""From the first number of elements on, in rows of at least the second, it is faster to sort the rows by segment."""


def _reduce_by_rows(ufunc: np.ufunc, result: np.ndarray, ids: np.ndarray, data: np.ndarray) -> None:
    """Writes the reduced rows of each segment into `result`, row by row; `ufunc.at` would go element by element."""
    sorting_indices = ids.argsort(kind="stable")
    sorted_ids = ids[sorting_indices]
    first_positions = np.flatnonzero(np.concatenate(([True], sorted_ids[1:] != sorted_ids[:-1])))
    result[sorted_ids[first_positions]] = ufunc.reduceat(data[sorting_indices], first_positions, 0)


def _segment_reduction(reduction: str) -> Callable[..., np.ndarray]:
    """Returns the op that reduces the slices of each segment by "add", "mul", "max" or "min"."""

    def reduce_segments(
        data: np.ndarray, segment_ids: Any, num_segments: int | None = None, sorted: bool = False
    ) -> np.ndarray:
        ids = host_indices(segment_ids)
        shared_segments.check_segments(ids.shape, data.shape)
        neutral_number = shared_segments.neutral_element(DTYPES.neutral[data.dtype], reduction)
        wide_data = widen_half(data)
        segment_rows = np.empty((shared_segments.count_segments(ids, num_segments), *data.shape[1:]), wide_data.dtype)
        segment_rows.fill(neutral_number)
        if wide_data.size >= _MANY and wide_data.size >= _WIDE * len(wide_data):
            _reduce_by_rows(UFUNCS[reduction], segment_rows, ids, wide_data)
        else:
            UFUNCS[reduction].at(segment_rows, ids, wide_data)
        return segment_rows if wide_data is data else cast(segment_rows, data.dtype)

    return reduce_segments


def _quick_segment_sum(data: np.ndarray, segment_ids: np.ndarray, num_segments: int, _sorted: bool) -> np.ndarray:
    """Returns the sum of the slices of each segment, for few slices; NumPy checks the upper bound of the ids."""
    if min(segment_ids.tolist()) < 0:
        raise NotImplementedError
    segment_sums = np.zeros((num_segments, *data.shape[1:]), data.dtype)
    np.add.at(segment_sums, segment_ids, data)
    return segment_sums


_PLAIN = (
    "({0}.dtype is native_float32 or {0}.dtype is native_float64) and {1}.__class__ is native_type "
    "and {1}.dtype is int64_of_numpy and {2}.__class__ is int and {2} > 0 and {1}.ndim == 1 and {0}.ndim "
    f"and 0 < len({{0}}) == len({{1}}) <= {FEW} and {{0}}.size < {_MANY}"
)


class NumpySegmentsOps:
    """Holds the ops of `ops/reductions/segments.py`.

    The bodies take 1.2 to 3.9 times as long, for few elements.
    """

    segment_sum = staticmethod(fast(_quick_segment_sum, _PLAIN)(_segment_reduction("add")))
    segment_prod = staticmethod(_segment_reduction("mul"))
    segment_max = staticmethod(_segment_reduction("max"))
    segment_min = staticmethod(_segment_reduction("min"))
