"""Elementwise arithmetic and rounding, on MLX."""

from collections.abc import Callable

import mlx.core as mx

from emberharmony.backend.mlx.dtypes import promotion

_BOOL = ("bool",)
_ORDERED = ("bool", "complex")
Binary = Callable[[mx.array, mx.array], mx.array]


def is_float(x: mx.array) -> bool:
    """Returns whether `x` is real and floating."""
    return mx.issubdtype(x.dtype, mx.floating)


def is_complex(x: mx.array) -> bool:
    """Returns whether `x` is complex."""
    return mx.issubdtype(x.dtype, mx.complexfloating)


def _safe_divisor(x1: mx.array, x2: mx.array) -> mx.array:
    """Returns the divisor with 0 and -1 made 1: on the CPU the one is a trap, the other too for the least integer."""
    unsafe = x2 == 0
    if mx.issubdtype(x1.dtype, mx.signedinteger):
        unsafe = unsafe | (x2 == -1)
    return mx.where(unsafe, mx.array(1, x2.dtype), x2)


def _floor_divide(x1: mx.array, x2: mx.array) -> mx.array:
    if not is_float(x1):
        quotient = x1 // _safe_divisor(x1, x2)
        if mx.issubdtype(x1.dtype, mx.signedinteger):
            quotient = mx.where(x2 == -1, -x1, quotient)
        return mx.where(x2 == 0, mx.zeros_like(quotient), quotient)
    # `floor(x1 / x2)` is one too large where the quotient rounds up to an integer.
    quotient = mx.round((x1 - mx.remainder(x1, x2)) / x2)
    below = ((x1 < 0) != (x2 < 0)) & (x1 != 0)
    quotient = mx.where(mx.isinf(x2) & mx.isfinite(x1), -below.astype(x1.dtype), quotient)
    return mx.where(x2 == 0, x1 / x2, quotient)


def _mod(x1: mx.array, x2: mx.array) -> mx.array:
    if is_float(x1):
        return mx.remainder(x1, x2)
    # The divisors 0 and -1 are made 1, which leaves 0.
    return mx.remainder(x1, _safe_divisor(x1, x2))


def _fmod(x1: mx.array, x2: mx.array) -> mx.array:
    if mx.issubdtype(x1.dtype, mx.unsignedinteger):
        return _mod(x1, x2)
    rest = _mod(x1, x2)
    crossed = (rest != 0) & ((rest < 0) != (x1 < 0))
    return mx.where(crossed, rest - x2, rest)


def _power(x1: mx.array, x2: mx.array) -> mx.array:
    if not mx.issubdtype(x1.dtype, mx.signedinteger):
        return mx.power(x1, x2)
    sign = mx.where(x2 % 2 == 0, mx.array(1, x1.dtype), x1)
    truncated = mx.where(mx.abs(x1) == 1, sign, mx.zeros_like(x1))
    return mx.where(x2 < 0, truncated, mx.power(x1, mx.maximum(x2, mx.array(0, x2.dtype))))


def _hypot(x1: mx.array, x2: mx.array) -> mx.array:
    a, b = mx.abs(x1), mx.abs(x2)
    large, small = mx.maximum(a, b), mx.minimum(a, b)
    ratio = small / mx.where(large == 0, mx.array(1, large.dtype), large)
    result = large * mx.sqrt(1 + ratio * ratio)
    return mx.where(mx.isinf(large) | mx.isinf(a) | mx.isinf(b), mx.array(float("inf"), a.dtype), result)


def _signbit(x: mx.array) -> mx.array:
    if is_float(x):
        return (x < 0) | ((x == 0) & (mx.reciprocal(x) < 0)) if x.dtype == mx.float64 else _sign_of_bits(x)
    return x < 0


def _sign_of_bits(x: mx.array) -> mx.array:
    return x.view(mx.int16 if x.dtype.size == 2 else mx.int32) < 0


