"""Making tensors, on PyTorch."""

from typing import Any

import numpy as np
import torch

from emberharmony.backend.indices import as_shape, matrices
from emberharmony.backend.torch.devices_ops import place
from emberharmony.backend.torch.dtypes import DTYPES, cast
from emberharmony.core.dtypes import default_float
from emberharmony.core.errors import ArgumentError, ShapeError


def _float(dtype: torch.dtype | None) -> torch.dtype:
    return DTYPES[default_float()] if dtype is None else dtype


def from_host(array: np.ndarray, dtype: torch.dtype, device: Any) -> torch.Tensor:
    """Returns a host array of float64 or int64 as a tensor of that dtype."""
    return torch.from_numpy(array).to(device=place(device), dtype=dtype)


class TorchCreationOps:
    """Holds the ops of `ops/creation.py`."""

    @staticmethod
    def zeros(shape: Any, dtype: Any = None, device: Any = None) -> torch.Tensor:
        return torch.zeros(as_shape(shape), dtype=_float(dtype), device=place(device))

    @staticmethod
    def ones(shape: Any, dtype: Any = None, device: Any = None) -> torch.Tensor:
        return torch.ones(as_shape(shape), dtype=_float(dtype), device=place(device))

    @staticmethod
    def full(shape: Any, fill_value: torch.Tensor, dtype: Any = None, device: Any = None) -> torch.Tensor:
        value = (fill_value if dtype is None else cast(fill_value, dtype)).to(place(device))
        return value.expand(as_shape(shape)).clone()

    @staticmethod
    def empty(shape: Any, dtype: Any = None, device: Any = None) -> torch.Tensor:
        return torch.empty(as_shape(shape), dtype=_float(dtype), device=place(device))

    @staticmethod
    def zeros_like(x: torch.Tensor, dtype: Any = None, device: Any = None) -> torch.Tensor:
        return torch.zeros_like(x, dtype=dtype, device=None if device is None else place(device))

    @staticmethod
    def ones_like(x: torch.Tensor, dtype: Any = None, device: Any = None) -> torch.Tensor:
        return torch.ones_like(x, dtype=dtype, device=None if device is None else place(device))

    @staticmethod
    def empty_like(x: torch.Tensor, dtype: Any = None, device: Any = None) -> torch.Tensor:
        return torch.empty_like(x, dtype=dtype, device=None if device is None else place(device))

    @staticmethod
    def full_like(x: torch.Tensor, fill_value: torch.Tensor, dtype: Any = None, device: Any = None) -> torch.Tensor:
        where = x.device if device is None else place(device)
        value = cast(fill_value, x.dtype if dtype is None else dtype).to(where)
        return value.expand(x.shape).clone()

    @staticmethod
    def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = None, device: Any = None) -> torch.Tensor:
        columns = N if M is None else M
        if k == 0:
            return torch.eye(N, columns, dtype=_float(dtype), device=place(device))
        return from_host(np.eye(N, columns, k), _float(dtype), device)

    @staticmethod
    def arange(
        start: float, stop: float | None = None, step: float = 1, dtype: Any = None, device: Any = None
    ) -> torch.Tensor:
        if step == 0:
            raise ArgumentError("step must not be 0")
        low, high = (0, start) if stop is None else (start, stop)
        kind = float if any(isinstance(v, float) for v in (low, high, step)) else int
        return from_host(np.arange(low, high, step), DTYPES[kind] if dtype is None else dtype, device)

    @staticmethod
    def linspace(
        start: float, stop: float, num: int = 50, endpoint: bool = True, dtype: Any = None, device: Any = None
    ) -> torch.Tensor:
        return from_host(np.linspace(start, stop, num, endpoint), _float(dtype), device)

    @staticmethod
    def meshgrid(*xi: torch.Tensor, indexing: str = "xy") -> list[torch.Tensor]:
        if indexing not in ("xy", "ij"):
            raise ArgumentError(f"indexing is 'xy' or 'ij', not {indexing!r}")
        return list(torch.meshgrid(*xi, indexing=indexing)) if xi else []

    @staticmethod
    def tril(x: torch.Tensor, k: int = 0) -> torch.Tensor:
        return torch.tril(matrices(x), k)

    @staticmethod
    def triu(x: torch.Tensor, k: int = 0) -> torch.Tensor:
        return torch.triu(matrices(x), k)

    @staticmethod
    def diag(x: torch.Tensor, k: int = 0) -> torch.Tensor:
        if x.ndim not in (1, 2):
            raise ShapeError(f"a vector or a matrix is wanted, this tensor has shape {tuple(x.shape)}")
        return torch.diag(x, k).clone()
