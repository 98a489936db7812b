"""Counts of the elements of an array that are NaN, infinite, zero or negative, for messages."""

from typing import Any, NamedTuple

import numpy as np


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


def numbers_in(array: "np.ndarray[Any, Any]") -> Numbers:
    """Returns what is in an array of float64 or complex128; complex numbers count as zero, or large, by magnitude."""
    nan, infinite = np.isnan(array), np.isinf(array)
    finite = array[~(nan | infinite)]
    negative = 0 if np.iscomplexobj(array) else int(np.count_nonzero(array < 0))
    return Numbers(
        array.size,
        int(np.count_nonzero(nan)),
        int(np.count_nonzero(infinite & ~nan)),
        int(np.count_nonzero(array == 0)),
        negative,
        float(np.max(np.abs(finite))) if finite.size else 0.0,
        _first(nan),
        _first(infinite & ~nan),
    )


def _first(found: "np.ndarray[Any, Any]") -> tuple[int, ...]:
    """Returns the indices of the first True; () if there is none."""
    if not found.any():
        return ()
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(found)), found.shape))
