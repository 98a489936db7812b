"""Elementary and special functions, on NumPy."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from emberharmony.backend.numpy.dtypes import promotion
from emberharmony.backend.shared import elementary
from emberharmony.core.dispatch import fast

_BLOCK = 2**15
"""`erf` computes large arrays in blocks of so many elements, whose intermediate results stay in the cache."""
FEW = 128
"""Up to this number of elements, calls of Python's function for one number take less time than calls for tensors."""
_ENDS = -elementary.SINGLE_END, elementary.SINGLE_END


def _special(function: Callable[[Any, Any], Any]) -> Callable[[np.ndarray], np.ndarray]:
    """Returns an op that computes a function of `backend.shared.elementary` in float64."""

    def called(x: np.ndarray) -> np.ndarray:
        promotion.refuse(x, ("complex",))
        return elementary.in_double(function, np, promotion.floats(x))

    return called


@fast(np.expm1, "{0}.dtype is native_float32 or {0}.dtype is native_float64")
def _expm1(x: np.ndarray) -> np.ndarray:
    x = promotion.floats(x)
    result = np.expm1(x)
    if x.dtype.kind != "c":
        return result
    result = np.asarray(result)
    result.real += 0.0  # a real part of -0 becomes 0, as exp(x) - 1 has
    if np.isfinite(x).all():
        return result
    # NumPy 2.4's complex expm1 multiplies infinities by zeros, so it has NaN where exp(x) - 1 has not.
    above = np.asarray(np.exp(x))
    above.real -= 1
    return np.where(np.isfinite(x), result, above)


@fast(np.log1p, "{0}.dtype is native_float32 or {0}.dtype is native_float64")
def _log1p(x: np.ndarray) -> np.ndarray:
    x = promotion.floats(x)
    if x.dtype.kind != "c":
        return np.log1p(x)
    # NumPy 2.4's complex log1p computes log(1 + x), where a small x loses its digits: log1p(1e-20 + 0j) is 0.
    small = np.where(np.abs(x) < 0.5, x, 0)
    near = np.log1p(small.real * (2 + small.real) + small.imag**2) / 2 + 1j * np.arctan2(small.imag, 1 + small.real)
    return np.where(small == x, near, np.log1p(x)).astype(x.dtype, copy=False)


def mapped(function: Callable[[float], float], x: np.ndarray) -> np.ndarray:
    """Returns a function of Python's numbers of few elements."""
    return np.array(list(map(function, x.ravel().tolist())), x.dtype).reshape(x.shape)


def erf(x: np.ndarray) -> np.ndarray:
    """Returns the error function."""
    promotion.refuse(x, ("complex",))
    x = promotion.floats(x)
    if x.dtype == np.float64:
        return elementary.erf(np, x)
    if x.size <= FEW:
        return mapped(math.erf, x)
    flat, found = x.reshape(-1), np.empty(x.size, np.float32)
    spaces = [np.empty(min(x.size, _BLOCK), np.float32) for _ in range(3)]
    for start in range(0, x.size, _BLOCK):
        block = found[start : start + _BLOCK]
        np.clip(flat[start : start + _BLOCK].astype(np.float32, copy=False), *_ENDS, out=block)
        square, top, below = (space[: block.size] for space in spaces)
        np.multiply(block, block, out=square)
        _polynomial(square, elementary.SINGLE_TOP, top)
        _polynomial(square, elementary.SINGLE_BELOW, below)
        top /= below
        block *= top
    return found.reshape(x.shape).astype(x.dtype, copy=False)


def _polynomial(x: np.ndarray, coefficients: Sequence[float], result: np.ndarray) -> None:
    """Computes a polynomial in an array, to the same bits as `elementary.polynomial`."""
    np.multiply(x, coefficients[0], out=result)
    result += coefficients[1]
    for coefficient in coefficients[2:]:
        result *= x
        result += coefficient


class NumpyElementaryOps:
    """Holds the ops of `ops/elementary.py`."""

    exp = staticmethod(promotion.unary(np.exp))
    expm1 = staticmethod(_expm1)
    exp2 = staticmethod(promotion.unary(np.exp2))
    log = staticmethod(promotion.unary(np.log))
    log1p = staticmethod(_log1p)
    log2 = staticmethod(promotion.unary(np.log2))
    log10 = staticmethod(promotion.unary(np.log10))
    logaddexp = staticmethod(promotion.binary(np.logaddexp, inexact=True))
    logaddexp2 = staticmethod(promotion.binary(np.logaddexp2, inexact=True))
    sin = staticmethod(promotion.unary(np.sin))
    cos = staticmethod(promotion.unary(np.cos))
    tan = staticmethod(promotion.unary(np.tan))
    arcsin = staticmethod(promotion.unary(np.arcsin))
    arccos = staticmethod(promotion.unary(np.arccos))
    arctan = staticmethod(promotion.unary(np.arctan))
    arctan2 = staticmethod(promotion.binary(np.arctan2, inexact=True))
    sinh = staticmethod(promotion.unary(np.sinh))
    cosh = staticmethod(promotion.unary(np.cosh))
    tanh = staticmethod(promotion.unary(np.tanh))
    arcsinh = staticmethod(promotion.unary(np.arcsinh))
    arccosh = staticmethod(promotion.unary(np.arccosh))
    arctanh = staticmethod(promotion.unary(np.arctanh))
    cbrt = staticmethod(promotion.unary(np.cbrt))
    erf = staticmethod(erf)
    erfc = staticmethod(_special(elementary.erfc))
    erfinv = staticmethod(_special(elementary.erfinv))
    i0 = staticmethod(_special(elementary.i0))
