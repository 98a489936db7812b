"""Functions for the bodies of ops: promotion of some arguments, wide dtypes, conversion to host arrays and back.

All work with the ops of the active backend, as the bodies do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emberharmony.core import op_globals
from emberharmony.core.deferred import Deferred
from emberharmony.core.dtypes import bfloat16
from emberharmony.core.op_code.prologue import cast_to_common as cast_to_common

if TYPE_CHECKING:
    import numpy as np
else:
    np = Deferred("numpy")


def cast_to_widest(x: Any) -> Any:
    """Returns a tensor in the widest floating or complex dtype that the backend has, to keep digits."""
    bound = op_globals.active()
    dtype_names = ("complex128", "complex64") if bound.backend.kind_of(x) == "complex" else ("float64", "float32")
    return bound.cast(x, next(name for name in dtype_names if name in bound.backend.dtypes.natives))


def to_host_array(x: Any) -> np.ndarray:
    """Returns a tensor as a host array."""
    array: np.ndarray = op_globals.active().to_numpy(x)
    return array


def tensor_like_from_host(array: np.ndarray, like: Any) -> Any:
    """Returns a host array as a tensor of the dtype of another one; it is cast on the host, where all dtypes exist."""
    return tensor_from_host(array, op_globals.active().backend.dtype_of(like))


def tensor_from_host(array: np.ndarray, dtype: Any) -> Any:
    """Returns a host array as a tensor of a neutral dtype."""
    bound = op_globals.active()
    if dtype is bfloat16:
        return bound.cast(bound.backend.from_numpy(array.astype(np.float32)), dtype)
    return bound.backend.from_numpy(array.astype(dtype.name, copy=False))
