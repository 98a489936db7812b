"""The modified Bessel functions of any order; see `special`.

Source: DLMF 10.41 for Debye's expansion, which holds for all orders and arguments of which one is large, and 10.25.2
for the power series of iv. N. M. Temme, J. Comput. Phys. 19 (1975) 324-337, has the series of kv. The integrand of kv
(DLMF 10.32.9) is entire, so the rule of trapezoids has all digits.
"""

import math
from functools import partial
from typing import Any

from emberharmony.backend.shared.elementwise.elementary import chebyshev, polynomial, replace_outside
from emberharmony.backend.shared.elementwise.special import offset_from_integer, sinc
from emberharmony.backend.shared.elementwise.special_exponential import gamma

# The polynomials of Debye's expansion in the square of v / w, by powers of 1 / w.
_DEBYE: tuple[tuple[float, ...], ...] = (
    (1.0,),
    (-0.20833333333333334, 0.125),
    (0.3342013888888889, -0.4010416666666667, 0.0703125),
    (-1.0258125964506173, 1.8464626736111112, -0.8912109375, 0.0732421875),
    (
        *(4.669584423426247, -11.207002616222994, 8.78912353515625, -2.3640869140625),
        *(0.112152099609375,),
    ),
    (
        *(-28.212072558200244, 84.63621767460073, -91.81824154324002, 42.53499874538846),
        *(-7.368794359479632, 0.22710800170898438),
    ),
    (
        *(212.57013003921713, -765.2524681411817, 1059.9904525279999, -699.5796273761325),
        *(218.1905117442116, -26.491430486951554, 0.5725014209747314),
    ),
    (
        *(-1919.457662318407, 8061.722181737309, -13586.550006434138, 11655.393336864534),
        *(-5305.646978613403, 1200.9029132163525, -108.09091978839466, 1.7277275025844574),
    ),
    (
        *(20204.29133096615, -96980.59838863752, 192547.00123253153, -203400.17728041555),
        *(122200.46498301746, -41192.65496889755, 7109.514302489364, -493.915304773088),
        *(6.074042001273483,),
    ),
    (
        *(-242919.18790055133, 1311763.6146629772, -2998015.9185381066, 3763271.297656404),
        *(-2813563.226586534, 1268365.2733216248, -331645.1724845636, 45218.76898136273),
        *(-2499.8304818112097, 24.380529699556064),
    ),
    (
        *(3284469.853072038, -19706819.118432228, 50952602.49266464, -74105148.21153265),
        *(66344512.27472903, -37567176.66076335, 13288767.166421818, -2785618.1280864547),
        *(308186.4046126624, -13886.08975371704, 110.01714026924674),
    ),
    (
        *(-49329253.66450996, 325573074.18576574, -939462359.6815784, 1553596899.57058),
        *(-1621080552.1083372, 1106842816.8230145, -495889784.2750303, 142062907.7975331),
        *(-24474062.72573873, 2243768.1779224495, -84005.43360302408, 551.3358961220206),
    ),
    (
        *(814789096.1183121, -5866481492.051847, 18688207509.295826, -34632043388.158775),
        *(41280185579.753975, -33026599749.800724, 17954213731.1556, -6563293792.619285),
        *(1559279864.8792574, -225105661.88941526, 17395107.553978164, -549842.3275722887),
        *(3038.090510922384,),
    ),
    (
        *(-14679261247.695616, 114498237732.0258, -399096175224.4665, 819218669548.5773),
        *(-1098375156081.2233, 1008158106865.3821, -645364869245.3765, 287900649906.1506),
        *(-87867072178.02327, 17634730606.83497, -2167164983.223795, 143157876.71888897),
        *(-3871833.442572613, 18257.755474293175),
    ),
    (
        *(286464035717.679, -2406297900028.504, 9109341185239.898, -20516899410934.438),
        *(30565125519935.32, -31667088584785.16, 23348364044581.84, -12320491305598.287),
        *(4612725780849.132, -1196552880196.1816, 205914503232.41, -21822927757.529224),
        *(1247009293.5127103, -29188388.122220814, 118838.42625678325),
    ),
    (
        *(-6019723417234.006, 54177510755106.05, -221349638702525.2, 542739664987659.75),
        *(-889496939881026.5, 1026955196082762.5, -857461032982895.0, 523054882578444.6),
        *(-232604831188939.94, 74373122908679.14, -16634824724892.48, 2485000928034.0854),
        *(-229619372968.24646, 11465754899.448236, -234557963.52225152, 832859.3040162893),
    ),
    (
        *(135522158703093.69, -1301012723549699.5, 5705782159023671.0, -1.5129826322457682e16),
        *(2.705471130619708e16, -3.4447226006485144e16, 3.213827526858624e16, -2.2268225133911144e16),
        *(1.1486706978449752e16, -4379325838364015.5, 1212675804250347.5, -236652530451649.25),
        *(31007436472896.46, -2521558474912.8545, 110997405139.17902, -2001646928.1917763),
        *(6252951.493434797,),
    ),
)
# The Chebyshev coefficients in m * m, up to 1/4, of Temme's two combinations of 1/gamma(1 - m) and 1/gamma(1 + m).
_TEMME_1 = (
    *(-3.680298480635798e-17, -1.3563951023664248e-13, 3.67795398857441e-11, 6.943766448667449e-09),
    *(-3.470626964904318e-06, 0.0003087090173085368, 0.006516511267073688, -1.142022680371168),
)
_TEMME_2 = (
    *(-1.4943667065169001e-15, -1.702377664251273e-13, 2.42309579004827e-10, -3.3126119768180853e-08),
    *(-4.9717367041957395e-06, 0.0012719271366545622, -0.07685284084478668, 1.8437405873009054),
)
_LARGE = 30.0
"""From which size of the order and the argument together Debye's expansion has all digits."""
_TERMS, _RISES = 56, 31
_NODES = tuple(0.11 * k for k in range(-41, 42))


