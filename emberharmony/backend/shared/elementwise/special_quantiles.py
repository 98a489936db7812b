"""Student's distribution, and the inverses of distribution functions; see `special`.

In the logarithm of the argument of an incomplete gamma function, in the logit of that of a beta function, and in the
inverse hyperbolic sine of Student's, the densities are logarithmically concave. So are both tails, and Halley's steps
for the logarithm of the smaller tail go to the solution from any start. A fixed number of them follows a formula.

Source: the starts are those of E. B. Wilson, M. M. Hilferty, Proc. Nat. Acad. Sci. 17 (1931) 684-688, for the gamma
distribution, of M. Abramowitz, I. A. Stegun, Handbook of Mathematical Functions (1964), 26.5.22, for the beta
distribution, and of D. L. Wallace, Ann. Math. Statist. 30 (1959) 1121-1130, for Student's.
"""

import math
from collections.abc import Callable
from typing import Any

from emberharmony.backend.shared.elementwise.elementary import at_least, at_most, replace_outside
from emberharmony.backend.shared.elementwise.special import log_gamma, positive_beta, positive_betaln
from emberharmony.backend.shared.elementwise.special_integrals import (
    beta_density,
    betainc_side,
    gamma_density,
    gammainc_side,
)
from emberharmony.backend.shared.elementwise.special_normal import ndtr, ndtri

_STEPS = 5


def _halley_step(xp: Any, is_low: Any, tail: Any, target_probability: Any, density: Any, log_slope: Any) -> Any:
    """Returns Halley's step from a point towards the point where a distribution's tail has the wanted probability.

    Args:
        xp: the namespace.
        is_low: whether it is the lower tail.
        tail: its present size.
        target_probability: the one to reach.
        density: the derivative of the distribution function.
        log_slope: the derivative of the logarithm of the density.
    """
    is_tiny = (tail < 1e-300) | (density < 1e-300)
    tail, density = xp.where(is_tiny, 1.0, tail), xp.where(is_tiny, 1.0, density)
    log_error, rate = xp.log(xp.where(is_tiny, 1.0, target_probability) / tail), density / tail
    curvature = log_error * (xp.where(is_low, log_slope, -log_slope) - rate) / (2.0 * rate)
    step = log_error / rate / at_least(xp, 1.0 + curvature, 0.3)
    # Where the tail underflows to 0, step by 1 towards the middle of the distribution.
    return xp.where(is_low, 1.0, -1.0) * xp.where(is_tiny, 1.0, at_most(xp, at_least(xp, step, -700.0), 700.0))


def _repeat_steps(xp: Any, step: Callable[[Any], Any], x: Any) -> Any:
    """Returns `x` after `step` was applied a fixed number of times, by the namespace's compiled loop if it has one."""
    loop = getattr(xp, "loop", None)
    if loop is not None:
        return loop(_STEPS, step, x)
    for _ in range(_STEPS):
        x = step(x)
    return x


def _student_probabilities(xp: Any, n: Any, size: Any) -> tuple[Any, Any, Any]:
    """Returns the probability beyond `size * sqrt(n)` in Student's distribution, that from 0 to there, and the density.

    The density is that of the inverse hyperbolic sine of `size`.
    """
    half_n, is_far = 0.5 * n, size > 1.0
    large_size = replace_outside(xp, is_far, size, 1.0)
    small_ratio = xp.where(is_far, 1.0 / large_size, size)
    squared_ratio = small_ratio * small_ratio
    lower_ratio, upper_ratio = squared_ratio / (1.0 + squared_ratio), 1.0 / (1.0 + squared_ratio)
    x, y = xp.where(is_far, lower_ratio, upper_ratio), xp.where(is_far, upper_ratio, lower_ratio)
    logarithm = xp.where(is_far, -2.0 * xp.log(large_size), 0.0) - xp.log1p(squared_ratio)
    density = xp.exp(half_n * logarithm) / positive_beta(xp, half_n, 0.5 + 0.0 * half_n)
    is_left, side_integral = betainc_side(xp, half_n, 0.5 + 0.0 * half_n, x, y, density * xp.sqrt(y))
    return (
        0.5 * xp.where(is_left, side_integral, 1.0 - side_integral),
        0.5 * xp.where(is_left, 1.0 - side_integral, side_integral),
        density,
    )


