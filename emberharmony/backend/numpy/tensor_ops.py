"""Conversion, copies, views and properties of tensors, on NumPy."""

from typing import Any

import numpy as np

from emberharmony.backend.host import numbers_to_host, to_host
from emberharmony.backend.numpy.device_ops import check_device
from emberharmony.backend.numpy.dtypes import DTYPES, cast, promotion
from emberharmony.backend.shared.tensor import check_view, dlpack_exporter, refuse_copy
from emberharmony.core.dispatch import fast
from emberharmony.core.options import refuse_sparse
from emberharmony.core.tracing import TensorProxy

_SCALARS = frozenset(dtype.type for dtype in DTYPES.natives.values() if dtype is not None)
"""The classes of the elements of arrays."""


def _new_array(x: Any, dtype: Any) -> np.ndarray:
    """Returns a new array of the elements of an array, or of a list of NumPy's scalars or of numbers.

    Raises:
        NotImplementedError: if the list holds anything else; the complete conversion takes it.
    """
    if x.__class__ is not list or (x[0].__class__ in _SCALARS and _SCALARS.issuperset(map(type, x))):
        new_array = np.array(x)
    else:
        number_array = numbers_to_host(x, None if dtype is None else DTYPES.neutral[dtype])
        if number_array is None:
            raise NotImplementedError
        new_array = number_array
    return new_array if dtype is None or dtype is new_array.dtype else cast(new_array, dtype)


class NumpyTensorOps:
    """Holds the ops of `ops/tensor.py`.

    These make tensors of numbers, lists and other objects, and the bodies take tensors; `view` would be copied by its
    body, and `copy` takes a 10th of the time.
    """

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
            refuse_sparse("sparse", sparse)
            refuse_sparse("ragged", ragged)
        if device is not None:
            check_device(device)
        if x.dtype not in DTYPES.neutral:
            host_array = to_host(x)
            DTYPES.neutral[host_array.dtype]  # raises for a dtype that the backend does not have
            refuse_copy(copy)
            x = host_array
        cast_x = x if dtype is None else cast(x, dtype)
        if copy is None or (copy is False and cast_x is x):
            return cast_x
        refuse_copy(copy)
        # A cast from complex to real returns a view of the real part, which must be copied too.
        return cast_x.copy() if np.may_share_memory(cast_x, x) else cast_x

    @staticmethod
    @fast(_new_array, promotion.inexact, "{0}.__class__ is list and {0}")
    def array(x: np.ndarray, dtype: Any = None) -> np.ndarray:
        return NumpyTensorOps.convert_to_tensor(x, dtype, copy=True)

    @staticmethod
    def view(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
        check_view(x.shape, x.itemsize, dtype.itemsize)
        array = to_host(x)
        return (array if x.itemsize == dtype.itemsize else np.ascontiguousarray(array)).view(dtype)

    @staticmethod
    def from_dlpack(x: Any, device: Any = None, copy: bool | None = None) -> np.ndarray:
        check_device(device)
        array = np.from_dlpack(dlpack_exporter(x, copy), copy=copy)
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
