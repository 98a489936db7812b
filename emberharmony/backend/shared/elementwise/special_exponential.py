"""The gamma function, exponential integrals, Lambert's function and relative entropies, by series; see `special`.

Source: the Chebyshev series were computed with 50 digits. R. M. Corless et al., On the Lambert W function, Adv. Comput.
Math. 5 (1996) 329-359, equation 4.23, has the series about the branch point. The iteration is that of F. N. Fritsch,
R. E. Shafer, W. P. Crowley, Algorithm 443, Comm. ACM 16 (1973) 123-124. W. J. Cody, H. C. Thacher, Math. Comp. 23
(1969) 289-303, take the root of Ei out of its approximation.
"""

import math
from functools import partial
from typing import Any

from emberharmony.backend.shared.elementwise.elementary import (
    at_least,
    at_most,
    chebyshev,
    polynomial,
    replace_outside,
)
from emberharmony.backend.shared.elementwise.special import gamma1p, offset_from_integer, sinc, stirling
from emberharmony.backend.shared.elementwise.special_integrals import log1p_remainder

# The Chebyshev coefficients of x exp(x) E1(x) in 1 / x, from 1 to 4 and beyond.
_E1_MIDDLE = (
    *(-5.845866158021471e-18, 2.3434812288949573e-17, -9.451717302757913e-17, 3.8367865399315405e-16),
    *(-1.5682760501666479e-15, 6.457851441771653e-15, -2.680422543484031e-14, 1.1221172048389864e-13),
    *(-4.741328303955583e-13, 2.023672864586796e-12, -8.733026632444629e-12, 3.8145706749552266e-11),
    *(-1.6886433329881412e-10, 7.587542091903628e-10, -3.4668022114907356e-09, 1.6143270567198776e-08),
    *(-7.682345587055264e-08, 3.7494319356894736e-07, -1.8853689849165184e-06, 9.827812880247493e-06),
    *(-5.356413212961842e-05, 0.0003091183377206032, -0.0019268451873811457, 0.01343226624790278),
    *(-0.1125352434836609, 1.3942267533593966),
)
_E1_FAR = (
    *(-6.395830792759095e-18, 1.847470159346898e-17, -5.408917538957171e-17, 1.6062155757002903e-16),
    *(-4.841672496239229e-16, 1.4827103482893693e-15, -4.617388988712924e-15, 1.4637618643932435e-14),
    *(-4.7291682970803986e-14, 1.5592182725919257e-13, -5.253831761558461e-13, 1.8122469802048165e-12),
    *(-6.411481049213786e-12, 2.33158866322266e-11, -8.737853904474682e-11, 3.3846628887608844e-10),
    *(-1.3599576648056003e-09, 5.692324201833754e-09, -2.4950304402693382e-08, 1.15268083971414e-07),
    *(-5.65964914577193e-07, 2.9856275144792833e-06, -1.7173329989377674e-05, 0.00010999134432661389),
    *(-0.0008097559457557386, 0.007224101543746595, -0.08648117855259871, 1.8107081999246983),
)
# Chebyshev coefficients of (Ei(x) - log(x / root)) / (x - root) up to 6, and of x exp(-x) Ei(x) in 1 / x up to 12,
# up to 30 and beyond.
_EI_NEAR = (
    *(1.0752799606371169e-16, 1.5701440360230516e-15, 2.1876473555324577e-14, 2.901505315385807e-13),
    *(3.6539244499196015e-12, 4.356558086355594e-11, 4.902148216697985e-10, 5.187110649842181e-09),
    *(5.140302084703391e-08, 4.748419512679941e-07, 4.066921310320624e-06, 3.2092485124027427e-05),
    *(0.00023159134968734474, 0.0015146911094885722, 0.008880237057344323, 0.04602682604407321),
    *(0.2071548491532639, 0.7902956029932626, 2.469688170948231, 6.004639395661629),
    *(10.515916453886964,),
)
_EI_MIDDLE = (
    *(-3.985678032031781e-18, -6.96952388785186e-18, 2.0895115006185691e-16, -1.7064640854405607e-15),
    *(8.22817443438954e-15, -1.3060424323093775e-14, -1.824894014255641e-13, 2.0752769575841014e-12),
    *(-1.1038674953026538e-11, 1.5005396668585005e-11, 2.9077513809389464e-10, -2.804867660824966e-09),
    *(9.457713014017885e-09, 4.3431190977401596e-08, -6.410426692376372e-07, 1.7610424153850599e-06),
    *(1.860281858277769e-05, -0.0001311802094421383, -0.0007360917133533506, 0.004538849615854891),
    *(0.08867277799156566, 2.373039463211886),
)
_EI_LATER = (
    *(7.046876350397027e-18, -8.098851971883249e-17, 2.4651428666527754e-16, 6.007454812151445e-16),
    *(-8.108927957780947e-15, 2.105163348817028e-14, 9.808558395128289e-14, -8.309712200198587e-13),
    *(4.569065539612041e-13, 1.8012808800180077e-11, -5.265813961889388e-11, -3.435807234382177e-10),
    *(1.657759959054845e-09, 8.500401764811828e-09, -3.6327062497303404e-08, -3.201828760127192e-07),
    *(-2.386811463851955e-07, 8.777546952074532e-06, 0.0001010479918073205, 0.0013262720165590463),
    *(0.033479670978704454, 2.1361187235682952),
)
_EI_FAR = (
    *(3.3801192265457263e-18, -5.7871962970498355e-18, -5.946298440349431e-17, -2.0596940931255631e-16),
    *(-3.4792151686618804e-16, 5.629265067582264e-16, 7.994850498960783e-15, 4.8262765255433806e-14),
    *(2.640582605952079e-13, 1.6077301518658999e-12, 1.2009318387824719e-11, 1.1297251504069625e-10),
    *(1.3344445861877673e-09, 1.981311431175871e-08, 3.7541342900498743e-07, 9.376901840706762e-06),
    *(0.00032740026360694784, 0.01789743005584381, 2.0351580997233323),
)
# The root of Ei, and 1 / e, each as the sum of two numbers.
_EULER = 0.57721566490153286
_ROOT, _ROOT_REST = 0.3725074107813666, 1.3140183414386028e-17
_BRANCH, _BRANCH_REST = 0.36787944117144233, -1.2428753672788363e-17
# The power series of Lambert's function in sqrt(2 (e x + 1)).
_LAMBERT = (
    *(3.907668486743905e-05, -5.811360750441382e-05, 8.665035805208128e-05, -0.00012957426685274883),
    *(0.00019438727605453933, -0.00029267722472962746, 0.0004424730618146209, -0.0006720616311561362),
    *(0.0010262633205076071, -0.0015769303446867841, 0.0024408779911439826, -0.0038112980348919993),
    *(0.006014543252956118, -0.009616892024299432, 0.01563563253233392, -0.02598471487360376),
    *(0.044502314814814814, -0.07962962962962963, 0.1527777777777778, -0.3333333333333333),
    *(1.0, -1.0),
)
_GAMMA_TERMS = 29
_ENTIRE = tuple((-1.0) ** (k + 1) / (k * math.factorial(k)) for k in reversed(range(1, 20)))
_ROOT_2PI = math.sqrt(2.0 * math.pi)


