"""Special functions: gamma and its relatives, Bessel functions, the normal distribution, entropy.

The names, the order of the arguments and the conventions are those of `scipy.special`.

Dtype: integers and booleans become the default float. The functions are those of real numbers.

Precision: in float64 the relative error is at most 16 units in the last place, except where a docstring says more.
Other dtypes are computed in float64, on a device without it in float32.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import alias, op
from emberharmony.core.options import constant
from emberharmony.core.types import Operand, Tensor, TensorLike
from emberharmony.ops.arrays.indexing import where
from emberharmony.ops.elementwise.elementary import log, log1p
from emberharmony.ops.elementwise.rounding import fabs
from emberharmony.ops.logic.comparison import greater, isnan, less, logical_or
from emberharmony.ops.math import multiply, negative, subtract

if TYPE_CHECKING:
    from emberharmony.backend.shared.elementwise import series, special_integrals, special_normal
    from emberharmony.backend.shared.elementwise import special as shared_special
else:
    series, special_integrals, special_normal, shared_special = (
        Deferred(f"emberharmony.backend.shared.elementwise.{name}")
        for name in ("series", "special_integrals", "special_normal", "special")
    )


@op(elementwise=True)
def gammaln(x: TensorLike) -> Tensor:
    """Returns the logarithm of the absolute value of the gamma function; infinite at 0, -1, -2, ... and at -inf.

    Near the roots below 0 the absolute error is small, but the relative error may be large.

    Raises:
        DTypeError: if `x` is complex.

    See also: `gamma`, itself; `digamma`, the derivative; `multigammaln`, for matrices.

    Example:
        >>> ops.gammaln([1.0, 0.0]).tolist()
        [0.0, inf]
    """
    return series.evaluate_series(shared_special.gammaln, x)


lgamma = alias("lgamma", gammaln)


@op(elementwise=True)
def digamma(x: TensorLike) -> Tensor:
    """Returns the derivative of `gammaln`; NaN at -1, -2, ..., and infinite at 0, with the sign of `-1 / x`.

    Near the roots below 0 the absolute error is small, but the relative error may be large.

    Raises:
        DTypeError: if `x` is complex.

    See also: `polygamma`, of higher order.

    Example:
        >>> bool(ops.isclose(ops.digamma(1.0), -0.57721566))
        True
    """
    return series.evaluate_series(shared_special.digamma, x)


@op(elementwise=True)
def polygamma(n: Operand, x: Operand) -> Tensor:
    """Returns the derivative of order `n` of `digamma`; NaN if `n` is not one of 0, 1, 2, ...

    The relative error is at most 16 units in the last place up to n = 170, and at most `2 n` units beyond. Near the
    roots below 0, which functions of even order have, the absolute error is small, but the relative error may be large.

    Args:
        n: the order; there is no gradient with respect to it.
        x: the argument: a tensor or number, which broadcasts against `n`; integers become the default float.

    Raises:
        DTypeError: if an argument is complex.
        UnsupportedOpError: if the gradient with respect to `n` is asked for.

    See also: `digamma`, of order 0; `zeta`, by which it is computed.

    Example:
        >>> bool(ops.isclose(ops.polygamma(1, 1.0), 1.64493407))
        True
    """
    return series.evaluate_series(shared_special.polygamma, constant("n", n), x)


@op(elementwise=True)
def zeta(x: Operand, q: Operand) -> Tensor:
    """Returns the zeta function of Hurwitz, the sum of `(q + k)**-x` over k = 0, 1, ...

    The result is infinite for x = 1 and at the poles q = 0, -1, -2, ...; it is NaN for x < 1, and where q < 0 if `x` is
    not an integer. Near the roots below 0, which functions of odd `x` have, the absolute error is small, but the
    relative error may be large.

    Args:
        x: the exponent; there is no gradient with respect to it.
        q: the first term: a tensor or number, which broadcasts against `x`.

    Raises:
        DTypeError: if an argument is complex.
        UnsupportedOpError: if the gradient with respect to `x` is asked for.

    See also: `polygamma`, of whole orders.

    Example:
        >>> bool(ops.isclose(ops.zeta(2.0, 1.0), 1.64493407))
        True
    """
    return series.evaluate_series(shared_special.zeta, constant("x", x), q)


@op(elementwise=True)
def gammainc(a: Operand, x: Operand) -> Tensor:
    """Returns the regularized lower incomplete gamma function, the integral of `t**(a-1) exp(-t) / gamma(a)` up to x.

    The relative error is at most `16 + 4 abs(log(y))` units in the last place of the result `y`.

    Args:
        a: the parameter, not negative. Derivatives by it exist up to the second.
        x: the upper limit of the integral, not negative.

    Raises:
        DTypeError: if an argument is complex.

    See also: `gammaincinv`, the inverse; `gammaincc`, the complement.

    Example:
        >>> bool(ops.isclose(ops.gammainc(1.0, 2.0), 0.86466472))
        True
    """
    return series.evaluate_series(special_integrals.gammainc, a, x)


@op(elementwise=True)
def gammaincc(a: Operand, x: Operand) -> Tensor:
    """Returns `1 - gammainc(a, x)`, accurate where the result is small.

    The relative error is at most `16 + 4 abs(log(y))` units in the last place of the result `y`.

    Args:
        a: the parameter, not negative. Derivatives by it exist up to the second.
        x: the lower limit of the integral, not negative.

    Raises:
        DTypeError: if an argument is complex.

    See also: `gammainc`, the complement.

    Example:
        >>> bool(ops.isclose(ops.gammaincc(1.0, 2.0), 0.13533528))
        True
    """
    return series.evaluate_series(special_integrals.gammaincc, a, x)


@op(elementwise=True)
def beta(a: Operand, b: Operand) -> Tensor:
    """Returns the beta function, `gamma(a) gamma(b) / gamma(a + b)`.

    The relative error is at most `16 + 4 abs(log(y))` units in the last place of the result `y`, and more where an
    argument is negative.

    Args:
        a: a tensor or number, which broadcasts against `b`; integers become the default float.
        b: a tensor or number, which broadcasts against `a`; integers become the default float.

    Raises:
        DTypeError: if an argument is complex.

    See also: `betaln`, without overflow; `betainc`, incomplete.

    Example:
        >>> bool(ops.isclose(ops.beta(2.0, 3.0), 1.0 / 12.0))
        True
    """
    return series.evaluate_series(shared_special.beta, a, b)


@op(elementwise=True)
def betaln(a: Operand, b: Operand) -> Tensor:
    """Returns the logarithm of the absolute value of the beta function, without overflow.

    Near 0 the absolute error is small, but the relative error may be large.

    Args:
        a: a tensor or number, which broadcasts against `b`; integers become the default float.
        b: a tensor or number, which broadcasts against `a`; integers become the default float.

    Raises:
        DTypeError: if an argument is complex.

    See also: `beta`, itself.

    Example:
        >>> ops.betaln(1.0, 1.0).tolist()
        0.0
    """
    return series.evaluate_series(shared_special.betaln, a, b)


@op(elementwise=True)
def betainc(a: Operand, b: Operand, x: Operand) -> Tensor:
    """Returns the regularized incomplete beta function, the integral of `t**(a-1) (1-t)**(b-1) / beta(a, b)` up to x.

    The relative error is at most `16 + 4 abs(log(y))` units in the last place of the result `y`; it is up to 1/b times
    as large where b < 0.1 and `x` is close to 1.

    Args:
        a: the first parameter, not negative. Derivatives by the parameters exist up to the second.
        b: the second parameter, not negative: a tensor or number, which broadcasts against the others.
        x: the upper limit of the integral, from 0 to 1.

    Raises:
        DTypeError: if an argument is complex.

    See also: `betaincinv`, the inverse.

    Example:
        >>> bool(ops.isclose(ops.betainc(2.0, 3.0, 0.5), 0.6875))
        True
    """
    return series.evaluate_series(special_integrals.betainc, a, b, x)


@op(elementwise=True)
def xlogy(x: Operand, y: Operand) -> Tensor:
    """Returns `x * log(y)`, and 0 where `x` is 0, unless `y` is NaN.

    Args:
        x: the factor: a tensor or number, which broadcasts against `y`; integers become the default float.
        y: a tensor or number, which broadcasts against `x`; the result is NaN where it is negative and `x` is not 0.

    Raises:
        DTypeError: if an argument is complex.

    See also: `xlog1py`, with `log1p`; `entr`, for `-x * log(x)`; `rel_entr`, for `x * log(x / y)`.

    Example:
        >>> ops.xlogy([0.0, 2.0], [0.0, 1.0]).tolist()
        [0.0, 0.0]
    """
    return series.evaluate_series(shared_special.xlogy, x, y)


@op(elementwise=True)
def xlog1py(x: Operand, y: Operand) -> Tensor:
    """Returns `x * log1p(y)`, and 0 where `x` is 0, unless `y` is NaN.

    Args:
        x: the factor: a tensor or number, which broadcasts against `y`; integers become the default float.
        y: a tensor or number, which broadcasts against `x`; the result is NaN where it is below -1 and `x` is not 0.

    Raises:
        DTypeError: if an argument is complex.

    See also: `xlogy`, with `log`.

    Example:
        >>> ops.xlog1py([0.0, 2.0], [-1.0, 0.0]).tolist()
        [0.0, 0.0]
    """
    return series.evaluate_series(shared_special.xlog1py, x, y)


@op(elementwise=True)
def entr(x: TensorLike) -> Tensor:
    """Returns `-x * log(x)`, of which the entropy is the sum; 0 at 0, and -inf for negative numbers.

    Raises:
        DTypeError: if `x` is complex.

    See also: `xlogy`, of two operands; `rel_entr`, relative to another density.

    Example:
        >>> ops.entr([0.0, 1.0]).tolist()
        [0.0, 0.0]
    """
    inside_x = where(logical_or(greater(x, 0), isnan(x)), x, 1.0)
    return where(less(x, 0), float("-inf"), subtract(0.0, multiply(inside_x, log(inside_x))))


@op(elementwise=True)
def erfcx(x: TensorLike) -> Tensor:
    """Returns `exp(x**2) * erfc(x)`, which neither vanishes nor loses digits for large `x`.

    Raises:
        DTypeError: if `x` is complex.

    See also: `erfc`, unscaled.

    Example:
        >>> ops.erfcx([0.0]).tolist()
        [1.0]
    """
    return series.evaluate_series(special_normal.erfcx, x)


@op(elementwise=True)
def ndtr(x: TensorLike) -> Tensor:
    """Returns the distribution function of the standard normal distribution, the probability of less than `x`.

    Raises:
        DTypeError: if `x` is complex.

    See also: `ndtri`, the inverse; `log_ndtr`, without underflow; `erf`, in another scale.

    Example:
        >>> ops.ndtr([0.0]).tolist()
        [0.5]
    """
    return series.evaluate_series(special_normal.ndtr, x)


@op(elementwise=True)
def log_ndtr(x: TensorLike) -> Tensor:
    """Returns the logarithm of `ndtr`, which is finite where `ndtr` is 0.

    Raises:
        DTypeError: if `x` is complex.

    See also: `ndtr`, itself.

    Example:
        >>> bool(ops.isclose(ops.log_ndtr(0.0), -0.69314718))
        True
    """
    return series.evaluate_series(special_normal.log_ndtr, x)


@op(elementwise=True)
def ndtri(p: TensorLike) -> Tensor:
    """Returns the inverse of `ndtr`; infinite at 0 and 1, NaN outside [0, 1].

    Args:
        p: probabilities in [0, 1]: a tensor of any shape; integers become the default float.

    Raises:
        DTypeError: if `p` is complex.

    See also: `ndtr`, the inverse.

    Example:
        >>> ops.ndtri([0.5]).tolist()
        [0.0]
    """
    return series.evaluate_series(special_normal.ndtri, p)


@op(elementwise=True)
def logit(x: TensorLike) -> Tensor:
    """Returns `log(x / (1 - x))`, the inverse of `sigmoid`; infinite at 0 and 1, NaN outside [0, 1].

    Raises:
        DTypeError: if `x` is complex.

    See also: `sigmoid`, the inverse.

    Example:
        >>> ops.logit([0.5]).tolist()
        [0.0]
    """
    # Near 1/2 the two logarithms below would cancel; the distance from 1/2 is exact there.
    is_near_half = less(fabs(subtract(x, 0.5)), 0.2)
    doubled_distance = multiply(subtract(where(is_near_half, x, 0.5), 0.5), 2.0)
    logit_near_half = subtract(log1p(doubled_distance), log1p(negative(doubled_distance)))
    outside_x = where(is_near_half, 0.25, x)
    return where(is_near_half, logit_near_half, subtract(log(outside_x), log1p(negative(outside_x))))


@op(elementwise=True)
def i0e(x: TensorLike) -> Tensor:
    """Returns `exp(-abs(x)) * i0(x)`, the exponentially scaled modified Bessel function of order 0.

    Raises:
        DTypeError: if `x` is complex.

    See also: `i0`, unscaled.

    Example:
        >>> ops.i0e([0.0]).tolist()
        [1.0]
    """
    return series.evaluate_series(shared_special.i0e, x)


@op(elementwise=True)
def i1(x: TensorLike) -> Tensor:
    """Returns the modified Bessel function of the first kind and order 1.

    Raises:
        DTypeError: if `x` is complex.

    See also: `i1e`, without overflow; `i0`, of order 0; `iv`, of any order.

    Example:
        >>> bool(ops.isclose(ops.i1(1.0), 0.56515910))
        True
    """
    return series.evaluate_series(shared_special.i1, x)


@op(elementwise=True)
def i1e(x: TensorLike) -> Tensor:
    """Returns `exp(-abs(x)) * i1(x)`, the exponentially scaled modified Bessel function of order 1.

    Raises:
        DTypeError: if `x` is complex.

    See also: `i1`, unscaled.

    Example:
        >>> bool(ops.isclose(ops.i1e(1.0), 0.20791042))
        True
    """
    return series.evaluate_series(shared_special.i1e, x)
