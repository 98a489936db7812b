"""Bitwise ops, on NumPy."""

import numpy as np

from emberharmony.backend.numpy.dtypes import promotion

_INEXACT = ("float", "complex")


def _bounded(count: np.ndarray) -> np.ndarray:
    """Returns shift counts, in which those below 0 or above the width of the dtype are set to the width.

    NumPy documents no results for negative counts, and a shift by the width gives the result wanted for all of them.
    """
    width = count.dtype.itemsize * 8
    return np.where((count < 0) | (count > width), width, count).astype(count.dtype)


class NumpyBitwiseOps:
    """Holds the ops of `ops/bitwise.py`."""

    bitwise_and = staticmethod(promotion.binary(np.bitwise_and, kinds=_INEXACT))
    bitwise_or = staticmethod(promotion.binary(np.bitwise_or, kinds=_INEXACT))
    bitwise_xor = staticmethod(promotion.binary(np.bitwise_xor, kinds=_INEXACT))
    bitwise_left_shift = staticmethod(
        promotion.binary(lambda x1, x2: np.left_shift(x1, _bounded(x2)), kinds=("bool", *_INEXACT), direct=False)
    )
    bitwise_right_shift = staticmethod(
        promotion.binary(lambda x1, x2: np.right_shift(x1, _bounded(x2)), kinds=("bool", *_INEXACT), direct=False)
    )

    @staticmethod
    def bitwise_not(x: np.ndarray) -> np.ndarray:
        promotion.refuse(x, _INEXACT)
        return np.invert(x)
