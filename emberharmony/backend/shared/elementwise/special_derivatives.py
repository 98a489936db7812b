"""The derivatives of the special functions: PyTorch, MLX and JAX use them natively, NumPy on the tape.

Each function takes a namespace `s`, the arguments and the result. The namespace has the special functions, and
functions with NumPy's names, all of which can be differentiated; so the derivatives of higher order need no rules.
"""

import math
from collections.abc import Callable
from typing import Any

from emberharmony.core.errors import UnsupportedOpError

_ROOT_2PI = math.sqrt(2.0 * math.pi)
_FAR = 100.0


def no_gradient_error(name: str) -> UnsupportedOpError:
    """Returns the error for a gradient by an argument of a special function that has no derivative."""
    return UnsupportedOpError(f"there is no gradient with respect to {name!r}: pass a number, or ops.stop_gradient(x)")


def _gamma_density(s: Any, a: Any, x: Any) -> Any:
    return s.exp(s.xlogy(a - 1.0, x) - x - s.gammaln(a))


def _beta_density(s: Any, a: Any, b: Any, x: Any) -> Any:
    return s.exp(s.xlogy(a - 1.0, x) + s.xlog1py(b - 1.0, -x) - s.betaln(a, b))


def _derivative_of_xlog(s: Any, log: Callable[[Any], Any], x: Any, y: Any, smallest: float) -> Any:
    """Returns the derivative of `x * log(y)` by `x`, and 0 where `x` is 0 and the logarithm is not finite."""
    is_in_domain = (x != 0.0) | ((y > smallest) & (y < math.inf))
    return s.where(is_in_domain, log(s.where(is_in_domain, y, 0.5)), 0.0)


def _quotient_or_zero(s: Any, x: Any, y: Any) -> Any:
    return s.where((x == 0.0) & (y == 0.0), 0.0, x / s.where((x == 0.0) & (y == 0.0), 1.0, y))


def _erfcx_derivative(s: Any, x: Any, y: Any) -> Any:
    # For large x the two terms would cancel, so use the asymptotic series.
    is_far = x > _FAR
    z = 1.0 / s.where(is_far, x, _FAR)
    z = z * z
    far_slope = -z * (0.5 - z * (0.75 - z * (1.875 - z * 6.5625))) * (2.0 / math.sqrt(math.pi))
    near_slope = s.where(is_far, 0.0, x) * s.where(is_far, 0.0, y) * 2.0 - 2.0 / math.sqrt(math.pi)
    return s.where(is_far, far_slope, near_slope)


def _log_ndtr_derivative(s: Any, x: Any, y: Any) -> Any:
    is_negative = x < 0.0
    negative_result = math.sqrt(2.0 / math.pi) / s.erfcx(s.where(is_negative, x, 0.0) * -math.sqrt(0.5))
    nonnegative_x = s.where(is_negative, 0.0, x)
    return s.where(
        is_negative,
        negative_result,
        s.exp(nonnegative_x * nonnegative_x * -0.5 - s.where(is_negative, 0.0, y)) / _ROOT_2PI,
    )


def _i1_derivative(s: Any, x: Any, y: Any) -> Any:
    is_zero = x == 0.0
    return s.where(is_zero, 0.5, s.i0(x) - y / s.where(is_zero, 1.0, x))


def _i1e_derivative(s: Any, x: Any, y: Any) -> Any:
    is_zero = x == 0.0
    return s.where(is_zero, 0.5, s.i0e(x) - y * (s.sign(x) + 1.0 / s.where(is_zero, 1.0, x)))


def _j1_derivative(s: Any, x: Any, y: Any) -> Any:
    is_zero = x == 0.0
    return s.where(is_zero, 0.5, s.j0(x) - y / s.where(is_zero, 1.0, x))


def _log_ratio(s: Any, x: Any, y: Any) -> Any:
    is_close = s.where(x > y, x - y, y - x) < y * 0.5
    return s.where(is_close, s.log1p(s.where(is_close, x - y, 0.0) / y), s.log(x / y))


