"""Bitwise ops, on NumPy."""

import numpy as np

from emberharmony.backend.promote import direct


def _clip_counts(shift_counts: np.ndarray) -> np.ndarray:
    """Returns shift counts, in which those below 0 or above the width of the dtype are set to the width.

    NumPy documents no results for negative counts, and a shift by the width gives the result wanted for all of them.
    """
    width = shift_counts.dtype.itemsize * 8
    return np.where((shift_counts < 0) | (shift_counts > width), width, shift_counts).astype(shift_counts.dtype)


class NumpyBitwiseOps:
    """Holds the ops of `ops/logic/bitwise.py`."""

    bitwise_and = direct(np.bitwise_and)
    bitwise_or = direct(np.bitwise_or)
    bitwise_xor = direct(np.bitwise_xor)
    bitwise_left_shift = staticmethod(lambda x, y: np.left_shift(x, _clip_counts(y)))
    bitwise_right_shift = staticmethod(lambda x, y: np.right_shift(x, _clip_counts(y)))
    bitwise_not = staticmethod(np.invert)
