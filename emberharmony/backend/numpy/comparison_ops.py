"""Comparisons and logic, on NumPy."""

import numpy as np

from emberharmony.backend.numpy.dtypes import EQUATED, promotion
from emberharmony.backend.promote import direct


def _close(
    x1: np.ndarray, x2: np.ndarray, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> np.ndarray:
    a, b = promotion.common(x1, x2)
    if a.dtype.kind in "biu":
        a, b = a.astype(np.float64), b.astype(np.float64)
    return np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)


class NumpyComparisonOps:
    """Holds the ops of `ops/comparison.py`."""

    equal = direct(np.equal, guard=EQUATED)
    not_equal = direct(np.not_equal, guard=EQUATED)
    less = direct(np.less)
    less_equal = direct(np.less_equal)
    greater = direct(np.greater)
    greater_equal = direct(np.greater_equal)
    logical_and = direct(np.logical_and)
    logical_or = direct(np.logical_or)
    logical_xor = direct(np.logical_xor)
    logical_not = direct(np.logical_not)
    isnan = direct(np.isnan)
    isinf = direct(np.isinf)
    isfinite = direct(np.isfinite)
    isclose = staticmethod(_close)

    @staticmethod
    def allclose(
        x1: np.ndarray, x2: np.ndarray, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
    ) -> np.ndarray:
        return np.asarray(_close(x1, x2, rtol, atol, equal_nan).all())

    @staticmethod
    def array_equal(x1: np.ndarray, x2: np.ndarray, equal_nan: bool = False) -> np.ndarray:
        a, b = promotion.common(x1, x2)
        return np.asarray(np.array_equal(a, b, equal_nan=equal_nan))
