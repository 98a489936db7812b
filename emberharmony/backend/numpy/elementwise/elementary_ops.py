"""Elementary and special functions, on NumPy."""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from emberharmony.backend.promote import FLOAT, direct
from emberharmony.backend.shared.elementwise import elementary

_BLOCK = 2**15
"""`erf` computes large arrays in blocks of so many elements, whose intermediate results stay in the cache."""
FEW = 128
"""Up to this number of elements, calls of Python's function for one number take less time than calls for tensors."""
_ENDS = -elementary.SINGLE_END, elementary.SINGLE_END


def _op_of_function(function: Callable[[Any, Any], Any]) -> Any:
    """Returns an op that computes a function of `backend.shared.elementwise.elementary` in float64."""
    return staticmethod(functools.partial(elementary.compute_in_double, function, np))


def _expm1(x: np.ndarray) -> np.ndarray:
    expm1_array = np.expm1(x)
    if x.dtype.kind != "c":
        return expm1_array
    expm1_array = np.asarray(expm1_array)
    expm1_array.real += 0.0  # a real part of -0 becomes 0, as exp(x) - 1 has
    if np.isfinite(x).all():
        return expm1_array
    # NumPy 2.4's complex expm1 multiplies infinities by zeros, so it has NaN where exp(x) - 1 has not.
    exponential = np.asarray(np.exp(x))
    exponential.real -= 1
    return np.where(np.isfinite(x), expm1_array, exponential)


def _log1p(x: np.ndarray) -> np.ndarray:
    if x.dtype.kind != "c":
        return np.log1p(x)
    # NumPy 2.4's complex log1p computes log(1 + x), where a small x loses its digits: log1p(1e-20 + 0j) is 0.
    small_x = np.where(np.abs(x) < 0.5, x, 0)
    near_value = np.log1p(small_x.real * (2 + small_x.real) + small_x.imag**2) / 2 + 1j * np.arctan2(
        small_x.imag, 1 + small_x.real
    )
    return np.where(small_x == x, near_value, np.log1p(x)).astype(x.dtype, copy=False)


def map_numbers(function: Callable[[float], float], x: np.ndarray) -> np.ndarray:
    """Returns an array with a function of Python numbers applied to each element, which is fastest for few."""
    return np.array(list(map(function, x.ravel().tolist())), x.dtype).reshape(x.shape)


def erf(x: np.ndarray) -> np.ndarray:
    """Returns the error function of the elements of an array."""
    if x.dtype == np.float64:
        return elementary.erf(np, x)
    if x.size <= FEW:
        return map_numbers(math.erf, x)
    flat_x, erf_values = x.reshape(-1), np.empty(x.size, np.float32)
    buffers = [np.empty(min(x.size, _BLOCK), np.float32) for _ in range(3)]
    for start in range(0, x.size, _BLOCK):
        result_block = erf_values[start : start + _BLOCK]
        np.clip(flat_x[start : start + _BLOCK].astype(np.float32, copy=False), *_ENDS, out=result_block)
        square, numerator, denominator = (space[: result_block.size] for space in buffers)
        np.multiply(result_block, result_block, out=square)
        _write_polynomial(square, elementary.SINGLE_TOP, numerator)
        _write_polynomial(square, elementary.SINGLE_BELOW, denominator)
        numerator /= denominator
        result_block *= numerator
    return erf_values.reshape(x.shape).astype(x.dtype, copy=False)


def _write_polynomial(x: np.ndarray, coefficients: Sequence[float], result: np.ndarray) -> None:
    """Writes the values of a polynomial into an array, with the same bits as `elementary.polynomial` returns."""
    np.multiply(x, coefficients[0], out=result)
    result += coefficients[1]
    for coefficient in coefficients[2:]:
        result *= x
        result += coefficient


class NumpyElementaryOps:
    """Holds the ops of `ops/elementwise/elementary.py`.

    NumPy's own functions take a 3rd to a 45th of the time of the bodies, for few elements. Those that NumPy lacks are
    computed in float64 in one pass; their bodies take up to 71 times as long.
    """

    exp = direct(np.exp)
    expm1 = direct(np.expm1, _expm1, when=FLOAT)
    exp2 = direct(np.exp2)
    log = direct(np.log)
    log1p = direct(np.log1p, _log1p, when=FLOAT)
    log2 = direct(np.log2)
    log10 = direct(np.log10)
    logaddexp = direct(np.logaddexp)
    logaddexp2 = direct(np.logaddexp2)
    sin = direct(np.sin)
    cos = direct(np.cos)
    tan = direct(np.tan)
    arcsin = direct(np.arcsin)
    arccos = direct(np.arccos)
    arctan = direct(np.arctan)
    arctan2 = direct(np.arctan2)
    sinh = direct(np.sinh)
    cosh = direct(np.cosh)
    tanh = direct(np.tanh)
    arcsinh = direct(np.arcsinh)
    arccosh = direct(np.arccosh)
    arctanh = direct(np.arctanh)
    cbrt = direct(np.cbrt)
    erf = staticmethod(erf)
    erfc = _op_of_function(elementary.erfc)
    erfinv = _op_of_function(elementary.erfinv)
    i0 = _op_of_function(elementary.i0)
