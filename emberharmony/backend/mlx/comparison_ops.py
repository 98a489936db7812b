"""Comparisons and logic, on MLX."""

import mlx.core as mx

from emberharmony.backend.mlx.dtypes import promotion
from emberharmony.backend.mlx.ordered import ordered


class MLXComparisonOps:
    """Holds the ops of `ops/comparison.py`."""

    equal = staticmethod(promotion.binary(mx.equal))
    not_equal = staticmethod(promotion.binary(mx.not_equal))
    less = staticmethod(ordered(mx.less))
    less_equal = staticmethod(ordered(mx.less_equal))
    greater = staticmethod(ordered(mx.greater))
    greater_equal = staticmethod(ordered(mx.greater_equal))
    logical_and = staticmethod(mx.logical_and)
    logical_or = staticmethod(mx.logical_or)
    logical_not = staticmethod(mx.logical_not)
    isnan = staticmethod(mx.isnan)
    isinf = staticmethod(mx.isinf)
    isfinite = staticmethod(mx.isfinite)

    @staticmethod
    def logical_xor(x1: mx.array, x2: mx.array) -> mx.array:
        a, b = promotion.common(x1, x2)
        return (a != 0) != (b != 0)

    @staticmethod
    def isclose(
        x1: mx.array, x2: mx.array, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
    ) -> mx.array:
        a, b = promotion.common(x1, x2, inexact=True)
        return mx.isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)

    @staticmethod
    def allclose(
        x1: mx.array, x2: mx.array, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
    ) -> mx.array:
        a, b = promotion.common(x1, x2, inexact=True)
        close = mx.isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)
        # A reduction of no elements may never return.
        return mx.all(close) if close.size else mx.array(True)

    @staticmethod
    def array_equal(x1: mx.array, x2: mx.array) -> mx.array:
        a, b = promotion.common(x1, x2)
        if a.shape != b.shape:
            return mx.array(False)
        return mx.all(a == b) if a.size else mx.array(True)
