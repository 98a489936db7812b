"""Comparisons and logic, on NumPy."""

import numpy as np

from emberharmony.backend.numpy.dtypes import EQUATED, ORDERED, promotion

_COMPLEX = ("complex",)


def _close(
    x1: np.ndarray, x2: np.ndarray, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> np.ndarray:
    a, b = promotion.common(x1, x2)
    if a.dtype.kind in "biu":
        a, b = a.astype(np.float64), b.astype(np.float64)
    return np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)


class NumpyComparisonOps:
    """Holds the ops of `ops/comparison.py`."""

    equal = staticmethod(promotion.binary(np.equal, guard=EQUATED))
    not_equal = staticmethod(promotion.binary(np.not_equal, guard=EQUATED))
    less = staticmethod(promotion.binary(np.less, kinds=_COMPLEX, guard=ORDERED))
    less_equal = staticmethod(promotion.binary(np.less_equal, kinds=_COMPLEX, guard=ORDERED))
    greater = staticmethod(promotion.binary(np.greater, kinds=_COMPLEX, guard=ORDERED))
    greater_equal = staticmethod(promotion.binary(np.greater_equal, kinds=_COMPLEX, guard=ORDERED))
    logical_and = staticmethod(promotion.binary(np.logical_and))
    logical_or = staticmethod(promotion.binary(np.logical_or))
    logical_xor = staticmethod(promotion.binary(np.logical_xor))
    logical_not = staticmethod(np.logical_not)
    isnan = staticmethod(np.isnan)
    isinf = staticmethod(np.isinf)
    isfinite = staticmethod(np.isfinite)
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
