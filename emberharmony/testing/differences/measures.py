"""How far apart two tensors are, measured in parts, so that the memory for it is small."""

import functools
import math
from collections.abc import Iterable, Sequence

import numpy as np

from emberharmony.testing.differences.records import Array, Host

PART = 2**16
"""So many elements are compared at once."""


def unlike(first: Sequence[Host], second: Sequence[Host]) -> str:
    """Returns how two lists of tensors differ in number, shape or dtype; "" if they do not."""
    if len(first) != len(second):
        return f"{len(first)} results and {len(second)}"
    for a, b in zip(first, second, strict=True):
        if a.shape != b.shape:
            return f"the shapes are {a.shape} and {b.shape}"
        if a.dtype != b.dtype:
            return f"the dtypes are {a.dtype} and {b.dtype}"
    return ""


class Apart:
    """How far apart two tensors are.

    Attributes:
        share: the largest difference, as a share of the largest element of the first; infinite if it is not finite.
        most: the largest difference as it is.
    """

    __slots__ = ("_relative", "most", "share")

    def __init__(self, share: float, most: float) -> None:
        self.share, self.most = share, most
        self._relative: float | None = None

    def relative(self, a: Host, b: Host) -> float:
        """Returns the largest difference of two elements as a share of the element, for two floating tensors."""
        if self._relative is None:
            self._relative = _relative(a, b)
        return self._relative


def apart(a: Host, b: Host) -> Apart:
    """Returns how far apart two tensors are, which is measured once."""
    known = b.measured
    if known is not None and known[0] is a:
        return known[1]  # type: ignore[no-any-return]
    if a.shape != b.shape:
        return Apart(math.inf, math.inf)
    found = Apart(*_gap(zip(a.parts(PART), b.parts(PART), strict=True), a.size))
    b.measured = a, found
    return found


def carried(a: Host, b: Host) -> float:
    """Returns the largest difference of two tensors as a share of the largest element; infinite if it is not finite."""
    return apart(a, b).share


def share(x: Array, y: Array) -> float:
    """Returns the largest difference of two arrays as a share of the largest element of the first."""
    if x.shape != y.shape:
        return math.inf
    return _gap([(x, y)] if x.size else [], x.size)[0]


def _gap(parts: Iterable[tuple[Array, Array]], size: int) -> tuple[float, float]:
    most = largest_gap = 0.0
    unequal = 0
    with np.errstate(all="ignore"):
        for x, y in parts:
            if x.dtype.kind not in "fc":
                unequal += int(np.count_nonzero(x != y))
                continue
            off, size_of = float(np.abs(x - y).max()), float(np.abs(x).max())
            if not (math.isfinite(off) and math.isfinite(size_of)):
                same = (x == y) | (np.isnan(x) & np.isnan(y))
                off = float(np.where(same, 0.0, np.abs(x - y)).max())
                if not math.isfinite(off):
                    return math.inf, math.inf
                size_of = float(np.where(np.isfinite(x), np.abs(x), 0.0).max())
            largest_gap, most = max(largest_gap, off), max(most, size_of)
    if unequal:
        return unequal / size, math.inf
    if not largest_gap:
        return 0.0, 0.0
    return (largest_gap / most if most else math.inf), largest_gap


def _relative(a: Host, b: Host) -> float:
    worst = 0.0
    with np.errstate(all="ignore"):
        for x, y in zip(a.parts(PART), b.parts(PART), strict=True):
            found = float(np.max(np.abs(x - y) / np.abs(x)))
            if not math.isfinite(found):
                part = np.abs(x - y) / np.maximum(np.abs(x), np.abs(y))
                found = float(np.max(np.where(np.isfinite(part), part, 0.0)))
            worst = max(worst, found)
    return worst


@functools.cache
def largest(dtype: str) -> float:
    """Returns the largest finite number of a dtype."""
    real = {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)
    return 3.3895313892515355e38 if real == "bfloat16" else float(np.finfo(real).max)
