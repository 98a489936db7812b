"""How far apart two tensors are."""

import functools
import math
from collections.abc import Sequence

import numpy as np

from emberharmony.testing.differences.records import Array, Host


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


def carried(a: Host, b: Host) -> float:
    """Returns the largest difference of two tensors as a share of the largest element; infinite if it is not finite."""
    return share(a.values(), b.values())


def share(x: Array, y: Array) -> float:
    """Returns the largest difference of two arrays as a share of the largest element of the first."""
    if not x.size or x.shape != y.shape:
        return 0.0 if x.shape == y.shape else math.inf
    if x.dtype.kind not in "fc":
        return float(np.mean(x != y))
    with np.errstate(all="ignore"):
        gap, most = float(np.abs(x - y).max()), float(np.abs(x).max())
        if math.isfinite(gap) and math.isfinite(most):
            return gap / most if most else (math.inf if gap else 0.0)
        same = (x == y) | (np.isnan(x) & np.isnan(y))
        off = np.where(same, 0.0, np.abs(x - y))
        if not np.isfinite(off).all():
            return math.inf
        most = np.max(np.where(np.isfinite(x), np.abs(x), 0.0))
    return float(off.max() / most) if most else (math.inf if off.any() else 0.0)


@functools.cache
def largest(dtype: str) -> float:
    """Returns the largest finite number of a dtype."""
    real = {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)
    return 3.3895313892515355e38 if real == "bfloat16" else float(np.finfo(real).max)
