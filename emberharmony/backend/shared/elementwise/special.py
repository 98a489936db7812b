"""Special functions for libraries that lack accurate ones: the gamma function and its relatives, Bessel functions.

All functions compute in float64. The parameter `xp` is a namespace with NumPy's function names and these:
`xp.entries(table, index)` returns elements of a sequence of numbers, and `xp.pick(mask, function, *arguments)`
returns `function(*arguments)`, of which only the elements where the mask is true are used. `xp.picks` is true if it
computes no others. `special_normal` has the functions of the normal distribution, and `special_integrals` the
incomplete gamma and beta functions.

Source: the Chebyshev series were computed with 60 digits. DLMF 5.11 has the asymptotic series of the logarithm of the
gamma function and of its derivative, DLMF 25.11.5 the formula of Euler and Maclaurin for the zeta function. The
beta function uses the approximation of C. Lanczos, SIAM J. Numer. Anal. B 1 (1964) 86-96, with the coefficients of
Boost (`lanczos13m53`).
"""

import math
from functools import partial
from typing import Any

from emberharmony.backend.shared.elementwise.elementary import (
    I0_FAR,
    I0_NEAR,
    at_least,
    at_most,
    chebyshev,
    polynomial,
    replace_outside,
)

# The Chebyshev coefficients on [1, 3] of gammaln(x) / ((x - 1) (x - 2)), and of digamma(x) / (x - root).
_LOG_GAMMA = (
    *(3.1630451661790255e-18, -1.2204107319639856e-17, 4.714169006756272e-17, -1.8232177141662118e-16),
    *(7.060670507214892e-16, -2.7382420786652826e-15, 1.0635701227757898e-14, -4.137949206814042e-14),
    *(1.6128460030283787e-13, -6.298868140791711e-13, 2.465348198355661e-12, -9.672485299656325e-12),
    *(3.8050196458110534e-11, -1.501312977072867e-10, 5.943541905817546e-10, -2.361999702184645e-09),
    *(9.428100823624284e-09, -3.782637660291326e-08, 1.5268677399071546e-07, -6.208535880776316e-07),
    *(2.5474336873408417e-06, -1.05728743735943e-05, 4.454470184975607e-05, -0.00019153855341365593),
    *(0.0008478989895953857, -0.003922461463025264, 0.01951044826068884, -0.11119580321752523),
    *(0.8829780509100285,),
)
_DIGAMMA = (
    *(-2.047164716811876e-17, 7.640126526131413e-17, -2.8513362471718133e-16, 1.0641344625722717e-15),
    *(-3.971411389284323e-15, 1.482155285389004e-14, -5.53150434659318e-14, 2.0644004026236004e-13),
    *(-7.704533926086572e-13, 2.8754217843517632e-12, -1.0731515178725395e-11, 4.005228073341035e-11),
    *(-1.4948718863979587e-10, 5.579524084715322e-10, -2.082649195692377e-09, 7.774554697983642e-09),
    *(-2.9026750711369042e-08, 1.083979923064392e-07, -4.0495026233355134e-07, 1.5136717505341737e-06),
    *(-5.6631596935365925e-06, 2.1218853925722328e-05, -7.969172661686522e-05, 0.00030046127392236794),
    *(-0.0011401796377915106, 0.004374961886424303, -0.01712297234345182, 0.06960086856205178),
    *(-0.30691795316595705, 1.7016282004549188),
)
# The Chebyshev coefficients of exp(-x) i1(x) / x up to 8, and of exp(-x) sqrt(x) i1(x) beyond.
_I1_NEAR = (
    *(2.7779141127610464e-18, -2.111421214358166e-17, 1.5536319577362005e-16, -1.1055969477353862e-15),
    *(7.600684294735408e-15, -5.042185504727912e-14, 3.223793365945575e-13, -1.9839743977649436e-12),
    *(1.1736186298890901e-11, -6.663489723502027e-11, 3.625590281552117e-10, -1.8872497517228294e-09),
    *(9.381537386495773e-09, -4.445059128796328e-08, 2.0032947535521353e-07, -8.568720264695455e-07),
    *(3.4702513081376785e-06, -1.3273163656039436e-05, 4.781565107550054e-05, -0.00016176081582589674),
    *(0.0005122859561685758, -0.0015135724506312532, 0.004156422944312888, -0.010564084894626197),
    *(0.024726449030626516, -0.05294598120809499, 0.1026436586898471, -0.17641651835783406),
    *(0.25258718644363365,),
)
_I1_FAR = (
    *(7.517296310842105e-18, 4.414348323071708e-18, -4.6503053684893586e-17, -3.209525921993424e-17),
    *(2.96262899764595e-16, 3.3082023109209285e-16, -1.8803547755107825e-15, -3.8144030724370075e-15),
    *(1.0420276984128802e-14, 4.272440016711951e-14, -2.1015418427726643e-14, -4.0835511110921974e-13),
    *(-7.198551776245908e-13, 2.0356285441470896e-12, 1.4125807436613782e-11, 3.2526035830154884e-11),
    *(-1.8974958123505413e-11, -5.589743462196584e-10, -3.835380385964237e-09, -2.6314688468895196e-08),
    *(-2.512236237870209e-07, -3.882564808877691e-06, -0.00011058893876262371, -0.009761097491361469),
    *(0.7785762350182801,),
)
# The positive root of digamma, as the sum of two numbers.
_ROOT, _ROOT_REST = 1.4616321449683622, 9.549995429965697e-17
_ASYMPTOTIC = 10.0
_BERNOULLI = (
    *(1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510),
    *(43867 / 798, -174611 / 330, 854513 / 138, -236364091 / 2730),
)
# Lanczos's rational function of 1 / z, and its parameter.
_LANCZOS_TOP = (
    *(56906521.913471564, 103794043.11634454, 86363131.28813859, 43338889.324676138),
    *(14605578.087685068, 3481712.1549806459, 601859.61716810988, 75999.293040145426),
    *(6955.9996025153761, 449.94455690631681, 19.519927882476175, 0.50984166556566762),
    *(0.0060618423462489065,),
)
_LANCZOS_BELOW = (
    *(39916800.0, 120543840.0, 150917976.0, 105258076.0, 45995730.0, 13339535.0),
    *(2637558.0, 357423.0, 32670.0, 1925.0, 66.0, 1.0),
)
_LANCZOS = 6.0246800407767296
_STIRLING = [b / ((2 * k) * (2 * k - 1)) for k, b in enumerate(_BERNOULLI[:8], 1)][::-1]
DIGAMMA_FAR = [b / (2 * k) for k, b in enumerate(_BERNOULLI[:9], 1)][::-1]
_SINE = [(-1.0) ** k * math.pi ** (2 * k) / math.factorial(2 * k + 1) for k in reversed(range(12))]
_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
_DIRECT = 10
"""How many terms of the zeta function are added up before the formula of Euler and Maclaurin."""
_EXACT = 171
"""How many factorials float64 holds."""
# Each factorial n! as `_FACTORIALS[n] * _SCALES[n] ** (n + 1)`; the scale is the largest power of two for which the
# factor is at least 1.
_EXPONENTS = tuple(int(math.log2(math.factorial(n)) / (n + 1)) for n in range(_EXACT))
_SCALES = tuple(2.0**e for e in _EXPONENTS)
_FACTORIALS = tuple(math.ldexp(float(math.factorial(n)), -e * (n + 1)) for n, e in enumerate(_EXPONENTS))


