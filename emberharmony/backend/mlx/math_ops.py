"""Elementwise arithmetic, on MLX."""

from typing import Any

import mlx.core as mx

from emberharmony.backend.mlx.binding import REAL, float32_first_op, ordering_op
from emberharmony.backend.mlx.derivatives import (
    Arrays,
    dispatch_on_transform,
    elementwise_function,
    with_own_derivatives,
)
from emberharmony.backend.mlx.dtypes import promotion
from emberharmony.backend.promote import direct

_NUMBERS = (bool, int, float, complex)
"""The types of weak operands; scalars of NumPy, two of which are subclasses of these, have a dtype."""


def is_float(x: mx.array) -> bool:
    """Returns whether the dtype of `x` is real and floating."""
    return mx.issubdtype(x.dtype, mx.floating)


def is_complex(x: mx.array) -> bool:
    """Returns whether the dtype of `x` is complex."""
    return mx.issubdtype(x.dtype, mx.complexfloating)


def _safe_divisor(x1: mx.array, x2: mx.array) -> mx.array:
    """Returns an integer divisor with 0, and -1 if it is signed, replaced by 1.

    On a CPU, dividing by 0, or the lowest integer by -1, can end the process.
    """
    is_unsafe = x2 == 0
    if mx.issubdtype(x1.dtype, mx.signedinteger):
        is_unsafe = is_unsafe | (x2 == -1)
    return mx.where(is_unsafe, mx.array(1, x2.dtype), x2)


def _floor_divide(x1: mx.array, x2: mx.array) -> mx.array:
    if not is_float(x1):
        quotient = x1 // _safe_divisor(x1, x2)
        if mx.issubdtype(x1.dtype, mx.signedinteger):
            quotient = mx.where(x2 == -1, -x1, quotient)
        return mx.where(x2 == 0, mx.zeros_like(quotient), quotient)
    if x1.dtype.size == 2:
        return _floor_divide(x1.astype(mx.float32), x2.astype(mx.float32)).astype(x1.dtype)
    # `floor(x1 / x2)` would be one too large where the quotient rounds up to an integer, so subtract the remainder.
    quotient = mx.round((x1 - mx.remainder(x1, x2)) / x2)
    exact_quotient = x1 / x2
    # A quotient of zero must have the sign of the exact quotient.
    quotient = mx.where(quotient == 0, exact_quotient * 0, quotient)
    has_inf_or_zero = mx.logical_or(mx.logical_or(mx.isinf(x1), mx.isinf(x2)), x2 == 0)
    return mx.where(has_inf_or_zero, mx.floor(exact_quotient), quotient)


def _float_mod(x1: mx.array, x2: mx.array | float) -> mx.array:
    # A remainder of zero must have the sign of the divisor. Written like this, the derivative with respect to `x1`
    # stays 1.
    remainder = mx.remainder(x1, x2)
    if not isinstance(x2, mx.array):
        return remainder + 0 if x2 >= 0 else -(0 - remainder)
    sign = mx.where(x2 < 0, mx.array(-1, x1.dtype), mx.array(1, x1.dtype))
    return sign * (sign * remainder + 0)


def _mod(x1: mx.array, x2: mx.array) -> mx.array:
    if is_float(x1):
        return _float_mod(x1, x2)
    # The divisors 0 and -1 are replaced by 1, which leaves the remainder 0.
    return mx.remainder(x1, _safe_divisor(x1, x2))


def _fmod(x1: mx.array, x2: mx.array) -> mx.array:
    if is_float(x1):
        is_negative = x1 < 0
        remainder = mx.remainder(mx.where(is_negative, -x1, x1), mx.abs(x2))
        return mx.where(is_negative, -remainder, remainder)
    remainder = _mod(x1, x2)
    if mx.issubdtype(x1.dtype, mx.unsignedinteger):
        return remainder
    has_other_sign = (remainder != 0) & ((remainder < 0) != (x1 < 0))
    return mx.where(has_other_sign, remainder - x2, remainder)


def _divide_no_nan(x1: mx.array, x2: mx.array) -> mx.array:
    is_zero = x2 == 0
    quotient = x1 / mx.where(is_zero, mx.array(1, x2.dtype), x2)
    return mx.where(is_zero, mx.zeros_like(quotient), quotient)


def _slope_of_operand(is_chosen: mx.array, ties: mx.array, like: mx.array) -> mx.array:
    """Returns the derivative of a maximum or minimum by one operand: 1 where it is chosen, 1/2 for equal operands."""
    return is_chosen.astype(like.dtype) + ties.astype(like.dtype) * 0.5


