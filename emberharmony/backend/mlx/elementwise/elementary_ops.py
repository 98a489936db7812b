"""Elementary and special functions, on MLX.

MLX 0.32 computes `exp`, `sin` and `cos` of float64 with the precision of float32. Its `expm1` and `tan` are right, so
the others are computed from them. Functions of float32 are native, except `erf`, which loses all digits near zero, and
`exp`, whose error on the CPU grows with the argument.
"""

import math
import types
from collections.abc import Callable
from typing import Any

import mlx.core as mx

from emberharmony.backend.mlx.derivatives import elementwise_function
from emberharmony.backend.mlx.dtypes import promotion
from emberharmony.backend.mlx.elementwise.complex_numbers_ops import paired
from emberharmony.backend.promote import direct
from emberharmony.backend.shared.elementwise import elementary

Unary = Callable[[mx.array], mx.array]


def on_cpu() -> bool:
    """Returns whether the default device is the CPU, the only one with float64."""
    return bool(mx.default_device() == mx.Device(mx.cpu, 0))


def _choose_by_dtype(native: Unary, double: Unary) -> Any:
    """Returns a float function that uses `double` for float64, and `native` for all other dtypes."""
    return direct(
        native,
        lambda x: double(x) if x.dtype == mx.float64 else native(x),
        when=f"{promotion.inexact} and (wide_unseen or {{0}}.itemsize < 8)",
        plain=promotion.plain_inexact,
    )


_E = mx.array(math.e, mx.float64)
_ALWAYS_ON_CPU = not mx.is_available(mx.gpu)


def _exp(x: mx.array) -> mx.array:
    """Returns the exponential of a tensor that is not float64.

    `mx.exp` of float32 on the CPU (MLX 0.32) is off by up to 63 units in the last place, and infinite above 88.0. The
    power in float64 has the error of the last rounding, and takes 1.1 times the time for a million elements.
    """
    if x.dtype == mx.float32 and (_ALWAYS_ON_CPU or on_cpu()):
        return mx.power(_E, x).astype(mx.float32)
    return mx.exp(x)


def exp_of_double(x: mx.array) -> mx.array:
    """Returns the exponential of a float64 tensor, without derivatives of its own."""
    is_negative = x < 0
    exp_of_magnitude = mx.expm1(mx.where(is_negative, -x, x)) + 1
    return mx.where(is_negative, 1 / exp_of_magnitude, exp_of_magnitude)


_exp64 = elementwise_function(exp_of_double, lambda x, y: y)


def exp_double(x: mx.array) -> mx.array:
    """Returns the exponential of a float64 tensor."""
    return _exp64(x)


def sin_of_double(x: mx.array) -> mx.array:
    """Returns the sine of a float64 tensor, without derivatives of its own."""
    tangent_of_half = mx.tan(x / 2)
    return 2 * tangent_of_half / (1 + tangent_of_half * tangent_of_half)


def cos_of_double(x: mx.array) -> mx.array:
    """Returns the cosine of a float64 tensor, without derivatives of its own."""
    # Where the cosine is small, only the tangent of the whole angle has all digits. The tangent of half the angle
    # decides the sign.
    tangent_of_half, tangent_of_x = mx.tan(x / 2), mx.tan(x)
    cosine_magnitude = 1 / mx.sqrt(1 + tangent_of_x * tangent_of_x)
    is_negative = mx.where(
        mx.abs(tangent_of_half) > 2,
        True,
        (mx.abs(tangent_of_half) > 0.5) & ((tangent_of_half < 0) != (tangent_of_x < 0)),
    )
    return mx.where(is_negative, -cosine_magnitude, cosine_magnitude)


def _with_derivative(forward: Unary, derivative: Unary) -> Unary:
    """Returns `forward` with the given derivative, for functions whose derivative by MLX has too few digits."""
    return elementwise_function(forward, lambda x, y: derivative(x))


_XP = types.SimpleNamespace(
    abs=mx.abs,
    exp=exp_double,
    floor=mx.floor,
    isnan=mx.isnan,
    log1p=mx.log1p,
    maximum=mx.maximum,
    sqrt=mx.sqrt,
    where=mx.where,
)

_sin64: Unary = _with_derivative(sin_of_double, lambda x: _cos64(x))
_cos64: Unary = _with_derivative(cos_of_double, lambda x: -_sin64(x))
_tan64: Unary = _with_derivative(mx.tan, lambda x: 1 + mx.square(_tan64(x)))
_derived_tanh = elementwise_function(mx.tanh, lambda x, y: (1 - y) * (1 + y))


