"""Special functions for libraries that lack accurate ones; all but `erf_single` compute in float64.

The parameter `xp` is a module with NumPy's function names; `exp`, if given, replaces its exponential.

Source: for the error function W. J. Cody, Rational Chebyshev approximation for the error function, Math. Comp. 23
(1969) 631-637, and in float32 the rational function of Eigen and XLA; for the Bessel function the Cephes library. The
relative error of each piece is below 1e-16 times a small factor, in float32 below 3 eps.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

# Cody's coefficients: A and B for erf up to 0.46875, C and D for erfc up to 4, P and Q for erfc beyond.
_A = (3.16112374387056560e00, 1.13864154151050156e02, 3.77485237685302021e02, 3.20937758913846947e03)
_A_TOP = 1.85777706184603153e-1
_B = (2.36012909523441209e01, 2.44024637934444173e02, 1.28261652607737228e03, 2.84423683343917062e03)
_C = (
    *(5.64188496988670089e-1, 8.88314979438837594e00, 6.61191906371416295e01, 2.98635138197400131e02),
    *(8.81952221241769090e02, 1.71204761263407058e03, 2.05107837782607147e03, 1.23033935479799725e03),
)
_C_TOP = 2.15311535474403846e-8
_D = (
    *(1.57449261107098347e01, 1.17693950891312499e02, 5.37181101862009858e02, 1.62138957456669019e03),
    *(3.29079923573345963e03, 4.36261909014324716e03, 3.43936767414372164e03, 1.23033935480374942e03),
)
_P = (
    *(3.05326634961232344e-1, 3.60344899949804439e-1, 1.25781726111229246e-1),
    *(1.60837851487422766e-2, 6.58749161529837803e-4),
)
_P_TOP = 1.63153871373020978e-2
_Q = (
    *(2.56852019228982242e00, 1.87295284992346725e00, 5.27905102951428412e-1),
    *(6.05183413124413191e-2, 2.33520497626869185e-3),
)
SMALL, _LARGE = 0.46875, 4.0
# The numerator and the denominator of `erf_single`, and the number from which it is 1 in float32.
SINGLE_TOP = (
    *(2.2905065861350646e-4, 3.4082910107109506e-3, 5.0955695062380861e-2),
    *(1.8520832239976145e-1, 1.128379143519084e0),
)
SINGLE_BELOW = (
    *(-1.1791602954361697e-7, 2.3547966471313185e-5, 1.0179625278914885e-3, 1.4070470171167667e-2),
    *(1.1098505178285362e-1, 4.9746925110067538e-1, 1.0),
)
SINGLE_END = 3.832506856900711

# The Chebyshev coefficients of exp(-x) i0(x) up to 8, and of exp(-x) sqrt(x) i0(x) beyond.
I0_NEAR = (
    *(-4.4153416464793395e-18, 3.3307945188222384e-17, -2.431279846547955e-16, 1.715391285555133e-15),
    *(-1.1685332877993451e-14, 7.676185498604936e-14, -4.856446783111929e-13, 2.95505266312964e-12),
    *(-1.726826291441556e-11, 9.675809035373237e-11, -5.189795601635263e-10, 2.6598237246823866e-09),
    *(-1.300025009986248e-08, 6.046995022541919e-08, -2.670793853940612e-07, 1.1173875391201037e-06),
    *(-4.4167383584587505e-06, 1.6448448070728896e-05, -5.754195010082104e-05, 0.00018850288509584165),
    *(-0.0005763755745385824, 0.0016394756169413357, -0.004324309995050576, 0.010546460394594998),
    *(-0.02373741480589947, 0.04930528423967071, -0.09490109704804764, 0.17162090152220877),
    *(-0.3046826723431984, 0.6767952744094761),
)
I0_FAR = (
    *(-7.233180487874754e-18, -4.830504485944182e-18, 4.46562142029676e-17, 3.461222867697461e-17),
    *(-2.8276239805165836e-16, -3.425485619677219e-16, 1.7725601330565263e-15, 3.8116806693526224e-15),
    *(-9.554846698828307e-15, -4.150569347287222e-14, 1.54008621752141e-14, 3.8527783827421426e-13),
    *(7.180124451383666e-13, -1.7941785315068062e-12, -1.3215811840447713e-11, -3.1499165279632416e-11),
    *(1.1889147107846439e-11, 4.94060238822497e-10, 3.3962320257083865e-09, 2.266668990498178e-08),
    *(2.0489185894690638e-07, 2.8913705208347567e-06, 6.889758346916825e-05, 0.0033691164782556943),
    *(0.8044904110141088,),
)


def compute_in_double(function: Callable[[Any, Any], Any], xp: Any, x: Any) -> Any:
    """Returns `function(xp, x)`, computed in float64 and cast back to the dtype of `x`."""
    return function(xp, x.astype(xp.float64)).astype(x.dtype)


def polynomial_ratio(y: Any, top: float, upper: Sequence[float], lower: Sequence[float]) -> Any:
    """Returns the quotient of two polynomials in `y`, each evaluated by Horner's rule.

    Args:
        y: the argument.
        top: the leading coefficient of the numerator; that of the denominator is 1.
        upper: the other coefficients of the numerator.
        lower: the other coefficients of the denominator.
    """
    numerator, denominator = top * y, y
    for a, b in zip(upper[:-1], lower[:-1], strict=True):
        numerator, denominator = (numerator + a) * y, (denominator + b) * y
    return (numerator + upper[-1]) / (denominator + lower[-1])


def at_most(xp: Any, y: Any, bound: float) -> Any:
    """Returns `min(y, bound)`, whose derivative at the bound, where two pieces meet, is 1."""
    return xp.where(y <= bound, y, bound)


def at_least(xp: Any, y: Any, bound: float) -> Any:
    """Returns `max(y, bound)`, whose derivative at the bound is 1."""
    return xp.where(y >= bound, y, bound)


def replace_outside(xp: Any, mask: Any, x: Any, other: float) -> Any:
    """Returns `x` where the mask is true, else a given number for which the function is harmless."""
    return xp.where(mask, x, other)


def gaussian(xp: Any, y: Any, exp: Callable[[Any], Any]) -> Any:
    """Returns `exp(-y * y)` to full precision, by a multiple of 1/16 near `y`, whose square is exact."""
    rounded_y = xp.floor(y * 16.0) / 16.0
    return exp(-rounded_y * rounded_y) * exp(-(y - rounded_y) * (y + rounded_y))


def erf_near_zero(x: Any) -> Any:
    """Returns `erf(x)` for `x` from -0.46875 to 0.46875."""
    return x * polynomial_ratio(x * x, _A_TOP, _A, _B)


def scaled_erfc_tail(xp: Any, y: Any) -> Any:
    """Returns `exp(y * y) * erfc(y)` for y >= 0.46875."""
    middle_result = polynomial_ratio(at_most(xp, y, _LARGE), _C_TOP, _C, _D)
    far_y = at_least(xp, y, _LARGE)
    inverse_square = 1.0 / (far_y * far_y)
    far_result = (1.0 / math.sqrt(math.pi) - inverse_square * polynomial_ratio(inverse_square, _P_TOP, _P, _Q)) / far_y
    return xp.where(y <= _LARGE, middle_result, far_result)


def _erfc_tail(xp: Any, y: Any, exp: Callable[[Any], Any]) -> Any:
    """Returns `erfc(y)` for y >= 0.46875."""
    # erfc(30) is 0 in float64 already, and infinity would give NaN below.
    y = at_most(xp, y, 30.0)
    return scaled_erfc_tail(xp, y) * gaussian(xp, y, exp)


def erf(xp: Any, x: Any, exp: Callable[[Any], Any] | None = None) -> Any:
    """Returns the error function of a float64 tensor."""
    # Give each branch arguments of its own range only. Outside, it may overflow, and `where` would let the NaN into
    # the gradient.
    y = xp.abs(x)
    tail_result = 1.0 - _erfc_tail(xp, at_least(xp, y, SMALL), exp or xp.exp)
    near_result = erf_near_zero(xp.where(y <= SMALL, x, 0.0))
    return xp.where(xp.isnan(x), x, xp.where(y <= SMALL, near_result, xp.where(x < 0, -tail_result, tail_result)))


def polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    """Returns the value of a polynomial at `x` by Horner's rule; the first coefficient has the highest degree."""
    horner_sum = coefficients[0] * x + coefficients[1]
    for coefficient in coefficients[2:]:
        horner_sum = horner_sum * x + coefficient
    return horner_sum


