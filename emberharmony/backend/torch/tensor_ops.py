"""Conversion and properties of tensors, on PyTorch."""

from typing import Any

import numpy as np
import torch
from torch.utils.dlpack import from_dlpack

from emberharmony.backend.host import name_of, numbers_to_host
from emberharmony.backend.shared.arrays.shape import cast_for_join
from emberharmony.backend.shared.tensor import NO_BITS, check_view, dlpack_exporter, refuse_copy
from emberharmony.backend.torch.device_ops import place
from emberharmony.backend.torch.dtypes import DTYPES, can_share_memory, cast, promotion, to_host_array
from emberharmony.backend.torch.tracing import is_traced
from emberharmony.core import op_globals
from emberharmony.core.dispatch import fast
from emberharmony.core.errors import TracedTensorError, UnsupportedOpError
from emberharmony.core.options import refuse_sparse
from emberharmony.core.tracing import LEAVES, TensorProxy

_TENSORS = frozenset((torch.Tensor,))
_ACCEPTED = frozenset("?bBhilfd")
"""The codes of the most common dtypes of NumPy that PyTorch has too."""

op_globals.publish(is_compiling=torch.compiler.is_compiling)


def of_host(array: np.ndarray) -> torch.Tensor:
    """Returns a NumPy array as a tensor on the default device.

    The tensor shares the array's memory where that is safe (see `can_share_memory`).

    Raises:
        DTypeError: if PyTorch has no such dtype.
    """
    if not can_share_memory(array):
        array = array.copy()
    if array.dtype.char in _ACCEPTED:
        tensor = torch.from_numpy(array)
    else:
        dtype_name = name_of(array.dtype)
        DTYPES[dtype_name]
        # NumPy has two types of 64-bit integers ("long" and "long long"), of which PyTorch accepts only one; and of
        # the bfloat16 of ml_dtypes, it accepts the bits.
        if dtype_name == "bfloat16":
            tensor = torch.from_numpy(array.view(np.uint16)).view(torch.bfloat16)
        else:
            tensor = torch.from_numpy(array.view(dtype_name) if array.dtype.char in "qQ" else array)
    device = place(None)
    return tensor if device is None else tensor.to(device)


def _new_tensor(x: Any, dtype: Any) -> torch.Tensor:
    """Returns a new tensor of the elements of a tensor, or of a list of tensors or of numbers.

    Raises:
        NotImplementedError: if the list holds anything else; the complete conversion takes it.
    """
    if x.__class__ is not list:
        if dtype is None or dtype is x.dtype:
            return x.clone()
        return TorchTensorOps.convert_to_tensor(x, dtype, copy=True)
    if x[0].__class__ is torch.Tensor and _TENSORS.issuperset(map(type, x)):
        new_tensor = torch.stack(cast_for_join(x, promotion))
    else:
        number_array = numbers_to_host(x, None if dtype is None else DTYPES.neutral[dtype])
        if number_array is None:
            raise NotImplementedError
        new_tensor = of_host(number_array)
    return new_tensor if dtype is None or dtype is new_tensor.dtype else cast(new_tensor, dtype)


class TorchTensorOps:
    """Holds the ops of `ops/tensor.py`.

    These make tensors of numbers, lists and other objects, and the bodies take tensors, and views and copies that share
    or leave the gradient's graph.
    """

    cast = staticmethod(cast)
    copy = staticmethod(torch.clone)
    shape = staticmethod(lambda x: tuple(x.shape))
    ndim = staticmethod(lambda x: x.ndim)
    size = staticmethod(lambda x: x.numel())

    @staticmethod
    def convert_to_tensor(
        x: torch.Tensor,
        dtype: Any = None,
        sparse: bool | None = None,
        ragged: bool | None = None,
        device: Any = None,
        copy: bool | None = None,
    ) -> torch.Tensor:
        if sparse or ragged:
            refuse_sparse("sparse", sparse)
            refuse_sparse("ragged", ragged)
        cast_x = x if dtype is None else cast(x, dtype)
        if device is not None:
            cast_x = cast_x.to(place(device))
        if copy is None or (copy is False and cast_x is x):
            return cast_x
        refuse_copy(copy)
        # `cast` makes a real tensor from a complex one as a view of its real part.
        return cast_x.clone() if cast_x is x or x.is_complex() else cast_x

    @staticmethod
    @fast(_new_tensor, "True", "{0}.__class__ is list and {0} and not is_compiling()")
    def array(x: torch.Tensor, dtype: Any = None) -> torch.Tensor:
        return _new_tensor(x, dtype)

    @staticmethod
    def view(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        if (x.requires_grad or not torch.compiler.is_compiling()) and is_traced(x):
            raise UnsupportedOpError(NO_BITS)
        check_view(x.shape, x.itemsize, dtype.itemsize)
        # PyTorch stores conjugation and negation as flags, which a view of the bits would miss.
        x = x.resolve_conj().resolve_neg()
        if not x.numel():
            return torch.empty(
                (*x.shape[:-1], x.shape[-1] * x.itemsize // dtype.itemsize), dtype=dtype, device=x.device
            )
        return (x if x.itemsize == dtype.itemsize else x.contiguous()).view(dtype)

    @staticmethod
    def from_dlpack(x: Any, device: Any = None, copy: bool | None = None) -> torch.Tensor:
        if isinstance(x, torch.Tensor):
            return TorchTensorOps.convert_to_tensor(x, device=device, copy=copy)
        x = dlpack_exporter(x, copy)
        if isinstance(x, np.ndarray) and not can_share_memory(x):
            refuse_copy(copy)
            x = x.copy()
        tensor = from_dlpack(x)
        DTYPES.neutral[tensor.dtype]
        return TorchTensorOps.convert_to_tensor(tensor, device=device, copy=copy)

    @staticmethod
    def to_numpy(x: torch.Tensor) -> np.ndarray:
        if torch.compiler.is_compiling():
            # torch.compile would translate the NumPy calls into PyTorch ops, and warn of the check for traced tensors,
            # whose functions it cannot trace (PyTorch 2.13).
            return torch._dynamo.disable(TorchTensorOps.to_numpy)(x)  # type: ignore[no-untyped-call]
        if is_traced(x):
            raise TracedTensorError(LEAVES)
        return to_host_array(x)

    @staticmethod
    def is_tensor(x: Any) -> bool:
        return isinstance(x, (torch.Tensor, TensorProxy))

    @staticmethod
    def eval(*trees: Any) -> None:
        return None  # PyTorch computes eagerly