def _large_gamma_factors(xp: Any, a: Any) -> tuple[Any, Any]:
    """Returns two factors whose product is `gamma(a)`, for a >= 10; neither overflows for a up to 200."""
    a = at_most(xp, a, 200.0)
    half_power = xp.power(a, 0.5 * a - 0.25)
    return half_power, half_power * xp.exp(-a) * (xp.exp(stirling(a)) * _ROOT_2PI)


def _gamma_of_positive(xp: Any, a: Any) -> Any:
    is_near = a < 10.0
    first_factor, second_factor = _large_gamma_factors(xp, at_least(xp, a, 10.0))
    small_a = replace_outside(xp, is_near, a, 1.0)
    return xp.where(is_near, gamma1p(xp, small_a, _GAMMA_TERMS) / small_a, first_factor * second_factor)


def _gamma_of_negative(xp: Any, a: Any) -> Any:
    """Returns `gamma(-a)` for a > 0, by reflection."""
    is_near = a < 10.0
    first_factor, second_factor = _large_gamma_factors(xp, at_least(xp, a, 10.0))
    r = offset_from_integer(xp, at_most(xp, a, 200.0))
    nearest_integer = xp.floor(at_most(xp, a, 200.0) + 0.5)
    sign = xp.where(nearest_integer == 2.0 * xp.floor(nearest_integer / 2.0), -1.0, 1.0)
    r = xp.where(r == 0.0, math.nan, r)
    reflection_factor = sign / (r * sinc(r))
    small_a = replace_outside(xp, is_near, a, 1.0)
    return xp.where(
        is_near,
        reflection_factor / gamma1p(xp, small_a, _GAMMA_TERMS),
        reflection_factor / at_least(xp, a, 10.0) / first_factor / second_factor,
    )