def erf_single(xp: Any, x: Any) -> Any:
    """Returns the error function of a float32 tensor; it is constant from where it rounds to 1 in float32."""
    x = xp.clip(x, -SINGLE_END, SINGLE_END)
    square = x * x
    return x * (polynomial(square, SINGLE_TOP) / polynomial(square, SINGLE_BELOW))


def erfc(xp: Any, x: Any, exp: Callable[[Any], Any] | None = None) -> Any:
    """Returns the complementary error function of a float64 tensor."""
    y = xp.abs(x)
    tail = _erfc_tail(xp, at_least(xp, y, SMALL), exp or xp.exp)
    near_result = 1.0 - erf_near_zero(xp.where(y <= SMALL, x, 0.0))
    return xp.where(xp.isnan(x), x, xp.where(y <= SMALL, near_result, xp.where(x < 0, 2.0 - tail, tail)))


def erfinv(xp: Any, x: Any) -> Any:
    """Returns the inverse error function of a float64 tensor: Winitzki's approximation, then three steps of Halley."""
    magnitude = xp.abs(x)
    inside_magnitude = xp.where(magnitude < 1.0, magnitude, 0.5)
    logarithm = xp.log1p(-inside_magnitude * inside_magnitude)
    half_term = 2.0 / (math.pi * 0.147) + logarithm / 2.0
    y = xp.sqrt(xp.maximum(xp.sqrt(half_term * half_term - logarithm / 0.147) - half_term, 0.0))
    for _ in range(3):
        # Near 1, erf loses the digits of its distance from 1; erfc has them.
        deviation = xp.where(
            inside_magnitude < 0.5, erf(xp, y) - inside_magnitude, (1.0 - inside_magnitude) - erfc(xp, y)
        )
        newton_step = deviation / (2.0 / math.sqrt(math.pi) * xp.exp(-y * y))
        y = y - newton_step / (1.0 + y * newton_step)
    y = xp.where(magnitude < 1.0, y, xp.where(magnitude == 1.0, math.inf, math.nan))
    return xp.where(x < 0, -y, xp.where(x == 0, x, y))