def stirling(x: Any, terms: int = len(_STIRLING)) -> Any:
    """Returns `gammaln(x)` less its leading terms `(x - 1/2) log(x) - x + log(2 pi) / 2`, for x >= 8."""
    inverse = 1.0 / x
    return polynomial(inverse * inverse, _STIRLING[-terms:]) * inverse


def sinc(r: Any) -> Any:
    """Returns `sin(pi r) / (pi r)` for `r` from -1/2 to 1/2, by its power series."""
    return polynomial(r * r, _SINE)


def offset_from_integer(xp: Any, x: Any) -> Any:
    """Returns the signed distance of `x` from the nearest integer, exactly."""
    return x - xp.floor(x + 0.5)


def _shift_into_1_to_3(xp: Any, x: Any) -> tuple[Any, Any]:
    """Returns how many steps of 1 move `x`, from 0 to 10, into [1, 3], and the moved number less 1."""
    steps = xp.floor(x) - 2.0
    return steps, xp.where(x < 1.0, x, xp.where(steps > 0.0, x - steps, x) - 1.0)


def _gamma_ratio(xp: Any, x: Any, steps: Any) -> Any:
    """Returns `gamma(x) / gamma(moved)`, where `moved` is `x` moved into [1, 3] by steps of 1."""
    product = xp.where(x < 1.0, 1.0 / x, 1.0)
    for k in range(1, 9):
        product = xp.where(steps >= k, product * (x - k), product)
    return product


