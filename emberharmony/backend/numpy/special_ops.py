"""Special functions, on NumPy."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from emberharmony.backend.numpy import special_single
from emberharmony.backend.numpy.dtypes import promotion
from emberharmony.backend.numpy.elementary_ops import FEW, mapped
from emberharmony.backend.numpy.special_space import DOUBLE, SINGLE
from emberharmony.backend.shared import special, special_integrals
from emberharmony.core.dispatch import fast

_BLOCK = 8192
"""The number of elements computed at once: the intermediate results then stay in the cache."""
_Function = Callable[..., Any]


def _computed(function: _Function, usual: _Function | None, tensors: Sequence[np.ndarray]) -> np.ndarray:
    """Returns a function of `backend.shared` of tensors of one shape and dtype, computed in float64, block by block.

    If all elements of a block are usual, `usual` computes them for a result of less than 64 bits.
    """
    result = np.empty(tensors[0].shape, tensors[0].dtype)
    double = result.dtype == np.float64
    xp, flat, found = DOUBLE if double else SINGLE, [x.reshape(-1) for x in tensors], result.reshape(-1)
    with np.errstate(all="ignore"):
        for start in range(0, result.size, _BLOCK):
            part = slice(start, start + _BLOCK)
            block = [x[part].astype(np.float64, copy=False) for x in flat]
            quick = None if usual is None or double else usual(*block)
            found[part] = function(xp, *block) if quick is None else quick
    return result


def _quick_gammaln(x: np.ndarray) -> np.ndarray:
    if x.size <= FEW:
        try:
            return mapped(math.lgamma, x)
        except ValueError:  # a pole
            pass
    return _computed(special.gammaln, special_single.gammaln, [x])


_ONE = "{0}.dtype is native_float32"
_TWO = f"{_ONE} and {{1}}.__class__ is native_type and {{1}}.dtype is native_float32 and {{0}}.shape == {{1}}.shape"
_THREE = f"{_TWO} and {{2}}.__class__ is native_type and {{2}}.dtype is native_float32 and {{0}}.shape == {{2}}.shape"


def _special(
    function: _Function, usual: _Function | None = None, plain: str = _ONE, quick: _Function | None = None
) -> Any:
    """Returns an op that computes a function of `backend.shared` of tensors and numbers.

    Args:
        function: takes a namespace and tensors of float64.
        usual: the function of `special_single`.
        plain: the condition under which the tensors have one shape, and their dtype is float32.
        quick: what then runs, by default `function` and `usual`.
    """

    def shared(*tensors: np.ndarray) -> np.ndarray:
        return _computed(function, usual, tensors)

    @fast(quick or shared, plain)
    def called(*arguments: Any) -> np.ndarray:
        tensors = promotion.common(*arguments, inexact=True)
        promotion.refuse(tensors[0], ("complex",))
        return _computed(function, usual, np.broadcast_arrays(*tensors))

    return staticmethod(called)


class NumpySpecialOps:
    """Holds the ops of `ops/special.py`."""

    gammaln = _special(special.gammaln, special_single.gammaln, quick=_quick_gammaln)
    digamma = _special(special.digamma, special_single.digamma)
    polygamma = _special(special.polygamma, None, _TWO)
    zeta = _special(special.zeta, None, _TWO)
    gammainc = _special(special_integrals.gammainc, special_single.gammainc, _TWO)
    gammaincc = _special(special_integrals.gammaincc, special_single.gammaincc, _TWO)
    beta = _special(special.beta, special_single.beta, _TWO)
    betaln = _special(special.betaln, special_single.betaln, _TWO)
    betainc = _special(special_integrals.betainc, special_single.betainc, _THREE)
    xlogy = _special(special.xlogy, None, _TWO)
    xlog1py = _special(special.xlog1py, None, _TWO)
    erfcx = _special(special.erfcx)
    ndtr = _special(special.ndtr)
    log_ndtr = _special(special.log_ndtr)
    ndtri = _special(special.ndtri)
    i0e = _special(special.i0e)
    i1 = _special(special.i1)
    i1e = _special(special.i1e)