def gamma(xp: Any, x: Any) -> Any:
    """Returns the gamma function; NaN at -1, -2, ..., and infinite at 0, with the sign of the zero."""
    a = xp.abs(x)
    is_regular = (a > 0.0) & (a < math.inf)
    a = replace_outside(xp, is_regular, a, 1.0)
    right_result = xp.pick(x > 0.0, partial(_gamma_of_positive, xp), a)
    gamma_value = xp.where(x > 0.0, right_result, xp.pick(x < 0.0, partial(_gamma_of_negative, xp), a))
    end_values = xp.where(x == 0.0, 1.0 / x, xp.where(x == math.inf, x, math.nan))
    return xp.where(is_regular, gamma_value, end_values)


def _exp1_near(xp: Any, x: Any) -> Any:
    return x * polynomial(x, _ENTIRE) - (xp.log(x) + _EULER)


def _scaled_exp1_far(xp: Any, x: Any) -> Any:
    """Returns `x exp(x) exp1(x)` for x >= 1."""
    t = 1.0 / x
    middle_result = chebyshev(at_least(xp, t, 0.25) * (16.0 / 3.0) - (10.0 / 3.0), _E1_MIDDLE)
    return xp.where(t > 0.25, middle_result, chebyshev(at_most(xp, t, 0.25) * 16.0 - 2.0, _E1_FAR))


def exp1(xp: Any, x: Any) -> Any:
    """Returns the exponential integral E1; NaN for negative numbers, and infinite at 0."""
    is_near, is_far = (x > 0.0) & (x < 1.0), x >= 1.0
    near_result = xp.pick(is_near, partial(_exp1_near, xp), replace_outside(xp, is_near, x, 0.5))
    # Beyond 800 the result is 0, also at infinity.
    large_x = at_most(xp, replace_outside(xp, is_far, x, 1.0), 800.0)
    far_result = xp.exp(-large_x) * xp.pick(is_far, partial(_scaled_exp1_far, xp), large_x) / large_x
    return xp.where(is_near, near_result, xp.where(is_far, far_result, xp.where(x == 0.0, math.inf, math.nan)))


def _expi_near(xp: Any, x: Any) -> Any:
    root_distance = (x - _ROOT) - _ROOT_REST
    is_close = xp.abs(root_distance) < 0.2
    logarithm = xp.where(
        is_close,
        xp.log1p(replace_outside(xp, is_close, root_distance, 0.0) / _ROOT),
        xp.log(replace_outside(xp, ~is_close, x, 1.0) / _ROOT),
    )
    return logarithm + root_distance * chebyshev(x * (2.0 / 3.0) - 2.0, _EI_NEAR)


def _scaled_expi_far(xp: Any, x: Any) -> Any:
    """Returns `x exp(-x) expi(x)` for x >= 6."""
    t = 1.0 / x
    middle_result = chebyshev(at_least(xp, t, 1.0 / 12.0) * 48.0 - 6.0, _EI_MIDDLE)
    far_result = chebyshev(at_most(xp, at_least(xp, t, 1.0 / 30.0), 1.0 / 12.0) * 80.0 - (14.0 / 3.0), _EI_LATER)
    farthest_result = chebyshev(at_most(xp, t, 1.0 / 30.0) * 120.0 - 2.0, _EI_FAR)
    return xp.where(x < 12.0, middle_result, xp.where(x < 30.0, far_result, farthest_result))


def expi(xp: Any, x: Any) -> Any:
    """Returns the exponential integral Ei; -inf at 0."""
    is_near, is_far = (x > 0.0) & (x < 6.0), (x >= 6.0) & (x < math.inf)
    near_result = xp.pick(is_near, partial(_expi_near, xp), replace_outside(xp, is_near, x, 1.0))
    large_x = at_most(xp, replace_outside(xp, is_far, x, 6.0), 800.0)
    # The exponential may overflow where the result does not, so multiply by its square root twice.
    root_of_exp = xp.exp(0.5 * large_x)
    far_result = root_of_exp * (xp.pick(is_far, partial(_scaled_expi_far, xp), large_x) / large_x) * root_of_exp
    negative_result = -xp.pick(x < 0.0, partial(exp1, xp), replace_outside(xp, x < 0.0, -x, 1.0))
    integral = xp.where(is_near, near_result, xp.where(is_far, far_result, xp.where(x < 0.0, negative_result, x)))
    return xp.where(x == 0.0, -math.inf, integral)