def _debye_sum(xp: Any, v: Any, w: Any, sign: float) -> Any:
    """Returns the sum of Debye's expansion of iv, if `sign` is 1.0, or of kv, if it is -1.0."""
    signed_inverse = sign / w
    square = (v / w) * (v / w)
    series_sum = 0.0 * w
    for row in reversed(_DEBYE):
        series_sum = series_sum * signed_inverse + (polynomial(square, row) if len(row) > 1 else 1.0)
    return series_sum


def _debye_exponent(xp: Any, v: Any, x: Any, w: Any) -> Any:
    return w + v * xp.log(x / (v + w))


def _iv_near(xp: Any, v: Any, x: Any) -> Any:
    quarter_square = 0.25 * x * x
    term = series_sum = 1.0 + 0.0 * quarter_square
    for k in range(1, _TERMS):
        term = term * (quarter_square / (k * (v + k)))
        series_sum = series_sum + term
    return series_sum * (xp.power(0.5 * x, v) / gamma(xp, v + 1.0))


def _iv_far(xp: Any, v: Any, x: Any) -> Any:
    w = xp.sqrt(v * v + x * x)
    # The exponential may overflow where the result does not, so multiply by its square root twice.
    root_of_exp = xp.exp(0.5 * _debye_exponent(xp, v, x, w))
    return root_of_exp * (_debye_sum(xp, v, w, 1.0) / xp.sqrt(2.0 * math.pi * w)) * root_of_exp


def _kv_far(xp: Any, v: Any, x: Any) -> Any:
    w = xp.sqrt(v * v + x * x)
    return xp.exp(-_debye_exponent(xp, v, x, w)) * _debye_sum(xp, v, w, -1.0) * xp.sqrt(0.5 * math.pi / w)


def _kv_middle(xp: Any, v: Any, x: Any) -> Any:
    """Returns kv for x >= 2 and orders up to 30, by the rule of trapezoids about the maximum of the integrand."""
    w = xp.sqrt(v * v + x * x)
    integral_sum = 0.0 * w
    for s in _NODES:
        integral_sum = integral_sum + xp.exp(v * (s - math.sinh(s)) - w * (math.cosh(s) - 1.0))
    return integral_sum * (0.5 * 0.11) * xp.exp(-_debye_exponent(xp, v, x, w))


def _kv_near(xp: Any, v: Any, x: Any) -> Any:
    """Returns kv for x <= 2 and orders up to 30: Temme's series for an order up to 1/2, and steps of 1."""
    nearest_order = xp.floor(v + 0.5)
    m = v - nearest_order
    chebyshev_argument = m * m * 16.0 - 2.0
    gamma_1, gamma_2 = chebyshev(chebyshev_argument, _TEMME_1), chebyshev(chebyshev_argument, _TEMME_2)
    inverse_gamma_plus, inverse_gamma_minus = gamma_2 - m * gamma_1, gamma_2 + m * gamma_1
    log_2_over_x = xp.log(2.0 / x)
    order_angle = m * log_2_over_x
    expm1_angle = xp.expm1(order_angle)
    power, inverse_power = xp.exp(order_angle), xp.exp(-order_angle)
    is_zero = order_angle == 0.0
    sinh_ratio = xp.where(
        is_zero, 1.0, 0.5 * (expm1_angle + expm1_angle * inverse_power) / xp.where(is_zero, 1.0, order_angle)
    )
    f = (gamma_1 * (0.5 * (power + inverse_power)) + gamma_2 * sinh_ratio * log_2_over_x) / sinc(m)
    p, q = 0.5 * power / inverse_gamma_plus, 0.5 * inverse_power / inverse_gamma_minus
    series_factor, quarter_square = 1.0 + 0.0 * x, 0.25 * x * x
    previous_value, current_value = f, p
    for i in range(1, 16):
        f = (i * f + p + q) / (float(i * i) - m * m)
        series_factor = series_factor * (quarter_square / i)
        p, q = p / (i - m), q / (i + m)
        previous_value, current_value = previous_value + series_factor * f, current_value + series_factor * (p - i * f)
    current_value = current_value * (2.0 / x)
    kv_value = previous_value
    for k in range(_RISES):
        kv_value = xp.where(nearest_order == k + 1.0, current_value, kv_value)
        previous_value, current_value = current_value, (2.0 * (m + (k + 1.0)) / x) * current_value + previous_value
    return kv_value


