"""More special functions: gamma, exponential integrals, Lambert's, Bessel functions, entropies, quantiles.

The names, the order of the arguments and the conventions are those of `scipy.special`.

Dtype: integers and booleans become the default float. The functions are those of real numbers.

Precision: in float64 the relative error is at most 8 units in the last place, except where a docstring says more.
Other dtypes are computed in float64, on a device without it in float32.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import op
from emberharmony.core.options import as_integer, constant
from emberharmony.core.types import Operand, Tensor, TensorLike
from emberharmony.ops.arrays.creation import arange
from emberharmony.ops.arrays.indexing import where
from emberharmony.ops.arrays.shape import expand_dims
from emberharmony.ops.device import get_device
from emberharmony.ops.elementwise.special import gammaln
from emberharmony.ops.logic.comparison import greater
from emberharmony.ops.math import add, divide, subtract
from emberharmony.ops.tensor import cast

if TYPE_CHECKING:
    from emberharmony.backend.shared.elementwise import (
        series,
        special_bessel,
        special_exponential,
        special_modified,
        special_quantiles,
    )
    from emberharmony.ops.reductions import reduction
else:
    reduction = Deferred("emberharmony.ops.reductions.reduction")  # which imports modules beside this one
    series, special_bessel, special_exponential, special_modified, special_quantiles = (
        Deferred(f"emberharmony.backend.shared.elementwise.{name}")
        for name in ("series", "special_bessel", "special_exponential", "special_modified", "special_quantiles")
    )


@op(elementwise=True)
def gamma(x: TensorLike) -> Tensor:
    """Returns the gamma function; NaN at -1, -2, ... and -inf, and infinite at 0, with the sign of the zero.

    Raises:
        DTypeError: if `x` is complex.

    See also: `gammaln`, without overflow.

    Example:
        >>> ops.gamma([1.0, 5.0]).tolist()
        [1.0, 24.0]
    """
    return series.evaluate_series(special_exponential.gamma, x)


@op(elementwise=True)
def multigammaln(a: TensorLike, d: int) -> Tensor:
    """Returns the logarithm of the multivariate gamma function; NaN where `a` is not above `(d - 1) / 2`.

    SciPy raises an error there instead, but raising one would mean reading the values on the host. Where terms of
    opposite signs cancel, the error is relative to the largest.

    Args:
        a: the argument, above `(d - 1) / 2`: a tensor of any shape; integers become the default float.
        d: the dimension, an integer from 1.

    Raises:
        ArgumentError: if `d` is less than 1.
        ArgumentTypeError: if `d` is not an integer.
        DTypeError: if `a` is complex.

    See also: `gammaln`, for numbers.

    Source: R. J. Muirhead, Aspects of Multivariate Statistical Theory (1982), definition 2.1.10 and theorem 2.1.12.

    Example:
        >>> bool(ops.isclose(ops.multigammaln(3.0, 2), 1.55019499))
        True
    """
    d = as_integer("d", d, 1)
    is_inside = greater(a, 0.5 * (d - 1))
    # A whole number `a` would lose the halves.
    inside_a = where(is_inside, add(a, 0.0), 0.5 * d)
    half_integers = cast(divide(arange(d, device=get_device(inside_a)), 2.0), inside_a.dtype)
    gammaln_sum = reduction.sum(gammaln(subtract(expand_dims(inside_a, -1), half_integers)), -1)
    return where(is_inside, add(gammaln_sum, 0.25 * d * (d - 1) * math.log(math.pi)), float("nan"))


@op(elementwise=True)
def expi(x: TensorLike) -> Tensor:
    """Returns the exponential integral Ei, the integral of `exp(t) / t` from -inf to x, by its principal value.

    Raises:
        DTypeError: if `x` is complex.

    See also: `exp1`, for positive numbers.

    Example:
        >>> bool(ops.isclose(ops.expi(1.0), 1.89511782))
        True
    """
    return series.evaluate_series(special_exponential.expi, x)


@op(elementwise=True)
def exp1(x: TensorLike) -> Tensor:
    """Returns the exponential integral E1, the integral of `exp(-t) / t` from x to inf; NaN for negative numbers.

    Raises:
        DTypeError: if `x` is complex.

    See also: `expi`, for real numbers.

    Example:
        >>> bool(ops.isclose(ops.exp1(1.0), 0.21938393))
        True
    """
    return series.evaluate_series(special_exponential.exp1, x)


@op(elementwise=True)
def lambertw(z: Operand, k: Operand = 0) -> Tensor:
    """Returns Lambert's function, the real solution w of `w exp(w) = z`; NaN where there is none.

    SciPy's function is complex.

    Args:
        z: the argument, at least -1/e; for the branch -1 also negative.
        k: the branch: 0, whose values are at least -1, or -1, whose values are at most -1. There is no gradient with
            respect to it, and other branches, which are not real, are NaN.

    Raises:
        DTypeError: if an argument is complex.
        UnsupportedOpError: if the gradient with respect to `k` is asked for.

    See also: `exp`, in whose product it solves.

    Example:
        >>> bool(ops.isclose(ops.lambertw(1.0), 0.56714329))
        True
        >>> bool(ops.isclose(ops.lambertw(-0.1, -1), -3.57715206))
        True
    """
    return series.evaluate_series(special_exponential.lambertw, z, constant("k", k))


@op(elementwise=True)
def rel_entr(x: Operand, y: Operand) -> Tensor:
    """Returns `x * log(x / y)`, of which the relative entropy is the sum; 0 where `x` is 0.

    It is infinite where `x` is negative, where `y` is, and where `y` alone is 0.

    Args:
        x: a density: a tensor or number, which broadcasts against `y`; integers become the default float.
        y: the density to compare with: a tensor or number, which broadcasts against `x`.

    Raises:
        DTypeError: if an argument is complex.

    See also: `kl_div`, never negative; `entr`, of one density.

    Example:
        >>> ops.rel_entr([0.0, 1.0, 1.0], [0.0, 1.0, 0.0]).tolist()
        [0.0, 0.0, inf]
    """
    return series.evaluate_series(special_exponential.rel_entr, x, y)


@op(elementwise=True)
def kl_div(x: Operand, y: Operand) -> Tensor:
    """Returns `x * log(x / y) - x + y`, the divergence of Kullback and Leibler of two densities; `y` where `x` is 0.

    It is infinite where `rel_entr` is.

    Args:
        x: a density: a tensor or number, which broadcasts against `y`; integers become the default float.
        y: the density to compare with: a tensor or number, which broadcasts against `x`.

    Raises:
        DTypeError: if an argument is complex.

    See also: `rel_entr`, without the last terms.

    Example:
        >>> ops.kl_div([0.0, 1.0, 1.0], [2.0, 1.0, 0.0]).tolist()
        [2.0, 0.0, inf]
    """
    return series.evaluate_series(special_exponential.kl_div, x, y)


@op(elementwise=True)
def j0(x: TensorLike) -> Tensor:
    """Returns the Bessel function of the first kind and order 0; 0 at infinity.

    Beyond 8 the error is relative to the amplitude `sqrt(2 / (pi * x))`.

    Raises:
        DTypeError: if `x` is complex.

    See also: `j1`, of order 1.

    Example:
        >>> bool(ops.isclose(ops.j0(1.0), 0.76519769))
        True
    """
    return series.evaluate_series(special_bessel.j0, x)


@op(elementwise=True)
def j1(x: TensorLike) -> Tensor:
    """Returns the Bessel function of the first kind and order 1; 0 at infinity.

    Beyond 8 the error is relative to the amplitude `sqrt(2 / (pi * x))`.

    Raises:
        DTypeError: if `x` is complex.

    See also: `j0`, of order 0.

    Example:
        >>> bool(ops.isclose(ops.j1(1.0), 0.44005059))
        True
    """
    return series.evaluate_series(special_bessel.j1, x)


@op(elementwise=True)
def iv(v: Operand, x: Operand) -> Tensor:
    """Returns the modified Bessel function of the first kind and any real order.

    The relative error is at most `16 + 4 (abs(log(y)) + v)` units in the last place of the result `y`, and more close
    to the roots of functions of negative orders.

    Args:
        v: the order; there is no gradient with respect to it.
        x: the argument; NaN if it is negative, unless the order is an integer.

    Raises:
        DTypeError: if an argument is complex.
        UnsupportedOpError: if the gradient with respect to `v` is asked for.

    See also: `kv`, of the second kind.

    Example:
        >>> bool(ops.isclose(ops.iv(0.5, 1.0), 0.93767489))
        True
    """
    return series.evaluate_series(special_modified.iv, constant("v", v), x)


@op(elementwise=True)
def kv(v: Operand, x: Operand) -> Tensor:
    """Returns the modified Bessel function of the second kind and any real order; NaN for x < 0, infinite at 0.

    The relative error is at most `16 + 4 (abs(log(y)) + v)` units in the last place of the result `y`.

    Args:
        v: the order; there is no gradient with respect to it.
        x: the argument: a tensor or number, which broadcasts against `v`.

    Raises:
        DTypeError: if an argument is complex.
        UnsupportedOpError: if the gradient with respect to `v` is asked for.

    See also: `iv`, of the first kind.

    Example:
        >>> bool(ops.isclose(ops.kv(0.5, 1.0), 0.46106850))
        True
    """
    return series.evaluate_series(special_modified.kv, constant("v", v), x)


@op(elementwise=True)
def stdtr(df: Operand, t: Operand) -> Tensor:
    """Returns Student's distribution function, the probability of less than `t`.

    The relative error is at most `16 + 4 abs(log(y))` units in the last place of the result `y`.

    Args:
        df: the degrees of freedom, positive; the distribution is normal if they are infinite. Derivatives by it exist
            up to the second.
        t: the argument: a tensor or number, which broadcasts against `df`.

    Raises:
        DTypeError: if an argument is complex.

    See also: `stdtrit`, the inverse.

    Example:
        >>> bool(ops.isclose(ops.stdtr(1.0, 0.5), 0.64758362))
        True
    """
    return series.evaluate_series(special_quantiles.stdtr, df, t)


@op(elementwise=True)
def stdtrit(df: Operand, p: Operand) -> Tensor:
    """Returns the inverse of `stdtr` by `t`; infinite at 0 and 1, NaN outside [0, 1].

    The relative error is at most `16 + 4 abs(log(p))` units in the last place, over `df` if that is less than 1, where
    `p` is the smaller one of both probabilities.

    Args:
        df: the degrees of freedom, positive: a tensor or number, which broadcasts against `p`.
        p: the probability of less than the result.

    Raises:
        DTypeError: if an argument is complex.

    See also: `stdtr`, the inverse.

    Example:
        >>> bool(ops.isclose(ops.stdtrit(1.0, 0.25), -1.0))
        True
    """
    return series.evaluate_series(special_quantiles.stdtrit, df, p)


@op(elementwise=True)
def gammaincinv(a: Operand, y: Operand) -> Tensor:
    """Returns the inverse of `gammainc` by `x`; infinite at 1, NaN outside [0, 1].

    The relative error is at most `16 + 4 abs(log(y))` units in the last place, over `a` if that is less than 1.

    Args:
        a: the parameter, positive: a tensor or number, which broadcasts against `y`.
        y: the value of `gammainc`, from 0 to 1: a tensor or number, which broadcasts against `a`.

    Raises:
        DTypeError: if an argument is complex.

    See also: `gammainc`, the inverse.

    Example:
        >>> bool(ops.isclose(ops.gammaincinv(1.0, 0.5), 0.69314718))
        True
    """
    return series.evaluate_series(special_quantiles.gammaincinv, a, y)


@op(elementwise=True)
def betaincinv(a: Operand, b: Operand, y: Operand) -> Tensor:
    """Returns the inverse of `betainc` by `x`; NaN outside [0, 1].

    The relative error is at most `16 + 4 abs(log(y))` units in the last place, over the smaller parameter if that is
    less than 1.

    Args:
        a: the first parameter, positive: a tensor or number, which broadcasts against the others.
        b: the second parameter, positive: a tensor or number, which broadcasts against the others.
        y: the value of `betainc`, from 0 to 1: a tensor or number, which broadcasts against the others.

    Raises:
        DTypeError: if an argument is complex.

    See also: `betainc`, the inverse.

    Example:
        >>> bool(ops.isclose(ops.betaincinv(2.0, 3.0, 0.6875), 0.5))
        True
    """
    return series.evaluate_series(special_quantiles.betaincinv, a, b, y)
