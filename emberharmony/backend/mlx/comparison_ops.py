"""Comparisons and logic, on MLX."""

from typing import Any

import mlx.core as mx

from emberharmony.backend.mlx.binding import ordered, unequal
from emberharmony.backend.mlx.dtypes import promotion
from emberharmony.backend.mlx.elementary_ops import on_cpu
from emberharmony.backend.promote import direct
from emberharmony.core.options import is_number


def _close_finite(a: mx.array, b: mx.array, rtol: Any, atol: Any, equal_nan: bool) -> mx.array:
    """Returns whether numbers are close, for complex numbers and for tolerances that are tensors.

    `mx.isclose` (MLX 0.32) takes some finite numbers to be close to an infinite one, such as 1 and infinity * 1j, and
    takes no tensors as tolerances.
    """
    near = mx.abs(a - b) <= atol + rtol * mx.abs(b)
    close = mx.where(mx.logical_and(mx.isfinite(a), mx.isfinite(b)), near, a == b)
    return mx.logical_or(close, mx.logical_and(mx.isnan(a), mx.isnan(b))) if equal_nan else close


def _close(x1: mx.array, x2: mx.array, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> mx.array:
    a, b = promotion.common(x1, x2)
    if promotion.kinds[a.dtype] not in ("float", "complex"):
        wide = mx.float64 if on_cpu() else mx.float32
        a, b = a.astype(wide), b.astype(wide)
    if promotion.kinds[a.dtype] == "complex" or not (is_number(rtol) and is_number(atol)):
        return _close_finite(a, b, rtol, atol, equal_nan)
    return mx.isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)


class MLXComparisonOps:
    """Holds the ops of `ops/comparison.py`."""

    equal = direct(mx.equal)
    not_equal = direct(unequal)
    less = ordered(mx.less)
    less_equal = ordered(mx.less_equal)
    greater = ordered(mx.greater)
    greater_equal = ordered(mx.greater_equal)
    logical_and = direct(mx.logical_and)
    logical_or = direct(mx.logical_or)
    logical_xor = staticmethod(lambda x1, x2: unequal(x1 != 0, x2 != 0))
    logical_not = direct(mx.logical_not)
    isnan = direct(mx.isnan)
    isinf = direct(mx.isinf)
    isfinite = direct(mx.isfinite)
    isclose = staticmethod(_close)

    @staticmethod
    def allclose(
        x1: mx.array, x2: mx.array, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
    ) -> mx.array:
        close = _close(x1, x2, rtol, atol, equal_nan)
        # MLX 0.32 can hang when it reduces an empty array.
        return mx.all(close) if close.size else mx.array(True)

    @staticmethod
    def array_equal(x1: mx.array, x2: mx.array, equal_nan: bool = False) -> mx.array:
        a, b = promotion.common(x1, x2)
        if a.shape != b.shape:
            return mx.array(False)
        same = mx.logical_or(a == b, mx.logical_and(mx.isnan(a), mx.isnan(b))) if equal_nan else a == b
        return mx.all(same) if a.size else mx.array(True)
