"""Making tensors, on PyTorch."""

from typing import Any

import numpy as np
import torch

from emberharmony.backend.shared.arrays.creation import HostMade, keep_fill_number
from emberharmony.backend.shared.arrays.shape import as_shape, clip_offset, require_matrices
from emberharmony.backend.shared.device import check_memory
from emberharmony.backend.torch.arrays.indices import SIGNED, extend_by_signed
from emberharmony.backend.torch.device_ops import place
from emberharmony.backend.torch.dtypes import DTYPES, promotion
from emberharmony.core.dtypes import default_float
from emberharmony.core.errors import ShapeError


def _dtype_or_default(dtype: torch.dtype | None) -> torch.dtype:
    return DTYPES[default_float()] if dtype is None else dtype


_HALF = 65504.0
"""The largest number that every floating dtype can represent: the maximum of float16."""

tril, triu = extend_by_signed(torch.tril), extend_by_signed(torch.triu)


def _is_count(start: Any, step: Any) -> bool:
    return start.__class__ is step.__class__ is int and step == 1 and start >= 0


class TorchCreationOps(HostMade):
    """Holds the ops of `ops/arrays/creation.py`.

    The bodies take up to 10 times as long, for few elements; they need two to five calls of ops.
    """

    @staticmethod
    def _place_array(array: np.ndarray, dtype: Any, device: Any) -> torch.Tensor:
        return torch.from_numpy(array).to(device=place(device), dtype=dtype)

    @staticmethod
    def _integer_range(places: range, dtype: Any, device: Any) -> torch.Tensor:
        return torch.arange(places.start, places.stop, places.step, dtype=dtype, device=place(device))

    def arange(self, start: Any, stop: Any = None, step: Any = 1, dtype: Any = None, device: Any = None) -> Any:
        if torch.compiler.is_compiling() and dtype is None and stop is None and _is_count(start, step):
            # A dtype that is looked up gives a compiled function guards that take 60 µs in each call (PyTorch 2.13).
            return torch.arange(start, device=place(device))
        return super().arange(start, stop, step, dtype, device)

    @staticmethod
    def zeros(shape: Any, dtype: Any = None, device: Any = None) -> torch.Tensor:
        return torch.zeros(as_shape(shape), dtype=_dtype_or_default(dtype), device=place(device))

    @staticmethod
    def ones(shape: Any, dtype: Any = None, device: Any = None) -> torch.Tensor:
        return torch.ones(as_shape(shape), dtype=_dtype_or_default(dtype), device=place(device))

    @staticmethod
    @keep_fill_number
    def full(shape: Any, fill_value: Any, dtype: Any = None, device: Any = None) -> torch.Tensor:
        if fill_value.__class__ is float and -_HALF < fill_value < _HALF and (dtype is None or dtype.is_floating_point):
            return torch.full(as_shape(shape), fill_value, dtype=_dtype_or_default(dtype), device=place(device))
        # torch.full (PyTorch 2.13) raises for a number beyond the range of the dtype, which must become infinity.
        fill_tensor = promotion.fill_tensor(fill_value, dtype).to(place(device))
        return fill_tensor.expand(as_shape(shape)).clone()

    @staticmethod
    def empty(shape: Any, dtype: Any = None, device: Any = None) -> torch.Tensor:
        return torch.empty(as_shape(shape), dtype=_dtype_or_default(dtype), device=place(device))

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
    @keep_fill_number
    def full_like(x: torch.Tensor, fill_value: Any, dtype: Any = None, device: Any = None) -> torch.Tensor:
        target_device = x.device if device is None else place(device)
        if fill_value.__class__ is float and -_HALF < fill_value < _HALF and x.is_floating_point() and dtype is None:
            return torch.full_like(x, fill_value, device=target_device)
        fill_tensor = promotion.fill_tensor(fill_value, x.dtype if dtype is None else dtype).to(target_device)
        return fill_tensor.expand(x.shape).clone()

    @staticmethod
    def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = None, device: Any = None) -> torch.Tensor:
        dtype, shape = _dtype_or_default(dtype), as_shape((N, N if M is None else M))
        # torch.eye has no offset, and no kernel for wide unsigned dtypes (PyTorch 2.13).
        if k == 0 and dtype not in SIGNED:
            return torch.eye(*shape, dtype=dtype, device=place(device))
        matrix = torch.zeros(shape, dtype=dtype, device=place(device))
        matrix.diagonal(clip_offset(k, *shape)).fill_(1)
        return matrix

    @staticmethod
    def tril(x: torch.Tensor, k: int = 0) -> torch.Tensor:
        return tril(require_matrices(x), clip_offset(k, *x.shape[-2:]))

    @staticmethod
    def triu(x: torch.Tensor, k: int = 0) -> torch.Tensor:
        return triu(require_matrices(x), clip_offset(k, *x.shape[-2:]))

    @staticmethod
    def diag(x: torch.Tensor, k: int = 0) -> torch.Tensor:
        if x.ndim not in (1, 2):
            raise ShapeError(
                f"expected a vector or a matrix, got shape {tuple(x.shape)}; for the diagonals of a batch of matrices "
                f"use ops.diagonal"
            )
        if x.ndim == 2:
            return torch.diag(x, clip_offset(k, *x.shape)).clone()
        # A huge offset would make a huge matrix out of a short vector.
        check_memory((len(x) + abs(k), len(x) + abs(k)), x.itemsize)
        return torch.diag(x, k)