even_maximum = elementwise_function(
    mx.maximum,
    lambda a, b, y: _slope_of_operand(a > b, a == b, y),
    lambda a, b, y: _slope_of_operand(b > a, a == b, y),
    chooses=True,
)
even_minimum = elementwise_function(
    mx.minimum,
    lambda a, b, y: _slope_of_operand(a < b, a == b, y),
    lambda a, b, y: _slope_of_operand(b < a, a == b, y),
    chooses=True,
)
# For `clip`: where `x` equals its bound, the derivative with respect to `x` is 1.
_at_least = dispatch_on_transform(
    mx.maximum,
    elementwise_function(
        mx.maximum,
        lambda x, low, y: (x >= low).astype(y.dtype),
        lambda x, low, y: (x < low).astype(y.dtype),
        chooses=True,
    ),
)
_at_most = dispatch_on_transform(
    mx.minimum,
    elementwise_function(
        mx.minimum,
        lambda x, high, y: (x <= high).astype(y.dtype),
        lambda x, high, y: (x > high).astype(y.dtype),
        chooses=True,
    ),
)


def _slope_by_base(a: mx.array, b: mx.array, y: mx.array) -> mx.array:
    is_zero = b == 0
    power_function = _complex_pow if is_complex(a) else _pow
    return mx.where(is_zero, mx.zeros_like(y), b * power_function(a, mx.where(is_zero, mx.ones_like(b), b - 1)))


def _slope_by_exponent(a: mx.array, b: mx.array, y: mx.array) -> mx.array:
    return y * mx.log(mx.where(a == 0, mx.ones_like(a), a))


# MLX 0.32 has the derivatives of some complex powers wrong, and NaN for some at 0.
_pow: Any = elementwise_function(mx.power, _slope_by_base, _slope_by_exponent)


def _complex_power(a: mx.array, b: mx.array) -> mx.array:
    """Returns a power of complex numbers without derivatives of its own; a square is exactly that."""
    # mx.power (MLX 0.32) gives NaN for 0 ** 0 of complex numbers.
    is_zero, one = b == 0, mx.array(1, b.dtype)
    return mx.where(is_zero, one, mx.where(b == 2, a * a, mx.power(a, mx.where(is_zero, one, b))))


_complex_pow: Any = elementwise_function(_complex_power, _slope_by_base, _slope_by_exponent)


def _power(x1: mx.array, x2: mx.array) -> mx.array:
    if is_complex(x1):
        return _complex_pow(x1, x2)
    if is_float(x1):
        return _pow(x1, x2)
    if not mx.issubdtype(x1.dtype, mx.signedinteger):
        return mx.power(x1, x2)
    # The reciprocal of an integer truncates to 0, except for 1 and -1.
    unit_power = mx.where(x2 % 2 == 0, mx.array(1, x1.dtype), x1)
    truncated_power = mx.where(mx.abs(x1) == 1, unit_power, mx.zeros_like(x1))
    return mx.where(x2 < 0, truncated_power, mx.power(x1, mx.maximum(x2, mx.array(0, x2.dtype))))


def _hypotenuse(x1: mx.array, x2: mx.array) -> mx.array:
    """Returns `sqrt(x1**2 + x2**2)` without overflow: the larger operand is factored out."""
    a, b = mx.abs(x1), mx.abs(x2)
    larger, smaller = mx.maximum(a, b), mx.minimum(a, b)
    ratio = smaller / mx.where(larger == 0, mx.array(1, larger.dtype), larger)
    finite_hypotenuse = larger * mx.sqrt(1 + ratio * ratio)
    return mx.where(mx.logical_or(mx.isinf(a), mx.isinf(b)), mx.array(mx.inf, a.dtype), finite_hypotenuse)


def _hypotenuse_slope(side: mx.array, hypotenuse: mx.array) -> mx.array:
    """Returns the derivative of a hypotenuse by one side, and 0 where both sides are 0."""
    return side / mx.where(hypotenuse == 0, mx.ones_like(hypotenuse), hypotenuse)


_hypot = elementwise_function(
    _hypotenuse, lambda a, b, y: _hypotenuse_slope(a, y), lambda a, b, y: _hypotenuse_slope(b, y)
)


