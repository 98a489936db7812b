"""Elementary and special functions, on JAX."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from emberharmony.backend.jax.derivatives import elementwise_function
from emberharmony.backend.jax.dtypes import FLOAT, cast, float32_version, is_complex, of_host, promotion
from emberharmony.backend.jax.elementwise.complex_numbers_ops import mirror_below_cut
from emberharmony.backend.jax.tracing import Tracer, array_if_on_host
from emberharmony.backend.promote import direct
from emberharmony.backend.shared.elementwise import elementary

_FEW = 2**14
"""Up to this number of elements NumPy computes a power of two, if the values are at hand."""
_SERIES = tuple(1 / (2 * k + 1) for k in reversed(range(15)))
"""The coefficients of the series of the inverse hyperbolic tangent, the highest first."""


def op_of_real(native: Any) -> Any:
    """Returns an op of real floats, compiled, that computes half precision in float32."""
    compiled_function = jax.jit(float32_version(native))

    def call_promoted(x: jax.Array) -> jax.Array:
        x = promotion.floats(x)
        promotion.refuse(x, ("complex",))
        return compiled_function(x)

    return call_promoted


def _float64_function(function: Any, *partials: Any) -> Any:
    """Returns a function of `backend.shared.elementwise.elementary`, computed in float64, with its derivative."""
    return jax.jit(elementwise_function(lambda x: cast(function(jnp, x.astype(jnp.float64)), x.dtype), *partials))


def _exponential_share(power: Any, x: jax.Array, y: jax.Array) -> jax.Array:
    """Returns the share of the term `x` in the sum whose logarithm is `y`: the derivative of `y` by `x`."""
    is_finite = jnp.isfinite(y)
    return jnp.where(is_finite, power(jnp.where(is_finite, x - y, 0)), (x == y).astype(y.dtype))


def _log_of_sum_op(native: Any, power: Any) -> Any:
    def share_function(place: int) -> Any:
        return lambda a, b, y: _exponential_share(power, (a, b)[place], y)

    return jax.jit(elementwise_function(native, share_function(0), share_function(1)))


def _logaddexp2(x1: jax.Array, x2: jax.Array) -> jax.Array:
    # For two equal numbers the result is exactly x + 1.
    is_equal = (x1 == x2) & jnp.isfinite(x1)
    return jnp.where(is_equal, x1 + 1, jnp.logaddexp2(x1, x2))


def _with_values_at_infinity(native: Any, values_at_infinity: Any) -> Any:
    """Returns a complex function with C99's values for infinite arguments, which JAX 0.10 does not have.

    Args:
        native: the function.
        values_at_infinity: maps the real and the imaginary parts to those of the result, for numbers with an infinite
            part or a part that is NaN.
    """

    def call_with_limits(x: jax.Array) -> jax.Array:
        if not is_complex(x):
            return native(x)
        is_finite, constant_x = jnp.isfinite(x), lax.stop_gradient(x)
        limit_value = lax.complex(*values_at_infinity(constant_x.real, constant_x.imag))
        return jnp.where(is_finite, native(jnp.where(is_finite, x, 0.5)), limit_value)

    return jax.jit(call_with_limits)


def _inverse_with_values_at_infinity(native: Any, at_infinity: Any) -> Any:
    """Returns an inverse function with C99's values for infinite arguments, and NaN where a part is NaN.

    Args:
        native: the function.
        at_infinity: maps the parts to those of the result, for numbers with an infinite part; the other may be NaN.
    """

    def values_at_infinity(real: jax.Array, imag: jax.Array) -> list[jax.Array]:
        is_infinite = jnp.isinf(real) | jnp.isinf(imag)
        return [jnp.where(is_infinite, limit_value, jnp.nan) for limit_value in at_infinity(real, imag)]

    return _with_values_at_infinity(native, values_at_infinity)


def _signed_half_pi(part: jax.Array) -> jax.Array:
    """Returns half of pi with the sign of a part of a complex number, or NaN if the part is NaN."""
    return jnp.where(jnp.isnan(part), part, jnp.copysign(math.pi / 2, part))


def _exp_at_infinity(real: jax.Array, imag: jax.Array) -> tuple[jax.Array, jax.Array]:
    magnitude, is_real = jnp.exp(real), imag == 0
    is_undefined = ~jnp.isfinite(imag) & (real == -jnp.inf)
    return (
        jnp.where(is_undefined, 0, jnp.where(is_real, magnitude, magnitude * jnp.cos(imag))),
        jnp.where(is_undefined, 0, jnp.where(is_real, imag, magnitude * jnp.sin(imag))),
    )


def _expm1_at_infinity(real: jax.Array, imag: jax.Array) -> tuple[jax.Array, jax.Array]:
    real_part, imaginary_part = _exp_at_infinity(real, imag)
    return real_part - 1, imaginary_part


# XLA removes the addition of 0, by which -0.0 would become +0.0.
_without_sign: Any = elementwise_function(
    lambda x: jnp.where(x == 0, jnp.zeros_like(x), x), lambda x, y: jnp.ones_like(y)
)


def _expm1(x: jax.Array) -> jax.Array:
    if not is_complex(x):
        return jnp.expm1(x)
    expm1_of_x = mirror_below_cut(jnp.expm1)(x)
    return lax.complex(
        _without_sign(expm1_of_x.real), expm1_of_x.imag
    )  # the real part is +0.0 where the real part of `x` is -0.0


def _exp2_at_infinity(real: jax.Array, imag: jax.Array) -> tuple[jax.Array, jax.Array]:
    return _exp_at_infinity(real * math.log(2), imag * math.log(2))


def _sinh(x: jax.Array) -> jax.Array:
    # JAX 0.10 computes complex numbers by a difference of exponentials, which loses digits.
    if not is_complex(x):
        return jnp.sinh(x)
    return lax.complex(jnp.sinh(x.real) * jnp.cos(x.imag), jnp.cosh(x.real) * jnp.sin(x.imag))


def _sinh_at_infinity(real: jax.Array, imag: jax.Array) -> tuple[jax.Array, jax.Array]:
    is_real = imag == 0
    return (
        jnp.where(is_real, jnp.sinh(real), jnp.sinh(real) * jnp.cos(imag)),
        jnp.where(is_real, imag, jnp.cosh(real) * jnp.sin(imag)),
    )


def _arcsinh(x: jax.Array) -> jax.Array:
    if not is_complex(x):
        return jnp.arcsinh(x)
    is_negative = jnp.signbit(x.real)
    right_result = jnp.arcsinh(jnp.where(is_negative, -jnp.conj(x), x))
    return jnp.where(is_negative, -jnp.conj(right_result), right_result)


def _small_arctanh(x: jax.Array) -> jax.Array:
    """Returns the inverse hyperbolic tangent of numbers up to 1/4 by its series, which has all digits of float64."""
    return x * elementary.polynomial(x * x, _SERIES)


def _log1p(x: jax.Array) -> jax.Array:
    """Returns `log(1 + x)` of float64, of which JAX 0.10 loses up to a digit and a half."""
    x_plus_1, is_small = 1 + x, jnp.abs(x) < 0.4
    safe_x = jnp.where(is_small, x, 0.0)
    # The last term adds what rounding took from `1 + x`.
    result_if_large = jnp.log(x_plus_1) + (x - (x_plus_1 - 1)) / jnp.where(x_plus_1 == 0, 1, x_plus_1)
    result_if_large = jnp.where(jnp.isfinite(x_plus_1) & (x_plus_1 > 0), result_if_large, jnp.log1p(x))
    return jnp.where(is_small, 2 * _small_arctanh(safe_x / (2 + safe_x)), result_if_large)


_double_log1p = jax.jit(elementwise_function(_log1p, lambda x, y: 1 / (1 + x)))


def _arctanh(x: jax.Array) -> jax.Array:
    if x.dtype != jnp.float64:
        return jnp.arctanh(x)
    magnitude = jnp.abs(x)
    inside_magnitude = jnp.where(magnitude < 1, magnitude, 0.5)
    result_if_large = jnp.where(
        magnitude < 1, jnp.copysign(_log1p(2 * inside_magnitude / (1 - inside_magnitude)) / 2, x), jnp.arctanh(x)
    )
    return jnp.where(magnitude < 0.25, _small_arctanh(jnp.where(magnitude < 0.25, x, 0.0)), result_if_large)


_double_arctanh = elementwise_function(_arctanh, lambda x, y: 1 / ((1 - x) * (1 + x)))


def _exp2(x: jax.Array) -> jax.Array:
    """Returns `2 ** x`, of small tensors by NumPy: programs of JAX 0.10 on a CPU make 0 of subnormal numbers."""
    host_array = None if isinstance(x, Tracer) or x.size > _FEW or is_complex(x) else array_if_on_host(x)
    if host_array is None:
        return _any_exp2(x)
    with np.errstate(all="ignore"):
        return of_host(np.exp2(host_array))


def _slope_of_i0(x: jax.Array, y: jax.Array) -> jax.Array:
    x_float64 = x.astype(jnp.float64)
    return elementary.i0_slope(jnp, x_float64, y.astype(jnp.float64)).astype(x.dtype)


def _arctanh_of_any(x: jax.Array) -> jax.Array:
    return jnp.arctanh(x) if is_complex(x) else _double_arctanh(x)


_any_exp2 = _with_values_at_infinity(jnp.exp2, _exp2_at_infinity)


_single_erfinv: Any = jax.jit(float32_version(lax.erf_inv))
# JAX 0.10's own erfinv loses a digit of float64.
_double_erfinv: Any = _float64_function(
    elementary.erfinv, lambda x, y: jnp.exp(jnp.square(y)) * (math.sqrt(math.pi) / 2)
)


def _erfinv(x: jax.Array) -> jax.Array:
    inverse: jax.Array = (_double_erfinv if x.dtype == jnp.float64 else _single_erfinv)(x)
    return inverse


def log1p_of_real(x: jax.Array) -> jax.Array:
    """Returns `log(1 + x)` of real numbers."""
    return _double_log1p(x) if x.dtype == jnp.float64 else jnp.log1p(x)


def _squared_radius(a: jax.Array, b: jax.Array) -> jax.Array:
    squared_sum = a * a + b * b
    return jnp.where(squared_sum == 0, jnp.ones_like(squared_sum), squared_sum)


# The derivative of arctan2 by JAX 0.10 is NaN where both parts are 0.
_angle: Any = elementwise_function(
    jnp.arctan2, lambda a, b, y: b / _squared_radius(a, b), lambda a, b, y: -a / _squared_radius(a, b)
)


class JAXElementaryOps:
    """Holds the ops of `ops/elementwise/elementary.py`.

    Each is one program of XLA; the bodies take 1.4 to 160 times as long (erfinv 750 times), for few elements. Functions
    of ours correct JAX's at infinities, or give the derivative there.
    """

    exp = direct(jnp.exp, _with_values_at_infinity(jnp.exp, _exp_at_infinity), when=FLOAT)
    expm1 = direct(_with_values_at_infinity(_expm1, _expm1_at_infinity))
    exp2 = staticmethod(_exp2)
    log1p = direct(log1p_of_real)
    logaddexp = staticmethod(_log_of_sum_op(jnp.logaddexp, jnp.exp))
    logaddexp2 = staticmethod(_log_of_sum_op(_logaddexp2, jnp.exp2))
    arcsin = direct(
        _inverse_with_values_at_infinity(
            mirror_below_cut(jnp.arcsin), lambda re, im: (jnp.arctan2(re, jnp.abs(im)), jnp.copysign(jnp.inf, im))
        )
    )
    arccos = direct(
        _inverse_with_values_at_infinity(
            mirror_below_cut(jnp.arccos), lambda re, im: (jnp.arctan2(jnp.abs(im), re), -jnp.copysign(jnp.inf, im))
        )
    )
    arctan = direct(
        _inverse_with_values_at_infinity(jnp.arctan, lambda re, im: (_signed_half_pi(re), jnp.copysign(0.0, im)))
    )
    arctan2 = staticmethod(jax.jit(_angle))
    sinh = direct(_with_values_at_infinity(_sinh, _sinh_at_infinity))
    arcsinh = direct(
        _inverse_with_values_at_infinity(
            _arcsinh, lambda re, im: (jnp.copysign(jnp.inf, re), jnp.arctan2(im, jnp.abs(re)))
        )
    )
    arccosh = direct(
        _inverse_with_values_at_infinity(
            mirror_below_cut(jnp.arccosh), lambda re, im: (jnp.full_like(re, jnp.inf), jnp.arctan2(im, re))
        )
    )
    arctanh = direct(
        _inverse_with_values_at_infinity(_arctanh_of_any, lambda re, im: (jnp.copysign(0.0, re), _signed_half_pi(im)))
    )
    erf = staticmethod(jax.jit(float32_version(lax.erf)))
    erfc = staticmethod(jax.jit(float32_version(lax.erfc)))
    erfinv = staticmethod(_erfinv)
    i0 = staticmethod(_float64_function(elementary.i0, _slope_of_i0))