def _copysign(x1: mx.array, x2: mx.array) -> mx.array:
    return mx.where(_signbit(x1) == _signbit(x2), x1, -x1)


def _kept(native: Callable[[mx.array], mx.array]) -> Callable[[mx.array], mx.array]:
    """Returns a rounding op, which leaves integers and booleans as they are."""

    def rounded(x: mx.array) -> mx.array:
        return native(x) if is_float(x) else x

    return rounded


class MLXMathOps:
    """Holds the ops of `ops/math.py`."""

    add = staticmethod(promotion.binary(mx.add))
    subtract = staticmethod(promotion.binary(mx.subtract, kinds=_BOOL, guard="{0}.itemsize > 1"))
    multiply = staticmethod(promotion.binary(mx.multiply))
    divide = staticmethod(promotion.binary(mx.divide, inexact=True))
    floor_divide = staticmethod(promotion.binary(_floor_divide, kinds=_ORDERED, direct=False))
    mod = staticmethod(promotion.binary(_mod, kinds=_ORDERED, direct=False))
    fmod = staticmethod(promotion.binary(_fmod, kinds=_ORDERED, direct=False))
    power = staticmethod(promotion.binary(_power, kinds=_BOOL, direct=False))
    maximum = staticmethod(promotion.binary(mx.maximum))
    minimum = staticmethod(promotion.binary(mx.minimum))
    hypot = staticmethod(promotion.binary(_hypot, inexact=True, direct=False))
    arctan2 = staticmethod(promotion.binary(mx.arctan2, inexact=True))
    copysign = staticmethod(promotion.binary(_copysign, inexact=True, direct=False))
    absolute = staticmethod(mx.abs)
    square = staticmethod(mx.square)
    reciprocal = staticmethod(promotion.unary(mx.reciprocal))
    sqrt = staticmethod(promotion.unary(mx.sqrt))
    rsqrt = staticmethod(promotion.unary(mx.rsqrt))
    signbit = staticmethod(_signbit)
    floor = staticmethod(_kept(mx.floor))
    ceil = staticmethod(_kept(mx.ceil))

    @staticmethod
    def trunc(x: mx.array) -> mx.array:
        return mx.where(x < 0, mx.ceil(x), mx.floor(x)) if is_float(x) else x

    @staticmethod
    def positive(x: mx.array) -> mx.array:
        return x

    @staticmethod
    def negative(x: mx.array) -> mx.array:
        promotion.refuse(x, _BOOL)
        return mx.negative(x)

    @staticmethod
    def sign(x: mx.array) -> mx.array:
        if is_float(x):
            return mx.where(mx.isnan(x), x, mx.sign(x))
        return x if x.dtype == mx.bool_ else mx.sign(x)

    @staticmethod
    def round(x: mx.array, decimals: int = 0) -> mx.array:
        if x.dtype == mx.bool_ or (decimals >= 0 and not (is_float(x) or is_complex(x))):
            return x
        if x.dtype == mx.float64 and decimals:
            # MLX scales with a float32 power of ten.
            scale = mx.array(10.0**decimals, mx.float64)
            return mx.round(x * scale) / scale
        return mx.round(x, decimals)

    @staticmethod
    def conj(x: mx.array) -> mx.array:
        return mx.conj(x) if is_complex(x) else x

    @staticmethod
    def real(x: mx.array) -> mx.array:
        return mx.real(x) if is_complex(x) else x

    @staticmethod
    def imag(x: mx.array) -> mx.array:
        return mx.imag(x) if is_complex(x) else mx.zeros_like(x)

    @staticmethod
    def nan_to_num(x: mx.array, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> mx.array:
        if not is_float(x):
            return x
        info = mx.finfo(x.dtype)
        x = mx.where(mx.isnan(x), mx.array(nan, x.dtype), x)
        x = mx.where(mx.isposinf(x), mx.array(info.max if posinf is None else posinf, x.dtype), x)
        return mx.where(mx.isneginf(x), mx.array(info.min if neginf is None else neginf, x.dtype), x)
