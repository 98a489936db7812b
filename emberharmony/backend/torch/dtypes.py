"""PyTorch's dtypes by neutral name, and the promotion rule of PyTorch's ops."""

from typing import Any

import numpy as np
import torch

from emberharmony.backend.host import bfloat16_of_numpy
from emberharmony.backend.promote import SAME, Native, Promotion
from emberharmony.core import dtypes as neutral
from emberharmony.core import op_globals
from emberharmony.core.dtypes import NativeDTypes
from emberharmony.core.registry import Facts
from emberharmony.core.state.handlers import passing_error

DTYPES = NativeDTypes("torch", {d: getattr(torch, d.name) for d in neutral.ALL})


def cast(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Returns `x` in a dtype; complex numbers lose their imaginary part, without PyTorch's warning."""
    if x.is_complex() and not dtype.is_complex and dtype is not torch.bool:
        x = x.real
    return x.to(dtype)


_AS_THEY_ARE = frozenset((torch.float32, torch.float64, torch.int64, torch.int32, torch.bool))
_is_wrapped = torch._C._functorch.is_functorch_wrapped_tensor


def to_host_array(x: torch.Tensor) -> np.ndarray:
    """Returns a tensor's values as an array, which shares the tensor's memory where possible."""
    # torch.compile (PyTorch 2.13) cannot trace `_is_wrapped`, where it compiles a function in parts.
    is_readable = x.dtype in _AS_THEY_ARE and x.is_cpu and not torch.compiler.is_compiling()
    if is_readable and not (x.requires_grad or x.is_neg() or x._is_zerotensor() or _is_wrapped(x)):
        return x.numpy()
    x = x.detach().resolve_conj().resolve_neg().cpu()
    # `Tensor.numpy` does not support bfloat16 (PyTorch 2.13), so pass its bits.
    host_ready_tensor = x.view(torch.uint16) if x.dtype is torch.bfloat16 else x
    while torch._C._functorch.is_gradtrackingtensor(host_ready_tensor):
        host_ready_tensor = torch._C._functorch.get_unwrapped(host_ready_tensor)
    try:
        array = host_ready_tensor.numpy()
    except RuntimeError as error:
        if passing_error(error):
            raise
        # A tensor wrapped by torch.func gives no access to its memory, and the zeros that torch.func makes have none;
        # `tolist` reads both.
        array = np.array(host_ready_tensor.clone().tolist(), DTYPES.neutral[host_ready_tensor.dtype].name).reshape(
            tuple(host_ready_tensor.shape)
        )
    return array.view(bfloat16_of_numpy()) if x.dtype is torch.bfloat16 else array


def can_share_memory(array: np.ndarray) -> bool:
    """Returns whether a tensor may be made on an array's memory: if it is writable and has no negative strides.

    The array must be writable, because PyTorch has no read-only tensors and would write to memory that others expect
    to stay the same. Negative strides are not allowed: `torch.from_dlpack` (PyTorch 2.13) aborts the process.
    """
    return array.flags.writeable and min(array.strides, default=0) >= 0


_WIDE = (torch.uint16, torch.uint32, torch.uint64)
_LOWEST = -(2**63)


def as_orderable(x: torch.Tensor) -> torch.Tensor:
    """Returns booleans and wide unsigned integers as integers in the same order, which PyTorch can compare and sort."""
    if x.dtype is torch.bool:
        return x.to(torch.uint8)
    if x.dtype in _WIDE:
        # Flipping the highest bit shifts the range of uint64 to that of int64, and keeps the order.
        return x.to(torch.int64) ^ _LOWEST
    return x


def from_orderable(orderable_result: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Returns a result of `as_orderable` converted back to its original dtype."""
    return (orderable_result ^ _LOWEST if dtype in _WIDE else orderable_result).to(dtype)


def extend_by_int64(native: Native, ordered: bool) -> Native:
    """Returns a binary op that also supports uint16, uint32 and uint64, for which PyTorch has no kernels.

    uint64 is computed in int64, modulo 2**64. If `ordered`, its range is shifted to that of int64 first, so that the
    order of the values is kept.

    Args:
        native: the op for all other dtypes.
        ordered: whether the result depends on the order of the values.
    """

    def call_in_int64(x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
        if x1.dtype not in _WIDE:
            return native(x1, x2)
        needs_shift = ordered and x1.dtype is torch.uint64
        a, b = ((x.to(torch.int64) ^ _LOWEST) if needs_shift else x.to(torch.int64) for x in (x1, x2))
        result = native(a, b)
        if result.dtype is not torch.int64:
            return result
        return (result ^ _LOWEST if needs_shift else result).to(x1.dtype)

    return call_in_int64


op_globals.publish_type("plain_tensor", torch.Tensor, "float32_default")
op_globals.publish(int64_of_torch=torch.int64, uint8_of_torch=torch.uint8)


class _Promotion(Promotion):
    """The promotion rule of PyTorch's ops, with the wide unsigned dtypes that PyTorch has no kernels for."""

    def floats(self, x: Any) -> Any:
        """Returns `x` if it is floating or complex, else cast to the default float.

        A dtype that is looked up in a table gives a compiled function guards of the whole table (PyTorch 2.13).
        """
        return x if x.dtype.is_floating_point or x.dtype.is_complex else self.cast_to(x, neutral.default_float())

    def for_all_dtypes(self, native: Native, facts: Facts, count: int) -> Native:
        """Returns a native function of two tensors extended to the wide unsigned dtypes."""
        is_exact = count == 2 and facts.gives != "float"
        return extend_by_int64(native, facts.takes.startswith("real")) if is_exact else native


promotion = _Promotion(
    DTYPES,
    cast,
    lambda number, dtype: torch.tensor(number, dtype=dtype),
    same=SAME,
    weak="({1}.__class__ is float and (float32_default or {0}.dtype.is_floating_point)"
    " or {1}.__class__ is int and (-1 < {1} < 128 or {0}.dtype.is_floating_point))",
    inexact="float32_default or {0}.dtype.is_floating_point",
    weak_inexact="(({1}.__class__ is float or {1}.__class__ is int)"
    " and (float32_default or {0}.dtype.is_floating_point))",
    plain_inexact="plain_tensor",
)
