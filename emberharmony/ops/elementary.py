"""Elementary and special functions, element by element.

Dtype: integers and booleans take the default float; complex tensors stay complex where the function is defined on them.
Angles are in radians.
"""

from __future__ import annotations

from emberharmony.core.constants import pi
from emberharmony.core.dispatch import alias, op
from emberharmony.core.types import Operand, Tensor, TensorLike
from emberharmony.ops.comparison import equal, less, logical_and, not_equal
from emberharmony.ops.indexing import where
from emberharmony.ops.math import absolute, add, divide, multiply, power, sign, subtract


@op
def exp(x: TensorLike) -> Tensor:
    """Returns e to the power of each element.

    Example:
        >>> ops.exp([0.0]).tolist()
        [1.0]
    """
    ...


@op
def expm1(x: TensorLike) -> Tensor:
    """Returns `exp(x) - 1`, exact near zero."""
    ...


@op
def exp2(x: TensorLike) -> Tensor:
    """Returns 2 to the power of each element.

    Example:
        >>> ops.exp2([3.0]).tolist()
        [8.0]
    """
    ...


@op
def log(x: TensorLike) -> Tensor:
    """Returns the natural logarithm; -inf of 0, NaN below.

    Example:
        >>> ops.log([1.0]).tolist()
        [0.0]
    """
    ...


@op
def log1p(x: TensorLike) -> Tensor:
    """Returns `log(1 + x)`, exact near zero."""
    ...


@op
def log2(x: TensorLike) -> Tensor:
    """Returns the logarithm to base 2.

    Example:
        >>> ops.log2([8.0]).tolist()
        [3.0]
    """
    ...


@op
def log10(x: TensorLike) -> Tensor:
    """Returns the logarithm to base 10.

    Example:
        >>> ops.log10([1.0]).tolist()
        [0.0]
    """
    ...


@op
def sin(x: TensorLike) -> Tensor:
    """Returns the sine.

    Example:
        >>> ops.sin([0.0]).tolist()
        [0.0]
    """
    ...


@op
def cos(x: TensorLike) -> Tensor:
    """Returns the cosine.

    Example:
        >>> ops.cos([0.0]).tolist()
        [1.0]
    """
    ...


@op
def tan(x: TensorLike) -> Tensor:
    """Returns the tangent."""
    ...


@op
def arcsin(x: TensorLike) -> Tensor:
    """Returns the inverse sine, from -pi/2 to pi/2."""
    ...


asin = alias("asin", arcsin)


@op
def arccos(x: TensorLike) -> Tensor:
    """Returns the inverse cosine, from 0 to pi."""
    ...


acos = alias("acos", arccos)


@op
def arctan(x: TensorLike) -> Tensor:
    """Returns the inverse tangent, from -pi/2 to pi/2."""
    ...


atan = alias("atan", arctan)


@op
def sinh(x: TensorLike) -> Tensor:
    """Returns the hyperbolic sine."""
    ...


@op
def cosh(x: TensorLike) -> Tensor:
    """Returns the hyperbolic cosine."""
    ...


@op
def tanh(x: TensorLike) -> Tensor:
    """Returns the hyperbolic tangent."""
    ...


@op
def arcsinh(x: TensorLike) -> Tensor:
    """Returns the inverse hyperbolic sine."""
    ...


asinh = alias("asinh", arcsinh)


@op
def arccosh(x: TensorLike) -> Tensor:
    """Returns the inverse hyperbolic cosine; NaN below 1."""
    ...


acosh = alias("acosh", arccosh)


@op
def arctanh(x: TensorLike) -> Tensor:
    """Returns the inverse hyperbolic tangent; NaN beyond -1 and 1."""
    ...


atanh = alias("atanh", arctanh)


@op
def erf(x: TensorLike) -> Tensor:
    """Returns the error function, `2/sqrt(pi)` times the integral of `exp(-t**2)` from 0 to x.

    Example:
        >>> ops.erf([0.0]).tolist()
        [0.0]
    """
    ...


@op
def erfc(x: TensorLike) -> Tensor:
    """Returns `1 - erf(x)`, exact where that is small.

    Example:
        >>> ops.erfc([0.0]).tolist()
        [1.0]
    """
    ...


@op
def erfinv(x: TensorLike) -> Tensor:
    """Returns the inverse of `erf`; infinite at -1 and 1, NaN beyond.

    Example:
        >>> ops.erfinv([0.0]).tolist()
        [0.0]
    """
    ...


@op
def logaddexp(x1: Operand, x2: Operand) -> Tensor:
    """Returns `log(exp(x1) + exp(x2))` without overflow."""
    ...


@op
def cbrt(x: TensorLike) -> Tensor:
    """Returns the real cube root, of negative numbers too.

    Dtype: integers take the default float.
    """
    x = add(x, 0.0)
    root = multiply(sign(x), power(absolute(x), 1.0 / 3.0))
    # One step of Newton: a third is not exact in binary.
    safe = where(equal(root, 0), 1.0, root)
    better = subtract(root, divide(subtract(root, divide(divide(x, safe), safe)), 3.0))
    finite = less(absolute(x), float("inf"))
    return where(logical_and(not_equal(root, 0), finite), better, root)


@op
def sinc(x: TensorLike) -> Tensor:
    """Returns `sin(pi x) / (pi x)`, and 1 at 0.

    Example:
        >>> ops.sinc([0.0]).tolist()
        [1.0]
    """
    zero = equal(x, 0)
    angle = multiply(where(zero, 1.0, x), pi)
    return where(zero, 1.0, divide(sin(angle), angle))


@op
def deg2rad(x: TensorLike) -> Tensor:
    """Returns degrees as radians.

    Example:
        >>> ops.deg2rad([0.0]).tolist()
        [0.0]
    """
    return multiply(x, pi / 180.0)


@op
def rad2deg(x: TensorLike) -> Tensor:
    """Returns radians as degrees.

    Example:
        >>> ops.rad2deg([0.0]).tolist()
        [0.0]
    """
    return multiply(x, 180.0 / pi)