def _refine_lambertw(xp: Any, x: Any, w: Any) -> Any:
    """Returns the solution of `w exp(w) = x` after three steps of fourth order, where x / w > 0."""
    for _ in range(3):
        w_plus_1 = 1.0 + w
        z = xp.log(x / w) - w
        q = 2.0 * w_plus_1 * (w_plus_1 + z * (2.0 / 3.0))
        w = w * (1.0 + z / w_plus_1 * ((q - z) / (q - 2.0 * z)))
    return w


def lambertw(xp: Any, x: Any, k: Any) -> Any:
    """Returns the branch 0 or -1 of Lambert's function where it is real, else NaN."""
    branch_distance = ((x + _BRANCH) + _BRANCH_REST) * (2.0 * math.e)
    is_main_branch = k == 0.0
    is_inside = (branch_distance >= 0.0) & (x < math.inf) & (is_main_branch | ((k == -1.0) & (x < 0.0)))
    p = xp.sqrt(replace_outside(xp, is_inside, branch_distance, 1.0))
    p = xp.where(is_main_branch, p, -p)
    is_near = xp.abs(p) < 0.3
    series_value = polynomial(at_least(xp, at_most(xp, p, 0.3), -0.3), _LAMBERT)
    is_regular = is_inside & ~is_near & (x != 0.0)
    main_x = replace_outside(xp, is_regular & is_main_branch, x, 1.0)
    logarithm = xp.log1p(main_x)
    main_guess = logarithm * (1.0 - xp.log1p(logarithm) / (2.0 + logarithm))
    lower_x = replace_outside(xp, is_regular & ~is_main_branch, x, -0.1)
    log_magnitude = xp.log(-lower_x)
    log_log_magnitude = xp.log(-log_magnitude)
    branch_guess = polynomial(at_least(xp, p, -1.3), _LAMBERT[-6:])
    lower_guess = xp.where(
        lower_x < -0.1, branch_guess, log_magnitude - log_log_magnitude + log_log_magnitude / log_magnitude
    )
    refined_value = _refine_lambertw(
        xp, xp.where(is_main_branch, main_x, lower_x), xp.where(is_main_branch, main_guess, lower_guess)
    )
    branch_value = xp.where(is_near, series_value, refined_value)
    end_values = xp.where(is_main_branch, xp.where((x == 0.0) | (x == math.inf), x, math.nan), math.nan)
    end_values = xp.where((k == -1.0) & (x == 0.0), -math.inf, end_values)
    return xp.where(is_regular | (is_inside & is_near), branch_value, end_values)


def log_ratio(xp: Any, x: Any, y: Any) -> Any:
    """Returns `log(x / y)` for positive numbers, with full relative precision where they are almost equal."""
    is_close = xp.abs(x - y) < 0.5 * y
    ratio = x / y
    is_far = (ratio < 1e-300) | (ratio > 1e300)
    far_value = xp.log(replace_outside(xp, is_far, x, 1.0)) - xp.log(replace_outside(xp, is_far, y, 1.0))
    quotient_logarithm = xp.where(is_far, far_value, xp.log(replace_outside(xp, ~is_far, ratio, 1.0)))
    return xp.where(is_close, xp.log1p(replace_outside(xp, is_close, x - y, 0.0) / y), quotient_logarithm)


def _relative_entropy(xp: Any, x: Any, y: Any, function: Any, zero_value: Any) -> Any:
    is_inside = (x > 0.0) & (y > 0.0)
    entropy = function(replace_outside(xp, is_inside, x, 1.0), replace_outside(xp, is_inside, y, 1.0))
    end_values = xp.where((x == 0.0) & (y >= 0.0), zero_value, math.inf)
    return xp.where(xp.isnan(x) | xp.isnan(y), math.nan, xp.where(is_inside, entropy, end_values))


def rel_entr(xp: Any, x: Any, y: Any) -> Any:
    """Returns `x log(x / y)`; 0 where x is 0 and y is not negative, infinite where one is negative."""
    return _relative_entropy(xp, x, y, lambda x, y: x * log_ratio(xp, x, y), 0.0)


def kl_div(xp: Any, x: Any, y: Any) -> Any:
    """Returns `x log(x / y) - x + y`, without cancellation where the two are almost equal."""

    def divergence_inside(x: Any, y: Any) -> Any:
        relative_change = (y - x) / x
        is_close = xp.abs(relative_change) < 0.5
        near_value = x * log1p_remainder(xp, replace_outside(xp, is_close, relative_change, 0.0))
        return xp.where(is_close, near_value, x * log_ratio(xp, x, y) + (y - x))

    return _relative_entropy(xp, x, y, divergence_inside, y)
