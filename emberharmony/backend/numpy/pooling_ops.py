"""Pooling, on NumPy: few elements in adjacent windows by one reduction, which takes less time than calls for slices."""

from collections.abc import Callable
from typing import Any

import numpy as np

from emberharmony.backend.shared.convolution import USUAL_POOL, adjacent
from emberharmony.core.dispatch import fast

_FEW = 2**10
"""From this many elements on, the maximum of strided slices is faster than a reduction over several axes."""


def _quick_max(x: np.ndarray, size: int, *_usual: Any) -> np.ndarray:
    """Returns the largest element of each window; windows are adjacent, and no element is left over."""
    apart, axes = adjacent(x.shape, size)
    return np.maximum.reduce(x.reshape(apart), axes)


class NumpyPoolingOps:
    """Holds the ops of `ops/pooling.py`."""

    composed: Callable[[str], Callable[..., np.ndarray]]

    @fast(_quick_max, f"{USUAL_POOL} and {{0}}.dtype.char in 'fd' and 0 < {{0}}.size < {_FEW}")
    def max_pool(
        self,
        inputs: np.ndarray,
        pool_size: Any,
        strides: Any = None,
        padding: Any = "valid",
        data_format: str | None = None,
        dilation_rate: Any = 1,
        ceil_mode: bool = False,
    ) -> np.ndarray:
        return self.composed("max_pool")(inputs, pool_size, strides, padding, data_format, dilation_rate, ceil_mode)