def _sign_tangent(primals: Arrays, outputs: Arrays, tangents: Arrays) -> Any:
    (phase,), (tangent,) = outputs, tangents
    magnitude = _abs(primals[0])
    perpendicular = tangent - phase * mx.real(mx.conj(phase) * tangent)
    return (perpendicular / mx.where(magnitude == 0, mx.ones_like(magnitude), magnitude),)


def _abs_tangent(primals: Arrays, outputs: Arrays, tangents: Arrays) -> Any:
    return (mx.real(mx.conj(_phase(primals[0])) * tangents[0]),)


def _abs_gradient(primals: Arrays, outputs: Arrays, cotangents: Arrays) -> Any:
    return (_phase(primals[0]) * cotangents[0],)


def _complex_sign(x: mx.array) -> mx.array:
    """Returns the sign of complex numbers, +0 for zero, where MLX 0.32 can return -0."""
    return mx.where(x == 0, mx.zeros_like(x), mx.sign(x))


# MLX treats sign(complex) as constant. abs and sign use each other in their rules, so letting MLX transpose them would
# recurse forever; sign's JVP is self-adjoint and serves as its VJP.
_phase: Any = with_own_derivatives(_complex_sign, _sign_tangent, _sign_tangent)
_abs: Any = with_own_derivatives(mx.abs, _abs_tangent, _abs_gradient)


def _heaviside(x1: mx.array, x2: mx.array) -> mx.array:
    one = mx.array(1, x1.dtype)
    return mx.where(x1 == 0, x2, mx.where(x1 < 0, mx.zeros_like(x1), mx.where(x1 > 0, one, x1)))


def _gcd(x1: mx.array, x2: mx.array) -> mx.array:
    """Returns the greatest common divisor by Euclid's algorithm.

    The number of steps is the most that integers of this width can need (Lamé's theorem), so no value has to be read.
    """
    a, b = mx.broadcast_arrays(x1, x2)
    for _ in range(x1.dtype.size * 8 * 144 // 100 + 2):
        a, b = mx.where(b == 0, a, b), mx.where(b == 0, b, _mod(a, b))
    return mx.abs(a)


def _absolute(x: mx.array) -> mx.array:
    return _abs(x) if is_complex(x) else mx.abs(x)


def sign(x: mx.array) -> mx.array:
    """Returns the signs of elements, and NaN for NaN, for which mx.sign gives 0."""
    if is_float(x):
        return mx.where(mx.isnan(x), x, mx.sign(x))
    if is_complex(x):
        return _phase(x)
    return x if x.dtype == mx.bool_ else mx.sign(x)


class MLXMathOps:
    """Holds the ops of `ops/math.py`.

    The bodies take up to 5 times as long, for few elements, and their gradients up to 2 times. Functions of ours beside
    MLX's have the digits, dtypes and derivatives that MLX's lack.
    """

    convert: Any

    add = direct(mx.add)
    subtract = direct(mx.subtract, guard="{0}.itemsize > 1")
    multiply = direct(mx.multiply)
    divide = direct(mx.divide)
    divide_no_nan = staticmethod(_divide_no_nan)
    floor_divide = staticmethod(_floor_divide)
    mod = float32_first_op(_float_mod, _mod)
    fmod = staticmethod(_fmod)
    power = float32_first_op(mx.power, _power)
    hypot = staticmethod(_hypot)
    maximum = ordering_op(mx.maximum, even_maximum)
    minimum = ordering_op(mx.minimum, even_minimum)
    heaviside = staticmethod(_heaviside)
    gcd = staticmethod(_gcd)
    negative = direct(mx.negative, when="{0}.itemsize > 1")
    square = direct(mx.square)
    reciprocal = direct(mx.reciprocal)
    sqrt = direct(mx.sqrt)
    rsqrt = direct(mx.rsqrt)
    absolute = direct(mx.abs, _absolute, when=REAL.format(0))
    positive = staticmethod(lambda x: x)
    sign = staticmethod(sign)

    def clip(self, x: mx.array, x_min: Any = None, x_max: Any = None, *, min: Any = None, max: Any = None) -> mx.array:
        lower, upper = min if x_min is None else x_min, max if x_max is None else x_max
        for bound, limit_function in ((lower, _at_least), (upper, _at_most)):
            if bound is not None:
                operand = bound if bound.__class__ in _NUMBERS else self.convert(bound)
                x, bound_tensor = promotion.common(x, operand)
                promotion.refuse(x, ("complex",))
                x = limit_function(x, bound_tensor)
        return x