def stdtr(xp: Any, df: Any, t: Any) -> Any:
    """Returns the distribution function of Student's distribution."""
    is_regular = (df > 0.0) & (df < math.inf) & (xp.abs(t) < math.inf)
    n = replace_outside(xp, is_regular, df, 1.0)
    tail, _, _ = _student_probabilities(xp, n, xp.abs(replace_outside(xp, is_regular, t, 0.0)) / xp.sqrt(n))
    probability = xp.where(t <= 0.0, tail, 1.0 - tail)
    end_values = xp.where(
        t == math.inf, 1.0, xp.where(t == -math.inf, 0.0, xp.where(df == math.inf, ndtr(xp, t), math.nan))
    )
    return xp.where(is_regular, probability, xp.where((df > 0.0) & ~xp.isnan(t), end_values, math.nan))


def stdtrit(xp: Any, df: Any, p: Any) -> Any:
    """Returns the quantile of Student's distribution."""
    is_regular = (df > 0.0) & (df < math.inf) & (p > 0.0) & (p < 1.0)
    n, p_inside = replace_outside(xp, is_regular, df, 1.0), replace_outside(xp, is_regular, p, 0.25)
    target_probability = xp.where(p_inside < 0.5, p_inside, 1.0 - p_inside)
    central_probability = xp.where(p_inside < 0.5, 0.5 - p_inside, p_inside - 0.5)
    is_central, is_low = target_probability > 0.25, target_probability > 1.0
    scale = (8.0 * n + 3.0) / (8.0 * n + 1.0) * ndtri(xp, target_probability)
    squared_scale = scale * scale / (2.0 * n)
    v = squared_scale + xp.log1p(xp.sqrt(-xp.expm1(-2.0 * squared_scale)))

    def refine(v: Any) -> Any:
        v = at_most(xp, v, 709.0)
        exp_of_v = xp.exp(v)
        scaled_t = 0.5 * (exp_of_v - 1.0 / exp_of_v)
        tail, central_part, density = _student_probabilities(xp, n, scaled_t)
        log_slope = n * (xp.expm1(-2.0 * v) / (1.0 + xp.exp(-2.0 * v)))
        far_step = _halley_step(xp, is_low, tail, target_probability, density, log_slope)
        error = (central_probability - central_part) / xp.where(is_central, density, 1.0)
        near_step = error / at_least(xp, 1.0 + error * log_slope * 0.5, 0.3)
        return at_least(xp, v + xp.where(is_central, near_step, far_step), 0.0)

    v = _repeat_steps(xp, refine, v)
    is_overflow = v > 709.0
    exp_of_v = xp.exp(at_most(xp, v, 709.0))
    scaled_t = at_least(xp, 0.5 * (exp_of_v - 1.0 / exp_of_v), 1e-300)
    tail, central_part, density = _student_probabilities(xp, n, scaled_t)
    # Correct the result itself by a last relative step, because `v` has fewer of its digits.
    density = density * (-xp.expm1(-2.0 * v) / (1.0 + xp.exp(-2.0 * v)))
    relative_change = xp.where(is_central, central_probability - central_part, tail - target_probability) / xp.where(
        density > 0.0, density, 1.0
    )
    quantile = xp.where(is_overflow, math.inf, scaled_t * (1.0 + relative_change) * xp.sqrt(n))
    quantile = xp.where(central_probability == 0.0, 0.0, quantile)
    quantile = xp.where(p_inside < 0.5, -quantile, quantile)
    is_in_domain = (df > 0.0) & (df < math.inf)
    end_values = xp.where(is_in_domain & (p == 0.0), -math.inf, xp.where(is_in_domain & (p == 1.0), math.inf, math.nan))
    return xp.where(is_regular, quantile, xp.where(df == math.inf, ndtri(xp, p), end_values))