def _digamma_difference(xp: Any, x: Any, steps: Any) -> Any:
    """Returns `digamma(x) - digamma(moved)`, where `moved` is `x` moved into [1, 3] by steps of 1."""
    difference = xp.where(x < 1.0, -1.0 / x, 0.0)
    for k in range(1, 9):
        is_used = steps >= k
        difference = difference + xp.where(is_used, 1.0 / xp.where(is_used, x - k, 1.0), 0.0)
    return difference


def _gammaln_on_1_to_3(offset_from_1: Any, terms: int = len(_LOG_GAMMA)) -> Any:
    """Returns `gammaln` on [1, 3], with full relative precision near its roots."""
    offset_from_2 = offset_from_1 - 1.0
    return offset_from_1 * offset_from_2 * chebyshev(2.0 * offset_from_2, _LOG_GAMMA[-terms:])


def gamma1p(xp: Any, a: Any, terms: int) -> Any:
    """Returns `gamma(1 + a)` for `a` from 0 to 10, by `terms` terms of the series for its logarithm."""
    steps, offset_from_1 = _shift_into_1_to_3(xp, a)
    offset_from_1 = xp.where(a < 1.0, a, offset_from_1)
    product = xp.where(a < 1.0, 1.0, a)
    for k in range(1, 9):
        product = xp.where(steps >= k, product * (a - k), product)
    return product * xp.exp(_gammaln_on_1_to_3(offset_from_1, terms))


def log_gamma1p(a: Any) -> Any:
    """Returns `gammaln(1 + a)` for `a` from 0 to 2, with full relative precision near 0."""
    return _gammaln_on_1_to_3(a)


def log_gamma(xp: Any, x: Any) -> Any:
    """Returns `gammaln(x)` for x > 0."""
    is_near = x < _ASYMPTOTIC
    near_result = xp.pick(is_near, partial(_log_gamma_near, xp), replace_outside(xp, is_near, x, 1.0))
    return xp.where(is_near, near_result, xp.pick(~is_near, partial(log_gamma_far, xp), at_least(xp, x, _ASYMPTOTIC)))


def _log_gamma_near(xp: Any, x: Any) -> Any:
    steps, offset_from_1 = _shift_into_1_to_3(xp, x)
    # The ratio of gamma functions would overflow for tiny numbers, so take the logarithm of `x` itself.
    is_tiny = x < 1.0
    logarithm = xp.log(xp.where(is_tiny, x, _gamma_ratio(xp, xp.where(is_tiny, 1.0, x), steps)))
    return _gammaln_on_1_to_3(offset_from_1) + xp.where(is_tiny, -logarithm, logarithm)


def log_gamma_far(xp: Any, x: Any, terms: int = len(_STIRLING)) -> Any:
    """Returns `gammaln(x)` for x >= 8, by `terms` terms of Stirling's series."""
    return (x - 0.5) * (xp.log(x) - 1.0) + (_HALF_LOG_2PI - 0.5 + stirling(x, terms))


def _reflect_log_gamma(xp: Any, x: Any, positive_result: Any) -> Any:
    """Returns `gammaln(x)` for x <= 0 by reflection; `positive_result` is `gammaln(1 - x)`."""
    r = offset_from_integer(xp, replace_outside(xp, x <= 0.0, x, -0.5))
    return xp.where(r == 0.0, math.inf, -xp.log(xp.abs(r) * sinc(r)) - positive_result)


def gammaln(xp: Any, x: Any) -> Any:
    """Returns the logarithm of the absolute value of the gamma function; below 0 by reflection."""
    right_result = log_gamma(xp, xp.where(x > 0.0, x, 1.0 - x))
    result = xp.where(x > 0.0, right_result, xp.pick(x <= 0.0, partial(_reflect_log_gamma, xp), x, right_result))
    return xp.where(xp.isnan(x), x, xp.where(xp.abs(x) == math.inf, math.inf, result))


