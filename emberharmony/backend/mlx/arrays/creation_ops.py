"""Making tensors, on MLX."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import mlx.core as mx

from emberharmony.backend.mlx.device_ops import check_memory, largest_memory, requested_device
from emberharmony.backend.mlx.dtypes import DTYPES, of_host, promotion
from emberharmony.backend.shared.arrays.creation import HostMade, keep_fill_number
from emberharmony.backend.shared.arrays.shape import as_shape, clip_offset, require_matrices
from emberharmony.core.deferred import Deferred
from emberharmony.core.dtypes import default_float
from emberharmony.core.errors import ShapeError

if TYPE_CHECKING:
    import numpy as np
else:
    np = Deferred("numpy")


def _dtype_or_default(dtype: mx.Dtype | None) -> mx.Dtype:
    return DTYPES[default_float()] if dtype is None else dtype


def _create_if_it_fits(native: Callable[..., mx.array], shape: Any, dtype: mx.Dtype | None, device: Any) -> mx.array:
    """Returns the result of `native`, called with a shape and a dtype, if it fits into memory.

    Raises:
        OutOfMemoryError: if the result is larger than the memory of the machine.
    """
    lengths, native_dtype = as_shape(shape), _dtype_or_default(dtype)
    check_memory(lengths, native_dtype.size)
    return native(lengths, native_dtype, stream=requested_device(device))


def _create_matrix(
    native: Callable[..., mx.array], N: int, M: int | None, k: int, dtype: mx.Dtype | None, device: Any
) -> mx.array:
    """Returns the matrix of ones on a diagonal or in a triangle that a function of MLX makes."""
    matrix_shape = as_shape((N, N if M is None else M))
    matrix_dtype = _dtype_or_default(dtype)
    check_memory(matrix_shape, matrix_dtype.size)
    return native(*matrix_shape, clip_offset(k, *matrix_shape), matrix_dtype, stream=requested_device(device))


def _fill(shape: tuple[int, ...], fill_value: Any, dtype: Any, device: Any) -> mx.array:
    # mx.full (MLX 0.32) ignores its dtype for a value of another kind, and its gradient is wrong: cast the value, and
    # broadcast a tensor.
    fill_tensor, stream = promotion.fill_tensor(fill_value, dtype), requested_device(device)
    check_memory(shape, fill_tensor.itemsize)
    if isinstance(fill_value, mx.array):
        return mx.broadcast_to(fill_tensor, shape, stream=stream)
    return mx.full(shape, fill_tensor, stream=stream)


_FEW = 2**6
"""Up to this many elements, to read a list takes no more time than to make an array on the host."""
_MANY = 2**13
"""From this many elements on, to compute a range by MLX takes less time than to copy one from the host."""


class MLXCreationOps(HostMade):
    """Holds the ops of `ops/arrays/creation.py`.

    The bodies take up to 2.4 times as long, for few elements, and `eye` 2.4 times for 250,000.
    """

    _memory_limit = staticmethod(largest_memory)

    @staticmethod
    def _place_array(array: np.ndarray, dtype: Any, device: Any) -> mx.array:
        requested_device(device)  # raises for an unknown device; the memory is shared
        return of_host(array, dtype)

    def _integer_range(self, places: range, dtype: Any, device: Any) -> mx.array:
        if len(places) <= _FEW:
            requested_device(device)
            return mx.array(list(places), dtype)
        if len(places) < _MANY and "numpy" in sys.modules:
            return super()._integer_range(places, dtype, device)
        check_memory((len(places),), dtype.size)
        return mx.arange(places.start, places.stop, places.step, dtype, stream=requested_device(device))

    @staticmethod
    def zeros(shape: Any, dtype: Any = None, device: Any = None) -> mx.array:
        return _create_if_it_fits(mx.zeros, shape, dtype, device)

    @staticmethod
    def ones(shape: Any, dtype: Any = None, device: Any = None) -> mx.array:
        return _create_if_it_fits(mx.ones, shape, dtype, device)

    @staticmethod
    @keep_fill_number
    def full(shape: Any, fill_value: Any, dtype: Any = None, device: Any = None) -> mx.array:
        return _fill(as_shape(shape), fill_value, dtype, device)

    empty = zeros

    @staticmethod
    def zeros_like(x: mx.array, dtype: Any = None, device: Any = None) -> mx.array:
        return mx.zeros(x.shape, x.dtype if dtype is None else dtype, stream=requested_device(device))

    empty_like = zeros_like

    @staticmethod
    def ones_like(x: mx.array, dtype: Any = None, device: Any = None) -> mx.array:
        return mx.ones(x.shape, x.dtype if dtype is None else dtype, stream=requested_device(device))

    @staticmethod
    @keep_fill_number
    def full_like(x: mx.array, fill_value: Any, dtype: Any = None, device: Any = None) -> mx.array:
        return _fill(x.shape, fill_value, x.dtype if dtype is None else dtype, device)

    @staticmethod
    def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = None, device: Any = None) -> mx.array:
        return _create_matrix(mx.eye, N, M, k, dtype, device)

    @staticmethod
    def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None, device: Any = None) -> mx.array:
        return _create_matrix(mx.tri, N, M, k, dtype, device)

    @staticmethod
    def tril(x: mx.array, k: int = 0) -> mx.array:
        return mx.tril(require_matrices(x), clip_offset(k, *x.shape[-2:]))

    @staticmethod
    def triu(x: mx.array, k: int = 0) -> mx.array:
        return mx.triu(require_matrices(x), clip_offset(k, *x.shape[-2:]))

    @staticmethod
    def diag(x: mx.array, k: int = 0) -> mx.array:
        if x.ndim not in (1, 2):
            raise ShapeError(
                f"expected a vector or a matrix, got shape {x.shape}; for the diagonals of a batch of matrices use "
                f"ops.diagonal"
            )
        if x.ndim == 2:
            return mx.diag(x, clip_offset(k, *x.shape))
        check_memory((x.size + abs(k), x.size + abs(k)), x.itemsize)
        return mx.diag(x, k)