def gammaincinv(xp: Any, a: Any, y: Any) -> Any:
    """Returns the inverse of the lower regularized incomplete gamma function."""
    is_regular = (a > 0.0) & (a < math.inf) & (y > 0.0) & (y < 1.0)
    n, p = replace_outside(xp, is_regular, a, 1.0), replace_outside(xp, is_regular, y, 0.25)
    q = 1.0 - p
    is_low = p <= 0.5
    target_probability = xp.where(is_low, p, q)
    # Start from the first term of the power series, of the asymptotic one, or, for large `a`, from a normal quantile.
    log_small_quantile = (xp.log(p) + log_gamma(xp, n + 1.0)) / n
    depth = at_least(xp, -xp.log(q) - log_gamma(xp, n), 1.0)
    far_start = xp.log(depth + (n - 1.0) * xp.log(depth))
    cube_root = 1.0 - 1.0 / (9.0 * n) + ndtri(xp, p) / (3.0 * xp.sqrt(n))
    is_large = (n > 0.5) & (cube_root > 0.2)
    first_guess = xp.where(
        is_low | (far_start < log_small_quantile) | xp.isnan(far_start), log_small_quantile, far_start
    )
    u = xp.where(is_large, xp.log(n) + 3.0 * xp.log(xp.where(is_large, cube_root, 1.0)), first_guess)
    u = xp.where(is_large & (u < log_small_quantile), log_small_quantile, u)

    def refine(u: Any) -> Any:
        x = xp.exp(at_least(xp, at_most(xp, u, 700.0), -700.0))
        density = gamma_density(xp, n, x)
        return u + _halley_step(
            xp, is_low, gammainc_side(xp, ~is_low, n, x, density), target_probability, density, n - x
        )

    u = _repeat_steps(xp, refine, u)
    # Where u is that low, the first term of the power series is the function.
    is_far = u < -690.0
    x = xp.exp(at_least(xp, u, -700.0))
    density = gamma_density(xp, n, x)
    tail = gammainc_side(xp, ~is_low, n, x, density)
    relative_change = xp.where(is_low, target_probability - tail, tail - target_probability) / xp.where(
        density > 0.0, density, 1.0
    )
    quantile = xp.where(is_far, xp.exp(at_most(xp, log_small_quantile, 0.0)), x * (1.0 + relative_change))
    is_in_domain = a >= 0.0
    end_values = xp.where(is_in_domain & (y == 0.0), 0.0, xp.where(is_in_domain & (y == 1.0), math.inf, math.nan))
    return xp.where(is_regular, quantile, end_values)


def _beta_probabilities(xp: Any, a: Any, b: Any, u: Any) -> tuple[Any, Any, Any, Any]:
    """Returns the argument `x` whose logit is `u`, both parts of the beta distribution there, and the density by u."""
    smaller_odds = xp.exp(-xp.abs(u))
    lower_ratio, upper_ratio = smaller_odds / (1.0 + smaller_odds), 1.0 / (1.0 + smaller_odds)
    x, y = xp.where(u < 0.0, lower_ratio, upper_ratio), xp.where(u < 0.0, upper_ratio, lower_ratio)
    is_large = (a >= 10.0) & (b >= 10.0)
    log_larger_share = -xp.log1p(smaller_odds)
    exponent = xp.where(
        u < 0.0, a * (log_larger_share + u) + b * log_larger_share, a * log_larger_share + b * (log_larger_share - u)
    )
    direct_density = xp.exp(exponent) / positive_beta(xp, a, b)
    density = xp.where(is_large, beta_density(xp, at_least(xp, a, 10.0), at_least(xp, b, 10.0), x), direct_density)
    is_left, side_integral = betainc_side(xp, a, b, x, y, density)
    return (
        x,
        xp.where(is_left, side_integral, 1.0 - side_integral),
        xp.where(is_left, 1.0 - side_integral, side_integral),
        density,
    )


