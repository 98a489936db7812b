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
def _functions_and_namespaces(name: str) -> tuple[_Function, _Function | None, Any, Any]:
    """Returns a function of `backend.shared`, its float32 version or None, and the namespaces for 64 and 32 bits.

    They are imported on first use, because few programs call them: they take a seventh of the import of the backend.
    """
    from emberharmony.backend.numpy.elementwise import special_single, special_space
    from emberharmony.backend.shared.elementwise import special_binding

    single_function = getattr(special_single, name, None)
    return special_binding.shared_function_of(name), single_function, special_space.DOUBLE, special_space.SINGLE


def _compute_by_blocks(name: str, tensors: Sequence[np.ndarray]) -> np.ndarray:
    """Returns the result of a function of `backend.shared`, computed in float64 block by block.

    If all elements of a block are usual, `special_single` computes them for a result of less than 64 bits.
    """
    function, single_function, double_namespace, single_namespace = _functions_and_namespaces(name)
    shape, dtype = tensors[0].shape, tensors[0].dtype
    is_double = dtype.char == "d"
    xp, flat_tensors = double_namespace if is_double else single_namespace, [x.reshape(-1) for x in tensors]

    def compute_block(vectors: Sequence[np.ndarray]) -> np.ndarray:
        block_tensors = [x.astype(np.float64, copy=False) for x in vectors]
        single_result = None if single_function is None or is_double else single_function(*block_tensors)
        return function(xp, *block_tensors) if single_result is None else single_result

    element_count = flat_tensors[0].size
    with np.errstate(all="ignore"):
        if 0 < element_count <= _BLOCK:
            return compute_block(flat_tensors).astype(dtype).reshape(shape)
        flat_result = np.empty(element_count, dtype)
        for start in range(0, element_count, _BLOCK):
            block_slice = slice(start, start + _BLOCK)
            flat_result[block_slice] = compute_block([x[block_slice] for x in flat_tensors])
    return flat_result.reshape(shape)


def _quick_gammaln(x: np.ndarray) -> np.ndarray:
    if x.size <= FEW:
        try:
            return map_numbers(math.lgamma, x)
        except ValueError:  # a pole
            pass
    return _compute_by_blocks("gammaln", [x])


_ONE = "{0}.dtype is native_float32"
_TWO = f"{_ONE} and {{1}}.__class__ is native_type and {{1}}.dtype is native_float32 and {{0}}.shape == {{1}}.shape"
_THREE = f"{_TWO} and {{2}}.__class__ is native_type and {{2}}.dtype is native_float32 and {{0}}.shape == {{2}}.shape"


def _op_of_function(name: str, plain_dtype: str = _ONE, single_function: _Function | None = None) -> Any:
    """Returns an op that computes a function of `backend.shared` of tensors and numbers.

    Args:
        name: the name of the function, which takes a namespace and tensors of float64.
        plain_dtype: the condition under which the tensors have one shape, and their dtype is float32.
        single_function: what then runs, by default the function.
    """

    def call_shared(*tensors: np.ndarray) -> np.ndarray:
        return _compute_by_blocks(name, tensors)

    @fast(single_function or call_shared, plain_dtype)
    def call_promoted(*arguments: Any) -> np.ndarray:
        tensors = promotion.common(*arguments, inexact=True)
        promotion.refuse(tensors[0], ("complex",))
        return _compute_by_blocks(name, np.broadcast_arrays(*tensors))

    return staticmethod(call_promoted)


class NumpySpecialOps:
    """Holds the ops of `ops/elementwise/special.py` and `ops/elementwise/transcendental.py`.

    Each calls one function of arrays, in float64: the bodies take 4 to 290 times as long, for few elements, and up to
    13 times for 100,000.
    """

    @staticmethod
    def _inner_special(name: str, *tensors: np.ndarray) -> np.ndarray:
        """Returns the value of one of the derivatives in `special_derivatives.INNER`."""
        return _compute_by_blocks(name, np.broadcast_arrays(*tensors))

    gammaln = _op_of_function("gammaln", single_function=_quick_gammaln)
    digamma = _op_of_function("digamma")
    polygamma = _op_of_function("polygamma", _TWO)
    zeta = _op_of_function("zeta", _TWO)
    gammainc = _op_of_function("gammainc", _TWO)
    gammaincc = _op_of_function("gammaincc", _TWO)
    beta = _op_of_function("beta", _TWO)
    betaln = _op_of_function("betaln", _TWO)
    betainc = _op_of_function("betainc", _THREE)
    xlogy = _op_of_function("xlogy", _TWO)
    xlog1py = _op_of_function("xlog1py", _TWO)
    erfcx = _op_of_function("erfcx")
    ndtr = _op_of_function("ndtr")
    log_ndtr = _op_of_function("log_ndtr")
    ndtri = _op_of_function("ndtri")
    i0e = _op_of_function("i0e")
    i1 = _op_of_function("i1")
    i1e = _op_of_function("i1e")
    gamma = _op_of_function("gamma")
    expi = _op_of_function("expi")
    exp1 = _op_of_function("exp1")
    lambertw = _op_of_function("lambertw", _TWO)
    rel_entr = _op_of_function("rel_entr", _TWO)
    kl_div = _op_of_function("kl_div", _TWO)
    j0 = _op_of_function("j0")
    j1 = _op_of_function("j1")
    iv = _op_of_function("iv", _TWO)
    kv = _op_of_function("kv", _TWO)
    stdtr = _op_of_function("stdtr", _TWO)
    stdtrit = _op_of_function("stdtrit", _TWO)
    gammaincinv = _op_of_function("gammaincinv", _TWO)
    betaincinv = _op_of_function("betaincinv", _THREE)
