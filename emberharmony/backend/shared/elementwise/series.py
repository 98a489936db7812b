"""The bodies of special functions: shared series, computed with the ops of the active backend."""

from collections.abc import Callable
from typing import Any

import numpy as np

from emberharmony.backend.shared.bodies import cast_to_common, cast_to_widest, tensor_from_host
from emberharmony.backend.shared.elementwise.special_binding import compute_everywhere
from emberharmony.backend.shared.elementwise.special_integrals import DOUBLE, SINGLE
from emberharmony.core import op_globals
from emberharmony.core.dtypes import float32

_NAMES = {"abs": "absolute"}


class _Arithmetic:
    """The namespace that the series compute with: the ops of the active backend, and the operators of its tensors."""

    picks = False
    pick = staticmethod(compute_everywhere)

    def __init__(self, bound: Any, digits: Any) -> None:
        self._bound, self.digits = bound, digits

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bound, _NAMES.get(name, name))

    def where(self, mask: Any, x1: Any, x2: Any) -> Any:
        """Returns `where` of two tensors or numbers; two numbers become tensors of the widest float."""
        if not hasattr(x1, "dtype") and not hasattr(x2, "dtype"):
            x1 = cast_to_widest(tensor_from_host(np.asarray(x1), float32))
        return self._bound.where(mask, x1, x2)

    def entries(self, table: tuple[float, ...], index: Any) -> Any:
        """Returns the entries of a table of numbers at indices, which may be whole numbers of a floating dtype."""
        return self._bound.take(self._place_array(np.asarray(table), index), self._bound.cast(index, "int64"))

    def column(self, numbers: tuple[float, ...], x: Any) -> Any:
        """Returns numbers along a new axis in front of the axes of `x`."""
        return self._place_array(np.asarray(numbers).reshape(-1, *(1,) * len(x.shape)), x)

    def _place_array(self, array: np.ndarray, like: Any) -> Any:
        return tensor_from_host(array, self._bound.backend.dtype_of(like))


def evaluate_series(series: Callable[..., Any], *operands: Any) -> Any:
    """Returns a function of real numbers by its series, in the widest float that the backend has.

    Args:
        series: called with a namespace and tensors of one floating dtype.
        operands: tensors and numbers, which broadcast.

    Raises:
        DTypeError: if an operand is complex.
    """
    bound = op_globals.active()
    tensors = cast_to_common(*operands, inexact=True, refused=("complex",))
    dtype = bound.backend.dtype_of(tensors[0])
    wide_tensors = list(map(cast_to_widest, tensors))
    if len(wide_tensors) > 1:
        shape = np.broadcast_shapes(*(tuple(x.shape) for x in wide_tensors))
        wide_tensors = [bound.broadcast_to(x, shape) for x in wide_tensors]
    # NumPy warns of elements that are outside of the range of one formula, although another one computes them.
    with np.errstate(all="ignore"):
        wide_result = series(_Arithmetic(bound, DOUBLE if dtype == "float64" else SINGLE), *wide_tensors)
    return bound.cast(wide_result, dtype)
