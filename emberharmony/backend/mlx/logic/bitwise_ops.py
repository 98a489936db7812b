"""Bitwise ops, on MLX."""

import mlx.core as mx

from emberharmony.backend.mlx.binding import bitwise_op


def _mask_and_safe_counts(x1: mx.array, x2: mx.array) -> tuple[mx.array, mx.array]:
    """Returns a mask of shift counts outside of the dtype's width, and the counts with these replaced by 0.

    The processor would take such a count modulo the width.
    """
    is_outside = (x2 < 0) | (x2 >= x1.dtype.size * 8)
    return is_outside, mx.where(is_outside, mx.array(0, x2.dtype), x2)


# `x + (y - y)` makes the first operand depend on the second, as in `binding.bitwise_op`, for the sake of vmap.
def _shift_left(x: mx.array, y: mx.array) -> mx.array:
    is_outside, count = _mask_and_safe_counts(x, y)
    return mx.where(is_outside, mx.zeros_like(x), mx.left_shift(x + (y - y).astype(x.dtype), count))


def _shift_right(x: mx.array, y: mx.array) -> mx.array:
    is_outside, count = _mask_and_safe_counts(x, y)
    fill_value = -(x < 0).astype(x.dtype)
    return mx.where(is_outside, fill_value, mx.right_shift(x + (y - y).astype(x.dtype), count))


class MLXBitwiseOps:
    """Holds the ops of `ops/logic/bitwise.py`."""

    bitwise_and = bitwise_op(mx.bitwise_and)
    bitwise_or = bitwise_op(mx.bitwise_or)
    bitwise_xor = bitwise_op(mx.bitwise_xor)
    bitwise_left_shift = staticmethod(_shift_left)
    bitwise_right_shift = staticmethod(_shift_right)
    bitwise_not = staticmethod(lambda x: mx.logical_not(x) if x.dtype == mx.bool_ else mx.bitwise_invert(x))
