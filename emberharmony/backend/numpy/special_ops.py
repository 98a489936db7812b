"""Special functions, on NumPy."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from emberharmony.backend.numpy.dtypes import promotion
from emberharmony.backend.shared import special, special_integrals

_BLOCK = 4096
"""The number of elements computed at once: the intermediate results then stay in the cache."""


def _picked(mask: np.ndarray, function: Callable[..., Any], *arguments: Any) -> np.ndarray:
    """Returns the function where the mask is true, computed for these elements only, and 0 elsewhere."""
    places = np.flatnonzero(mask)
    if places.size == mask.size:
        return np.asarray(function(*arguments))
    result = np.zeros(mask.shape)
    if places.size:
        result[places] = function(*(x[places] for x in arguments))
    return result


class _Namespace:
    """The namespace that the shared functions compute with, on vectors of one length."""

    picks = True
    picked = staticmethod(_picked)

    def __init__(self, digits: special_integrals.Digits) -> None:
        self.digits = digits

    @staticmethod
    def entries(table: tuple[float, ...], index: np.ndarray) -> np.ndarray:
        """Returns the entries of a table at whole numbers in float64."""
        return np.asarray(table)[index.astype(np.int64)]

    @staticmethod
    def column(numbers: tuple[float, ...], x: np.ndarray) -> np.ndarray:
        """Returns numbers along an axis in front of those of `x`."""
        return np.reshape(numbers, (-1, *(1,) * x.ndim))

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


_DOUBLE, _SINGLE = _Namespace(special_integrals.DOUBLE), _Namespace(special_integrals.SINGLE)


def _special(function: Callable[..., Any], *arguments: Any) -> np.ndarray:
    """Returns a function of `backend.shared` of tensors and numbers, computed in float64, block by block."""
    tensors = promotion.common(*arguments, inexact=True)
    promotion.refuse(tensors[0], ("complex",))
    wide = [np.ravel(x) for x in np.broadcast_arrays(*(x.astype(np.float64, copy=False) for x in tensors))]
    shape = np.broadcast_shapes(*(x.shape for x in tensors))
    result = np.empty(wide[0].shape, tensors[0].dtype)
    xp = _DOUBLE if result.dtype == np.float64 else _SINGLE
    with np.errstate(all="ignore"):
        for start in range(0, result.size, _BLOCK):
            part = slice(start, start + _BLOCK)
            result[part] = function(xp, *(x[part] for x in wide))
    return result.reshape(shape)


class NumpySpecialOps:
    """Holds the ops of `ops/special.py`."""

    gammaln = staticmethod(partial(_special, special.gammaln))
    digamma = staticmethod(partial(_special, special.digamma))
    polygamma = staticmethod(partial(_special, special.polygamma))
    zeta = staticmethod(partial(_special, special.zeta))
    gammainc = staticmethod(partial(_special, special_integrals.gammainc))
    gammaincc = staticmethod(partial(_special, special_integrals.gammaincc))
    beta = staticmethod(partial(_special, special.beta))
    betaln = staticmethod(partial(_special, special.betaln))
    betainc = staticmethod(partial(_special, special_integrals.betainc))
    xlogy = staticmethod(partial(_special, special.xlogy))
    xlog1py = staticmethod(partial(_special, special.xlog1py))
    erfcx = staticmethod(partial(_special, special.erfcx))
    ndtr = staticmethod(partial(_special, special.ndtr))
    log_ndtr = staticmethod(partial(_special, special.log_ndtr))
    ndtri = staticmethod(partial(_special, special.ndtri))
    i0e = staticmethod(partial(_special, special.i0e))
    i1 = staticmethod(partial(_special, special.i1))
    i1e = staticmethod(partial(_special, special.i1e))
