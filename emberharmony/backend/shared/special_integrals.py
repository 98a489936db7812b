"""The incomplete gamma and beta functions, for libraries that lack accurate ones.

Each is a positive factor times the integral of a positive function over a half line. A double exponential quadrature
computes the integral with the same few nodes for all arguments, so nothing cancels and no loop depends on the values.
All functions compute in float64; `xp` is as in `special`, and `xp.column(numbers, x)` returns numbers along an axis in
front of those of `x`.

Source: H. Takahasi and M. Mori, Double exponential formulas for numerical integration, Publ. RIMS 9 (1974) 721-741.
"""

import math
from collections.abc import Callable
from typing import Any

from emberharmony.backend.shared.elementary import polynomial
from emberharmony.backend.shared.special import beta, log_gamma, log_gamma_next, stirling

# The nodes exp(t - exp(-t)) for t at equal distances, and the weights: the derivatives by t, times the distance.
_STEP = 0.11
_PLACES = tuple(_STEP * k for k in range(-33, 38))
_NODES = tuple(math.exp(t - math.exp(-t)) for t in _PLACES)
_AT_ONCE = 2**16
"""How many values of the integrand are computed at once."""
_WEIGHTS = tuple(_STEP * (1.0 + math.exp(-t)) * node for t, node in zip(_PLACES, _NODES, strict=True))
_ODD = tuple(1.0 / (2 * k + 3) for k in reversed(range(14)))
_FACTORIAL = tuple(1.0 / math.factorial(k + 2) for k in reversed(range(11)))
_TERMS = 22
"""How many terms of the power series of the incomplete gamma function for x <= 1."""


