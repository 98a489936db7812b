"""Creation of tensors, on JAX: on the host, because JAX compiles a program for each shape that it fills."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from emberharmony.backend.jax.device_ops import check_memory, largest_memory, requested_device
from emberharmony.backend.jax.dtypes import DTYPES, of_host, promotion
from emberharmony.backend.jax.tracing import Tracer
from emberharmony.backend.shared.arrays.creation import HostMade, keep_fill_number
from emberharmony.backend.shared.arrays.shape import as_shape, clip_offset
from emberharmony.core.dtypes import default_float
from emberharmony.core.errors import ShapeError

_FEW = 2**16
"""Up to this number of elements a tensor is made on the host, if it is made at all outside of a compiled function."""


def _fill_with_number(shape: tuple[int, ...], number: float, dtype: Any, device: Any) -> jax.Array:
    native_dtype, target_device = DTYPES[default_float()] if dtype is None else dtype, requested_device(device)
    check_memory(shape, native_dtype.itemsize)
    if np.prod(shape, dtype=object) <= _FEW:
        return of_host(np.full(shape, number, native_dtype), None, target_device)
    return jnp.full(shape, number, native_dtype, device=target_device)


def _broadcast_value(shape: tuple[int, ...], value: Any, dtype: Any, device: Any) -> jax.Array:
    fill_tensor = promotion.fill_tensor(value, dtype)
    target_device = requested_device(device)
    check_memory(shape, fill_tensor.dtype.itemsize)
    filled_tensor = jnp.broadcast_to(fill_tensor, shape)
    return filled_tensor if target_device is None else jax.device_put(filled_tensor, target_device)


class JAXCreationOps(HostMade):
    """Holds the ops of `ops/arrays/creation.py`.

    The bodies take up to 1.9 times as long, for few elements.
    """

    @staticmethod
    def _memory_limit() -> int:
        return largest_memory()

    @staticmethod
    def _place_array(array: np.ndarray, dtype: Any, device: Any) -> jax.Array:
        target_device = requested_device(device)
        with np.errstate(all="ignore"):
            real_array = array if dtype.kind in "bc" else array.real
            return of_host(real_array.astype(dtype), None, target_device)

    @staticmethod
    def zeros(shape: Any, dtype: Any = None, device: Any = None) -> jax.Array:
        return _fill_with_number(as_shape(shape), 0, dtype, device)

    @staticmethod
    def ones(shape: Any, dtype: Any = None, device: Any = None) -> jax.Array:
        return _fill_with_number(as_shape(shape), 1, dtype, device)

    @staticmethod
    @keep_fill_number
    def full(shape: Any, fill_value: Any, dtype: Any = None, device: Any = None) -> jax.Array:
        return _broadcast_value(as_shape(shape), fill_value, dtype, device)

    @staticmethod
    def empty(shape: Any, dtype: Any = None, device: Any = None) -> jax.Array:
        return _fill_with_number(as_shape(shape), 0, dtype, device)

    @staticmethod
    def zeros_like(x: jax.Array, dtype: Any = None, device: Any = None) -> jax.Array:
        return _full_like(x, 0, dtype, device)

    @staticmethod
    def ones_like(x: jax.Array, dtype: Any = None, device: Any = None) -> jax.Array:
        return _full_like(x, 1, dtype, device)

    @staticmethod
    def empty_like(x: jax.Array, dtype: Any = None, device: Any = None) -> jax.Array:
        return _full_like(x, 0, dtype, device)

    @staticmethod
    @keep_fill_number
    def full_like(x: jax.Array, fill_value: Any, dtype: Any = None, device: Any = None) -> jax.Array:
        return _broadcast_value(x.shape, fill_value, x.dtype if dtype is None else dtype, _device_like(x, device))

    @staticmethod
    def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = None, device: Any = None) -> jax.Array:
        target_device, (row_count, column_count) = requested_device(device), as_shape((N, N if M is None else M))
        native_dtype = DTYPES[default_float()] if dtype is None else dtype
        check_memory((row_count, column_count), native_dtype.itemsize)
        return of_host(
            np.eye(row_count, column_count, clip_offset(k, row_count, column_count), native_dtype), None, target_device
        )

    @staticmethod
    def diag(x: jax.Array, k: int = 0) -> jax.Array:
        if x.ndim not in (1, 2):
            raise ShapeError(f"expected a vector or a matrix, got shape {x.shape}")
        if x.ndim == 1:
            check_memory((x.shape[0] + abs(k),) * 2, x.dtype.itemsize)
        return jnp.diag(x, k if x.ndim == 1 else clip_offset(k, *x.shape))


def _device_like(x: jax.Array, device: Any) -> Any:
    """Returns the device for a tensor like `x`: that which the caller names, else that of `x`."""
    return device if device is not None or isinstance(x, Tracer) else next(iter(x.devices()))


def _full_like(x: jax.Array, number: int, dtype: Any, device: Any) -> jax.Array:
    return _fill_with_number(x.shape, number, x.dtype if dtype is None else dtype, _device_like(x, device))