def chebyshev(x: Any, coefficients: Sequence[float]) -> Any:
    """Returns a Chebyshev series at `x` from -2 to 2 by Clenshaw's rule; the highest degree comes first."""
    second_last, previous, current = 0.0, 0.0, coefficients[0] + 0.0 * x
    for coefficient in coefficients[1:]:
        second_last, previous = previous, current
        current = x * previous - second_last + coefficient
    return 0.5 * (current - second_last)


def i0(xp: Any, x: Any) -> Any:
    """Returns the modified Bessel function of the first kind of order 0 of a float64 tensor."""
    y = xp.abs(x)
    near_result = chebyshev(at_most(xp, y, 8.0) / 2.0 - 2.0, I0_NEAR)
    far_y = at_least(xp, y, 8.0)
    far_result = chebyshev(32.0 / far_y - 2.0, I0_FAR) / xp.sqrt(far_y)
    return xp.where(y < math.inf, xp.exp(y) * xp.where(y <= 8.0, near_result, far_result), y)


def i0_slope(xp: Any, x: Any, y: Any) -> Any:
    """Returns the derivative of `y = i0(x)`, which is y times I1(x) / I0(x).

    The ratio is a continued fraction, cut off after 30 terms; an asymptotic formula replaces the rest.

    Source: DLMF 10.33.1 for the fraction, 10.41 for the rest.
    """
    term_count = 30
    bessel_ratio = x / (xp.sqrt(x * x + (term_count + 1.0) ** 2) + (term_count + 1.0))
    for k in range(term_count, 0, -1):
        bessel_ratio = x / (x * bessel_ratio + 2.0 * k)
    return y * bessel_ratio