def _integral(xp: Any, width: Any, exponent: Callable[[Any], Any]) -> Any:
    """Returns the integral of `exp(exponent(s))` over s > 0; the exponent falls from 0, by 1 within about `width`."""
    total, size = 0.0 * width, math.prod(width.shape)
    if not size:
        return total
    count = min(len(_NODES), max(1, _AT_ONCE // size))
    for start in range(0, len(_NODES), count):
        nodes = xp.column(_NODES[start : start + count], width)
        weights = xp.column(_WEIGHTS[start : start + count], width)
        total = total + xp.sum(weights * xp.exp(exponent(nodes * width)), 0)
    return total * width


def _log1p_less(xp: Any, u: Any, more: Any = None, bound: float = 0.5, terms: int = 14) -> Any:
    """Returns `u - log1p(u)`, with full relative precision up to the bound, for which the terms of a series suffice.

    Args:
        xp: the namespace.
        u: the argument.
        more: `u + 1`, where it is known with more digits than `u` has.
        bound: where the series ends.
        terms: the number of its terms.
    """
    small = xp.abs(u) < bound
    v = xp.where(small, u, 0.0)
    r = v / (2.0 + v)
    square = r * r
    series = polynomial(square, _ODD[-terms:])
    logarithm = xp.log1p(xp.where(small, 0.0, u)) if more is None else xp.log(xp.where(small, 1.0, more))
    return xp.where(small, r * (v - 2.0 * square * series), u - logarithm)


def _coarse(xp: Any, u: Any) -> Any:
    """Returns `u - log1p(u)` for u >= 0, with fewer digits where the integrand is small."""
    return _log1p_less(xp, u, None, 0.25, 8)


def _expm1_less(xp: Any, s: Any) -> Any:
    """Returns `exp(-s) - 1 + s` for s >= 0, with fewer digits where the integrand is small."""
    small = s < 0.25
    v = xp.where(small, s, 0.0)
    return xp.where(small, v * v * polynomial(-v, _FACTORIAL), xp.expm1(-s) + s)


def _density(xp: Any, a: Any, x: Any) -> Any:
    """Returns `x**a * exp(-x) / gamma(a)` for a, x > 0."""
    large = a >= 10.0
    low = xp.where(large, 1.0, a)
    # Divide by gamma(1 + a), which does not overflow.
    gamma = xp.where(low < 1.0, log_gamma_next(xp.where(low < 1.0, low, 0.5)), log_gamma(xp, low + 1.0))
    small = low * xp.power(x, low) * xp.exp(-x) * xp.exp(-gamma)
    high = xp.where(large, a, 10.0)
    distance = _log1p_less(xp, xp.where(large, (x - high) / high, 0.0), xp.where(large, x / high, 1.0))
    return xp.where(large, xp.sqrt(high / (2.0 * math.pi)) * xp.exp(-stirling(high)) * xp.exp(-high * distance), small)


def _gamma_near(xp: Any, a: Any, x: Any, upper: bool) -> Any:
    """Returns an incomplete gamma function for x <= 1, by power series."""
    term, total = 1.0 / a, 1.0 / a
    for k in range(1, _TERMS):
        term = term * (x / (a + k))
        total = total + term
    lower = _density(xp, a, x) * total
    if not upper:
        return lower
    # Where the lower function is nearly 1, take 1 out of its series with alternating signs.
    flat = a < 1.0
    small = xp.where(flat, a, 0.5)
    fall, rest = 1.0 + 0.0 * x, 0.0 * x
    for k in range(1, _TERMS):
        fall = fall * (-x / k)
        rest = rest + fall / (small + k)
    exponent = small * xp.log(x) - log_gamma_next(small)
    return xp.where(flat & (lower > 0.5), -xp.expm1(exponent) - small * xp.exp(exponent) * rest, 1.0 - lower)


def _gamma_above(xp: Any, a: Any, x: Any) -> Any:
    """Returns the upper function for x >= a, x > 1; the variable of the integral is `x * (1 + u)`."""
    width = 1.0 / ((x - a) + xp.sqrt(xp.where(a > 1.0, a, 1.0)))
    return _density(xp, a, x) * _integral(xp, width, lambda u: -((x - a) + 1.0) * u - (a - 1.0) * _coarse(xp, u))


def _gamma_below(xp: Any, a: Any, x: Any) -> Any:
    """Returns the lower function for 1 < x < a; the variable of the integral is `x * exp(-s)`."""
    width = 1.0 / ((a - x) + xp.sqrt(a))
    return _density(xp, a, x) * _integral(xp, width, lambda s: -(a - x) * s - x * _expm1_less(xp, s))


def _gamma(xp: Any, a: Any, x: Any, upper: bool) -> Any:
    usual = (a > 0.0) & (x > 0.0) & (a < math.inf) & (x < math.inf)
    series, right = usual & (x <= 1.0), usual & (x > 1.0) & (x >= a)
    left = usual & (x > 1.0) & (x < a)
    near = xp.picked(
        series, lambda p, z: _gamma_near(xp, p, z, upper), xp.where(series, a, 1.0), xp.where(series, x, 0.5)
    )
    # Compute the smaller part.
    above = xp.picked(right, lambda p, z: _gamma_above(xp, p, z), xp.where(right, a, 1.0), xp.where(right, x, 2.0))
    below = xp.picked(left, lambda p, z: _gamma_below(xp, p, z), xp.where(left, a, 3.0), xp.where(left, x, 2.0))
    part = xp.where(right, above, 1.0 - below) if upper else xp.where(right, 1.0 - above, below)
    zero, one = (1.0, 0.0) if upper else (0.0, 1.0)
    ends = xp.where((x == math.inf) | (a == 0.0), one, zero)
    unknown = (a < 0.0) | (x < 0.0) | ((a == 0.0) & (x == 0.0)) | ((a == math.inf) & (x == math.inf))
    ends = xp.where(unknown | xp.isnan(a) | xp.isnan(x), math.nan, ends)
    return xp.where(usual, xp.where(series, near, part), ends)


def gammainc(xp: Any, a: Any, x: Any) -> Any:
    """Returns the lower regularized incomplete gamma function."""
    return _gamma(xp, a, x, False)


def gammaincc(xp: Any, a: Any, x: Any) -> Any:
    """Returns the upper regularized incomplete gamma function."""
    return _gamma(xp, a, x, True)


def _beta_density(xp: Any, a: Any, b: Any, x: Any) -> Any:
    """Returns `x**a * (1 - x)**b / beta(a, b)` for a, b > 0 and x between 0 and 1."""
    large = (a >= 10.0) & (b >= 10.0)
    a0, b0, x0 = xp.where(large, 1.0, a), xp.where(large, 1.0, b), xp.where(large, 0.5, x)
    small = xp.power(x0, a0) * (xp.exp(b0 * xp.log1p(-x0)) / beta(xp, a0, b0))
    a1, b1, x1 = xp.where(large, a, 10.0), xp.where(large, b, 10.0), xp.where(large, x, 0.5)
    total = a1 + b1
    distance = x1 * b1 - (1.0 - x1) * a1
    power = -a1 * _log1p_less(xp, distance / a1, x1 * (total / a1))
    power = power - b1 * _log1p_less(xp, -distance / b1, (1.0 - x1) * (total / b1))
    corrections = stirling(total) - stirling(a1) - stirling(b1)
    root = xp.sqrt(a1 / total * b1 / (2.0 * math.pi))
    return xp.where(large, root * xp.exp(corrections) * xp.exp(power), small)


def _beta_lower(xp: Any, a: Any, b: Any, x: Any, y: Any, density: Any) -> Any:
    """Returns the regularized incomplete beta function, where x + y = 1, x < a / (a + b - 1).

    The integral is over `s`, the logarithm of `x` over the variable of integration.
    """
    # Below 1, raise `a` by 1, for otherwise the integral would have two scales.
    raised = a < 1.0
    a1 = xp.where(raised, a + 1.0, a)
    ratio = x / y

    def exponent(s: Any) -> Any:
        grown = -ratio * xp.expm1(-s)
        return -(a1 - (b - 1.0) * ratio) * s - (b - 1.0) * (ratio * _expm1_less(xp, s) + _coarse(xp, grown))

    slope = a1 - (b - 1.0) * ratio
    curved = b > 1.0
    bend = xp.where(curved, (b - 1.0) * ratio * (1.0 + ratio), 0.0)
    whole = density / y * _integral(xp, 1.0 / (xp.where(curved, slope, a1) + xp.sqrt(bend)), exponent)
    return xp.where(raised, (density + (a + b) * (x * whole)) / a, whole)


def _beta_within(xp: Any, p: Any, q: Any, z: Any) -> Any:
    """Returns the regularized incomplete beta function for p, q > 0 and z between 0 and 1."""
    # Compute the smaller part, except where its integrand would have two scales that are far apart.
    odds = z / (1.0 - z)
    left = odds * q <= p
    apart = (q < 1.0) & (odds > 30.0 * p) & (odds > 30.0)
    left_after_all = (p < 1.0) & (odds * (30.0 * q) < 1.0) & (odds < 1.0 / 30.0)
    left = (left & ~apart) | (~left & left_after_all)
    first, second = xp.where(left, p, q), xp.where(left, q, p)
    x, y = xp.where(left, z, 1.0 - z), xp.where(left, 1.0 - z, z)
    part = _beta_lower(xp, first, second, x, y, _beta_density(xp, p, q, z))
    return xp.where(left, part, 1.0 - part)


def betainc(xp: Any, a: Any, b: Any, x: Any) -> Any:
    """Returns the regularized incomplete beta function."""
    usual = (a > 0.0) & (b > 0.0) & (a < math.inf) & (b < math.inf) & (x > 0.0) & (x < 1.0)
    result = xp.picked(
        usual,
        lambda p, q, z: _beta_within(xp, p, q, z),
        *(xp.where(usual, given, safe) for given, safe in ((a, 1.0), (b, 1.0), (x, 0.25))),
    )
    low, high = (x == 0.0) | (a == math.inf) | (b == 0.0), (x == 1.0) | (b == math.inf) | (a == 0.0)
    ends = xp.where(x == 1.0, 1.0, xp.where((x == 0.0) | low, 0.0, 1.0))
    unknown = (a < 0.0) | (b < 0.0) | (x < 0.0) | (x > 1.0) | (low & high & (x > 0.0) & (x < 1.0))
    unknown = unknown | ((a == 0.0) & (b == 0.0)) | ((a == math.inf) & (b == math.inf))
    ends = xp.where(unknown | xp.isnan(a) | xp.isnan(b) | xp.isnan(x), math.nan, ends)
    return xp.where(usual, result, ends)
