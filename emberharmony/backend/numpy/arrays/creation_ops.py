"""Creation of tensors, on NumPy."""

from typing import Any

import numpy as np

from emberharmony.backend.numpy.device_ops import check_device
from emberharmony.backend.numpy.dtypes import DTYPES, cast, promotion
from emberharmony.backend.shared.arrays.creation import HostMade, keep_fill_number
from emberharmony.backend.shared.arrays.shape import as_shape, clip_offset, require_matrices
from emberharmony.backend.shared.device import check_memory, memory_limit
from emberharmony.core.dtypes import default_float
from emberharmony.core.errors import ShapeError


def _dtype_or_default(dtype: np.dtype | None) -> np.dtype:
    return DTYPES[default_float()] if dtype is None else dtype


def _fill(shape: tuple[int, ...], value: np.ndarray) -> np.ndarray:
    # np.full (NumPy 2.4) accepts a value with more axes than the shape, if they have length 1, and drops them.
    return np.broadcast_to(value, shape).copy() if value.ndim else np.full(shape, value)


class NumpyCreationOps(HostMade):
    """Holds the ops of `ops/arrays/creation.py`.

    The bodies take up to 15 times as long, for few elements. They need two to five calls of ops.
    """

    @staticmethod
    def _place_array(array: np.ndarray, dtype: Any, device: Any) -> np.ndarray:
        check_device(device)
        return cast(array, dtype)

    @staticmethod
    def _integer_range(places: range, dtype: Any, device: Any) -> np.ndarray:
        check_device(device)
        return np.arange(places.start, places.stop, places.step, dtype=dtype)

    @staticmethod
    def zeros(shape: Any, dtype: Any = None, device: Any = None) -> np.ndarray:
        check_device(device)
        return np.zeros(as_shape(shape), _dtype_or_default(dtype))

    @staticmethod
    def ones(shape: Any, dtype: Any = None, device: Any = None) -> np.ndarray:
        check_device(device)
        return np.ones(as_shape(shape), _dtype_or_default(dtype))

    @staticmethod
    @keep_fill_number
    def full(shape: Any, fill_value: Any, dtype: Any = None, device: Any = None) -> np.ndarray:
        check_device(device)
        return _fill(as_shape(shape), promotion.fill_tensor(fill_value, dtype))

    @staticmethod
    def empty(shape: Any, dtype: Any = None, device: Any = None) -> np.ndarray:
        check_device(device)
        return np.empty(as_shape(shape), _dtype_or_default(dtype))

    @staticmethod
    def zeros_like(x: np.ndarray, dtype: Any = None, device: Any = None) -> np.ndarray:
        check_device(device)
        return np.zeros(x.shape, x.dtype if dtype is None else dtype)

    @staticmethod
    def ones_like(x: np.ndarray, dtype: Any = None, device: Any = None) -> np.ndarray:
        check_device(device)
        return np.ones(x.shape, x.dtype if dtype is None else dtype)

    @staticmethod
    def empty_like(x: np.ndarray, dtype: Any = None, device: Any = None) -> np.ndarray:
        check_device(device)
        return np.empty(x.shape, x.dtype if dtype is None else dtype)

    @staticmethod
    @keep_fill_number
    def full_like(x: np.ndarray, fill_value: Any, dtype: Any = None, device: Any = None) -> np.ndarray:
        check_device(device)
        return _fill(x.shape, promotion.fill_tensor(fill_value, x.dtype if dtype is None else dtype))

    @staticmethod
    def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = None, device: Any = None) -> np.ndarray:
        check_device(device)
        row_count, column_count = as_shape((N, N if M is None else M))
        return np.eye(row_count, column_count, clip_offset(k, row_count, column_count), _dtype_or_default(dtype))

    @staticmethod
    def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None, device: Any = None) -> np.ndarray:
        check_device(device)
        row_count, column_count = as_shape((N, N if M is None else M))
        matrix_dtype = _dtype_or_default(dtype)
        # np.tri (NumPy 2.4) makes an index of each row and column before it asks for the memory of the matrix.
        check_memory((row_count, column_count), matrix_dtype.itemsize, memory_limit)
        return np.tri(row_count, column_count, clip_offset(k, row_count, column_count), matrix_dtype)

    @staticmethod
    def tril(x: np.ndarray, k: int = 0) -> np.ndarray:
        return np.tril(require_matrices(x), clip_offset(k, *x.shape[-2:]))

    @staticmethod
    def triu(x: np.ndarray, k: int = 0) -> np.ndarray:
        return np.triu(require_matrices(x), clip_offset(k, *x.shape[-2:]))

    @staticmethod
    def diag(x: np.ndarray, k: int = 0) -> np.ndarray:
        if x.ndim not in (1, 2):
            raise ShapeError(f"expected a vector or a matrix, got shape {x.shape}")
        # np.diag of a matrix is a read-only view.
        return np.diag(x, k) if x.ndim == 1 else np.diag(x, clip_offset(k, *x.shape)).copy()