def _tanh(x: mx.array) -> mx.array:
    """Returns the hyperbolic tangent of a tensor that is not float32 while a transform of ours is running.

    The derivative of `mx.tanh` (MLX 0.32) divides by the square of `cosh`, which is exact enough in float32 alone. The
    square overflows in the second derivative only, and MLX differentiates what a transform of ours runs just once: the
    tape computes the inner ones of nested derivatives.
    """
    return mx.tanh(x) if x.dtype == mx.float32 else _derived_tanh(x)


_log2_64 = _with_derivative(mx.log2, lambda x: (1 / math.log(2)) / x)
_log10_64 = _with_derivative(mx.log10, lambda x: (1 / math.log(10)) / x)
_erfinv64: Unary = _with_derivative(
    lambda x: elementary.erfinv(_XP, x), lambda x: (math.sqrt(math.pi) / 2) * exp_double(mx.square(_erfinv64(x)))
)


def _op_in_float64(function: Callable[..., mx.array]) -> Unary:
    """Returns an op over one of `shared.elementwise.elementary`, computed in float64 on the CPU, else in float32.

    Args:
        function: called as `function(xp, x)`, where `xp` has NumPy's names.
    """

    def call_in_wide_dtype(x: mx.array) -> mx.array:
        wide_dtype = mx.float64 if on_cpu() else mx.float32
        namespace = _XP if wide_dtype == mx.float64 else types.SimpleNamespace(**(vars(_XP) | {"exp": mx.exp}))
        return function(namespace, x.astype(wide_dtype)).astype(x.dtype)

    return call_in_wide_dtype


def _i0(xp: Any, x: mx.array) -> mx.array:
    # The function is made of pieces, through which MLX would lose the second derivative at 0.
    i0_with_rule = elementwise_function(lambda x: elementary.i0(xp, x), lambda x, y: elementary.i0_slope(xp, x, y))
    i0_of_x: mx.array = i0_with_rule(x)
    return i0_of_x


def _log_of_sum(x1: mx.array, x2: mx.array) -> mx.array:
    # Compute float64 here, because mx.logaddexp (MLX 0.32) computes it with the precision of float32.
    if x1.dtype != mx.float64:
        return mx.logaddexp(x1, x2)
    larger = mx.maximum(x1, x2)
    return mx.where(mx.isfinite(larger), larger + mx.log1p(exp_of_double(-mx.abs(x1 - x2))), larger)


def _log2_of_sum(x1: mx.array, x2: mx.array) -> mx.array:
    larger = mx.maximum(x1, x2)
    log2_of_ratio = mx.log1p(mx.power(mx.array(2, x1.dtype), -mx.abs(x1 - x2))) * mx.array(1 / math.log(2), x1.dtype)
    return mx.where(mx.isfinite(larger), larger + log2_of_ratio, larger)


def _log_of_sum_op(function: Callable[..., mx.array], power: Unary) -> Callable[..., mx.array]:
    """Returns a function for the logarithm of a sum of powers, whose derivatives are the terms' shares of the sum.

    Args:
        function: the logarithm of the sum, such as `mx.logaddexp`.
        power: the power whose logarithm it is, such as `mx.exp`.
    """

    def exponential_share(x: mx.array, y: mx.array) -> mx.array:
        is_finite = mx.isfinite(y)
        return mx.where(is_finite, power(mx.where(is_finite, x - y, mx.zeros_like(y))), (x == y).astype(y.dtype))

    function_with_rule = elementwise_function(
        function, lambda a, b, y: exponential_share(a, y), lambda a, b, y: exponential_share(b, y)
    )

    def call_in_float32(x1: mx.array, x2: mx.array) -> mx.array:
        # Compute half precision in float32, because it would lose digits in intermediate results.
        if x1.dtype.size > 2:
            return function_with_rule(x1, x2)
        return function_with_rule(x1.astype(mx.float32), x2.astype(mx.float32)).astype(x1.dtype)

    return call_in_float32


logaddexp = _log_of_sum_op(_log_of_sum, lambda x: exp_double(x) if x.dtype == mx.float64 else mx.exp(x))
_logaddexp2 = _log_of_sum_op(_log2_of_sum, lambda x: mx.power(mx.array(2, x.dtype), x))