def _beta_start(xp: Any, m: Any, n: Any, p: Any, q: Any) -> tuple[Any, Any]:
    """Returns a first guess of the log-odds `log(x / (1 - x))`, and the logarithm of x by the first term of the series.

    Args:
        xp: the namespace of the tensors.
        m: the first parameter.
        n: the second parameter.
        p: the probability below x.
        q: the probability above x.
    """
    # Start from a normal quantile, or from the first terms of the power series at both ends.
    is_large = (m >= 1.0) & (n >= 1.0)
    m_term, n_term = xp.where(is_large, 2.0 * m - 1.0, 1.0), xp.where(is_large, 2.0 * n - 1.0, 1.0)
    z = -ndtri(xp, p)
    cubic_term, harmonic_mean = (z * z - 3.0) / 6.0, 2.0 / (1.0 / m_term + 1.0 / n_term)
    w = z * xp.sqrt(at_least(xp, harmonic_mean + cubic_term, 0.0)) / harmonic_mean
    w = w - (1.0 / n_term - 1.0 / m_term) * (cubic_term + 5.0 / 6.0 - 2.0 / (3.0 * harmonic_mean))
    log_a, log_b = xp.log(m / (m + n)), xp.log(n / (m + n))
    mass_at_zero, mass_at_one = xp.exp(m * log_a) / m, xp.exp(n * log_b) / n
    mass = mass_at_zero + mass_at_one
    log_start = at_most(xp, xp.log(m * mass * p) / m, -1e-9)
    log_complement = at_most(xp, xp.log(n * mass * q) / n, -1e-9)
    first_guess = xp.where(
        p * mass < mass_at_zero,
        log_start - xp.log(-xp.expm1(log_start)),
        xp.log(-xp.expm1(log_complement)) - log_complement,
    )
    u = xp.where(is_large, xp.log(m / n) - 2.0 * at_most(xp, at_least(xp, w, -300.0), 300.0), first_guess)
    # The first term of each power series is a bound of the solution if the other parameter is at least 1.
    mass = positive_betaln(xp, m, n)
    log_start = at_most(xp, (xp.log(p * m) + mass) / m, -1e-9)
    log_complement = at_most(xp, (xp.log(q * n) + mass) / n, -1e-9)
    bound = log_start - xp.log(-xp.expm1(log_start))
    u = xp.where(is_large & (u < bound), bound, u)
    bound = xp.log(-xp.expm1(log_complement)) - log_complement
    u = xp.where(is_large & (u > bound), bound, u)
    return u, log_start


def betaincinv(xp: Any, a: Any, b: Any, y: Any) -> Any:
    """Returns the inverse of the regularized incomplete beta function."""
    is_regular = (a > 0.0) & (a < math.inf) & (b > 0.0) & (b < math.inf) & (y > 0.0) & (y < 1.0)
    m, n, p = (
        replace_outside(xp, is_regular, a, 1.0),
        replace_outside(xp, is_regular, b, 1.0),
        replace_outside(xp, is_regular, y, 0.25),
    )
    q = 1.0 - p
    is_low = p <= 0.5
    target_probability = xp.where(is_low, p, q)
    u, log_start = _beta_start(xp, m, n, p, q)

    def refine(u: Any) -> Any:
        u = at_most(xp, at_least(xp, u, -700.0), 700.0)
        x, lower_tail, upper_tail, density = _beta_probabilities(xp, m, n, u)
        return u + _halley_step(
            xp, is_low, xp.where(is_low, lower_tail, upper_tail), target_probability, density, m - (m + n) * x
        )

    u = _repeat_steps(xp, refine, u)
    is_far = is_low & (u < -690.0)
    u = at_most(xp, at_least(xp, u, -700.0), 700.0)
    x, lower_tail, upper_tail, density = _beta_probabilities(xp, m, n, u)
    relative_change = xp.where(is_low, target_probability - lower_tail, upper_tail - target_probability) / xp.where(
        density > 0.0, density, 1.0
    )
    # Where x is close to 0, the first term of the power series is the function.
    quantile = xp.where(is_far, xp.exp(log_start), x * (1.0 + relative_change * (1.0 - x)))
    is_in_domain = (a > 0.0) & (b > 0.0) & ((a < math.inf) | (b < math.inf)) & (y >= 0.0) & (y <= 1.0)
    is_zero, is_one = (y == 0.0) | ((b == math.inf) & (y < 1.0)), (y == 1.0) | (a == math.inf)
    return xp.where(
        is_regular, quantile, xp.where(is_in_domain & is_zero, 0.0, xp.where(is_in_domain & is_one, 1.0, math.nan))
    )
