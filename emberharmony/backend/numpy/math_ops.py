"""Elementwise arithmetic and rounding, on NumPy."""

from typing import Any

import numpy as np

from emberharmony.backend.numpy.dtypes import promotion
from emberharmony.core.dispatch import fast

_BOOL = ("bool",)
_ORDERED = ("bool", "complex")


def _power(x1: np.ndarray, x2: np.ndarray) -> np.ndarray:
    if x1.dtype.kind != "i" or not (x2 < 0).any():
        return np.power(x1, x2)
    # NumPy refuses negative integer powers: 1 and -1 have them, everything else is truncated to zero.
    sign = np.where(x2 % 2 == 0, 1, x1)
    return np.where(x2 < 0, np.where(np.abs(x1) == 1, sign, 0), np.power(x1, np.maximum(x2, 0))).astype(x1.dtype)


def _kept(native: np.ufunc) -> Any:
    """Returns a rounding op, which leaves integers and booleans as they are."""

    @fast(native, promotion.inexact)
    def rounded(x: np.ndarray) -> np.ndarray:
        return x if x.dtype.kind in "biu" else native(x)

    return rounded


class NumpyMathOps:
    """Holds the ops of `ops/math.py`."""

    add = staticmethod(promotion.binary(np.add))
    subtract = staticmethod(promotion.binary(np.subtract, kinds=_BOOL))
    multiply = staticmethod(promotion.binary(np.multiply))
    divide = staticmethod(promotion.binary(np.divide, inexact=True))
    floor_divide = staticmethod(promotion.binary(np.floor_divide, kinds=_ORDERED, guard="{0}.dtype.kind in 'fiu'"))
    mod = staticmethod(promotion.binary(np.mod, kinds=_ORDERED, guard="{0}.dtype.kind in 'fiu'"))
    fmod = staticmethod(promotion.binary(np.fmod, kinds=_ORDERED, guard="{0}.dtype.kind in 'fiu'"))
    power = staticmethod(promotion.binary(_power, kinds=_BOOL, fast_native=np.power, guard="{0}.dtype.kind in 'fc'"))
    maximum = staticmethod(promotion.binary(np.maximum))
    minimum = staticmethod(promotion.binary(np.minimum))
    hypot = staticmethod(promotion.binary(np.hypot, inexact=True))
    arctan2 = staticmethod(promotion.binary(np.arctan2, inexact=True))
    copysign = staticmethod(promotion.binary(np.copysign, inexact=True))
    negative = staticmethod(np.negative)
    positive = staticmethod(lambda x: x)
    absolute = staticmethod(np.absolute)
    square = staticmethod(np.square)
    reciprocal = staticmethod(promotion.unary(np.reciprocal))
    sqrt = staticmethod(promotion.unary(np.sqrt))
    signbit = staticmethod(np.signbit)
    floor = staticmethod(_kept(np.floor))
    ceil = staticmethod(_kept(np.ceil))
    trunc = staticmethod(_kept(np.trunc))
    conj = staticmethod(lambda x: np.conj(x) if x.dtype.kind == "c" else x)
    real = staticmethod(lambda x: x.real)
    imag = staticmethod(lambda x: x.imag if x.dtype.kind == "c" else np.zeros_like(x))

    @staticmethod
    def rsqrt(x: np.ndarray) -> np.ndarray:
        return 1 / np.sqrt(promotion.floats(x))

    @staticmethod
    def sign(x: np.ndarray) -> np.ndarray:
        return x if x.dtype.kind == "b" else np.sign(x)

    @staticmethod
    def round(x: np.ndarray, decimals: int = 0) -> np.ndarray:
        return x if x.dtype.kind == "b" or (x.dtype.kind in "iu" and decimals >= 0) else np.round(x, decimals)

    @staticmethod
    def nan_to_num(
        x: np.ndarray, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
    ) -> np.ndarray:
        return np.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)
