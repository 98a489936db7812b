"""Counts of the NaN, infinities, zeros and negative numbers in an array, for messages, and statistics, for logs."""

import math
from typing import Any, NamedTuple

import numpy as np

from emberharmony.transforms.logs.statistics import ValueStatistics

_PART = 2**16
"""So many elements are looked at together, so that the memory for it is small."""


class Numbers(NamedTuple):
    """The numbers of elements of several kinds in an array, and the first places of NaN and of infinity."""

    size: int
    nan: int
    infinite: int
    zero: int
    negative: int
    largest: float
    """The largest magnitude of the finite elements."""
    first_nan: tuple[int, ...]
    first_infinite: tuple[int, ...]
    dtype: str = ""

    @property
    def finite(self) -> bool:
        """Whether all elements are finite."""
        return not (self.nan or self.infinite)


def number_counts(array: "np.ndarray[Any, Any]") -> Numbers:
    """Returns the counts of NaN, infinities, zeros and negative numbers in an array of float64 or complex128."""
    is_nan, is_infinite = np.isnan(array), np.isinf(array)
    finite_elements = array[~(is_nan | is_infinite)]
    negative_count = 0 if np.iscomplexobj(array) else int(np.count_nonzero(array < 0))
    return Numbers(
        array.size,
        int(np.count_nonzero(is_nan)),
        int(np.count_nonzero(is_infinite & ~is_nan)),
        int(np.count_nonzero(array == 0)),
        negative_count,
        float(np.max(np.abs(finite_elements))) if finite_elements.size else 0.0,
        _first_index(is_nan),
        _first_index(is_infinite & ~is_nan),
    )


def _first_index(mask: "np.ndarray[Any, Any]") -> tuple[int, ...]:
    """Returns the indices of the first true element of a mask; () if there is none."""
    if not mask.any():
        return ()
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(mask)), mask.shape))


def statistics_of(array: "np.ndarray[Any, Any]") -> ValueStatistics:
    """Returns the statistics of the finite elements of an array of float64 or complex128."""
    flat_array = array.reshape(-1)
    finite_count, mean, squared_deviations, smallest, largest = 0, 0.0, 0.0, math.inf, -math.inf
    with np.errstate(all="ignore"):
        for start in range(0, flat_array.size, _PART):
            block = flat_array[start : start + _PART]
            block = np.abs(block) if block.dtype.kind == "c" else block
            block = block[np.isfinite(block)]
            if block.size:
                # Source: Chan, Golub, LeVeque (1979), Updating formulae and a pairwise algorithm for variances.
                block_mean, block_count = float(block.mean()), block.size
                mean_difference, total_count = block_mean - mean, finite_count + block_count
                squared_deviations += (
                    float(np.square(block - block_mean).sum())
                    + mean_difference * mean_difference * finite_count * block_count / total_count
                )
                mean, finite_count = mean + mean_difference * block_count / total_count, total_count
                smallest, largest = min(smallest, float(block.min())), max(largest, float(block.max()))
    if not finite_count:
        return ValueStatistics(None, None, None, None, None, 0, flat_array.size)
    norm = math.sqrt(squared_deviations + finite_count * mean * mean)
    return ValueStatistics(
        mean, math.sqrt(squared_deviations / finite_count), smallest, largest, norm, finite_count, flat_array.size
    )
