"""Special functions, on NumPy."""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from emberharmony.backend.numpy.dtypes import promotion
from emberharmony.backend.numpy.elementwise.elementary_ops import FEW, map_numbers
from emberharmony.core.dispatch import fast

_BLOCK = 8192
"""The number of elements computed at once: the intermediate results then stay in the cache."""
_Function = Callable[..., Any]


@functools.cache
def _functions(name: str) -> tuple[_Function, _Function | None, Any, Any]:
    """Returns a function of `backend.shared`, that of `special_single` or None, and the namespaces of 64 and 32 bits.

    They are imported on first use, because few programs call them: they take a seventh of the import of the backend.
    """
    from emberharmony.backend.numpy.elementwise import special_single, special_space
    from emberharmony.backend.shared.elementwise import special_binding

    single_function = getattr(special_single, name, None)
    return special_binding.function(name), single_function, special_space.DOUBLE, special_space.SINGLE


def _compute(name: str, tensors: Sequence[np.ndarray]) -> np.ndarray:
    """Returns a function of `backend.shared` of tensors of one shape and dtype, computed in float64, block by block.

    If all elements of a block are usual, `special_single` computes them for a result of less than 64 bits.
    """
    function, single_function, of_double, of_single = _functions(name)
    shape, dtype = tensors[0].shape, tensors[0].dtype
    double = dtype.char == "d"
    xp, flat = of_double if double else of_single, [x.reshape(-1) for x in tensors]

    def compute_block(vectors: Sequence[np.ndarray]) -> np.ndarray:
        block = [x.astype(np.float64, copy=False) for x in vectors]
        single_result = None if single_function is None or double else single_function(*block)
        return function(xp, *block) if single_result is None else single_result

    count = flat[0].size
    with np.errstate(all="ignore"):
        if 0 < count <= _BLOCK:
            return compute_block(flat).astype(dtype).reshape(shape)
        result = np.empty(count, dtype)
        for start in range(0, count, _BLOCK):
            part = slice(start, start + _BLOCK)
            result[part] = compute_block([x[part] for x in flat])
    return result.reshape(shape)


def _quick_gammaln(x: np.ndarray) -> np.ndarray:
    if x.size <= FEW:
        try:
            return map_numbers(math.lgamma, x)
        except ValueError:  # a pole
            pass
    return _compute("gammaln", [x])


_ONE = "{0}.dtype is native_float32"
_TWO = f"{_ONE} and {{1}}.__class__ is native_type and {{1}}.dtype is native_float32 and {{0}}.shape == {{1}}.shape"
_THREE = f"{_TWO} and {{2}}.__class__ is native_type and {{2}}.dtype is native_float32 and {{0}}.shape == {{2}}.shape"


def _special(name: str, plain_dtype: str = _ONE, single_function: _Function | None = None) -> Any:
    """Returns an op that computes a function of `backend.shared` of tensors and numbers.

    Args:
        name: the name of the function, which takes a namespace and tensors of float64.
        plain: the condition under which the tensors have one shape, and their dtype is float32.
        quick: what then runs, by default the function.
    """

    def call_shared(*tensors: np.ndarray) -> np.ndarray:
        return _compute(name, tensors)

    @fast(single_function or call_shared, plain_dtype)
    def call_promoted(*arguments: Any) -> np.ndarray:
        tensors = promotion.common(*arguments, inexact=True)
        promotion.refuse(tensors[0], ("complex",))
        return _compute(name, np.broadcast_arrays(*tensors))

    return staticmethod(call_promoted)


class NumpySpecialOps:
    """Holds the ops of `ops/elementwise/special.py` and `ops/elementwise/transcendental.py`.

    Each calls one function of arrays, in float64: the bodies take 4 to 290 times as long, for few elements, and up to
    13 times for 100,000.
    """

    @staticmethod
    def _inner_special(name: str, *tensors: np.ndarray) -> np.ndarray:
        """Returns a derivative of `special_derivatives.INNER`."""
        return _compute(name, np.broadcast_arrays(*tensors))

    gammaln = _special("gammaln", single_function=_quick_gammaln)
    digamma = _special("digamma")
    polygamma = _special("polygamma", _TWO)
    zeta = _special("zeta", _TWO)
    gammainc = _special("gammainc", _TWO)
    gammaincc = _special("gammaincc", _TWO)
    beta = _special("beta", _TWO)
    betaln = _special("betaln", _TWO)
    betainc = _special("betainc", _THREE)
    xlogy = _special("xlogy", _TWO)
    xlog1py = _special("xlog1py", _TWO)
    erfcx = _special("erfcx")
    ndtr = _special("ndtr")
    log_ndtr = _special("log_ndtr")
    ndtri = _special("ndtri")
    i0e = _special("i0e")
    i1 = _special("i1")
    i1e = _special("i1e")
    gamma = _special("gamma")
    expi = _special("expi")
    exp1 = _special("exp1")
    lambertw = _special("lambertw", _TWO)
    rel_entr = _special("rel_entr", _TWO)
    kl_div = _special("kl_div", _TWO)
    j0 = _special("j0")
    j1 = _special("j1")
    iv = _special("iv", _TWO)
    kv = _special("kv", _TWO)
    stdtr = _special("stdtr", _TWO)
    stdtrit = _special("stdtrit", _TWO)
    gammaincinv = _special("gammaincinv", _TWO)
    betaincinv = _special("betaincinv", _THREE)
