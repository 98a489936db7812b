"""Special functions, on NumPy."""

from collections.abc import Callable
from typing import Any

import numpy as np

from emberharmony.backend.numpy.dtypes import promotion
from emberharmony.backend.shared import special, special_integrals

_BLOCK = 4096
"""The number of elements computed at once: the intermediate results then stay in the cache."""


def _picked(mask: np.ndarray, function: Callable[..., Any], *arguments: Any) -> np.ndarray:
    """Returns the function where the mask is true, computed for these elements only, and 0 elsewhere."""
    result = np.zeros(mask.shape)
    if mask.any():
        result[mask] = function(*(np.broadcast_to(x, mask.shape)[mask] for x in arguments))
    return result


class _Namespace:
    """The namespace that the shared functions compute with."""

    picked = staticmethod(_picked)

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


_XP = _Namespace()


def _special(function: Callable[..., Any]) -> Callable[..., np.ndarray]:
    """Returns an op that computes a function of `backend.shared` in float64, block by block."""

    def called(*arguments: Any) -> np.ndarray:
        tensors = promotion.common(*arguments, inexact=True)
        promotion.refuse(tensors[0], ("complex",))
        wide = [np.ravel(x) for x in np.broadcast_arrays(*(x.astype(np.float64, copy=False) for x in tensors))]
        shape = np.broadcast_shapes(*(x.shape for x in tensors))
        result = np.empty(wide[0].shape, tensors[0].dtype)
        with np.errstate(all="ignore"):
            for start in range(0, result.size, _BLOCK):
                part = slice(start, start + _BLOCK)
                result[part] = function(_XP, *(x[part] for x in wide))
        return result.reshape(shape)

    return called


class NumpySpecialOps:
    """Holds the ops of `ops/special.py`."""

    gammaln = staticmethod(_special(special.gammaln))
    digamma = staticmethod(_special(special.digamma))
    polygamma = staticmethod(_special(special.polygamma))
    zeta = staticmethod(_special(special.zeta))
    gammainc = staticmethod(_special(special_integrals.gammainc))
    gammaincc = staticmethod(_special(special_integrals.gammaincc))
    beta = staticmethod(_special(special.beta))
    betaln = staticmethod(_special(special.betaln))
    betainc = staticmethod(_special(special_integrals.betainc))
    xlogy = staticmethod(_special(special.xlogy))
    xlog1py = staticmethod(_special(special.xlog1py))
    erfcx = staticmethod(_special(special.erfcx))
    ndtr = staticmethod(_special(special.ndtr))
    log_ndtr = staticmethod(_special(special.log_ndtr))
    ndtri = staticmethod(_special(special.ndtri))
    i0e = staticmethod(_special(special.i0e))
    i1 = staticmethod(_special(special.i1))
    i1e = staticmethod(_special(special.i1e))