def digamma(xp: Any, x: Any) -> Any:
    """Returns the derivative of `gammaln`; below 0 by reflection."""
    is_right = x > 0.0
    y = xp.where(is_right, x, 1.0 - x)
    is_near = y < _ASYMPTOTIC
    near_result = xp.pick(is_near, partial(_digamma_near, xp), replace_outside(xp, is_near, y, 1.0))
    far_result = xp.pick(~is_near, partial(digamma_far, xp), at_least(xp, y, _ASYMPTOTIC))
    positive_result = xp.where(is_near, near_result, far_result)
    result = xp.where(is_right, positive_result, xp.pick(x < 0.0, partial(_negative_digamma, xp), x, positive_result))
    # 1 / x has the sign of the zero.
    return xp.where(xp.isnan(x), x, xp.where(x == 0.0, -1.0 / x, xp.where(x == math.inf, x, result)))


def _digamma_near(xp: Any, x: Any) -> Any:
    steps, offset_from_1 = _shift_into_1_to_3(xp, x)
    offset_from_root = (offset_from_1 - (_ROOT - 1.0)) - _ROOT_REST
    return offset_from_root * chebyshev(2.0 * (offset_from_1 - 1.0), _DIGAMMA) + _digamma_difference(xp, x, steps)


def digamma_far(xp: Any, x: Any) -> Any:
    """Returns `digamma(x)` for x >= 8, by its asymptotic series."""
    inverse = 1.0 / x
    inverse_square = inverse * inverse
    return xp.log(x) - 0.5 * inverse - polynomial(inverse_square, DIGAMMA_FAR) * inverse_square


def _negative_digamma(xp: Any, x: Any, positive: Any) -> Any:
    """Returns `digamma(x)` for x < 0 by reflection; `positive` is `digamma(1 - x)`."""
    r = offset_from_integer(xp, replace_outside(xp, x < 0.0, x, 0.5))
    distance_from_half = 0.5 - xp.abs(r)
    cotangent = distance_from_half * sinc(distance_from_half) / (xp.where(r == 0.0, math.nan, r) * sinc(r))
    return positive - math.pi * cotangent


def _hurwitz(xp: Any, s: Any, q: Any, q_remainder: Any = 0.0, scale: Any = 1.0) -> Any:
    """Returns the sum of `((q + q_remainder + k) / scale) ** -s` over k = 0, 1, ..., for s > 1 and q > 0.

    `q_remainder` is far smaller than `q`. Each rounding error of `q + k` would be multiplied by `s`, so it is removed.
    """
    partial_sum = 0.0 * q
    for k in range(_DIRECT + 1):
        argument = q + float(k)
        rounded_k = argument - q
        rounding_error = (q - (argument - rounded_k)) + (k - rounded_k) + q_remainder
        relative_error = rounding_error / argument
        term = xp.power(argument / scale, -s) * (1.0 - s * relative_error)
        if k < _DIRECT:
            partial_sum = partial_sum + term
    tail_integral = xp.power(argument / scale, 1.0 - s) * (1.0 - (s - 1.0) * relative_error) * (scale / (s - 1.0))
    # Where `s` is larger than 2000, the power is 0.
    order = at_most(xp, s, 2000.0)
    factor, corrections = order / argument, 0.5 + 0.0 * argument
    for j, b in enumerate(_BERNOULLI, 1):
        corrections = corrections + (b / math.factorial(2 * j)) * factor
        factor = factor * ((order + (2.0 * j - 1.0)) / argument) * ((order + 2.0 * j) / argument)
    return partial_sum + (tail_integral + term * corrections)


def _zeta(xp: Any, s: Any, q: Any, scale: Any = 1.0) -> Any:
    """Returns the sum of `((q + k) / scale) ** -s` over k = 0, 1, ...; where q < 0, `s` must be an integer.

    Where q < 0, the terms are those of all numbers that differ from `q` by an integer, less those below `q`.
    """
    is_left = q <= 0.0
    y = xp.where(is_left, 1.0 - q, q)
    q_remainder = xp.where(is_left, (1.0 - y) - q, 0.0)
    positive_zeta = _hurwitz(xp, s, y, q_remainder, scale)
    scale = scale + 0.0 * positive_zeta
    left_value = xp.pick(
        is_left, lambda *given: _zeta_of_nonpositive(xp, *given), s, xp.where(is_left, q, 0.5), positive_zeta, scale
    )
    return xp.where(is_left, left_value, positive_zeta)


