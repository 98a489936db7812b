"""Elementwise arithmetic, on NumPy."""

import numpy as np

from emberharmony.backend.numpy.dtypes import NUMBERS, ORDERED, promotion
from emberharmony.core.dispatch import fast

_BOOL, _COMPLEX = ("bool",), ("complex",)
_UNORDERED = ("bool", "complex")
_INEXACT = ("bool", "float", "complex")
_multiply = promotion.binary(np.multiply)


def _divide_no_nan(x1: np.ndarray, x2: np.ndarray) -> np.ndarray:
    zero = x2 == 0
    return np.where(zero, 0, x1 / np.where(zero, 1, x2)).astype(x1.dtype, copy=False)


def _power(x1: np.ndarray, x2: np.ndarray) -> np.ndarray:
    if x1.dtype.kind != "i" or not (x2 < 0).any():
        return np.power(x1, x2)
    # NumPy raises for negative powers of integers. The power of 1 and -1 is an integer, that of others truncates to 0.
    sign = np.where(x2 % 2 == 0, 1, x1)
    return np.where(x2 < 0, np.where(np.abs(x1) == 1, sign, 0), np.power(x1, np.maximum(x2, 0))).astype(x1.dtype)


@fast(np.square, "{0}.dtype.kind != 'b'")
def _square(x: np.ndarray) -> np.ndarray:
    return _multiply(x, x)


class NumpyMathOps:
    """Holds the ops of `ops/math.py`."""

    add = staticmethod(promotion.binary(np.add))
    subtract = staticmethod(promotion.binary(np.subtract, kinds=_BOOL))
    multiply = staticmethod(_multiply)
    divide = staticmethod(promotion.binary(np.divide, inexact=True))
    divide_no_nan = staticmethod(promotion.binary(_divide_no_nan, inexact=True, direct=False))
    floor_divide = staticmethod(promotion.binary(np.floor_divide, kinds=_UNORDERED, guard=NUMBERS))
    mod = staticmethod(promotion.binary(np.mod, kinds=_UNORDERED, guard=NUMBERS))
    fmod = staticmethod(promotion.binary(np.fmod, kinds=_UNORDERED, guard=NUMBERS))
    power = staticmethod(promotion.binary(_power, kinds=_BOOL, fast_native=np.power, guard="{0}.dtype.kind in 'fc'"))
    hypot = staticmethod(promotion.binary(np.hypot, inexact=True))
    maximum = staticmethod(promotion.binary(np.maximum, kinds=_COMPLEX, guard=ORDERED))
    minimum = staticmethod(promotion.binary(np.minimum, kinds=_COMPLEX, guard=ORDERED))
    fmax = staticmethod(promotion.binary(np.fmax, kinds=_COMPLEX, guard=ORDERED))
    fmin = staticmethod(promotion.binary(np.fmin, kinds=_COMPLEX, guard=ORDERED))
    heaviside = staticmethod(promotion.binary(np.heaviside, inexact=True))
    gcd = staticmethod(promotion.binary(np.gcd, kinds=_INEXACT, direct=False))
    negative = staticmethod(np.negative)
    square = staticmethod(_square)
    reciprocal = staticmethod(promotion.unary(np.reciprocal))
    sqrt = staticmethod(promotion.unary(np.sqrt))

    @staticmethod
    @fast(np.absolute, "", promotion.element)
    def absolute(x: np.ndarray) -> np.ndarray:
        return np.absolute(x)

    @staticmethod
    def positive(x: np.ndarray) -> np.ndarray:
        return x

    @staticmethod
    def rsqrt(x: np.ndarray) -> np.ndarray:
        return 1 / np.sqrt(promotion.floats(x))

    @staticmethod
    def sign(x: np.ndarray) -> np.ndarray:
        return x if x.dtype.kind == "b" else np.sign(x)
