"""Groups of slices, on NumPy."""

from collections.abc import Callable
from typing import Any

import numpy as np

from emberharmony.backend.indices import check_segments, host_indices, neutral_element, segments
from emberharmony.backend.numpy.dtypes import DTYPES, cast
from emberharmony.backend.numpy.indexing_ops import UFUNCS


def _segment(reduction: str) -> Callable[..., np.ndarray]:
    """Returns the op that reduces the slices of each segment."""

    def segment(
        data: np.ndarray, segment_ids: Any, num_segments: int | None = None, sorted: bool = False
    ) -> np.ndarray:
        ids = host_indices(segment_ids)
        check_segments(ids.shape, data.shape)
        dtype = DTYPES.neutral[data.dtype]
        wide = np.float32 if dtype.is_floating and dtype.bits == 16 else data.dtype
        start = neutral_element(dtype, reduction)
        result = np.full((segments(ids, num_segments), *data.shape[1:]), start, wide)
        UFUNCS[reduction].at(result, ids, data.astype(wide, copy=False))
        return cast(result, data.dtype)

    return segment


class NumpySegmentsOps:
    """Holds the ops of `ops/segments.py`."""

    segment_sum = staticmethod(_segment("add"))
    segment_prod = staticmethod(_segment("mul"))
    segment_max = staticmethod(_segment("max"))
    segment_min = staticmethod(_segment("min"))
