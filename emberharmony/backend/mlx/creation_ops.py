"""Making tensors, on MLX."""

from typing import Any

import mlx.core as mx
import numpy as np

from emberharmony.backend.mlx.device_ops import place
from emberharmony.backend.mlx.dtypes import DTYPES, of_host, promotion
from emberharmony.backend.shared.creation import HostMade, with_number
from emberharmony.backend.shared.shape import as_shape, matrices
from emberharmony.core.dtypes import default_float
from emberharmony.core.errors import ShapeError


def _float(dtype: mx.Dtype | None) -> mx.Dtype:
    return DTYPES[default_float()] if dtype is None else dtype


def _filled(shape: tuple[int, ...], fill_value: Any, dtype: Any, device: Any) -> mx.array:
    # The dtype argument of mx.full is overruled by the value's kind; its gradient is wrong.
    value, stream = promotion.filling(fill_value, dtype), place(device)
    if isinstance(fill_value, mx.array):
        return mx.broadcast_to(value, shape, stream=stream)
    return mx.full(shape, value, stream=stream)


class MLXCreationOps(HostMade):
    """Holds the ops of `ops/creation.py`."""

    @staticmethod
    def _placed(array: np.ndarray, dtype: Any, device: Any) -> mx.array:
        place(device)
        return of_host(array, dtype)

    @staticmethod
    def zeros(shape: Any, dtype: Any = None, device: Any = None) -> mx.array:
        return mx.zeros(as_shape(shape), _float(dtype), stream=place(device))

    @staticmethod
    def ones(shape: Any, dtype: Any = None, device: Any = None) -> mx.array:
        return mx.ones(as_shape(shape), _float(dtype), stream=place(device))

    @staticmethod
    @with_number
    def full(shape: Any, fill_value: Any, dtype: Any = None, device: Any = None) -> mx.array:
        return _filled(as_shape(shape), fill_value, dtype, device)

    @staticmethod
    def empty(shape: Any, dtype: Any = None, device: Any = None) -> mx.array:
        return mx.zeros(as_shape(shape), _float(dtype), stream=place(device))

    @staticmethod
    def zeros_like(x: mx.array, dtype: Any = None, device: Any = None) -> mx.array:
        return mx.zeros(x.shape, x.dtype if dtype is None else dtype, stream=place(device))

    empty_like = zeros_like

    @staticmethod
    def ones_like(x: mx.array, dtype: Any = None, device: Any = None) -> mx.array:
        return mx.ones(x.shape, x.dtype if dtype is None else dtype, stream=place(device))

    @staticmethod
    @with_number
    def full_like(x: mx.array, fill_value: Any, dtype: Any = None, device: Any = None) -> mx.array:
        return _filled(x.shape, fill_value, x.dtype if dtype is None else dtype, device)

    @staticmethod
    def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = None, device: Any = None) -> mx.array:
        rows, columns = as_shape((N, N if M is None else M))
        return mx.eye(rows, columns, k, _float(dtype), stream=place(device))

    @staticmethod
    def tril(x: mx.array, k: int = 0) -> mx.array:
        return mx.tril(matrices(x), k)

    @staticmethod
    def triu(x: mx.array, k: int = 0) -> mx.array:
        return mx.triu(matrices(x), k)

    @staticmethod
    def diag(x: mx.array, k: int = 0) -> mx.array:
        if x.ndim not in (1, 2):
            raise ShapeError(f"a vector or a matrix is wanted, this tensor has shape {x.shape}")
        return mx.diag(x, k)
