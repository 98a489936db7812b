"""The normal distribution and the scaled error function, for libraries that lack accurate ones; see `special`.

Source: the quantile is M. J. Wichura's, Algorithm AS 241, Applied Statistics 37 (1988) 477-484.
"""

import math
from typing import Any

from emberharmony.backend.shared.elementwise.elementary import (
    SMALL,
    at_least,
    at_most,
    erf_near_zero,
    polynomial,
    replace_outside,
    scaled_erfc_tail,
)

# Coefficients of the normal quantile's numerators and denominators, for probabilities near 1/2, small and tiny.
_QUANTILE_NEAR_TOP = (
    *(2509.0809287301227, 33430.57558358813, 67265.7709270087, 45921.95393154987),
    *(13731.69376550946, 1971.5909503065513, 133.14166789178438, 3.3871328727963665),
)
_QUANTILE_NEAR_BELOW = (
    *(5226.495278852854, 28729.085735721943, 39307.89580009271, 21213.794301586597),
    *(5394.196021424751, 687.1870074920579, 42.31333070160091, 1.0),
)
_QUANTILE_FAR_TOP = (
    *(0.0007745450142783414, 0.022723844989269184, 0.2417807251774506, 1.2704582524523684),
    *(3.6478483247632045, 5.769497221460691, 4.630337846156546, 1.4234371107496835),
)
_QUANTILE_FAR_BELOW = (
    *(1.0507500716444169e-09, 0.0005475938084995345, 0.015198666563616457, 0.14810397642748008),
    *(0.6897673349851, 1.6763848301838038, 2.053191626637759, 1.0),
)
_QUANTILE_END_TOP = (
    *(2.0103343992922881e-07, 2.7115555687434876e-05, 0.0012426609473880784, 0.026532189526576124),
    *(0.29656057182850487, 1.7848265399172913, 5.463784911164114, 6.657904643501103),
)
_QUANTILE_END_BELOW = (
    *(2.0442631033899397e-15, 1.421511758316446e-07, 1.8463183175100548e-05, 0.0007868691311456133),
    *(0.014875361290850615, 0.1369298809227358, 0.599832206555888, 1.0),
)
_ROOT_HALF = math.sqrt(0.5)


def erfcx(xp: Any, x: Any) -> Any:
    """Returns `exp(x * x) * erfc(x)`."""
    y = xp.abs(x)
    tail = scaled_erfc_tail(xp, at_least(xp, y, SMALL))
    # Beyond 27 the result for negative x is infinite.
    bounded_y = at_most(xp, y, 27.0)
    rounded_y = xp.floor(bounded_y * 16.0) / 16.0
    exp_of_square = xp.exp(rounded_y * rounded_y) * xp.exp((bounded_y - rounded_y) * (bounded_y + rounded_y))
    near_result = exp_of_square * (1.0 - erf_near_zero(replace_outside(xp, y <= SMALL, x, 0.0)))
    far_result = xp.where(x < 0.0, 2.0 * exp_of_square - tail, tail)
    return xp.where(xp.isnan(x), x, xp.where(y <= SMALL, near_result, far_result))


def _normal_tail(xp: Any, y: Any) -> Any:
    """Returns the probability that a standard normal number exceeds `y`, for y >= 0.67."""
    bounded_y = at_most(xp, y, 40.0)
    rounded_y = xp.floor(bounded_y * 16.0) / 16.0
    gaussian = xp.exp(-0.5 * rounded_y * rounded_y) * xp.exp(-0.5 * (bounded_y - rounded_y) * (bounded_y + rounded_y))
    return 0.5 * scaled_erfc_tail(xp, bounded_y * _ROOT_HALF) * gaussian


def ndtr(xp: Any, x: Any) -> Any:
    """Returns the distribution function of the standard normal distribution."""
    is_near = xp.abs(x) * _ROOT_HALF <= SMALL
    tail = _normal_tail(xp, replace_outside(xp, ~is_near, xp.abs(x), 1.0))
    near_result = 0.5 + 0.5 * erf_near_zero(replace_outside(xp, is_near, x, 0.0) * _ROOT_HALF)
    return xp.where(xp.isnan(x), x, xp.where(is_near, near_result, xp.where(x < 0.0, tail, 1.0 - tail)))


def log_ndtr(xp: Any, x: Any) -> Any:
    """Returns the logarithm of `ndtr`."""
    is_near = xp.abs(x) * _ROOT_HALF <= SMALL
    magnitude = replace_outside(xp, ~is_near & (x < 0.0), -x, 1.0)
    tail_result = xp.log(0.5 * scaled_erfc_tail(xp, magnitude * _ROOT_HALF)) - 0.5 * magnitude * magnitude
    right_result = xp.log1p(-_normal_tail(xp, replace_outside(xp, ~is_near & (x > 0.0), x, 1.0)))
    near_result = xp.log(0.5 + 0.5 * erf_near_zero(replace_outside(xp, is_near, x, 0.0) * _ROOT_HALF))
    log_probability = xp.where(is_near, near_result, xp.where(x < 0.0, tail_result, right_result))
    return xp.where(xp.isnan(x), x, xp.where(x == -math.inf, x, log_probability))


def ndtri(xp: Any, p: Any) -> Any:
    """Returns the inverse of `ndtr`."""
    q = p - 0.5
    is_near = xp.abs(q) <= 0.425
    is_inside = (p > 0.0) & (p < 1.0)
    central_q = replace_outside(xp, is_near, q, 0.0)
    r = 0.180625 - central_q * central_q
    middle_result = central_q * polynomial(r, _QUANTILE_NEAR_TOP) / polynomial(r, _QUANTILE_NEAR_BELOW)
    r = xp.sqrt(-xp.log(replace_outside(xp, is_inside & ~is_near, xp.where(q < 0.0, p, 1.0 - p), 0.05)))
    far_argument, extreme_argument = at_most(xp, r, 5.0) - 1.6, at_least(xp, r, 5.0) - 5.0
    tail_result = xp.where(
        r <= 5.0,
        polynomial(far_argument, _QUANTILE_FAR_TOP) / polynomial(far_argument, _QUANTILE_FAR_BELOW),
        polynomial(extreme_argument, _QUANTILE_END_TOP) / polynomial(extreme_argument, _QUANTILE_END_BELOW),
    )
    quantile = xp.where(is_near, middle_result, xp.where(q < 0.0, -tail_result, tail_result))
    end_values = xp.where(p == 0.0, -math.inf, xp.where(p == 1.0, math.inf, math.nan))
    return xp.where(is_inside, quantile, end_values)
