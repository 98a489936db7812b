"""Bitwise ops, on MLX."""

import mlx.core as mx

from emberharmony.backend.mlx.binding import bitwise
from emberharmony.backend.mlx.dtypes import promotion

_INEXACT = ("float", "complex")


def _outside(x1: mx.array, x2: mx.array) -> tuple[mx.array, mx.array]:
    """Returns where a shift count is outside the width of the dtype, and the counts with 0 there.

    The processor would take such a count modulo the width.
    """
    outside = (x2 < 0) | (x2 >= x1.dtype.size * 8)
    return outside, mx.where(outside, mx.array(0, x2.dtype), x2)


# `x1 + (x2 - x2)` makes the first operand depend on the second, as in `binding.bitwise`, for the sake of vmap.
def _left(x1: mx.array, x2: mx.array) -> mx.array:
    outside, count = _outside(x1, x2)
    return mx.where(outside, mx.zeros_like(x1), mx.left_shift(x1 + (x2 - x2).astype(x1.dtype), count))


def _right(x1: mx.array, x2: mx.array) -> mx.array:
    outside, count = _outside(x1, x2)
    filled = -(x1 < 0).astype(x1.dtype)
    return mx.where(outside, filled, mx.right_shift(x1 + (x2 - x2).astype(x1.dtype), count))


class MLXBitwiseOps:
    """Holds the ops of `ops/bitwise.py`."""

    bitwise_and = staticmethod(bitwise(mx.bitwise_and))
    bitwise_or = staticmethod(bitwise(mx.bitwise_or))
    bitwise_xor = staticmethod(bitwise(mx.bitwise_xor))
    bitwise_left_shift = staticmethod(promotion.binary(_left, kinds=("bool", *_INEXACT), direct=False))
    bitwise_right_shift = staticmethod(promotion.binary(_right, kinds=("bool", *_INEXACT), direct=False))

    @staticmethod
    def bitwise_not(x: mx.array) -> mx.array:
        promotion.refuse(x, _INEXACT)
        return mx.logical_not(x) if x.dtype == mx.bool_ else mx.bitwise_invert(x)