def _zeta_of_nonpositive(xp: Any, s: Any, q: Any, positive_zeta: Any, scale: Any) -> Any:
    """Returns `_zeta` for q <= 0, where `positive_zeta` is `_zeta` of `1 - q`."""
    r = offset_from_integer(xp, q)
    sign = xp.where(s - 2.0 * xp.floor(s / 2.0) == 0.0, 1.0, -1.0)
    nearest_term = xp.power(xp.abs(r) / scale, -s) * xp.where(r < 0.0, sign, 1.0)
    tail_sum = _hurwitz(xp, s, 1.0 + r, r - ((1.0 + r) - 1.0), scale)
    tail_sum = tail_sum + sign * _hurwitz(xp, s, 1.0 - r, (1.0 - (1.0 - r)) - r, scale)
    return xp.where(r == 0.0, math.inf, nearest_term + (tail_sum - sign * positive_zeta))


def zeta(xp: Any, s: Any, q: Any) -> Any:
    """Returns the zeta function of Hurwitz."""
    is_at_end = (xp.abs(q) == math.inf) | (s == math.inf)
    is_regular = (s > 1.0) & ~is_at_end
    zeta_value = _zeta(xp, replace_outside(xp, is_regular, s, 2.0), replace_outside(xp, is_regular, q, 1.0))
    zeta_value = xp.where((q < 0.0) & (s != xp.floor(s)), math.nan, zeta_value)
    limit_values = xp.where(q > 1.0, 0.0, xp.where(q == 1.0, 1.0, math.inf))
    zeta_value = xp.where(is_at_end, limit_values, zeta_value)
    # At the poles, the integers q <= 0, the zeta function is infinite for every `s`.
    is_pole = (s == 1.0) | ((s > 1.0) & (q <= 0.0) & (q == xp.floor(q)))
    zeta_value = xp.where(is_pole, math.inf, xp.where(s < 1.0, math.nan, zeta_value))
    return xp.where(xp.isnan(s) | xp.isnan(q), math.nan, zeta_value)


def polygamma(xp: Any, n: Any, x: Any) -> Any:
    """Returns the derivative of order `n` of `digamma`; NaN unless `n` is a whole number of at least 0."""
    is_integer = (n >= 0.0) & (n == xp.floor(n)) & (n < math.inf)
    order = replace_outside(xp, is_integer & (n > 0.0), n, 1.0)
    is_regular = (xp.abs(x) < math.inf) & (x != 0.0)
    is_exact = order < _EXACT
    index = at_most(xp, order, _EXACT - 1.0)
    # For orders beyond the table of factorials use Stirling's formula, scaled by the power of two next to the base.
    large_n = at_least(xp, order, _EXACT - 1.0)
    base = large_n / math.e
    pow2 = xp.power(2.0 + 0.0 * large_n, xp.floor(xp.log(base) / math.log(2.0)))
    factor = xp.sqrt(2.0 * math.pi * large_n) * xp.power(base / pow2, large_n) * xp.exp(stirling(large_n)) / pow2
    pow2 = xp.where(is_exact, xp.entries(_SCALES, index), pow2)
    factor = xp.where(is_exact, xp.entries(_FACTORIALS, index), factor)
    # Scale so that neither the factor nor the sum overflows, or vanishes, where their product does not.
    is_beyond_pow2 = is_regular & (x > pow2)
    factor = factor * xp.where(is_beyond_pow2, xp.power(0.5 + 0.0 * order, order + 1.0), 1.0)
    pow2 = pow2 * xp.where(is_beyond_pow2, 2.0, 1.0)
    magnitude = factor * _zeta(xp, order + 1.0, replace_outside(xp, is_regular, x, 1.0), pow2)
    magnitude = xp.where(is_regular, magnitude, xp.where(x == math.inf, 0.0, math.inf))
    is_even = order - 2.0 * xp.floor(order / 2.0) == 0.0
    # At x = 0 the result has the sign of x ** -(n + 1).
    derivative = xp.where(is_even, -1.0, 1.0) * magnitude
    derivative = xp.where((x == 0.0) & is_even, -1.0 / x, derivative)
    is_order_0 = n == 0.0
    derivative = xp.where(is_order_0, xp.pick(is_order_0, partial(digamma, xp), x), derivative)
    derivative = xp.where(is_integer, derivative, math.nan)
    return xp.where(xp.isnan(x), x, derivative)


