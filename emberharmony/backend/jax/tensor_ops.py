"""Conversion and properties of tensors, on JAX."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from emberharmony.backend.jax.device_ops import place
from emberharmony.backend.jax.dtypes import DTYPES, cast, of_host
from emberharmony.backend.jax.tracing import concrete, is_traced
from emberharmony.backend.shared.tensor import NO_BITS, check_view, exporter, refuse_copy
from emberharmony.core.cells.cell import Cell
from emberharmony.core.errors import TracedTensorError, UnsupportedOpError
from emberharmony.core.options import dense
from emberharmony.core.state.handlers import passing
from emberharmony.core.tracing import LEAVES, TensorProxy
from emberharmony.core.trees.tree import tree_leaves


def _bits_as_dtype(x: jax.Array, dtype: np.dtype) -> jax.Array:
    """Returns a tensor whose elements have as many bytes as those of `dtype`, viewed as that dtype."""
    if x.dtype.kind == "b":
        x = x.astype(np.uint8)
    if x.dtype.kind == "c" or dtype.kind == "c":
        # XLA does not view complex numbers as others; NumPy does.
        return of_host(np.ascontiguousarray(concrete(x)).view(dtype))
    result = lax.bitcast_convert_type(x, np.uint8 if dtype.kind == "b" else dtype)
    return result != 0 if dtype.kind == "b" else result


class JAXTensorOps:
    """Holds the ops of `ops/tensor.py`.

    These make tensors of numbers, lists and other objects, and the bodies take tensors; the body of `copy` takes 9
    times as long.
    """

    cast = staticmethod(cast)
    shape = staticmethod(lambda x: x.shape)
    ndim = staticmethod(lambda x: x.ndim)
    size = staticmethod(lambda x: x.size)

    from_numpy: Any

    @staticmethod
    def convert_to_tensor(
        x: jax.Array,
        dtype: Any = None,
        sparse: bool | None = None,
        ragged: bool | None = None,
        device: Any = None,
        copy: bool | None = None,
    ) -> jax.Array:
        if sparse or ragged:
            dense("sparse" if sparse else "ragged", True)
        result = x if dtype is None else cast(x, dtype)
        if device is not None:
            result = jax.device_put(result, place(device))
        if result is not x:
            refuse_copy(copy)
        return jnp.array(x, copy=True) if copy and result is x else result

    @staticmethod
    def view(x: jax.Array, dtype: np.dtype) -> jax.Array:
        if is_traced(x):
            raise UnsupportedOpError(NO_BITS)
        check_view(x.shape, x.dtype.itemsize, dtype.itemsize)
        if x.dtype == dtype:
            return x
        concrete_tensor = concrete(x)
        if concrete_tensor is not None:
            return of_host(np.ascontiguousarray(np.asarray(concrete_tensor)).reshape(x.shape).view(dtype))
        if x.dtype.itemsize == dtype.itemsize:
            return _bits_as_dtype(x, dtype)
        if x.dtype.itemsize > dtype.itemsize:
            bits = _bits_as_dtype(x, dtype)
            return bits.reshape(*x.shape[:-1], x.shape[-1] * (x.dtype.itemsize // dtype.itemsize))
        ratio = dtype.itemsize // x.dtype.itemsize
        return _bits_as_dtype(x.reshape(*x.shape[:-1], x.shape[-1] // ratio, ratio), dtype)

    def from_dlpack(self, x: Any, device: Any = None, copy: bool | None = None) -> jax.Array:
        if isinstance(x, jax.Array):
            return self.convert_to_tensor(x, device=device, copy=copy)
        target_device = place(device)
        x = exporter(x, copy)
        refuse_copy(copy)
        try:
            host_array = np.from_dlpack(x)
        except RuntimeError as error:
            if passing(error):
                raise
            tensor = jnp.from_dlpack(x, copy=True)  # NumPy does not import bfloat16
            DTYPES.neutral[tensor.dtype]
            return tensor if target_device is None else jax.device_put(tensor, target_device)
        DTYPES.neutral[host_array.dtype]  # raises for a dtype that the backend does not have
        return of_host(host_array, None, target_device)

    @staticmethod
    def to_numpy(x: jax.Array) -> np.ndarray:
        if is_traced(x):
            raise TracedTensorError(LEAVES)
        return np.asarray(x)

    @staticmethod
    def is_tensor(x: Any) -> bool:
        return isinstance(x, (jax.Array, TensorProxy))

    @staticmethod
    def eval(*trees: Any) -> None:
        leaves = tree_leaves(trees)
        cell_tensors = [tensor for leaf in leaves if isinstance(leaf, Cell) for tensor in (leaf.value, leaf.grad)]
        jax.block_until_ready(
            [x for x in leaves + cell_tensors if isinstance(x, jax.Array) and not isinstance(x, jax.core.Tracer)]
        )
