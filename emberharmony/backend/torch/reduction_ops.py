"""Reductions and cumulative ops, on PyTorch."""

from typing import Any

import torch

from emberharmony.backend.promote import nonempty, normalized
from emberharmony.backend.torch.dtypes import promotion

_UNSIGNED = (torch.uint8, torch.uint16, torch.uint32, torch.uint64)
_WIDE = _UNSIGNED[1:]


def _axes(x: torch.Tensor, axis: Any) -> tuple[int, ...]:
    return normalized(axis, x.ndim)


def accumulator(x: torch.Tensor, dtype: torch.dtype | None) -> torch.dtype:
    """Returns the dtype a sum is given in."""
    if dtype is not None:
        return dtype
    if x.dtype.is_floating_point or x.dtype.is_complex:
        return x.dtype
    return torch.uint64 if x.dtype in _UNSIGNED else torch.int64


def _kernel(wanted: torch.dtype) -> torch.dtype:
    """Returns the dtype that has the kernels: unsigned sums are those of int64, modulo 2**64."""
    return torch.int64 if wanted in _WIDE else wanted


def _sum(x: torch.Tensor, axis: Any = None, keepdims: bool = False, dtype: torch.dtype | None = None) -> torch.Tensor:
    wanted = accumulator(x, dtype)
    axes = _axes(x, axis)
    if not axes:
        return x.to(wanted)
    return torch.sum(x.to(_kernel(wanted)) if x.dtype in _WIDE else x, axes, keepdims, dtype=_kernel(wanted)).to(wanted)


def _extreme(native: Any, name: str) -> Any:
    def extreme(
        x: torch.Tensor, axis: Any = None, keepdims: bool = False, initial: float | None = None
    ) -> torch.Tensor:
        axes = _axes(x, axis)
        if initial is None and not x.numel():
            nonempty(x.shape, axis)
        wide = x.dtype in _WIDE
        values = x.to(torch.int64) if wide else x
        if x.dtype is torch.uint64:
            values = values ^ -(2**63)
        if initial is not None and not x.numel():
            shape = [1 if a in axes else n for a, n in enumerate(x.shape)]
            filled = torch.full(shape, initial, dtype=x.dtype, device=x.device)
            return filled if keepdims else filled.squeeze(axes)
        result = native(values, axes, keepdims) if axes else values
        if x.dtype is torch.uint64:
            result = result ^ -(2**63)
        result = result.to(x.dtype)
        if initial is None:
            return result
        bound = torch.tensor(initial, dtype=x.dtype, device=x.device)
        return torch.maximum(result, bound) if name == "max" else torch.minimum(result, bound)

    return extreme


def _arg(native: Any) -> Any:
    def arg(x: torch.Tensor, axis: int | None = None, keepdims: bool = False) -> torch.Tensor:
        nonempty(x.shape, axis)
        values = x.to(torch.int64) if x.dtype in _WIDE else x.to(torch.uint8) if x.dtype is torch.bool else x
        if x.dtype is torch.uint64:
            values = values ^ -(2**63)
        if axis is None:
            return native(values).reshape([1] * x.ndim if keepdims else [])
        return native(values, axis, keepdims)

    return arg


def _widened(x: torch.Tensor) -> torch.Tensor:
    return x.to(torch.float64) if x.dtype is torch.float32 and x.device.type == "cpu" else x


class TorchReductionOps:
    """Holds the ops of `ops/reduction.py`."""

    sum = staticmethod(_sum)
    max = staticmethod(_extreme(torch.amax, "max"))
    min = staticmethod(_extreme(torch.amin, "min"))
    argmax = staticmethod(_arg(torch.argmax))
    argmin = staticmethod(_arg(torch.argmin))

    @staticmethod
    def prod(
        x: torch.Tensor, axis: Any = None, keepdims: bool = False, dtype: torch.dtype | None = None
    ) -> torch.Tensor:
        wanted = accumulator(x, dtype)
        result = x.to(_kernel(wanted))
        if wanted in (torch.float16, torch.bfloat16):
            result = result.to(torch.float32)
        elif wanted is torch.float32:
            result = _widened(result)
        for a in sorted(_axes(x, axis), reverse=True):
            result = torch.prod(result, a, keepdims)
        return result.to(wanted)

    @staticmethod
    def mean(x: torch.Tensor, axis: Any = None, keepdims: bool = False) -> torch.Tensor:
        x = promotion.floats(x)
        axes = _axes(x, axis)
        return torch.mean(x, axes, keepdims) if axes else x

    @staticmethod
    def var(x: torch.Tensor, axis: Any = None, keepdims: bool = False, correction: float = 0) -> torch.Tensor:
        x = promotion.floats(x)
        axes = _axes(x, axis)
        if not axes:
            return torch.zeros_like(x.real)
        with_zero = torch.var(_widened(x), axes, correction=0, keepdim=keepdims)
        if correction:
            count = x.numel() / max(1, with_zero.numel())
            with_zero = with_zero * (count / (count - correction) if count > correction else torch.inf)
        return with_zero.to(x.real.dtype)

    @staticmethod
    def std(x: torch.Tensor, axis: Any = None, keepdims: bool = False, correction: float = 0) -> torch.Tensor:
        x = promotion.floats(x)
        wide = _widened(x)
        if x.dtype in (torch.float16, torch.bfloat16):
            wide = x.to(torch.float32)
        return torch.sqrt(TorchReductionOps.var(wide, axis, keepdims, correction)).to(x.real.dtype)

    @staticmethod
    def any(x: torch.Tensor, axis: Any = None, keepdims: bool = False) -> torch.Tensor:
        axes = _axes(x, axis)
        return torch.any(x != 0, axes, keepdims) if axes else x != 0

    @staticmethod
    def all(x: torch.Tensor, axis: Any = None, keepdims: bool = False) -> torch.Tensor:
        axes = _axes(x, axis)
        return torch.all(x != 0, axes, keepdims) if axes else x != 0

    @staticmethod
    def cumsum(x: torch.Tensor, axis: int | None = None, dtype: torch.dtype | None = None) -> torch.Tensor:
        if axis is None:
            x, axis = x.reshape(-1), 0
        wanted = accumulator(x, dtype)
        return torch.cumsum(x.to(_kernel(wanted)), axis).to(wanted)

    @staticmethod
    def cumprod(x: torch.Tensor, axis: int | None = None, dtype: torch.dtype | None = None) -> torch.Tensor:
        if axis is None:
            x, axis = x.reshape(-1), 0
        wanted = accumulator(x, dtype)
        return torch.cumprod(x.to(_kernel(wanted)), axis).to(wanted)

    @staticmethod
    def logsumexp(x: torch.Tensor, axis: Any = None, keepdims: bool = False) -> torch.Tensor:
        x = promotion.floats(x)
        axes = _axes(x, axis)
        return torch.logsumexp(x, axes, keepdims) if axes else x