def _scaled_bessel_pieces(xp: Any, y: Any, near_coefficients: Any, far_coefficients: Any) -> tuple[Any, Any]:
    """Returns a Chebyshev series in `y` for y <= 8, and one in `1 / y`, divided by the root of `y`, for y > 8."""
    y_from_8 = at_least(xp, y, 8.0)
    near_result = chebyshev(at_most(xp, y, 8.0) / 2.0 - 2.0, near_coefficients)
    return near_result, chebyshev(32.0 / y_from_8 - 2.0, far_coefficients) / xp.sqrt(y_from_8)


def i0e(xp: Any, x: Any) -> Any:
    """Returns `exp(-abs(x)) * i0(x)`."""
    y = xp.abs(x)
    near_value, far_value = _scaled_bessel_pieces(xp, y, I0_NEAR, I0_FAR)
    return xp.where(xp.isnan(x), x, xp.where(y <= 8.0, near_value, far_value))


def i1e(xp: Any, x: Any) -> Any:
    """Returns `exp(-abs(x)) * i1(x)`."""
    y = xp.abs(x)
    near_value, far_value = _scaled_bessel_pieces(xp, y, _I1_NEAR, _I1_FAR)
    return xp.where(xp.isnan(x), x, xp.where(y <= 8.0, x * near_value, xp.where(x < 0.0, -far_value, far_value)))


def i1(xp: Any, x: Any) -> Any:
    """Returns the modified Bessel function of the first kind and order 1."""
    finite_x = replace_outside(xp, xp.abs(x) < math.inf, x, 0.0)
    # exp(x) may overflow where the result does not.
    root_of_exp = xp.exp(0.5 * xp.abs(finite_x))
    return xp.where(xp.abs(x) < math.inf, i1e(xp, finite_x) * root_of_exp * root_of_exp, x)


def _lanczos(z: Any) -> Any:
    """Returns `gamma(z) / t**(z - 1/2)` with `t = z + g - 1/2`, but for a constant factor to the power of z, z >= 1."""
    v = 1.0 / z
    return polynomial(v, _LANCZOS_TOP) / polynomial(v, _LANCZOS_BELOW)


def _beta_factors(xp: Any, a: Any, b: Any) -> tuple[Any, Any, Any, Any]:
    """Returns factors of `beta(a, b)` for a, b > 0: it is `first * power(second, p) * exp(exponent) / p`.

    Returns:
        The first factor, the second one, p, which is the smaller argument, and the exponent.
    """
    p, q = xp.where(a < b, a, b), xp.where(a < b, b, a)
    argument_sum = p + q
    # Approximate at p + 1, q + 1 and p + q + 1, so that nothing overflows before the result does.
    lanczos_factor = _lanczos(p + 1.0) * (_lanczos(q + 1.0) / _lanczos(argument_sum + 1.0)) * (1.0 + p / q)
    base, base_of_sum = p + (_LANCZOS + 0.5), argument_sum + (_LANCZOS + 0.5)
    return lanczos_factor * xp.sqrt(base / math.e), base / base_of_sum, p, (q + 0.5) * xp.log1p(-p / base_of_sum)


def positive_beta(xp: Any, a: Any, b: Any) -> Any:
    """Returns `beta(a, b)` for a, b > 0."""
    factor, power_base, p, exponent = _beta_factors(xp, a, b)
    beta_value = factor * xp.power(power_base, p) * xp.exp(exponent) / p
    return xp.where(a == 1.0, 1.0 / b, xp.where(b == 1.0, 1.0 / a, beta_value))


def positive_betaln(xp: Any, a: Any, b: Any) -> Any:
    """Returns `betaln(a, b)` for a, b > 0."""
    factor, power_base, p, exponent = _beta_factors(xp, a, b)
    log_beta = xp.log(factor) - xp.log(p) + (p * xp.log(power_base) + exponent)
    # The result is exact where a or b is 1; at (1, 1) the negative logarithm would be -0.
    return xp.where((a == 1.0) | (b == 1.0), 0.0 - xp.log(a * b), log_beta)


