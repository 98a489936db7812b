"""Activations, on NumPy: the steps of the composites, computed in place in one array.

To allocate a large array costs more than to compute with it, because the system provides new memory page by page.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from emberharmony.backend.numpy.arrays.indexing_ops import where_without_branches
from emberharmony.backend.numpy.elementwise.elementary_ops import FEW, erf, map_numbers
from emberharmony.backend.numpy.folding import fold
from emberharmony.core.dispatch import fast

_FLOATS = "({0}.dtype is native_float32 or {0}.dtype is native_float64)"
_PLAIN = f"{_FLOATS} and {{0}}.ndim"
"""The condition under which dispatch calls the functions below; the composites take half precision and integers.

They also take tensors without axes, for which NumPy returns scalars, which cannot be changed in place.
"""

_FEW = 4096
"""Up to this number of elements, a look at the values takes longer than the steps that it saves."""
_LEAST = -80.0
"""The exponentials of numbers above are finite, and so are their inverses."""
_ONE, _HALF, _ROOT, _MOST = (
    {code: np.asarray(number, code) for code in "fd"} for number in (1.0, 0.5, -(0.5**0.5), -_LEAST)
)
"""Numbers as arrays, by the code of their dtype: with few elements, a number of Python takes twice as long."""
_HIGHEST, _SMALLEST = 32.0, 1e-6
"""With elements below the first and sums of powers above the second, `softmax` need not subtract the maxima."""


def _exp_of_minus_abs(x: np.ndarray) -> np.ndarray:
    """Returns `exp(-abs(x))`, which cannot overflow."""
    exponential = np.absolute(x)
    np.negative(exponential, exponential)
    return np.exp(exponential, exponential)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    dtype_code = x.dtype.char
    if x.size > _FEW and np.minimum.reduce(x, None) > _LEAST:
        sigmoid = np.negative(x)
        np.exp(sigmoid, sigmoid)
        sigmoid += _ONE[dtype_code]
        return np.reciprocal(sigmoid, sigmoid)
    # The sigmoid of numbers above this bound is 1.
    sigmoid = np.minimum(x, _MOST[dtype_code])
    np.exp(sigmoid, sigmoid)
    sigmoid /= sigmoid + _ONE[dtype_code]
    return sigmoid


def _silu(x: np.ndarray) -> np.ndarray:
    silu = _sigmoid(x)
    silu *= x
    return silu


def _softplus(x: np.ndarray) -> np.ndarray:
    if x.size <= FEW:
        return np.logaddexp(x, 0.0)
    softplus = _exp_of_minus_abs(x)
    np.log1p(softplus, softplus)
    softplus += np.maximum(x, 0.0)
    return softplus


def _log_sigmoid(x: np.ndarray) -> np.ndarray:
    log_sigmoid = _exp_of_minus_abs(x)
    np.log1p(log_sigmoid, log_sigmoid)
    return np.subtract(np.minimum(x, 0.0), log_sigmoid, log_sigmoid)


def _gelu(x: np.ndarray, approximate: bool) -> np.ndarray:
    if not approximate:
        if x.size <= FEW and x.dtype.char == "f":
            gelu = map_numbers(math.erfc, x * _ROOT["f"])
            gelu *= _HALF["f"]
            gelu *= x
            return gelu
        gelu = erf(x * 0.7071067811865476)
        gelu += 1.0
        gelu *= x
        gelu *= 0.5
        return gelu
    gelu = x * x
    gelu *= x
    gelu *= 0.044715
    gelu += x
    gelu *= 0.7978845608028654  # sqrt(2 / pi)
    np.tanh(gelu, gelu)
    gelu += 1.0
    gelu *= 0.5 * x
    return gelu


def _elu(x: np.ndarray, alpha: float) -> np.ndarray:
    negative_part = np.minimum(x, 0.0)
    np.expm1(negative_part, negative_part)
    if alpha != 1.0:
        negative_part *= alpha
    return where_without_branches(x > 0, x, negative_part)


def _leaky_relu(x: np.ndarray, slope: float) -> np.ndarray:
    # For slopes up to 1, leaky_relu is the larger one of `x` and `x * slope`.
    scaled_x = x * np.array(slope, x.dtype)
    return np.maximum(x, scaled_x, out=scaled_x) if 0 < slope <= 1 else where_without_branches(x > 0, x, scaled_x)


def _is_floating(x: np.ndarray) -> bool:
    """Returns whether a tensor is float32 or float64, which the functions in place take; composites take others."""
    return x.dtype.char in "fd" and x.size > 0 and x.ndim > 0


def _subtract_maximum(x: np.ndarray, axis: Any) -> np.ndarray:
    """Returns `x` less its maximum over axes, as a new array."""
    return np.subtract(x, fold(np.maximum, x, axis, True))


class NumpyActivationOps:
    """Holds the ops of `ops/neural/activation.py`.

    Each fills one array, where a body makes an array at each step: for few elements the bodies take up to 4.6 times as
    long, for 100,000 up to 3.9 times.
    """

    composed: Callable[[str], Callable[..., np.ndarray]]

    # With `out=...` NumPy returns an array without axes, not a scalar.
    @fast(np.maximum, _FLOATS, arguments="{0}, 0, out=...", whole=True)
    def relu(self, x: np.ndarray) -> np.ndarray:
        return self.composed("relu")(x)

    @fast(_sigmoid, _PLAIN)
    def sigmoid(self, x: np.ndarray) -> np.ndarray:
        return self.composed("sigmoid")(x)

    @fast(_silu, _PLAIN)
    def silu(self, x: np.ndarray) -> np.ndarray:
        return self.composed("silu")(x)

    @fast(_softplus, _PLAIN)
    def softplus(self, x: np.ndarray) -> np.ndarray:
        return self.composed("softplus")(x)

    @fast(_log_sigmoid, _PLAIN)
    def log_sigmoid(self, x: np.ndarray) -> np.ndarray:
        return self.composed("log_sigmoid")(x)

    @fast(_gelu, f"{_PLAIN} and {{1}}.__class__ is bool")
    def gelu(self, x: np.ndarray, approximate: bool = True) -> np.ndarray:
        return self.composed("gelu")(x, approximate)

    @fast(_elu, _PLAIN)
    def elu(self, x: np.ndarray, alpha: float = 1.0) -> np.ndarray:
        return self.composed("elu")(x, alpha)

    @fast(_leaky_relu, f"{_PLAIN} and ({{1}}.__class__ is float or {{1}}.__class__ is int)")
    def leaky_relu(self, x: np.ndarray, negative_slope: float = 0.2) -> np.ndarray:
        return self.composed("leaky_relu")(x, negative_slope)

    def softmax(self, x: np.ndarray, axis: Any = -1) -> np.ndarray:
        if not _is_floating(x):
            return self.composed("softmax")(x, axis)
        if x.size > _FEW and np.maximum.reduce(x, None) < _HIGHEST:
            # Do not subtract the maxima of rows, because those of many short rows take longer than all other steps.
            probabilities = np.exp(x)
            exponential_sums = fold(np.add, probabilities, axis, True)
            if np.minimum.reduce(exponential_sums, None) > _SMALLEST:
                probabilities /= exponential_sums
                return probabilities
        probabilities = _subtract_maximum(x, axis)
        np.exp(probabilities, probabilities)
        probabilities /= fold(np.add, probabilities, axis, True)
        return probabilities

    def log_softmax(self, x: np.ndarray, axis: Any = -1) -> np.ndarray:
        if not _is_floating(x):
            return self.composed("log_softmax")(x, axis)
        log_probabilities = _subtract_maximum(x, axis)
        exponential_sums = fold(np.add, np.exp(log_probabilities), axis, True)
        log_probabilities -= np.log(exponential_sums, exponential_sums)
        return log_probabilities
