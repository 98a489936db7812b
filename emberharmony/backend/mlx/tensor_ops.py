"""Conversion and properties of tensors, on MLX."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mlx.core as mx

from emberharmony.backend.host import bfloat16_of_numpy, number_classes_of
from emberharmony.backend.mlx.device_ops import requested_device
from emberharmony.backend.mlx.dtypes import DTYPES, cast
from emberharmony.backend.mlx.tracing import LATER, is_traced
from emberharmony.backend.shared.tensor import NO_BITS, check_view, dlpack_exporter, refuse_copy
from emberharmony.core.cells.cell import Cell
from emberharmony.core.deferred import Deferred
from emberharmony.core.dtypes import DType, python_dtype
from emberharmony.core.errors import TracedTensorError, UnsupportedOpError
from emberharmony.core.options import refuse_sparse
from emberharmony.core.state.handlers import passing_error
from emberharmony.core.tracing import LEAVES, TensorProxy
from emberharmony.core.trees.tree import tree_leaves

if TYPE_CHECKING:
    import numpy as np
else:
    np = Deferred("numpy")


_READ = {float: ("float32", "float64"), int: ("int64",), bool: ("bool",)}
"""By class of Python numbers, the dtypes in which MLX reads lists of them without a double rounding."""


def of_numbers(value: Any, dtype: DType | None) -> mx.array | None:
    """Returns a Python number, or a list of numbers of one class, as a tensor, in half the time that NumPy takes.

    Returns None for what only the complete conversion takes, or refuses.
    """
    classes = (
        {value.__class__} if value.__class__ in _READ else number_classes_of(value) if value.__class__ is list else None
    )
    if classes is None or len(classes) != 1:
        return None
    (number_class,) = classes
    target_dtype = dtype or python_dtype(number_class)
    if target_dtype.name not in _READ.get(number_class, ()):
        return None
    try:
        return mx.array(value, DTYPES[target_dtype])
    except (ValueError, RuntimeError) as error:  # it is ragged, holds a tuple, or an integer does not fit
        if passing_error(error):
            raise
        return None


class MLXTensorOps:
    """Holds the ops of `ops/tensor.py`.

    These make tensors of numbers, lists and other objects, and the bodies take tensors; the body of `copy` takes 2.2
    times as long.
    """

    copy = staticmethod(mx.array)
    shape = staticmethod(lambda x: x.shape)
    ndim = staticmethod(lambda x: x.ndim)
    size = staticmethod(lambda x: x.size)

    from_numpy: Any

    @staticmethod
    def cast(x: mx.array, dtype: mx.Dtype) -> mx.array:
        return x if x.dtype == dtype else cast(x, dtype)

    @staticmethod
    def convert_to_tensor(
        x: mx.array,
        dtype: Any = None,
        sparse: bool | None = None,
        ragged: bool | None = None,
        device: Any = None,
        copy: bool | None = None,
    ) -> mx.array:
        if sparse or ragged:
            refuse_sparse("sparse", sparse)
            refuse_sparse("ragged", ragged)
        if x.itemsize == 8:
            DTYPES.neutral[x.dtype]  # a look-up of float64 or uint64 makes the fast paths look at dtypes from now on
        if device is not None:
            requested_device(device)  # raises for an unknown device; the memory is shared
        cast_x = x if dtype is None else MLXTensorOps.cast(x, dtype)
        if cast_x is not x:
            refuse_copy(copy)
        return mx.array(x) if copy and cast_x is x else cast_x

    @staticmethod
    def view(x: mx.array, dtype: mx.Dtype) -> mx.array:
        if is_traced(x):
            raise UnsupportedOpError(NO_BITS)
        check_view(x.shape, x.itemsize, dtype.size)
        return mx.view(x, dtype)

    def from_dlpack(self, x: Any, device: Any = None, copy: bool | None = None) -> mx.array:
        if isinstance(x, mx.array):
            return self.convert_to_tensor(x, device=device, copy=copy)
        requested_device(device)
        x = dlpack_exporter(x, copy)
        refuse_copy(copy)
        try:
            host_array = np.from_dlpack(x)
        except RuntimeError as error:
            if passing_error(error):
                raise
            # NumPy does not import bfloat16. MLX does, but it cannot import everything: it narrows float64.
            return mx.from_dlpack(x)
        return self.from_numpy(host_array)

    @staticmethod
    def to_numpy(x: mx.array) -> np.ndarray:
        if x.dtype == mx.bfloat16:
            host_array = np.asarray(x.view(mx.uint16)).view(bfloat16_of_numpy())
        else:
            host_array = np.asarray(x)
            if (
                host_array.dtype.char in "qQ"
            ):  # MLX's long long equals int64, but compiled code for int64 passes it over
                host_array = host_array.view(host_array.dtype.name)
        if is_traced(x):
            raise TracedTensorError(LEAVES)
        # The array shares its memory with the tensor, which must not change, and perhaps with other tensors.
        host_array.flags.writeable = False
        return host_array

    @staticmethod
    def is_tensor(x: Any) -> bool:
        return isinstance(x, (mx.array, TensorProxy))

    @staticmethod
    def eval(*trees: Any) -> None:
        leaves = tree_leaves(trees)
        cell_tensors = [tensor for leaf in leaves if isinstance(leaf, Cell) for tensor in (leaf.value, leaf.grad)]
        LATER.evaluate([leaf for leaf in leaves + cell_tensors if isinstance(leaf, mx.array)])
