"""Conversion, devices and dtypes of tensors without values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from emberharmony.backend.abstract.rules import Rule, call_with_one_element
from emberharmony.backend.shared.arrays.shape import check_complex_pairs
from emberharmony.backend.shared.tensor import check_view, refuse_copy
from emberharmony.core.dtypes import DType
from emberharmony.core.options import refuse_sparse
from emberharmony.core.tracing import TensorProxy
from emberharmony.transforms.abstract_tensor import AbstractTensor

if TYPE_CHECKING:
    from emberharmony.backend.abstract import AbstractBackend


def _call_wrapped(backend: AbstractBackend, name: str, *args: Any) -> Any:
    return call_with_one_element(backend, name, *args)


class AbstractTensors:
    """Holds the primitives of `ops/tensor.py`, `ops/dtype.py` and `ops/device.py`."""

    get_device, get_available_devices, get_default_device = (
        Rule(_call_wrapped),
        Rule(_call_wrapped),
        Rule(_call_wrapped),
    )
    set_default_device, synchronize, memory_info = Rule(_call_wrapped), Rule(_call_wrapped), Rule(_call_wrapped)
    result_type = Rule(_call_wrapped)

    tensor_of: Any
    dtypes: Any
    convert: Any
    wrapped: Any

    def dtype(self, x: AbstractTensor) -> DType:
        dtype: DType = self.dtypes.neutral[x.dtype]
        return dtype

    @Rule
    def to_device(self: Any, name: str, x: AbstractTensor, device: Any) -> AbstractTensor:
        call_with_one_element(self, name, x, device)
        return x

    @Rule
    def convert_to_tensor(
        self: Any,
        name: str,
        x: AbstractTensor,
        dtype: Any = None,
        sparse: Any = None,
        ragged: Any = None,
        device: Any = None,
        copy: Any = None,
    ) -> AbstractTensor:
        refuse_sparse("sparse" if sparse else "ragged", sparse or ragged)
        call_with_one_element(self, name, x, dtype, None, None, device)
        if dtype is None or dtype == x.dtype:
            return x
        refuse_copy(copy)
        return self.tensor_of(x.shape, dtype)

    def to_numpy(self, x: AbstractTensor) -> np.ndarray[Any, Any]:
        array: np.ndarray[Any, Any] = x.value("to_numpy()")
        return array

    def cast(self, x: AbstractTensor, dtype: Any) -> AbstractTensor:
        return x if x.dtype == dtype else self.tensor_of(x.shape, dtype)

    def copy(self, x: AbstractTensor) -> AbstractTensor:
        return x

    def view(self, x: AbstractTensor, dtype: Any) -> AbstractTensor:
        old_itemsize, new_itemsize = x.itemsize, self.dtypes.neutral[dtype].itemsize
        check_view(x.shape, old_itemsize, new_itemsize)
        shape = x.shape if old_itemsize == new_itemsize else (*x.shape[:-1], x.shape[-1] * old_itemsize // new_itemsize)
        return self.tensor_of(shape, dtype)

    @Rule
    def view_as_complex(self: Any, name: str, x: AbstractTensor) -> AbstractTensor:
        check_complex_pairs(x.shape)
        pair = self.wrapped.bound.ones(2, x.dtype)
        return self.tensor_of(x.shape[:-1], getattr(self.wrapped.bound, name)(pair).dtype)

    def from_dlpack(self, x: Any, device: Any = None, copy: Any = None) -> AbstractTensor:
        if isinstance(x, AbstractTensor):
            return x
        tensor: AbstractTensor = self.convert(self.wrapped.bound.from_dlpack(x, device, copy))
        return tensor

    def is_tensor(self, x: Any) -> bool:
        return isinstance(x, (AbstractTensor, TensorProxy)) or bool(self.wrapped.is_tensor(x))

    @staticmethod
    def is_traced(x: Any) -> bool:
        return isinstance(x, TensorProxy)

    @staticmethod
    def eval(*trees: Any) -> None:
        return None
