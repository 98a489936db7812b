"""Elementary and special functions, element by element.

Dtype: integers and booleans become the default float. Complex tensors stay complex if the function is defined for them.
Angles are in radians.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import alias, op
from emberharmony.core.numeric.constants import pi
from emberharmony.core.types import Operand, Tensor, TensorLike
from emberharmony.ops.arrays.indexing import where
from emberharmony.ops.arrays.shape import stack
from emberharmony.ops.dtype import dtype
from emberharmony.ops.elementwise.rounding import copysign, fabs, round
from emberharmony.ops.logic.comparison import equal, isfinite, less, logical_and, not_equal
from emberharmony.ops.math import (
    absolute,
    add,
    divide,
    maximum,
    mod,
    multiply,
    negative,
    power,
    sqrt,
    square,
    subtract,
)

if TYPE_CHECKING:
    from emberharmony.backend.shared.elementwise import elementary as shared_elementary
    from emberharmony.backend.shared.elementwise import series
    from emberharmony.ops.elementwise import complex_numbers
else:
    complex_numbers = Deferred("emberharmony.ops.elementwise.complex_numbers")  # it imports this module
    series = Deferred("emberharmony.backend.shared.elementwise.series")
    shared_elementary = Deferred("emberharmony.backend.shared.elementwise.elementary")


@op(elementwise=True, takes="all", gives="float", autocast="float32")
def exp(x: TensorLike) -> Tensor:
    """Returns e to the power of each element.

    The CPU kernel of MLX for float32 has a relative error of up to `0.7 eps abs(x)`. It overflows from 88 on and
    returns 0 below -87.6.

    See also: `log`, the inverse; `expm1`, exact near 0; `logsumexp`, for sums.

    Example:
        >>> ops.exp([0.0]).tolist()
        [1.0]
    """
    ...


@op(elementwise=True, takes="all", gives="float", autocast="float32")
def expm1(x: TensorLike) -> Tensor:
    """Returns `exp(x) - 1`, accurate near zero.

    See also: `log1p`, the inverse; `exp`, for numbers far from 0.

    Example:
        >>> ops.expm1([0.0]).tolist()
        [0.0]
    """
    tanh_of_half = tanh(divide(x, 2.0))
    value_near_0 = divide(multiply(tanh_of_half, 2.0), subtract(1.0, tanh_of_half))
    return where(less(absolute(x), 0.5), value_near_0, subtract(exp(x), 1.0))


@op(elementwise=True, takes="all", gives="float", autocast="float32")
def exp2(x: TensorLike) -> Tensor:
    """Returns 2 to the power of each element.

    See also: `log2`, the inverse; `exp`, of base e.

    Example:
        >>> ops.exp2([3.0]).tolist()
        [8.0]
    """
    return exp(_scale_parts(x, math.log(2.0))) if dtype(x).is_complex else power(2.0, x)


@op(elementwise=True, takes="all", gives="float", autocast="float32")
def log(x: TensorLike) -> Tensor:
    """Returns the natural logarithm; -inf for 0, NaN for negative numbers.

    See also: `exp`, the inverse; `log1p`, exact near 0; `logsumexp`, of a sum of exponentials; `xlogy`, for `x *
    log(y)`, also at 0.

    Example:
        >>> ops.log([1.0]).tolist()
        [0.0]
    """
    ...


@op(elementwise=True, takes="all", gives="float", autocast="float32")
def log1p(x: TensorLike) -> Tensor:
    """Returns `log(1 + x)`, accurate near zero.

    See also: `expm1`, the inverse; `log`, for numbers far from 0.

    Example:
        >>> ops.log1p([0.0]).tolist()
        [0.0]
    """
    if dtype(x).is_complex:
        real, imag = _real_and_imaginary(x)
        # A complex sum would lose the sign of an imaginary part of -0.
        direct_logarithm = log(_make_complex(add(real, 1.0), imag))
        is_small = less(absolute(x), 0.5)
        real, imag = where(is_small, real, 0.0), where(is_small, imag, 0.0)
        squared_modulus_minus_1 = add(multiply(real, add(real, 2.0)), multiply(imag, imag))
        return where(
            is_small,
            _make_complex(divide(log1p(squared_modulus_minus_1), 2.0), arctan2(imag, add(real, 1.0))),
            direct_logarithm,
        )
    one_plus_x = add(x, 1.0)
    # The logarithm of the rounded sum, corrected by what the rounding lost.
    rounded_x = subtract(one_plus_x, 1.0)
    is_regular = logical_and(not_equal(rounded_x, 0.0), isfinite(one_plus_x))
    corrected_logarithm = multiply(
        log(where(is_regular, one_plus_x, 1.0)), divide(x, where(is_regular, rounded_x, 1.0))
    )
    return where(is_regular, corrected_logarithm, where(isfinite(one_plus_x), x, log(one_plus_x)))


@op(elementwise=True, takes="all", gives="float", autocast="float32")
def log2(x: TensorLike) -> Tensor:
    """Returns the logarithm to base 2.

    See also: `exp2`, the inverse; `log`, of base e.

    Example:
        >>> ops.log2([8.0]).tolist()
        [3.0]
    """
    return _logarithm(x, 2.0)


@op(elementwise=True, takes="all", gives="float", autocast="float32")
def log10(x: TensorLike) -> Tensor:
    """Returns the logarithm to base 10.

    See also: `log`, of base e; `log2`, of base 2.

    Example:
        >>> ops.log10([1.0]).tolist()
        [0.0]
    """
    return _logarithm(x, 10.0)


@op(elementwise=True, takes="real", gives="float", autocast="float32")
def logaddexp(x1: Operand, x2: Operand) -> Tensor:
    """Returns `log(exp(x1) + exp(x2))` without overflow.

    Where the result is near 0, its absolute error is small, but its relative error may be large.

    Raises:
        DTypeError: if an operand is complex.

    See also: `logsumexp`, over axes; `logaddexp2`, of base 2.

    Example:
        >>> ops.logaddexp([0.0, 5.0], float("-inf")).tolist()
        [0.0, 5.0]
    """
    return _log_of_sum(x1, x2, 1.0)


@op(elementwise=True, takes="real", gives="float")
def logaddexp2(x1: Operand, x2: Operand) -> Tensor:
    """Returns `log2(2**x1 + 2**x2)` without overflow.

    Where the result is near 0, its absolute error is small, but its relative error may be large.

    Raises:
        DTypeError: if an operand is complex.

    See also: `logaddexp`, of base e.

    Example:
        >>> ops.logaddexp2([3.0, 5.0], [3.0, 5.0]).tolist()
        [4.0, 6.0]
    """
    return _log_of_sum(x1, x2, math.log(2.0))


@op(elementwise=True, takes="all", gives="float")
def sin(x: TensorLike) -> Tensor:
    """Returns the sine of each element.

    See also: `arcsin`, the inverse.

    Example:
        >>> ops.sin([0.0]).tolist()
        [0.0]
    """
    ...


@op(elementwise=True, takes="all", gives="float")
def cos(x: TensorLike) -> Tensor:
    """Returns the cosine of each element.

    See also: `arccos`, the inverse.

    Example:
        >>> ops.cos([0.0]).tolist()
        [1.0]
    """
    ...


@op(elementwise=True, takes="all", gives="float", autocast="float32")
def tan(x: TensorLike) -> Tensor:
    """Returns the tangent of each element.

    See also: `arctan`, the inverse.

    Example:
        >>> ops.tan([0.0]).tolist()
        [0.0]
    """
    if not dtype(x).is_complex:
        return divide(sin(x), cos(x))
    # tan(z) = -i tanh(iz), which does not overflow.
    real, imag = _real_and_imaginary(x)
    real, imag = _real_and_imaginary(tanh(_make_complex(negative(imag), real)))
    return _make_complex(imag, negative(real))


@op(elementwise=True, takes="all", gives="float", autocast="float32")
def arcsin(x: TensorLike) -> Tensor:
    """Returns the inverse sine, from -pi/2 to pi/2.

    See also: `sin`, the inverse.

    Example:
        >>> ops.arcsin([0.0]).tolist()
        [0.0]
    """
    ...


asin = alias("asin", arcsin)


@op(elementwise=True, takes="all", gives="float", autocast="float32")
def arccos(x: TensorLike) -> Tensor:
    """Returns the inverse cosine, from 0 to pi.

    See also: `cos`, the inverse.

    Example:
        >>> ops.arccos([1.0]).tolist()
        [0.0]
    """
    ...


acos = alias("acos", arccos)


@op(elementwise=True, takes="all", gives="float")
def arctan(x: TensorLike) -> Tensor:
    """Returns the inverse tangent, from -pi/2 to pi/2.

    See also: `tan`, the inverse; `arctan2`, with the quadrant.

    Example:
        >>> ops.arctan([0.0]).tolist()
        [0.0]
    """
    ...


atan = alias("atan", arctan)


@op(elementwise=True, takes="real", gives="float")
def arctan2(x1: Operand, x2: Operand) -> Tensor:
    """Returns the angle between the first axis and the point (x2, x1), from -pi to pi.

    See also: `arctan`, of one number; `angle`, of a complex number.

    Example:
        >>> ops.arctan2([0.0], [1.0]).tolist()
        [0.0]
    """
    ...


atan2 = alias("atan2", arctan2)


@op(elementwise=True, takes="all", gives="float", autocast="float32")
def sinh(x: TensorLike) -> Tensor:
    """Returns the hyperbolic sine.

    See also: `arcsinh`, the inverse.

    Example:
        >>> ops.sinh([0.0]).tolist()
        [0.0]
    """
    ...


@op(elementwise=True, takes="all", gives="float", autocast="float32")
def cosh(x: TensorLike) -> Tensor:
    """Returns the hyperbolic cosine.

    See also: `arccosh`, the inverse.

    Example:
        >>> ops.cosh([0.0]).tolist()
        [1.0]
    """
    ...


@op(elementwise=True, takes="all", gives="float", finite="yes")
def tanh(x: TensorLike) -> Tensor:
    """Returns the hyperbolic tangent.

    See also: `arctanh`, the inverse; `nn.Tanh`, the layer; `hard_tanh`, of straight lines.

    Example:
        >>> ops.tanh([0.0]).tolist()
        [0.0]
    """
    ...


@op(elementwise=True, takes="all", gives="float")
def arcsinh(x: TensorLike) -> Tensor:
    """Returns the inverse hyperbolic sine.

    See also: `sinh`, the inverse.

    Example:
        >>> ops.arcsinh([0.0]).tolist()
        [0.0]
    """
    ...


asinh = alias("asinh", arcsinh)


@op(elementwise=True, takes="all", gives="float")
def arccosh(x: TensorLike) -> Tensor:
    """Returns the inverse hyperbolic cosine; NaN below 1.

    See also: `cosh`, the inverse.

    Example:
        >>> ops.arccosh([1.0]).tolist()
        [0.0]
    """
    ...


acosh = alias("acosh", arccosh)


@op(elementwise=True, takes="all", gives="float")
def arctanh(x: TensorLike) -> Tensor:
    """Returns the inverse hyperbolic tangent; infinite at -1 and 1, NaN outside [-1, 1].

    See also: `tanh`, the inverse.

    Example:
        >>> ops.arctanh([0.0]).tolist()
        [0.0]
    """
    ...


atanh = alias("atanh", arctanh)


@op(elementwise=True, takes="all", gives="float")
def deg2rad(x: TensorLike) -> Tensor:
    """Returns angles in degrees converted to radians.

    See also: `rad2deg`, the inverse.

    Example:
        >>> ops.deg2rad([0.0]).tolist()
        [0.0]
    """
    return multiply(x, pi / 180.0)


radians = alias("radians", deg2rad)


@op(elementwise=True, takes="all", gives="float")
def rad2deg(x: TensorLike) -> Tensor:
    """Returns angles in radians converted to degrees.

    See also: `deg2rad`, the inverse.

    Example:
        >>> ops.rad2deg([0.0]).tolist()
        [0.0]
    """
    return multiply(x, 180.0 / pi)


degrees = alias("degrees", rad2deg)


@op(elementwise=True, takes="real", gives="float")
def cbrt(x: TensorLike) -> Tensor:
    """Returns the real cube root, also for negative numbers.

    Raises:
        DTypeError: if `x` is complex.

    See also: `power`, with any exponent.

    Example:
        >>> ops.cbrt([0.0]).tolist()
        [0.0]
    """
    is_zero = equal(x, 0)
    approximate_root = copysign(power(where(is_zero, 1.0, fabs(x)), 1.0 / 3.0), x)
    # Binary floats cannot represent 1/3 exactly, so one step of Newton's method corrects the root.
    corrected_root = subtract(
        approximate_root, divide(subtract(approximate_root, divide(divide(x, approximate_root), approximate_root)), 3.0)
    )
    # At 0 the square root has the same value and the same (infinite) derivative as the cube root.
    return where(is_zero, sqrt(where(is_zero, x, 1.0)), where(isfinite(x), corrected_root, approximate_root))


@op(elementwise=True, takes="real", gives="float")
def sinc(x: TensorLike) -> Tensor:
    """Returns `sin(pi x) / (pi x)`: 1 at 0, and exactly 0 at all other integers.

    See also: `sin`, undivided.

    Example:
        >>> ops.sinc([0.0, 2.0]).tolist()
        [1.0, 0.0]
    """
    # Use the Taylor series near 0: a constant there would have no derivatives.
    is_near_0 = less(fabs(x), 0.03)
    small_square = square(multiply(where(is_near_0, x, 0.0), pi))
    taylor_series: Any = 1.0
    for divisor in (72.0, 42.0, 20.0, 6.0):
        taylor_series = subtract(1.0, multiply(divide(small_square, divisor), taylor_series))
    x = where(is_near_0, 1.0, x)
    # Compute sin(pi x) from the distance to the nearest integer: the distance is exact, pi * x is not.
    nearest_integer = round(x)
    sine = sin(multiply(subtract(x, nearest_integer), pi))
    sine = where(equal(mod(nearest_integer, 2.0), 0), sine, negative(sine))
    return where(is_near_0, taylor_series, divide(sine, multiply(x, pi)))


@op(elementwise=True, takes="real", gives="float", finite="yes")
def erf(x: TensorLike) -> Tensor:
    """Returns the error function, `2/sqrt(pi)` times the integral of `exp(-t**2)` from 0 to x.

    See also: `erfinv`, the inverse; `erfc`, exact for large numbers; `ndtr`, with the scale of the normal distribution.

    Example:
        >>> ops.erf([0.0]).tolist()
        [0.0]
    """
    return series.evaluate_series(shared_elementary.erf, x)


@op(elementwise=True, takes="real", gives="float", finite="yes")
def erfc(x: TensorLike) -> Tensor:
    """Returns `1 - erf(x)`, accurate where the result is small.

    See also: `erfcx`, without underflow; `erf`, near 0.

    Example:
        >>> ops.erfc([0.0]).tolist()
        [1.0]
    """
    return series.evaluate_series(shared_elementary.erfc, x)


@op(elementwise=True, takes="real", gives="float", autocast="float32")
def erfinv(x: TensorLike) -> Tensor:
    """Returns the inverse of `erf`; infinite at -1 and 1, NaN outside [-1, 1].

    See also: `erf`, the inverse.

    Example:
        >>> ops.erfinv([0.0]).tolist()
        [0.0]
    """
    return series.evaluate_series(shared_elementary.erfinv, x)


@op(elementwise=True, takes="real", gives="float")
def i0(x: TensorLike) -> Tensor:
    """Returns the modified Bessel function of the first kind and order 0.

    Raises:
        DTypeError: if `x` is complex.

    See also: `i0e`, without overflow; `i1`, of order 1; `iv`, of any order.

    Example:
        >>> bool(ops.isclose(ops.i0(1.0), 1.26606588))
        True

    Source: the Chebyshev series of the Cephes library.
    """
    return series.evaluate_series(shared_elementary.i0, x)


def _real_and_imaginary(x: Tensor) -> tuple[Tensor, Tensor]:
    return complex_numbers.real(x), complex_numbers.imag(x)


def _make_complex(real: Tensor, imag: Tensor) -> Tensor:
    return complex_numbers.view_as_complex(stack([real, imag], -1))


def _scale_parts(x: Tensor, factor: float) -> Tensor:
    """Returns complex numbers, multiplied part by part: a product with a complex number makes NaN of infinities."""
    real, imag = _real_and_imaginary(x)
    return _make_complex(multiply(real, factor), multiply(imag, factor))


def _logarithm(x: Tensor, base: float) -> Tensor:
    natural_logarithm = log(x)
    return (
        _scale_parts(natural_logarithm, 1.0 / math.log(base))
        if dtype(x).is_complex
        else divide(natural_logarithm, math.log(base))
    )


def _log_of_sum(x1: Tensor, x2: Tensor, scale: float) -> Tensor:
    """Returns the larger operand plus the logarithm of the smaller power, relative to the larger one."""
    # Equal infinities have the distance NaN, and the sum is the same infinity.
    negative_distance = where(equal(x1, x2), 0.0, negative(absolute(subtract(x1, x2))))
    return add(maximum(x1, x2), divide(log1p(exp(multiply(negative_distance, scale))), scale))
