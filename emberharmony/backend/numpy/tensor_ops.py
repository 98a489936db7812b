"""Conversion, copies, views and properties of tensors, on NumPy."""

from typing import Any

import numpy as np

from emberharmony.backend.host import to_host
from emberharmony.backend.numpy.device_ops import place
from emberharmony.backend.numpy.dtypes import DTYPES, cast
from emberharmony.backend.shared.tensor import check_view, exporter, refuse_copy
from emberharmony.core.options import dense
from emberharmony.core.tracing import TensorProxy


class NumpyTensorOps:
    """Holds the ops of `ops/tensor.py`."""

    cast = staticmethod(cast)
    copy = staticmethod(lambda x: x.copy())
    shape = staticmethod(lambda x: x.shape)
    ndim = staticmethod(lambda x: x.ndim)
    size = staticmethod(lambda x: x.size)

    @staticmethod
    def convert_to_tensor(
        x: np.ndarray,
        dtype: Any = None,
        sparse: bool | None = None,
        ragged: bool | None = None,
        device: Any = None,
        copy: bool | None = None,
    ) -> np.ndarray:
        if sparse or ragged:
            dense("sparse" if sparse else "ragged", True)
        if device is not None:
            place(device)
        if x.dtype not in DTYPES.neutral:
            host = to_host(x)
            DTYPES.neutral[host.dtype]  # raises for a dtype that the backend does not have
            if host is not x:
                refuse_copy(copy)
            x = host
        result = x if dtype is None else cast(x, dtype)
        if copy is None or (copy is False and result is x):
            return result
        refuse_copy(copy)
        # A cast from complex to real returns a view of the real part, which must be copied too.
        return result.copy() if np.may_share_memory(result, x) else result

    @staticmethod
    def view(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
        check_view(x.shape, x.itemsize, dtype.itemsize)
        native = to_host(x)
        return (native if x.itemsize == dtype.itemsize else np.ascontiguousarray(native)).view(dtype)

    @staticmethod
    def from_dlpack(x: Any, device: Any = None, copy: bool | None = None) -> np.ndarray:
        place(device)
        array = np.from_dlpack(exporter(x, copy), copy=copy)
        DTYPES.neutral[array.dtype]  # raises for a dtype that the backend does not have
        return array

    @staticmethod
    def to_numpy(x: np.ndarray) -> np.ndarray:
        return x

    @staticmethod
    def is_tensor(x: Any) -> bool:
        return isinstance(x, (np.ndarray, TensorProxy))

    @staticmethod
    def eval(*trees: Any) -> None:
        return None
