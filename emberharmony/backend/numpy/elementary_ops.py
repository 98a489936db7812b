"""Elementary and special functions, on NumPy."""

import numpy as np

from emberharmony.backend import special
from emberharmony.backend.numpy.dtypes import promotion


def _erf(x: np.ndarray) -> np.ndarray:
    return special.in_double(special.erf, np, promotion.floats(x))


def _erfc(x: np.ndarray) -> np.ndarray:
    return special.in_double(special.erfc, np, promotion.floats(x))


def _erfinv(x: np.ndarray) -> np.ndarray:
    return special.in_double(special.erfinv, np, promotion.floats(x))


class NumpyElementaryOps:
    """Holds the ops of `ops/elementary.py`."""

    exp = staticmethod(promotion.unary(np.exp))
    expm1 = staticmethod(promotion.unary(np.expm1))
    exp2 = staticmethod(promotion.unary(np.exp2))
    log = staticmethod(promotion.unary(np.log))
    log1p = staticmethod(promotion.unary(np.log1p))
    log2 = staticmethod(promotion.unary(np.log2))
    log10 = staticmethod(promotion.unary(np.log10))
    sin = staticmethod(promotion.unary(np.sin))
    cos = staticmethod(promotion.unary(np.cos))
    tan = staticmethod(promotion.unary(np.tan))
    arcsin = staticmethod(promotion.unary(np.arcsin))
    arccos = staticmethod(promotion.unary(np.arccos))
    arctan = staticmethod(promotion.unary(np.arctan))
    sinh = staticmethod(promotion.unary(np.sinh))
    cosh = staticmethod(promotion.unary(np.cosh))
    tanh = staticmethod(promotion.unary(np.tanh))
    arcsinh = staticmethod(promotion.unary(np.arcsinh))
    arccosh = staticmethod(promotion.unary(np.arccosh))
    arctanh = staticmethod(promotion.unary(np.arctanh))
    logaddexp = staticmethod(promotion.binary(np.logaddexp, inexact=True))
    erf = staticmethod(_erf)
    erfc = staticmethod(_erfc)
    erfinv = staticmethod(_erfinv)
