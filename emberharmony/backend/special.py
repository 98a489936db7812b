"""The error function for the libraries that lack a good one, in float64, over any module of NumPy's names.

Source: W. J. Cody, Rational Chebyshev approximation for the error function, Math. Comp. 23 (1969) 631-637; the relative
error of each piece is below 1e-16 times a small factor.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

_A = (3.16112374387056560e00, 1.13864154151050156e02, 3.77485237685302021e02, 3.20937758913846947e03)
_A_TOP = 1.85777706184603153e-1
_B = (2.36012909523441209e01, 2.44024637934444173e02, 1.28261652607737228e03, 2.84423683343917062e03)
_C = (
    *(5.64188496988670089e-1, 8.88314979438837594e00, 6.61191906371416295e01, 2.98635138197400131e02),
    *(8.81952221241769090e02, 1.71204761263407058e03, 2.05107837782607147e03, 1.23033935479799725e03),
)
_C_TOP = 2.15311535474403846e-8
_D = (
    *(1.57449261107098347e01, 1.17693950891312499e02, 5.37181101862009858e02, 1.62138957456669019e03),
    *(3.29079923573345963e03, 4.36261909014324716e03, 3.43936767414372164e03, 1.23033935480374942e03),
)
_P = (
    *(3.05326634961232344e-1, 3.60344899949804439e-1, 1.25781726111229246e-1),
    *(1.60837851487422766e-2, 6.58749161529837803e-4),
)
_P_TOP = 1.63153871373020978e-2
_Q = (
    *(2.56852019228982242e00, 1.87295284992346725e00, 5.27905102951428412e-1),
    *(6.05183413124413191e-2, 2.33520497626869185e-3),
)
_SMALL, _LARGE = 0.46875, 4.0


def in_double(function: Callable[[Any, Any], Any], xp: Any, x: Any) -> Any:
    """Returns `function(xp, x)` computed in float64 and given back in the dtype of `x`."""
    return function(xp, x.astype(xp.float64)).astype(x.dtype)


def _ratio(y: Any, top: float, upper: Sequence[float], lower: Sequence[float]) -> Any:
    """Returns a quotient of two polynomials by Horner's rule; the denominator's leading coefficient is 1."""
    above, below = top * y, y
    for a, b in zip(upper[:-1], lower[:-1], strict=True):
        above, below = (above + a) * y, (below + b) * y
    return (above + upper[-1]) / (below + lower[-1])


def _gauss(xp: Any, y: Any, exp: Callable[[Any], Any]) -> Any:
    """Returns `exp(-y * y)` without losing digits to the rounding of the square."""
    head = xp.floor(y * 16.0) / 16.0
    return exp(-head * head) * exp(-(y - head) * (y + head))


def _central(x: Any) -> Any:
    return x * _ratio(x * x, _A_TOP, _A, _B)


def _tail(xp: Any, y: Any, exp: Callable[[Any], Any]) -> Any:
    """Returns `erfc(y)` for y >= 0.46875."""
    y = xp.minimum(y, 30.0)
    middle = _ratio(xp.minimum(y, _LARGE), _C_TOP, _C, _D)
    far = xp.maximum(y, _LARGE)
    inverse = 1.0 / (far * far)
    outer = (1.0 / math.sqrt(math.pi) - inverse * _ratio(inverse, _P_TOP, _P, _Q)) / far
    return xp.where(y <= _LARGE, middle, outer) * _gauss(xp, y, exp)


def erf(xp: Any, x: Any, exp: Callable[[Any], Any] | None = None) -> Any:
    """Returns the error function of a float64 tensor."""
    y = xp.abs(x)
    outside = 1.0 - _tail(xp, xp.maximum(y, _SMALL), exp or xp.exp)
    inner = _central(xp.where(y <= _SMALL, x, 0.0))
    return xp.where(xp.isnan(x), x, xp.where(y <= _SMALL, inner, xp.where(x < 0, -outside, outside)))


def erfc(xp: Any, x: Any, exp: Callable[[Any], Any] | None = None) -> Any:
    """Returns the complementary error function of a float64 tensor."""
    y = xp.abs(x)
    tail = _tail(xp, xp.maximum(y, _SMALL), exp or xp.exp)
    inner = 1.0 - _central(xp.where(y <= _SMALL, x, 0.0))
    return xp.where(xp.isnan(x), x, xp.where(y <= _SMALL, inner, xp.where(x < 0, 2.0 - tail, tail)))


def erfinv(xp: Any, x: Any, exp: Callable[[Any], Any] | None = None) -> Any:
    """Returns the inverse error function of a float64 tensor: Winitzki's first guess, then three steps of Halley."""
    exp = exp or xp.exp
    size = xp.abs(x)
    inside = xp.where(size < 1.0, size, 0.5)
    logarithm = xp.log1p(-inside * inside)
    half = 2.0 / (math.pi * 0.147) + logarithm / 2.0
    y = xp.sqrt(xp.maximum(xp.sqrt(half * half - logarithm / 0.147) - half, 0.0))
    for _ in range(3):
        # Near 1 the complement has the digits.
        off = xp.where(inside < 0.5, erf(xp, y, exp) - inside, (1.0 - inside) - erfc(xp, y, exp))
        newton = off / (2.0 / math.sqrt(math.pi) * exp(-y * y))
        y = y - newton / (1.0 + y * newton)
    y = xp.where(size < 1.0, y, xp.where(size == 1.0, math.inf, math.nan))
    return xp.where(x < 0, -y, xp.where(x == 0, x, y))
