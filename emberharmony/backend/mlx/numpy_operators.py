"""Operators of NumPy with an array of MLX that a transform differentiates, such as `array + x`.

NumPy computes an operator with an array on its left, and MLX 0.32 lets it read the values of a traced array. The result
would be a constant, whose gradient is zero without an error.
"""

from typing import TYPE_CHECKING, Any

import mlx.core as mx

from emberharmony.backend.mlx.tracing import is_traced
from emberharmony.core import op_globals, selection
from emberharmony.core.deferred import Deferred
from emberharmony.core.stand_ins.shared_methods import op_of_traced

if TYPE_CHECKING:
    import numpy as np
else:
    np = Deferred("numpy")


def _apply_ufunc(array: mx.array, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
    """Returns what NumPy computes from the values of arrays, or the op of an operator on traced ones.

    Raises:
        TracedTensorError: if a traced array is given to a function that is no operator, or to an operator in place.
    """
    if op_globals.untransformed or not any(isinstance(x, mx.array) and is_traced(x) for x in inputs):
        return getattr(ufunc, method)(*(np.asarray(x) if isinstance(x, mx.array) else x for x in inputs), **options)
    return getattr(selection.active(), op_of_traced(ufunc, method, options))(*inputs)


mx.array.__array_ufunc__ = _apply_ufunc  # type: ignore[attr-defined]
