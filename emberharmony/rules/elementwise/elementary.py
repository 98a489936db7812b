"""Gradient rules of the ops in `ops/elementwise/elementary.py`.

The gradients of the bodies take 2 to 16 times as long, for few elements, and keep up to 17 times the memory. Second
derivatives of those of `logaddexp` and `logaddexp2` are wrong where both operands are equal.
"""

import math
from typing import Any

from emberharmony.ops.arrays.indexing import where
from emberharmony.ops.elementwise.elementary import cos, cosh, exp, exp2, sin, sinh
from emberharmony.ops.logic.comparison import equal
from emberharmony.ops.math import add, divide, divide_no_nan, multiply, negative, rsqrt, sqrt, square, subtract
from emberharmony.rules.math import as_operand

T = Any
_LN2, _LN10 = math.log(2.0), math.log(10.0)
_TERMS = 30


def _exponential_share(power: Any, a: T, y: T) -> T:
    """Returns the derivative of `y = logaddexp(a, b)` by `a`; it is 1 where `y` equals `a`, even if both are -inf."""
    return power(where(equal(a, y), 0.0, subtract(a, y)))


def _bessel_ratio(x: T) -> T:
    """Returns I1(x) / I0(x) by its continued fraction, whose last term is the asymptotic value of the ratio.

    Source: DLMF 10.33.1; for the last term DLMF 10.41.
    """
    last_term = _TERMS + 1
    ratio = divide(x, add(sqrt(add(square(x), last_term * last_term)), last_term))
    for k in range(_TERMS, 0, -1):
        ratio = divide(x, add(multiply(x, ratio), 2 * k))
    return ratio


RULES: dict[str, Any] = {
    "exp": (lambda g, y, _x: multiply(g, y),),
    "expm1": (lambda g, y, _x: multiply(g, add(y, 1)),),
    "exp2": (lambda g, y, _x: multiply(g, multiply(y, _LN2)),),
    "log": (lambda g, _y, x: divide(g, x),),
    "log1p": (lambda g, _y, x: divide(g, add(x, 1)),),
    "log2": (lambda g, _y, x: divide(g, multiply(x, _LN2)),),
    "log10": (lambda g, _y, x: divide(g, multiply(x, _LN10)),),
    "logaddexp": (
        lambda g, y, a, b: multiply(g, _exponential_share(exp, a, y)),
        lambda g, y, a, b: multiply(g, _exponential_share(exp, b, y)),
    ),
    "logaddexp2": (
        lambda g, y, a, b: multiply(g, _exponential_share(exp2, a, y)),
        lambda g, y, a, b: multiply(g, _exponential_share(exp2, b, y)),
    ),
    "sin": (lambda g, _y, x: multiply(g, cos(x)),),
    "cos": (lambda g, _y, x: negative(multiply(g, sin(x))),),
    "tan": (lambda g, y, _x: multiply(g, add(square(y), 1)),),
    "arcsin": (lambda g, _y, x: multiply(g, rsqrt(subtract(1, square(x)))),),
    "arccos": (lambda g, _y, x: negative(multiply(g, rsqrt(subtract(1, square(x))))),),
    "arctan": (lambda g, _y, x: divide(g, add(square(x), 1)),),
    "arctan2": (
        lambda g, y, a, b: divide_no_nan(multiply(g, b), add(square(as_operand(a, y)), square(as_operand(b, y)))),
        lambda g, y, a, b: negative(
            divide_no_nan(multiply(g, a), add(square(as_operand(a, y)), square(as_operand(b, y))))
        ),
    ),
    "sinh": (lambda g, _y, x: multiply(g, cosh(x)),),
    "cosh": (lambda g, _y, x: multiply(g, sinh(x)),),
    # Not g * (1 - y * y): a Python number as first operand misses the fast path.
    "tanh": (lambda g, y, _x: subtract(g, multiply(multiply(g, y), y)),),
    "arcsinh": (lambda g, _y, x: multiply(g, rsqrt(add(square(x), 1))),),
    # Not sqrt(x * x - 1): it has the wrong sign for complex numbers whose real part is negative.
    "arccosh": (lambda g, _y, x: divide(g, multiply(sqrt(subtract(x, 1)), sqrt(add(x, 1)))),),
    "arctanh": (lambda g, _y, x: divide(g, subtract(1, square(x))),),
    "erf": (lambda g, _y, x: multiply(multiply(g, exp(negative(square(x)))), 2 / math.sqrt(math.pi)),),
    "erfc": (lambda g, _y, x: multiply(multiply(g, exp(negative(square(x)))), -2 / math.sqrt(math.pi)),),
    "erfinv": (lambda g, y, _x: multiply(multiply(g, exp(square(y))), math.sqrt(math.pi) / 2),),
    "i0": (lambda g, y, x: multiply(g, multiply(y, _bessel_ratio(x))),),
}
