"""Rounding, signs, `nextafter`, `ldexp` and `nan_to_num`, on MLX."""

from collections.abc import Callable
from typing import Any

import mlx.core as mx

from emberharmony.backend.mlx.derivatives import elementwise_function
from emberharmony.backend.mlx.dtypes import promotion
from emberharmony.backend.mlx.elementwise.complex_numbers_ops import paired
from emberharmony.backend.mlx.math_ops import is_complex, is_float
from emberharmony.backend.promote import direct
from emberharmony.backend.shared.elementwise.rounding import Decimals, holds_tensor, replacement_numbers

_NARROW = "{0}.itemsize < 8"
"""The condition that a tensor is not complex, nor of 64 bits."""

_BITS = {2: mx.int16, 4: mx.int32, 8: mx.int64}
_REACH = {mx.float16: 15, mx.bfloat16: 100, mx.float32: 100, mx.float64: 1000}
"""An exponent e for which the dtype can represent 2**e and 2**-e; three such steps exceed its range of exponents."""


def _signbit(x: mx.array) -> mx.array:
    # `view` (MLX 0.32) has no gradient; that of a sign bit is 0.
    return (mx.stop_gradient(x).view(_BITS[x.dtype.size]) if is_float(x) else x) < 0


def _trunc(x: mx.array) -> mx.array:
    # Take `ceil` for zeros too, because it keeps the sign of -0.0.
    return mx.where(x <= 0, mx.ceil(x), mx.floor(x)) if is_float(x) else x


def _copysign(x1: mx.array, x2: mx.array) -> mx.array:
    magnitude = mx.abs(x1)
    return mx.where(_signbit(x2), -magnitude, magnitude)


def _nextafter(x1: mx.array, x2: mx.array) -> mx.array:
    # The bits of floats of one sign, viewed as integers, have the order of the magnitudes.
    integer_dtype = _BITS[x1.dtype.size]
    is_outward = (x2 > x1) == (x1 > 0)
    next_x = (
        x1.view(integer_dtype) + mx.where(is_outward, mx.array(1, integer_dtype), mx.array(-1, integer_dtype))
    ).view(x1.dtype)
    smallest_subnormal = mx.array(1, integer_dtype).view(x1.dtype)
    neighbour = mx.where(x1 == 0, mx.where(x2 > 0, smallest_subnormal, -smallest_subnormal), next_x)
    return mx.where(
        x1 == x2, x2, mx.where(mx.logical_or(mx.isnan(x1), mx.isnan(x2)), mx.array(mx.nan, x1.dtype), neighbour)
    )


# Between powers of two the size of the step is constant, so the derivative by x1 is 1. Where the operands are equal,
# the result is x2, and the derivative by x1 is 0.
_next = elementwise_function(
    _nextafter, lambda x1, x2, y: (x1 != x2).astype(y.dtype), lambda x1, x2, y: mx.zeros_like(y)
)


class MLXRoundingOps(Decimals):
    """Holds the ops of `ops/elementwise/rounding.py`.

    The bodies of `nextafter`, `ldexp` and `signbit` compute on the host or in many steps; these stay lazy and have
    derivatives. The others are corrected for dtypes.
    """

    composed: Callable[[str], Callable[..., mx.array]]

    # MLX returns integers and booleans unchanged.
    floor = direct(mx.floor, when=_NARROW)
    ceil = direct(mx.ceil, when=_NARROW)
    trunc = staticmethod(_trunc)
    signbit = staticmethod(_signbit)
    copysign = staticmethod(_copysign)
    nextafter = staticmethod(_next)

    _round_to_integers = staticmethod(mx.round)

    @staticmethod
    def _round_scaled(x: mx.array, decimals: int, bound: float) -> mx.array:
        # mx.round with decimals (MLX 0.32) multiplies by the reciprocal of a power of ten, which is not exact, and has
        # only the precision of float32 in float64.
        power_of_ten = mx.array(10.0 ** abs(decimals), x.dtype)
        if decimals < 0:
            return mx.round(x / power_of_ten) * power_of_ten
        is_small = mx.abs(x) < mx.array(bound, x.dtype)
        return mx.where(is_small, mx.round(x * power_of_ten) / power_of_ten, mx.stop_gradient(x))

    def nan_to_num(self, x: mx.array, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> mx.array:
        if holds_tensor(nan, posinf, neginf):
            return self.composed("nan_to_num")(x, nan, posinf, neginf)
        nan, posinf, neginf = replacement_numbers(nan, posinf, neginf)
        if is_complex(x):
            components = [self.nan_to_num(component, nan, posinf, neginf) for component in (mx.real(x), mx.imag(x))]
            return paired(mx.stack(components, -1))
        if not is_float(x):
            return x
        dtype_limits = mx.finfo(x.dtype)
        x = mx.where(mx.isnan(x), mx.array(nan, x.dtype), x)
        x = mx.where(mx.isposinf(x), mx.array(dtype_limits.max if posinf is None else posinf, x.dtype), x)
        return mx.where(mx.isneginf(x), mx.array(dtype_limits.min if neginf is None else neginf, x.dtype), x)

    @staticmethod
    def ldexp(x1: mx.array, x2: mx.array) -> mx.array:
        promotion.refuse(x2, ("float", "complex"))
        x = promotion.floats(x1)
        promotion.refuse(x, ("complex",))
        largest_step = _REACH[x.dtype]
        # 2 ** x2 alone may overflow where the product does not, so multiply in three steps. Limit an exponent too large
        # for int64 first, because a cast would change its sign.
        largest_shift = mx.array(min(3 * largest_step, mx.iinfo(x2.dtype).max if x2.dtype != mx.bool_ else 1), x2.dtype)
        remaining_shift = mx.maximum(mx.minimum(x2, largest_shift).astype(mx.int64), -3 * largest_step)
        for _ in range(3):
            exponent_step = mx.clip(remaining_shift, -largest_step, largest_step)
            x, remaining_shift = (
                x * mx.power(mx.array(2, x.dtype), exponent_step.astype(x.dtype)),
                remaining_shift - exponent_step,
            )
        return x
