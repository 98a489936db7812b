"""Tensors as such, on NumPy."""

from typing import Any

import numpy as np

from emberharmony.backend.numpy.device_ops import place
from emberharmony.backend.numpy.dtypes import DTYPES, cast
from emberharmony.backend.shared.tensor import check_view, exporter, refuse_copy
from emberharmony.core.errors import DTypeError
from emberharmony.core.tracing import Traced


def _imported(x: np.ndarray) -> np.ndarray:
    """Returns an array of the user's making in native byte order.

    Raises: DTypeError for a dtype that is none of the backend's, such as strings and objects.
    """
    native = x if x.dtype.isnative else x.astype(x.dtype.newbyteorder("="))
    try:
        DTYPES.neutral[native.dtype]
    except KeyError as error:
        raise DTypeError(f"an array of dtype {x.dtype} is no tensor; give numbers or booleans") from error
    return native


class NumpyTensorOps:
    """Holds the ops of `ops/tensor.py`."""

    cast = staticmethod(cast)
    copy = staticmethod(lambda x: x.copy())
    shape = staticmethod(lambda x: x.shape)
    ndim = staticmethod(lambda x: x.ndim)
    size = staticmethod(lambda x: x.size)

    @staticmethod
    def convert_to_tensor(x: np.ndarray, dtype: Any = None, device: Any = None, copy: bool | None = None) -> np.ndarray:
        if device is not None:
            place(device)
        if x.dtype not in DTYPES.neutral:
            x = _imported(x)
        result = x if dtype is None else cast(x, dtype)
        if copy is None or (copy is False and result is x):
            return result
        refuse_copy(copy)
        # The real part of a complex array is a view of it.
        return result.copy() if np.may_share_memory(result, x) else result

    @staticmethod
    def view(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
        check_view(x.shape, x.itemsize, dtype.itemsize)
        return (x if x.itemsize == dtype.itemsize else np.ascontiguousarray(x)).view(dtype)

    @staticmethod
    def from_dlpack(x: Any, device: Any = None, copy: bool | None = None) -> np.ndarray:
        place(device)
        array = np.from_dlpack(exporter(x), copy=copy)
        DTYPES.neutral[array.dtype]
        return array

    @staticmethod
    def to_numpy(x: np.ndarray) -> np.ndarray:
        return x

    @staticmethod
    def is_tensor(x: Any) -> bool:
        return isinstance(x, (np.ndarray, Traced))

    @staticmethod
    def eval(*trees: Any) -> None:
        return None
