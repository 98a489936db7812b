"""Elementwise arithmetic, on JAX."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from emberharmony.backend.jax.derivatives import Arrays, elementwise_function, with_differential
from emberharmony.backend.jax.dtypes import FLOAT, compile_by_jit, is_complex, is_float, kind_of, promotion, widen
from emberharmony.backend.jax.elementwise.complex_numbers_ops import mirror_below_cut
from emberharmony.backend.promote import direct
from emberharmony.core.options import is_number

_REAL = f"({FLOAT})"
"""The condition under which a function of JAX runs alone: the dtype is float32 or float64."""


def _safe_divisor(x1: jax.Array, x2: jax.Array) -> jax.Array:
    """Returns an integer divisor with 0, and -1 if it is signed, replaced by 1."""
    is_unsafe = x2 == 0
    if kind_of(x1) == "signed":
        is_unsafe = is_unsafe | (x2 == -1)
    return jnp.where(is_unsafe, jnp.ones_like(x2), x2)


@compile_by_jit()
def _floor_divide(x1: jax.Array, x2: jax.Array) -> jax.Array:
    if not is_float(x1):
        quotient = jnp.floor_divide(x1, _safe_divisor(x1, x2))
        if kind_of(x1) == "signed":
            quotient = jnp.where(x2 == -1, -x1, quotient)
        return jnp.where(x2 == 0, jnp.zeros_like(quotient), quotient)
    a, b = widen(x1), widen(x2)
    # `floor(a / b)` would be one too large where the quotient rounds up to an integer, so subtract the remainder.
    quotient = jnp.round((a - _float_mod(a, b)) / b)
    exact_quotient = a / b
    # A quotient of zero must have the sign of the exact quotient.
    quotient = jnp.where(quotient == 0, exact_quotient * 0, quotient)
    floored_quotient = jnp.where(jnp.isinf(a) | jnp.isinf(b) | (b == 0), jnp.floor(exact_quotient), quotient)
    return lax.stop_gradient(floored_quotient).astype(x1.dtype)


# A remainder of zero has the sign of the divisor, and its derivative is 1, while that of `jnp.copysign` at 0 is 0.
_signed: Any = elementwise_function(
    jnp.copysign, lambda rest, b, y: jnp.ones_like(y), lambda rest, b, y: jnp.zeros_like(y)
)


def _float_mod(x1: jax.Array, x2: jax.Array) -> jax.Array:
    a, b = widen(x1), widen(x2)
    remainder = lax.rem(*jnp.broadcast_arrays(a, b))
    remainder = jnp.where((remainder != 0) & ((remainder < 0) != (b < 0)), remainder + b, remainder)
    return _signed(remainder, jnp.broadcast_to(b, remainder.shape)).astype(x1.dtype)


@compile_by_jit()
def _mod(x1: jax.Array, x2: jax.Array) -> jax.Array:
    if is_float(x1):
        return _float_mod(x1, x2)
    # The divisors 0 and -1 are replaced by 1, which leaves the remainder 0.
    return jnp.remainder(x1, _safe_divisor(x1, x2))


@compile_by_jit()
def _fmod(x1: jax.Array, x2: jax.Array) -> jax.Array:
    if is_float(x1):
        return lax.rem(*jnp.broadcast_arrays(widen(x1), widen(x2))).astype(x1.dtype)
    return lax.rem(*jnp.broadcast_arrays(x1, _safe_divisor(x1, x2)))


@compile_by_jit()
def _divide_no_nan(x1: jax.Array, x2: jax.Array) -> jax.Array:
    is_zero = x2 == 0
    quotient = x1 / jnp.where(is_zero, jnp.ones_like(x2), x2)
    return jnp.where(is_zero, jnp.zeros_like(quotient), quotient)


def _slope_by_base(a: jax.Array, b: jax.Array, y: jax.Array) -> jax.Array:
    is_zero = b == 0
    power_function = _complex_pow if is_complex(a) else _pow
    return jnp.where(is_zero, jnp.zeros_like(y), b * power_function(a, jnp.where(is_zero, jnp.ones_like(b), b - 1)))


def _slope_by_exponent(a: jax.Array, b: jax.Array, y: jax.Array) -> jax.Array:
    return y * jnp.log(jnp.where(a == 0, jnp.ones_like(a), a))


# JAX 0.10 gives NaN for some derivatives at a base of 0.
_pow: Any = elementwise_function(lambda a, b: lax.pow(*jnp.broadcast_arrays(a, b)), _slope_by_base, _slope_by_exponent)


def _complex_power(a: jax.Array, b: jax.Array) -> jax.Array:
    """Returns a power of complex numbers without derivatives of its own; a square is exactly that."""
    a, b = jnp.broadcast_arrays(a, b)
    is_zero, ones = b == 0, jnp.ones_like(b)
    return jnp.where(is_zero, ones, jnp.where(b == 2, a * a, lax.pow(a, jnp.where(is_zero, ones, b))))


_complex_pow: Any = elementwise_function(_complex_power, _slope_by_base, _slope_by_exponent)


def _whole_power(base: jax.Array, exponent: jax.Array) -> jax.Array:
    """Returns an integer power, modulo the range of the dtype; JAX 0.10's own uses only six bits of the exponent.

    Args:
        base: integers.
        exponent: integers of the same dtype, from 0 up.
    """

    def square_and_multiply(
        _: int, state: tuple[jax.Array, jax.Array, jax.Array]
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        power, square, remaining_bits = state
        return jnp.where(remaining_bits % 2 == 1, power * square, power), square * square, remaining_bits // 2

    a, b = jnp.broadcast_arrays(base, exponent)
    return lax.fori_loop(0, base.dtype.itemsize * 8, square_and_multiply, (jnp.ones_like(a), a, b))[0]


@compile_by_jit()
def _power(x1: jax.Array, x2: jax.Array) -> jax.Array:
    if is_complex(x1):
        return _complex_pow(x1, x2)
    if is_float(x1):
        return _pow(widen(x1), widen(x2)).astype(x1.dtype)
    if kind_of(x1) != "signed":
        return _whole_power(x1, x2)
    # The reciprocal of an integer truncates to 0, except for 1 and -1.
    unit_power = jnp.where(x2 % 2 == 0, jnp.ones_like(x1), x1)
    truncated_power = jnp.where(jnp.abs(x1) == 1, unit_power, jnp.zeros_like(x1))
    return jnp.where(x2 < 0, truncated_power, _whole_power(x1, jnp.maximum(x2, 0)))


def _hypotenuse(x1: jax.Array, x2: jax.Array) -> jax.Array:
    """Returns `sqrt(x1**2 + x2**2)` without overflow: the larger operand is factored out."""
    a, b = jnp.abs(widen(x1)), jnp.abs(widen(x2))
    larger, smaller = jnp.maximum(a, b), jnp.minimum(a, b)
    ratio = smaller / jnp.where(larger == 0, 1, larger)
    finite_hypotenuse = larger * jnp.sqrt(1 + ratio * ratio)
    return jnp.where(jnp.isinf(a) | jnp.isinf(b), jnp.inf, finite_hypotenuse).astype(x1.dtype)


def _hypotenuse_slope(side: jax.Array, hypotenuse: jax.Array) -> jax.Array:
    """Returns the derivative of a hypotenuse by one side, and 0 where both sides are 0."""
    return side / jnp.where(hypotenuse == 0, jnp.ones_like(hypotenuse), hypotenuse)


_hypot = jax.jit(
    elementwise_function(_hypotenuse, lambda a, b, y: _hypotenuse_slope(a, y), lambda a, b, y: _hypotenuse_slope(b, y))
)


def _sign_tangent(primals: Arrays, outputs: Arrays, tangents: Arrays) -> Any:
    (phase,), (tangent,) = outputs, tangents
    magnitude = jnp.abs(primals[0])
    perpendicular = tangent - phase * jnp.real(jnp.conj(phase) * tangent)
    return (jnp.where(magnitude == 0, 0, perpendicular / jnp.where(magnitude == 0, 1, magnitude)),)


def _abs_tangent(primals: Arrays, outputs: Arrays, tangents: Arrays) -> Any:
    return (jnp.real(jnp.conj(_phase(primals[0])) * tangents[0]),)


# `jnp.sign` returns -0.0 for -0.0.
_sign: Any = jax.jit(lambda x: jnp.where(x == 0, jnp.zeros_like(x), lax.sign(x)))
_phase: Any = jax.jit(with_differential(lambda x: jnp.where(x == 0, jnp.zeros_like(x), lax.sign(x)), _sign_tangent))
_complex_abs: Any = jax.jit(with_differential(jnp.abs, _abs_tangent))


@compile_by_jit()
def _heaviside(x1: jax.Array, x2: jax.Array) -> jax.Array:
    step_value = jnp.where(x1 < 0, jnp.zeros_like(x1), jnp.where(x1 > 0, jnp.ones_like(x1), lax.stop_gradient(x1)))
    return jnp.where(x1 == 0, x2, step_value)


def _square(x: jax.Array) -> jax.Array:
    return x if x.dtype.kind == "b" else jnp.square(x)


@compile_by_jit()
def _gcd(x1: jax.Array, x2: jax.Array) -> jax.Array:
    """Returns the greatest common divisor by Euclid's algorithm, because `jnp.gcd` (JAX 0.10) may not end.

    The number of steps is the most that integers of this width can need (Lamé's theorem).
    """

    def euclid_step(_: int, pair: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        a, b = pair
        return jnp.where(b == 0, a, b), jnp.where(b == 0, b, lax.rem(a, _safe_divisor(a, b)))

    step_count = x1.dtype.itemsize * 8 * 144 // 100 + 2
    return jnp.abs(lax.fori_loop(0, step_count, euclid_step, tuple(jnp.broadcast_arrays(x1, x2)))[0])


_sqrt = mirror_below_cut(jnp.sqrt)


def _extremum(native: Any, is_first_chosen: Any) -> Any:
    """Returns maximum or minimum with a derivative that selects one of the tangents.

    That of JAX 0.10 multiplies by 0, which gives NaN for an infinite cotangent, as in `sqrt(maximum(x, 0))`.
    """

    def push_tangents(primals: Arrays, outputs: Arrays, tangents: Arrays) -> Any:
        a, b = primals
        a_tangent, b_tangent = (0 if tangent is None else tangent for tangent in tangents)  # None for a number
        selected_tangent = jnp.where(is_first_chosen(a, b), a_tangent, 0) + jnp.where(
            is_first_chosen(b, a), b_tangent, 0
        )
        return (selected_tangent + jnp.where(a == b, (a_tangent + b_tangent) * 0.5, 0),)

    return jax.jit(with_differential(native, push_tangents))


def _clip_at_bound(native: Any, is_kept: Any) -> Any:
    """Returns the function that limits `x` by one bound, with derivative 1 by `x` where `x` equals the bound."""

    def push_tangents(primals: Arrays, outputs: Arrays, tangents: Arrays) -> Any:
        return (jnp.where(is_kept(*primals), *tangents),)

    return jax.jit(with_differential(native, push_tangents))


_at_least, _at_most = _clip_at_bound(jnp.maximum, jnp.greater_equal), _clip_at_bound(jnp.minimum, jnp.less_equal)
# JAX 0.10 has the derivative 1 for the absolute value at 0.
_real_abs: Any = jax.jit(elementwise_function(jnp.abs, lambda x, y: jnp.sign(x)))


def _absolute(x: jax.Array) -> jax.Array:
    return _complex_abs(x) if is_complex(x) else x if x.dtype.kind in "bu" else _real_abs(x)


def _sign_of_any(x: jax.Array) -> jax.Array:
    return _phase(x) if is_complex(x) else x if x.dtype.kind == "b" else _sign(x)


class JAXMathOps:
    """Holds the ops of `ops/math.py`.

    Each is one program of XLA; the bodies take up to 240 times as long, for few elements. Functions of ours correct
    JAX's for dtypes and signs of zero, or give the derivative.
    """

    convert: Any

    divide_no_nan = staticmethod(_divide_no_nan)
    floor_divide = staticmethod(_floor_divide)
    mod = staticmethod(_mod)
    fmod = staticmethod(_fmod)
    power = staticmethod(_power)
    hypot = staticmethod(_hypot)
    maximum = direct(_extremum(jnp.maximum, jnp.greater), guard=_REAL)
    minimum = direct(_extremum(jnp.minimum, jnp.less), guard=_REAL)
    heaviside = staticmethod(_heaviside)
    gcd = staticmethod(_gcd)
    sqrt = direct(jnp.sqrt, jax.jit(_sqrt), when=_REAL)
    rsqrt = direct(jax.jit(lambda x: jnp.reciprocal(_sqrt(x))))
    square = direct(jnp.square, _square, when=_REAL)
    negative = direct(jax.jit(lax.neg, inline=True))
    absolute = direct(_real_abs, _absolute, when=_REAL)
    positive = staticmethod(lambda x: x)
    sign = direct(_sign, _sign_of_any, when=_REAL)

    def clip(
        self, x: jax.Array, x_min: Any = None, x_max: Any = None, *, min: Any = None, max: Any = None
    ) -> jax.Array:
        lower, upper = min if x_min is None else x_min, max if x_max is None else x_max
        for bound, limit_function in ((lower, _at_least), (upper, _at_most)):
            if bound is not None:
                x, bound_tensor = promotion.common(x, bound if is_number(bound) else self.convert(bound))
                promotion.refuse(x, ("complex",))
                x = limit_function(x, bound_tensor)
        return x