def _sign_of_gamma(xp: Any, x: Any) -> Any:
    """Returns the sign of the gamma function: below 0 it changes at each integer."""
    floor_x = xp.floor(x)
    return xp.where((x < 0.0) & (floor_x != 2.0 * xp.floor(floor_x / 2.0)), -1.0, 1.0)


def _beta(xp: Any, a: Any, b: Any, logarithm: bool) -> Any:
    """Returns `beta(a, b)`, or the logarithm of its absolute value."""
    is_regular = (a > 0.0) & (b > 0.0) & (a < math.inf) & (b < math.inf)
    # A pole of one gamma function in the numerator is cancelled by one in the denominator if the other is an integer:
    # then the reflected arguments have the same value, up to the sign.
    low, high = xp.where(a < b, a, b), xp.where(a < b, b, a)
    is_pole = (low <= 0.0) & (low == xp.floor(low))
    is_removable = is_pole & (high == xp.floor(high)) & (high > 0.0) & (low + high <= 0.0) & (low > -math.inf)
    p = xp.where(is_regular, low, xp.where(is_removable, 1.0 - low - high, 1.0))
    beta = (positive_betaln if logarithm else positive_beta)(xp, p, xp.where(is_regular | is_removable, high, 1.0))
    if not logarithm:
        beta = xp.where(is_regular | (high == 2.0 * xp.floor(high / 2.0)), beta, -beta)
    left_result = xp.pick(~(is_regular | is_removable), partial(_irregular_beta, xp, logarithm), low, high)
    return xp.where(is_regular | is_removable, beta, left_result)


def _irregular_beta(xp: Any, logarithm: bool, low: Any, high: Any) -> Any:
    """Returns `_beta` where an argument is not positive, infinite or NaN."""
    is_pole = ((low <= 0.0) & (low == xp.floor(low))) | ((high <= 0.0) & (high == xp.floor(high)))
    is_regular = ~is_pole & (low > -math.inf) & (high < math.inf)
    a, b = replace_outside(xp, is_regular, low, 0.5), replace_outside(xp, is_regular, high, 0.5)
    regular_beta = gammaln(xp, a) + gammaln(xp, b) - gammaln(xp, a + b)
    is_zero_limit = (high == math.inf) & (low > 0.0) & (low < math.inf)
    # The beta function grows like a power of an infinite argument, with the sign of the gamma function of the other.
    is_infinite_ratio = (high == math.inf) & (low < 0.0) & (low > -math.inf) & ~is_pole
    if logarithm:
        limit_values = xp.where(is_pole | is_infinite_ratio, math.inf, xp.where(is_zero_limit, -math.inf, math.nan))
    else:
        regular_beta = _sign_of_gamma(xp, a) * _sign_of_gamma(xp, b) * _sign_of_gamma(xp, a + b) * xp.exp(regular_beta)
        limit_values = xp.where(is_pole, math.inf, xp.where(is_zero_limit, 0.0, math.nan))
        limit_values = xp.where(is_infinite_ratio, math.inf * _sign_of_gamma(xp, low), limit_values)
    return xp.where(xp.isnan(low) | xp.isnan(high), math.nan, xp.where(is_regular, regular_beta, limit_values))


def beta(xp: Any, a: Any, b: Any) -> Any:
    """Returns the beta function."""
    return _beta(xp, a, b, False)


def betaln(xp: Any, a: Any, b: Any) -> Any:
    """Returns the logarithm of the absolute value of the beta function."""
    return _beta(xp, a, b, True)


def _multiply_logarithm(xp: Any, x: Any, y: Any, logarithm: Any) -> Any:
    return xp.where((x == 0.0) & ~xp.isnan(y), 0.0, x * logarithm(y))


def xlogy(xp: Any, x: Any, y: Any) -> Any:
    """Returns `x * log(y)`, and 0 where `x` is 0."""
    return _multiply_logarithm(xp, x, y, xp.log)


def xlog1py(xp: Any, x: Any, y: Any) -> Any:
    """Returns `x * log1p(y)`, and 0 where `x` is 0."""
    return _multiply_logarithm(xp, x, y, xp.log1p)