def _positive_kv(xp: Any, v: Any, x: Any) -> Any:
    """Returns kv for v >= 0 and x > 0."""
    is_large = v * v + x * x >= _LARGE * _LARGE
    is_near, is_middle = ~is_large & (x < 2.0), ~is_large & (x >= 2.0)
    far_result = xp.pick(is_large, partial(_kv_far, xp), xp.where(is_large, v, _LARGE), x)
    order = xp.where(is_large, 0.0, v)
    near_result = xp.pick(is_near, partial(_kv_near, xp), order, replace_outside(xp, is_near, x, 1.0))
    middle_result = xp.pick(is_middle, partial(_kv_middle, xp), order, replace_outside(xp, is_middle, x, 2.0))
    return xp.where(is_large, far_result, xp.where(is_near, near_result, middle_result))


def kv(xp: Any, v: Any, x: Any) -> Any:
    """Returns the modified Bessel function of the second kind; NaN for negative numbers, infinite at 0."""
    order = xp.abs(v)
    is_regular = (order < math.inf) & (x > 0.0) & (x < math.inf)
    kv_value = _positive_kv(xp, replace_outside(xp, is_regular, order, 1.0), replace_outside(xp, is_regular, x, 1.0))
    has_finite_order = order < math.inf
    end_values = xp.where(
        has_finite_order & (x == 0.0), math.inf, xp.where(has_finite_order & (x == math.inf), 0.0, math.nan)
    )
    return xp.where(is_regular, kv_value, end_values)


def iv(xp: Any, v: Any, x: Any) -> Any:
    """Returns the modified Bessel function of the first kind; for x < 0 NaN unless the order is an integer."""
    order, magnitude = xp.abs(v), xp.abs(x)
    is_regular = (order < math.inf) & (magnitude > 0.0) & (magnitude < math.inf)
    n, y = replace_outside(xp, is_regular, order, 1.0), replace_outside(xp, is_regular, magnitude, 1.0)
    is_large = n * n + y * y >= _LARGE * _LARGE
    far_value = xp.pick(is_large, partial(_iv_far, xp), xp.where(is_large, n, _LARGE), y)
    near_value = xp.pick(~is_large, partial(_iv_near, xp), xp.where(is_large, 0.0, n), xp.where(is_large, 1.0, y))
    iv_value = xp.where(is_large, far_value, near_value)
    is_integer = v == xp.floor(v)
    is_reflected = is_regular & (v < 0.0) & ~is_integer
    r = offset_from_integer(xp, xp.where(is_reflected, n, 0.5))
    nearest_integer = xp.where(is_reflected, n, 0.5) - r
    sine = r * sinc(r) * xp.where(nearest_integer == 2.0 * xp.floor(nearest_integer / 2.0), 2.0, -2.0)
    reflected_value = xp.pick(is_reflected, partial(_positive_kv, xp), xp.where(is_reflected, n, 1.0), y)
    iv_value = xp.where(is_reflected, iv_value + sine * reflected_value, iv_value)
    is_odd = is_integer & (v != 2.0 * xp.floor(v / 2.0))
    iv_value = xp.where((x < 0.0) & is_odd, -iv_value, xp.where((x < 0.0) & ~is_integer, math.nan, iv_value))
    value_at_zero = xp.where(v == 0.0, 1.0, xp.where((v > 0.0) | is_integer, 0.0, math.inf))
    value_at_infinity = xp.where(
        x > 0.0, math.inf, xp.where(is_integer, xp.where(is_odd, -math.inf, math.inf), math.nan)
    )
    end_values = xp.where(x == 0.0, value_at_zero, xp.where(magnitude == math.inf, value_at_infinity, math.nan))
    return xp.where(is_regular, iv_value, xp.where(order < math.inf, end_values, math.nan))
