"""Conversion and properties of tensors, on JAX."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from emberharmony.backend.jax.device_ops import requested_device
from emberharmony.backend.jax.dtypes import DTYPES, cast, of_host
from emberharmony.backend.jax.tracing import is_traced, strip_tracers
from emberharmony.backend.shared.tensor import NO_BITS, check_view, dlpack_exporter, refuse_copy
from emberharmony.core.cells.cell import Cell
from emberharmony.core.errors import TracedTensorError, UnsupportedOpError
from emberharmony.core.options import refuse_sparse
from emberharmony.core.state.handlers import passing_error
from emberharmony.core.tracing import LEAVES, TensorProxy
from emberharmony.core.trees.tree import tree_leaves


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
            refuse_sparse("sparse", sparse)
            refuse_sparse("ragged", ragged)
        converted_x = x if dtype is None else cast(x, dtype)
        if device is not None:
            converted_x = jax.device_put(converted_x, requested_device(device))
        if converted_x is not x:
            refuse_copy(copy)
        return jnp.array(x, copy=True) if copy and converted_x is x else converted_x

    @staticmethod
    def view(x: jax.Array, dtype: np.dtype) -> jax.Array:
        if is_traced(x):
            raise UnsupportedOpError(NO_BITS)
        check_view(x.shape, x.dtype.itemsize, dtype.itemsize)
        if x.dtype == dtype:
            return x
        concrete_tensor = strip_tracers(x)
        if concrete_tensor is not None:
            return of_host(np.ascontiguousarray(np.asarray(concrete_tensor)).reshape(x.shape).view(dtype))
        x_or_vector = jnp.atleast_1d(x)
        if dtype.kind == "c":
            # JAX 0.10 multiplies the imaginary parts by 1j, which makes the real part NaN if they are infinite.
            interleaved_parts = x_or_vector.view(np.finfo(dtype).dtype)
            viewed_rows = lax.complex(interleaved_parts[..., ::2], interleaved_parts[..., 1::2])
        else:
            viewed_rows = x_or_vector.view(dtype)
        return viewed_rows if x.ndim else viewed_rows.reshape(())

    def from_dlpack(self, x: Any, device: Any = None, copy: bool | None = None) -> jax.Array:
        if isinstance(x, jax.Array):
            return self.convert_to_tensor(x, device=device, copy=copy)
        target_device = requested_device(device)
        x = dlpack_exporter(x, copy)
        refuse_copy(copy)
        try:
            host_array = np.from_dlpack(x)
        except RuntimeError as error:
            if passing_error(error):
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