def _log_gamma_density_slope(s: Any, a: Any, x: Any) -> Any:
    """Returns the derivative of the logarithm of the density of `gammainc` by `a`."""
    return s.log(x) - s.digamma(a)


def _log_beta_density_slope(s: Any, logarithm: Any, a: Any, argument_sum: Any) -> Any:
    return logarithm - s.digamma(a) + s.digamma(argument_sum)


def _student_density(s: Any, df: Any, t: Any) -> Any:
    exponent = s.log1p(t * t / df) * (df + 1.0) + s.log(df)
    return s.exp(exponent * -0.5 - s.betaln(df * 0.5, s.full_like(df, 0.5)))


def _student_density_slope(s: Any, df: Any, t: Any, y: Any) -> Any:
    """Returns the derivative of the density of Student's distribution by `df`."""
    scaled_square = t * t / df
    log_slope = (df + 1.0) / df * (scaled_square / (scaled_square + 1.0)) - s.log1p(scaled_square) - 1.0 / df
    log_slope = log_slope + s.digamma((df + 1.0) * 0.5) - s.digamma(df * 0.5)
    return _student_density(s, df, t) * log_slope * 0.5


INNER: dict[str, tuple[str, tuple[int, ...]]] = {
    "gammainc_by_a": ("gammainc", (0,)),
    "gammainc_by_aa": ("gammainc", (0, 0)),
    "betainc_by_a": ("betainc", (0,)),
    "betainc_by_b": ("betainc", (1,)),
    "betainc_by_aa": ("betainc", (0, 0)),
    "betainc_by_ab": ("betainc", (0, 1)),
    "betainc_by_bb": ("betainc", (1, 1)),
    "stdtr_by_df": ("stdtr", (0,)),
    "stdtr_by_df_twice": ("stdtr", (0, 0)),
}
"""Derivatives without a short formula, which are functions of their own.

Each is named by a function and by the positions of the arguments that it is differentiated by.
"""

