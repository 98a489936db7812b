"""Making tensors, on MLX."""

from typing import Any

import mlx.core as mx
import numpy as np

from emberharmony.backend.indices import as_shape, matrices
from emberharmony.backend.mlx.devices_ops import place
from emberharmony.backend.mlx.dtypes import DTYPES, cast
from emberharmony.core.dtypes import default_float
from emberharmony.core.errors import ArgumentError, ShapeError


def _float(dtype: mx.Dtype | None) -> mx.Dtype:
    return DTYPES[default_float()] if dtype is None else dtype


class MLXCreationOps:
    """Holds the ops of `ops/creation.py`."""

    @staticmethod
    def zeros(shape: Any, dtype: Any = None, device: Any = None) -> mx.array:
        return mx.zeros(as_shape(shape), _float(dtype), stream=place(device))

    @staticmethod
    def ones(shape: Any, dtype: Any = None, device: Any = None) -> mx.array:
        return mx.ones(as_shape(shape), _float(dtype), stream=place(device))

    @staticmethod
    def full(shape: Any, fill_value: mx.array, dtype: Any = None, device: Any = None) -> mx.array:
        # The dtype argument of mx.full is overruled by the value's kind.
        value = fill_value if dtype is None else cast(fill_value, dtype)
        return mx.full(as_shape(shape), value, stream=place(device))

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
    def full_like(x: mx.array, fill_value: mx.array, dtype: Any = None, device: Any = None) -> mx.array:
        return mx.full(x.shape, cast(fill_value, x.dtype if dtype is None else dtype), stream=place(device))

    @staticmethod
    def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = None, device: Any = None) -> mx.array:
        return mx.array(np.eye(N, M, k, np.int8), _float(dtype))

    @staticmethod
    def arange(
        start: float, stop: float | None = None, step: float = 1, dtype: Any = None, device: Any = None
    ) -> mx.array:
        place(device)
        if step == 0:
            raise ArgumentError("step must not be 0")
        low, high = (0, start) if stop is None else (start, stop)
        kind = float if any(isinstance(v, float) for v in (low, high, step)) else int
        return mx.array(np.arange(low, high, step), DTYPES[kind] if dtype is None else dtype)

    @staticmethod
    def linspace(
        start: float, stop: float, num: int = 50, endpoint: bool = True, dtype: Any = None, device: Any = None
    ) -> mx.array:
        place(device)
        return mx.array(np.linspace(start, stop, num, endpoint), _float(dtype))

    @staticmethod
    def meshgrid(*xi: mx.array, indexing: str = "xy") -> list[mx.array]:
        if indexing not in ("xy", "ij"):
            raise ArgumentError(f"indexing is 'xy' or 'ij', not {indexing!r}")
        return list(mx.meshgrid(*xi, indexing=indexing)) if xi else []

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
