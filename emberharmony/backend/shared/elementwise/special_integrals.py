"""The incomplete gamma and beta functions, for libraries that lack accurate ones.

Each is a positive factor times the integral of a positive function over a half line. A quadrature computes the integral
with the same few nodes for all arguments, so nothing cancels and no loop depends on the values. For the gamma
functions, whose integrand is entire, it is that of Gauss on the range where the integrand is not negligible. For the
beta function it is a double exponential one, because the integrand has singularities close to the range. The variable
of each integral is a logarithm.

All functions compute in float64; `xp` is as in `special`, and has two more members. `xp.column(numbers, x)` returns
numbers along an axis in front of those of `x`. `xp.digits` tells the precision of the results: `DOUBLE`, or `SINGLE` if
they become float32, for which fewer nodes and terms suffice.

Source: H. Takahasi and M. Mori, Double exponential formulas for numerical integration, Publ. RIMS 9 (1974) 721-741.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from emberharmony.backend.shared.elementwise.elementary import polynomial
from emberharmony.backend.shared.elementwise.special import gamma1p, log_gamma1p, positive_beta, stirling

# The nodes below 1/2 and the weights of Gauss's quadrature from 0 to 1, computed with 50 digits.
_NODES_28 = (
    *(0.001778751213022775, 0.009348417314563623, 0.022870359685530903, 0.04218348680393396, 0.06705373871280247),
    *(0.09717931454141042, 0.1321945609931841, 0.17167445298056752, 0.21513976409429914, 0.2620628875224409),
    *(0.31187424195546065, 0.363969186182411, 0.41771535893330963, 0.47246035505798284),
)
_WEIGHTS_28 = (
    *(0.0045621412965472586, 0.01056605629638563, 0.01645071389115219, 0.022136467379502114, 0.027553672837858374),
    *(0.0326364619834998, 0.03732310711728439, 0.041556708614450606, 0.04528587219651642, 0.04846532899896496),
    *(0.05105648378903038, 0.05302788296142321, 0.05435559612914707, 0.0550235065082376),
)
_NODES_14 = (
    *(0.006858095651593831, 0.03578255816821324, 0.0863993424651175, 0.15635354759415726, 0.24237568182092295),
    *(0.3404438155360551, 0.44597252564632817),
)
_WEIGHTS_14 = (
    *(0.01755973016587593, 0.040079043579880104, 0.06075928534395159, 0.07860158357909677, 0.09276919873896891),
    *(0.1025992318606478, 0.1076319267315789),
)
_AT_ONCE = 2**16
"""How many values of the integrand are computed at once."""
_ODD = tuple(1.0 / (2 * k + 3) for k in reversed(range(14)))
_FACTORIAL = tuple(1.0 / math.factorial(k + 2) for k in reversed(range(11)))
Rule = tuple[tuple[float, ...], tuple[float, ...]]
"""The nodes and the weights of a quadrature."""


def _symmetric_quadrature(nodes: tuple[float, ...], weights: tuple[float, ...]) -> Rule:
    """Returns a quadrature on the interval from 0 to 1, whose nodes lie symmetrically."""
    return nodes + tuple(1.0 - node for node in nodes), weights * 2


def _half_line_rule(step: float, first: int, last: int) -> Rule:
    """Returns a quadrature from 0 to infinity: nodes `exp(t - exp(-t))` for equidistant t, and their weights."""
    t_values = [step * k for k in range(first, last)]
    nodes = tuple(math.exp(t - math.exp(-t)) for t in t_values)
    return nodes, tuple(step * (1.0 + math.exp(-t)) * node for t, node in zip(t_values, nodes, strict=True))


class Digits(NamedTuple):
    """The numbers of nodes and terms that are computed for a precision, of float32 or float64."""

    depth: float
    """The logarithm of the largest value of an integrand over the smallest one that counts."""
    gauss: Rule
    half_line: Rule
    near: int
    """The number of terms of the power series of the incomplete gamma functions."""
    gamma: int
    """The number of terms of the series for the gamma function."""
    moderate: float
    """The size of the parameters up to which the exponent of an integrand is computed directly."""
    exponential: tuple[float, int]
    """The bound and the number of terms of the series of `exp(s) - 1 - s`."""
    logarithm: tuple[float, int]
    """The bound and the number of terms of the series of `u - log1p(u)`."""
    coarse: tuple[float, int]
    """The same in an integrand, which needs fewer digits where it is small."""


DOUBLE = Digits(
    depth=36.5,
    gauss=_symmetric_quadrature(_NODES_28, _WEIGHTS_28),
    half_line=_half_line_rule(0.11, -33, 38),
    near=31,
    gamma=29,
    moderate=60.0,
    exponential=(0.25, 11),
    logarithm=(0.5, 14),
    coarse=(0.25, 8),
)
SINGLE = Digits(
    depth=20.0,
    gauss=_symmetric_quadrature(_NODES_14, _WEIGHTS_14),
    half_line=_half_line_rule(0.19, -16, 19),
    near=23,
    gamma=17,
    moderate=1e6,
    exponential=(1e-3, 3),
    logarithm=(0.05, 3),
    coarse=(1e-3, 2),
)


def _integral(xp: Any, rule: Rule, width: Any, exponent: Callable[[Any], Any]) -> Any:
    """Returns the integral of `exp(exponent(s))` by a quadrature whose nodes are multiples of `width`."""
    integral, element_count = 0.0 * width, math.prod(width.shape)
    if not element_count:
        return integral
    chunk_size = min(len(rule[0]), max(1, _AT_ONCE // element_count))
    for start in range(0, len(rule[0]), chunk_size):
        nodes, weights = (xp.column(numbers[start : start + chunk_size], width) for numbers in rule)
        integral = integral + xp.sum(weights * xp.exp(exponent(nodes * width)), 0)
    return integral * width


def log1p_remainder(xp: Any, u: Any, subtrahend: Any = None, bound: float = 0.5, terms: int = 14) -> Any:
    """Returns `u - log1p(u)`, with full relative precision up to the bound, for which the terms of a series suffice.

    Args:
        xp: the namespace.
        u: the argument.
        subtrahend: `u + 1`, where it is known with more digits than `u` has.
        bound: where the series ends.
        terms: the number of its terms.
    """
    is_small = xp.abs(u) < bound
    v = xp.where(is_small, u, 0.0)
    r = v / (2.0 + v)
    square = r * r
    series = polynomial(square, _ODD[-terms:])
    logarithm = (
        xp.log1p(xp.where(is_small, 0.0, u)) if subtrahend is None else xp.log(xp.where(is_small, 1.0, subtrahend))
    )
    return xp.where(is_small, r * (v - 2.0 * square * series), u - logarithm)


def _expm1_remainder(xp: Any, z: Any) -> Any:
    """Returns `exp(z) - 1 - z`, with fewer digits where the integrand is small."""
    bound, terms = xp.digits.exponential
    is_small = xp.abs(z) < bound
    v = xp.where(is_small, z, 0.0)
    return xp.where(is_small, v * v * polynomial(v, _FACTORIAL[-terms:]), xp.expm1(z) - z)


def _gamma_density_of_small(xp: Any, a: Any, x: Any) -> Any:
    # Use a / gamma(1 + a) for 1 / gamma(a), because gamma(a) overflows for tiny a.
    return a * xp.power(x, a) * xp.exp(-x) / gamma1p(xp, a, xp.digits.gamma)


def _gamma_density_of_large(xp: Any, a: Any, x: Any) -> Any:
    distance = log1p_remainder(xp, (x - a) / a, x / a, *xp.digits.logarithm)
    return xp.sqrt(a / (2.0 * math.pi)) * xp.exp(-stirling(a)) * xp.exp(-a * distance)


def gamma_density(xp: Any, a: Any, x: Any) -> Any:
    """Returns `x**a * exp(-x) / gamma(a)` for a, x > 0."""
    is_large = a >= 10.0
    small_density = xp.pick(~is_large, partial(_gamma_density_of_small, xp), xp.where(is_large, 1.0, a), x)
    return xp.where(
        is_large, xp.pick(is_large, partial(_gamma_density_of_large, xp), xp.where(is_large, a, 10.0), x), small_density
    )


def _gammainc_near(xp: Any, upper: Any, a: Any, x: Any, density: Any) -> Any:
    """Returns an incomplete gamma function for x <= 1, or x < a < 6, by power series."""
    term = series_sum = 1.0 / a
    for k in range(1, xp.digits.near):
        term = term * (x / (a + k))
        series_sum = series_sum + term
    lower_value = density * series_sum
    if upper is False:
        return lower_value
    complement = 1.0 - lower_value
    is_flat = (a < 1.0) & (lower_value > 0.5)
    flat_value = xp.pick(is_flat, partial(_gammaincc_of_small, xp), xp.where(is_flat, a, 0.5), x)
    integral = xp.where(is_flat, flat_value, complement)
    return integral if upper is True else xp.where(upper, integral, lower_value)


def _gammaincc_of_small(xp: Any, a: Any, x: Any) -> Any:
    """Returns the upper incomplete gamma function for a, x <= 1, by an alternating series without cancellation."""
    decrease, remainder = 1.0 + 0.0 * x, 0.0 * x
    for k in range(1, xp.digits.near):
        decrease = decrease * (x * (-1.0 / k))
        remainder = remainder + decrease / (a + k)
    exponent = a * xp.log(x) - log_gamma1p(a)
    return -xp.expm1(exponent) - a * xp.exp(exponent) * remainder


def gammainc_far(xp: Any, upper: Any, a: Any, x: Any, density: Any) -> Any:
    """Returns an incomplete gamma function for x > 1, x >= a or a >= 6, from the smaller one of the two.

    The density is `x**a * exp(-x) / gamma(a)`. The variable of the integral is `x * exp(z)`, where z > 0 for the upper
    function, and z < 0 for the lower one.
    """
    is_right = x >= a
    distance_from_a, depth = xp.abs(x - a), xp.digits.depth
    # With exp(z) - 1 - z >= z * z / (2 - z) on the left, and u - log1p(u) >= u * u / (2 + 4 u / 3) on the right, where
    # u = exp(z) - 1, the range ends at the root of a quadratic equation.
    leading_coefficient = xp.where(is_right, distance_from_a * (4.0 / 3.0) + a, a)
    half_linear_coefficient = xp.where(is_right, depth * (2.0 / 3.0), depth / 2.0) - distance_from_a
    integration_end = (
        2.0
        * depth
        / (
            xp.sqrt(half_linear_coefficient * half_linear_coefficient + 2.0 * depth * leading_coefficient)
            - half_linear_coefficient
        )
    )
    integration_end = xp.where(is_right, xp.log1p(integration_end), -integration_end)
    is_moderate = xp.where(is_right, x, a) < xp.digits.moderate
    integral = _choose_by_mask(
        xp, is_moderate, _integrate_gamma_directly, _integrate_gamma_carefully, a, x, integration_end
    )
    tail_value = density * xp.abs(integral)
    if upper is True or upper is False:
        return (
            xp.where(is_right, tail_value, 1.0 - tail_value)
            if upper
            else xp.where(is_right, 1.0 - tail_value, tail_value)
        )
    return xp.where((is_right & upper) | (~is_right & ~upper), tail_value, 1.0 - tail_value)


def gammainc_side(xp: Any, upper: Any, a: Any, x: Any, density: Any) -> Any:
    """Returns the upper incomplete gamma function of positive, finite numbers where a mask is true, else the lower."""
    is_close = (x <= 1.0) | ((x < a) & (a < 6.0))
    near_value = _gammainc_near(xp, upper, a, xp.where(is_close, x, 0.5), density)
    return xp.where(is_close, near_value, gammainc_far(xp, upper, a, xp.where(is_close, 2.0, x), density))


def _choose_by_mask(xp: Any, mask: Any, quick_function: Any, careful_function: Any, *arguments: Any) -> Any:
    """Returns `careful(xp, *arguments)`; where a mask is true, `quick_function`, if the namespace selects elements."""
    if not xp.picks:
        return careful_function(xp, *arguments)
    if mask.all():
        return quick_function(xp, *arguments)
    quick_result = xp.pick(mask, partial(quick_function, xp), *arguments)
    return xp.where(mask, quick_result, xp.pick(~mask, partial(careful_function, xp), *arguments))


def _integrate_gamma_directly(xp: Any, a: Any, x: Any, end: Any) -> Any:
    return _integral(xp, xp.digits.gauss, end, lambda z: a * z - x * xp.expm1(z))


def _integrate_gamma_carefully(xp: Any, a: Any, x: Any, end: Any) -> Any:
    a_minus_x = a - x
    return _integral(xp, xp.digits.gauss, end, lambda z: a_minus_x * z - x * _expm1_remainder(xp, z))


def _gammainc(xp: Any, a: Any, x: Any, upper: bool) -> Any:
    is_regular = (a > 0.0) & (x > 0.0) & (a < math.inf) & (x < math.inf)
    a1, x1 = xp.where(is_regular, a, 1.0), xp.where(is_regular, x, 0.5)
    # Below a = 6 the integral to the left of x = a would need more nodes, and the power series is short.
    density, is_close = gamma_density(xp, a1, x1), (x1 <= 1.0) | ((x1 < a1) & (a1 < 6.0))
    near_value = xp.pick(is_close, partial(_gammainc_near, xp, upper), a1, xp.where(is_close, x1, 0.5), density)
    far_value = xp.pick(~is_close, partial(gammainc_far, xp, upper), a1, xp.where(is_close, 2.0, x1), density)
    value_at_zero, value_at_infinity = (1.0, 0.0) if upper else (0.0, 1.0)
    end_values = xp.where((x == math.inf) | (a == 0.0), value_at_infinity, value_at_zero)
    is_undefined = (a < 0.0) | (x < 0.0) | ((a == 0.0) & (x == 0.0)) | ((a == math.inf) & (x == math.inf))
    end_values = xp.where(is_undefined | xp.isnan(a) | xp.isnan(x), math.nan, end_values)
    return xp.where(is_regular, xp.where(is_close, near_value, far_value), end_values)


def gammainc(xp: Any, a: Any, x: Any) -> Any:
    """Returns the lower regularized incomplete gamma function."""
    return _gammainc(xp, a, x, False)


def gammaincc(xp: Any, a: Any, x: Any) -> Any:
    """Returns the upper regularized incomplete gamma function."""
    return _gammainc(xp, a, x, True)


def _beta_density_of_small(xp: Any, a: Any, b: Any, x: Any) -> Any:
    return xp.power(x, a) * (xp.exp(b * xp.log1p(-x)) / positive_beta(xp, a, b))


def _beta_density_of_large(xp: Any, a: Any, b: Any, x: Any) -> Any:
    parameter_sum = a + b
    distance = x * b - (1.0 - x) * a
    exponent = -a * log1p_remainder(xp, distance / a, x * (parameter_sum / a), *xp.digits.logarithm)
    exponent = exponent - b * log1p_remainder(xp, -distance / b, (1.0 - x) * (parameter_sum / b), *xp.digits.logarithm)
    corrections = stirling(parameter_sum) - stirling(a) - stirling(b)
    return xp.sqrt(a / parameter_sum * b / (2.0 * math.pi)) * xp.exp(corrections) * xp.exp(exponent)


def beta_density(xp: Any, a: Any, b: Any, x: Any) -> Any:
    """Returns `x**a * (1 - x)**b / beta(a, b)` for a, b > 0 and x between 0 and 1."""
    is_large = (a >= 10.0) & (b >= 10.0)
    a0, b0 = xp.where(is_large, 1.0, a), xp.where(is_large, 1.0, b)
    a1, b1 = xp.where(is_large, a, 10.0), xp.where(is_large, b, 10.0)
    small_density = xp.pick(~is_large, partial(_beta_density_of_small, xp), a0, b0, x)
    return xp.where(is_large, xp.pick(is_large, partial(_beta_density_of_large, xp), a1, b1, x), small_density)


def _integrate_beta_directly(xp: Any, a: Any, b: Any, ratio: Any, width: Any) -> Any:
    b = b - 1.0
    return _integral(xp, xp.digits.half_line, width, lambda s: b * xp.log1p(ratio * -xp.expm1(-s)) - a * s)


def _integrate_beta_carefully(xp: Any, a: Any, b: Any, ratio: Any, width: Any) -> Any:
    b = b - 1.0
    slope = a - b * ratio

    def exponent(s: Any) -> Any:
        curved_term = ratio * _expm1_remainder(xp, -s) + log1p_remainder(
            xp, -ratio * xp.expm1(-s), None, *xp.digits.coarse
        )
        return -slope * s - b * curved_term

    return _integral(xp, xp.digits.half_line, width, exponent)


def _beta_lower(xp: Any, a: Any, b: Any, x: Any, y: Any, density: Any) -> Any:
    """Returns the regularized incomplete beta function of x < a / (a + b - 1) by a quadrature; y is 1 - x.

    The integral is over `s`, the logarithm of `x` over the variable of integration.
    """
    # Where a is below 1, integrate with a + 1, because the integrand for `a` would have two scales.
    is_raised = a < 1.0
    a1 = xp.where(is_raised, a + 1.0, a)
    ratio = x / y
    slope = a1 - (b - 1.0) * ratio
    is_curved = b > 1.0
    curvature = xp.where(is_curved, (b - 1.0) * ratio * (1.0 + ratio), 0.0)
    width = 1.0 / (xp.where(is_curved, slope, a1) + xp.sqrt(curvature))
    is_moderate = (a1 < xp.digits.moderate) & (b < xp.digits.moderate)
    integral = (
        density
        / y
        * _choose_by_mask(xp, is_moderate, _integrate_beta_directly, _integrate_beta_carefully, a1, b, ratio, width)
    )
    return xp.where(is_raised, (density + (a + b) * (x * integral)) / a, integral)


def betainc_inside(xp: Any, p: Any, q: Any, z: Any, density: Any) -> Any:
    """Returns the regularized incomplete beta function for p, q > 0 and z between 0 and 1; see `betainc_side`."""
    is_left, side_integral = betainc_side(xp, p, q, z, 1.0 - z, density)
    return xp.where(is_left, side_integral, 1.0 - side_integral)


def betainc_side(xp: Any, p: Any, q: Any, z: Any, complement: Any, density: Any) -> tuple[Any, Any]:
    """Returns whether the lower part of the regularized incomplete beta function is computed, or the upper; and it.

    Args:
        xp: the namespace.
        p: the first parameter.
        q: the second one.
        z: the argument, from 0 to 1.
        complement: `1 - z`, which may be known with more digits.
        density: `z**p * (1 - z)**q / beta(p, q)`.

    Returns:
        Whether it is the function itself, and the part.
    """
    # Compute the smaller of the lower and the upper part, except where its integrand has two very different scales.
    odds = z / complement
    is_left = odds * q <= p
    is_far = (q < 1.0) & (odds > 30.0 * p) & (odds > 30.0)
    is_left_after_all = (p < 1.0) & (odds * (30.0 * q) < 1.0) & (odds < 1.0 / 30.0)
    is_left = (is_left & ~is_far) | (~is_left & is_left_after_all)
    a, b = xp.where(is_left, p, q), xp.where(is_left, q, p)
    x, y = xp.where(is_left, z, complement), xp.where(is_left, complement, z)
    return is_left, _beta_lower(xp, a, b, x, y, density)


def betainc(xp: Any, a: Any, b: Any, x: Any) -> Any:
    """Returns the regularized incomplete beta function."""
    is_regular = (a > 0.0) & (b > 0.0) & (a < math.inf) & (b < math.inf) & (x > 0.0) & (x < 1.0)
    probability = xp.pick(
        is_regular,
        lambda p, q, z: betainc_inside(xp, p, q, z, beta_density(xp, p, q, z)),
        *(xp.where(is_regular, argument, safe_value) for argument, safe_value in ((a, 1.0), (b, 1.0), (x, 0.25))),
    )
    is_at_low_end, is_at_high_end = (x == 0.0) | (a == math.inf) | (b == 0.0), (x == 1.0) | (b == math.inf) | (a == 0.0)
    end_values = xp.where(x == 1.0, 1.0, xp.where((x == 0.0) | is_at_low_end, 0.0, 1.0))
    is_undefined = (
        (a < 0.0) | (b < 0.0) | (x < 0.0) | (x > 1.0) | (is_at_low_end & is_at_high_end & (x > 0.0) & (x < 1.0))
    )
    is_undefined = is_undefined | ((a == 0.0) & (b == 0.0)) | ((a == math.inf) & (b == math.inf))
    end_values = xp.where(is_undefined | xp.isnan(a) | xp.isnan(b) | xp.isnan(x), math.nan, end_values)
    return xp.where(is_regular, probability, end_values)
