"""Making tensors, on NumPy."""

from typing import Any

import numpy as np

from emberharmony.backend.indices import as_shape, matrices
from emberharmony.backend.numpy.devices_ops import place
from emberharmony.backend.numpy.dtypes import DTYPES, cast
from emberharmony.core.dtypes import default_float
from emberharmony.core.errors import ArgumentError, ShapeError


def _float(dtype: np.dtype | None) -> np.dtype:
    return DTYPES[default_float()] if dtype is None else dtype


def _number(*values: float) -> np.dtype:
    """Returns the dtype of a range between these numbers."""
    return DTYPES[float] if any(isinstance(v, float) for v in values) else DTYPES[int]


class NumpyCreationOps:
    """Holds the ops of `ops/creation.py`."""

    @staticmethod
    def zeros(shape: Any, dtype: Any = None, device: Any = None) -> np.ndarray:
        place(device)
        return np.zeros(as_shape(shape), _float(dtype))

    @staticmethod
    def ones(shape: Any, dtype: Any = None, device: Any = None) -> np.ndarray:
        place(device)
        return np.ones(as_shape(shape), _float(dtype))

    @staticmethod
    def full(shape: Any, fill_value: np.ndarray, dtype: Any = None, device: Any = None) -> np.ndarray:
        place(device)
        return np.full(as_shape(shape), fill_value if dtype is None else cast(fill_value, dtype))

    @staticmethod
    def empty(shape: Any, dtype: Any = None, device: Any = None) -> np.ndarray:
        place(device)
        return np.empty(as_shape(shape), _float(dtype))

    @staticmethod
    def zeros_like(x: np.ndarray, dtype: Any = None, device: Any = None) -> np.ndarray:
        place(device)
        return np.zeros(x.shape, x.dtype if dtype is None else dtype)

    @staticmethod
    def ones_like(x: np.ndarray, dtype: Any = None, device: Any = None) -> np.ndarray:
        place(device)
        return np.ones(x.shape, x.dtype if dtype is None else dtype)

    @staticmethod
    def empty_like(x: np.ndarray, dtype: Any = None, device: Any = None) -> np.ndarray:
        place(device)
        return np.empty(x.shape, x.dtype if dtype is None else dtype)

    @staticmethod
    def full_like(x: np.ndarray, fill_value: np.ndarray, dtype: Any = None, device: Any = None) -> np.ndarray:
        place(device)
        return np.full(x.shape, cast(fill_value, x.dtype if dtype is None else dtype))

    @staticmethod
    def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = None, device: Any = None) -> np.ndarray:
        place(device)
        return np.eye(N, M, k, _float(dtype))

    @staticmethod
    def arange(
        start: float, stop: float | None = None, step: float = 1, dtype: Any = None, device: Any = None
    ) -> np.ndarray:
        place(device)
        if step == 0:
            raise ArgumentError("step must not be 0")
        low, high = (0, start) if stop is None else (start, stop)
        return np.arange(low, high, step).astype(_number(low, high, step) if dtype is None else dtype)

    @staticmethod
    def linspace(
        start: float, stop: float, num: int = 50, endpoint: bool = True, dtype: Any = None, device: Any = None
    ) -> np.ndarray:
        place(device)
        return np.linspace(start, stop, num, endpoint).astype(_float(dtype))

    @staticmethod
    def meshgrid(*xi: np.ndarray, indexing: str = "xy") -> list[np.ndarray]:
        if indexing not in ("xy", "ij"):
            raise ArgumentError(f"indexing is 'xy' or 'ij', not {indexing!r}")
        return list(np.meshgrid(*xi, indexing=indexing))  # type: ignore[call-overload]

    @staticmethod
    def tril(x: np.ndarray, k: int = 0) -> np.ndarray:
        return np.tril(matrices(x), k)

    @staticmethod
    def triu(x: np.ndarray, k: int = 0) -> np.ndarray:
        return np.triu(matrices(x), k)

    @staticmethod
    def diag(x: np.ndarray, k: int = 0) -> np.ndarray:
        if x.ndim not in (1, 2):
            raise ShapeError(f"a vector or a matrix is wanted, this tensor has shape {x.shape}")
        return np.diag(x, k).copy()