Derivative = Callable[..., Any]
DERIVATIVES: dict[str, tuple[Derivative | str, ...]] = {
    "gammaln": (lambda s, x, y: s.digamma(x),),
    "digamma": (lambda s, x, y: s.polygamma(s.full_like(x, 1.0), x),),
    "polygamma": ("n", lambda s, n, x, y: s.polygamma(n + 1.0, x)),
    "zeta": ("x", lambda s, x, q, y: s.zeta(x + 1.0, q) * -x),
    "gammainc": (lambda s, a, x, y: s.gammainc_by_a(a, x), lambda s, a, x, y: _gamma_density(s, a, x)),
    "gammaincc": (lambda s, a, x, y: -s.gammainc_by_a(a, x), lambda s, a, x, y: -_gamma_density(s, a, x)),
    "beta": (
        lambda s, a, b, y: y * (s.digamma(a) - s.digamma(a + b)),
        lambda s, a, b, y: y * (s.digamma(b) - s.digamma(a + b)),
    ),
    "betaln": (
        lambda s, a, b, y: s.digamma(a) - s.digamma(a + b),
        lambda s, a, b, y: s.digamma(b) - s.digamma(a + b),
    ),
    "betainc": (
        lambda s, a, b, x, y: s.betainc_by_a(a, b, x),
        lambda s, a, b, x, y: s.betainc_by_b(a, b, x),
        lambda s, a, b, x, y: _beta_density(s, a, b, x),
    ),
    "gammainc_by_a": (
        lambda s, a, x, y: s.gammainc_by_aa(a, x),
        lambda s, a, x, y: _gamma_density(s, a, x) * _log_gamma_density_slope(s, a, x),
    ),
    "gammainc_by_aa": ("a", "x"),
    "betainc_by_a": (
        lambda s, a, b, x, y: s.betainc_by_aa(a, b, x),
        lambda s, a, b, x, y: s.betainc_by_ab(a, b, x),
        lambda s, a, b, x, y: _beta_density(s, a, b, x) * _log_beta_density_slope(s, s.log(x), a, a + b),
    ),
    "betainc_by_b": (
        lambda s, a, b, x, y: s.betainc_by_ab(a, b, x),
        lambda s, a, b, x, y: s.betainc_by_bb(a, b, x),
        lambda s, a, b, x, y: _beta_density(s, a, b, x) * _log_beta_density_slope(s, s.log1p(-x), b, a + b),
    ),
    **dict.fromkeys(("betainc_by_aa", "betainc_by_ab", "betainc_by_bb"), ("a", "b", "x")),
    "stdtr": (lambda s, df, t, y: s.stdtr_by_df(df, t), lambda s, df, t, y: _student_density(s, df, t)),
    "stdtr_by_df": (lambda s, df, t, y: s.stdtr_by_df_twice(df, t), _student_density_slope),
    "stdtr_by_df_twice": ("df", "t"),
    "stdtrit": (
        lambda s, df, p, y: -s.stdtr_by_df(df, y) / _student_density(s, df, y),
        lambda s, df, p, y: 1.0 / _student_density(s, df, y),
    ),
    "gammaincinv": (
        lambda s, a, y, x: -s.gammainc_by_a(a, x) / _gamma_density(s, a, x),
        lambda s, a, y, x: 1.0 / _gamma_density(s, a, x),
    ),
    "betaincinv": (
        lambda s, a, b, y, x: -s.betainc_by_a(a, b, x) / _beta_density(s, a, b, x),
        lambda s, a, b, y, x: -s.betainc_by_b(a, b, x) / _beta_density(s, a, b, x),
        lambda s, a, b, y, x: 1.0 / _beta_density(s, a, b, x),
    ),
    "xlogy": (
        lambda s, x, y, z: _derivative_of_xlog(s, s.log, x, y, 0.0),
        lambda s, x, y, z: _quotient_or_zero(s, x, y),
    ),
    "xlog1py": (
        lambda s, x, y, z: _derivative_of_xlog(s, s.log1p, x, y, -1.0),
        lambda s, x, y, z: _quotient_or_zero(s, x, y + 1.0),
    ),
    "erfcx": (_erfcx_derivative,),
    "ndtr": (lambda s, x, y: s.exp(x * x * -0.5) / _ROOT_2PI,),
    "log_ndtr": (_log_ndtr_derivative,),
    "ndtri": (lambda s, p, y: s.exp(y * y * 0.5) * _ROOT_2PI,),
    "i0e": (lambda s, x, y: s.i1e(x) - s.sign(x) * y,),
    "i1": (_i1_derivative,),
    "i1e": (_i1e_derivative,),
    "gamma": (lambda s, x, y: s.digamma(x) * y,),
    "expi": (lambda s, x, y: s.exp(x) / x,),
    "exp1": (lambda s, x, y: s.exp(-x) / -x,),
    "lambertw": (lambda s, z, k, y: s.exp(-y) / (1.0 + y), "k"),
    "rel_entr": (lambda s, x, y, z: _log_ratio(s, x, y) + 1.0, lambda s, x, y, z: -x / y),
    "kl_div": (lambda s, x, y, z: _log_ratio(s, x, y), lambda s, x, y, z: (y - x) / y),
    "j0": (lambda s, x, y: -s.j1(x),),
    "j1": (_j1_derivative,),
    "iv": ("v", lambda s, v, x, y: (s.iv(v - 1.0, x) + s.iv(v + 1.0, x)) * 0.5),
    "kv": ("v", lambda s, v, x, y: (s.kv(v - 1.0, x) + s.kv(v + 1.0, x)) * -0.5),
}
"""The partial derivatives of each function; instead of one that has none here, the name of the argument.

It is a table like those of `rules`, which has one entry for each op, and which the tape reads, too.
"""