def _divide_by_sum_of_squares(side: mx.array, a: mx.array, b: mx.array) -> mx.array:
    """Returns `side / (a**2 + b**2)`, and 0 where both are 0: there the derivative of mx.arctan2 is NaN."""
    sum_of_squares = a * a + b * b
    return side / mx.where(sum_of_squares == 0, mx.ones_like(sum_of_squares), sum_of_squares)


_arctan2 = elementwise_function(
    mx.arctan2, lambda a, b, y: _divide_by_sum_of_squares(b, a, b), lambda a, b, y: -_divide_by_sum_of_squares(a, a, b)
)


def _expm1(x: mx.array) -> mx.array:
    if promotion.kinds[x.dtype] != "complex":
        return mx.expm1(x)
    # mx.expm1 (MLX 0.32) does not support complex numbers.
    real, imag = mx.real(x), mx.imag(x)
    sine_of_half = mx.sin(imag / 2)
    expm1_of_real, exp_of_x, is_finite = mx.expm1(real), mx.exp(x), mx.isfinite(x)
    # + 0.0 turns a real part of -0.0 into +0.0, which is that of exp(x) - 1.
    finite_parts = (
        expm1_of_real * mx.cos(imag) - 2 * sine_of_half * sine_of_half + 0.0,
        (expm1_of_real + 1) * mx.where(imag == 0, imag, mx.sin(imag)),
    )
    # Infinities and NaN follow the rules of the exponential.
    nonfinite_parts = mx.real(exp_of_x) - 1, mx.imag(exp_of_x)
    return paired(
        mx.stack([mx.where(is_finite, a, b) for a, b in zip(finite_parts, nonfinite_parts, strict=True)], axis=-1)
    )


_erf_single = _with_derivative(
    lambda x: elementary.erf_single(mx, x), lambda x: (2 / math.sqrt(math.pi)) * mx.exp(-mx.square(x))
)


def _erf(x: mx.array) -> mx.array:
    if x.dtype == mx.float64:
        return elementary.erf(_XP, x)
    return _erf_single(x.astype(mx.float32)).astype(x.dtype)


class MLXElementaryOps:
    """Holds the ops of `ops/elementwise/elementary.py`.

    The bodies take up to 11 times as long (erfinv 380 times), for few elements. Functions of ours beside MLX's have the
    digits and the derivatives that MLX's lack.
    """

    exp = _choose_by_dtype(_exp, exp_double)
    sin = _choose_by_dtype(mx.sin, _sin64)
    cos = _choose_by_dtype(mx.cos, _cos64)
    expm1 = direct(mx.expm1, _expm1, when=promotion.inexact)
    log = direct(mx.log)
    log1p = direct(mx.log1p)
    log2 = _choose_by_dtype(mx.log2, _log2_64)
    log10 = _choose_by_dtype(mx.log10, _log10_64)
    logaddexp = staticmethod(logaddexp)
    logaddexp2 = staticmethod(_logaddexp2)
    tan = _choose_by_dtype(mx.tan, _tan64)
    arcsin = direct(mx.arcsin)
    arccos = direct(mx.arccos)
    arctan = direct(mx.arctan)
    arctan2 = direct(_arctan2)
    sinh = direct(mx.sinh)
    cosh = direct(mx.cosh)
    tanh = direct(mx.tanh, _tanh, when=f"(untransformed or {{0}}.dtype == native_float32) and {promotion.inexact}")
    arcsinh = direct(mx.arcsinh)
    arccosh = direct(mx.arccosh)
    arctanh = direct(mx.arctanh)
    erf = staticmethod(_erf)
    erfc = staticmethod(_op_in_float64(elementary.erfc))
    erfinv = _choose_by_dtype(mx.erfinv, _erfinv64)
    i0 = staticmethod(_op_in_float64(_i0))

    @staticmethod
    def exp2(x: mx.array) -> mx.array:
        powers = mx.power(mx.array(2, x.dtype), x)
        if promotion.kinds[x.dtype] != "complex":
            return powers
        # Where `x` is not finite, mx.power (MLX 0.32) gives NaN for one of the parts; mx.exp does not.
        scaled_parts = mx.stack([mx.real(x), mx.imag(x)], axis=-1) * math.log(2)
        return mx.where(mx.isfinite(x), powers, mx.exp(paired(scaled_parts)))
