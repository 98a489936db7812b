"""Elementwise arithmetic and rounding, on PyTorch."""

from collections.abc import Callable
from typing import Any

import torch

from emberharmony.backend.torch.dtypes import promotion
from emberharmony.core.dispatch import fast

_BOOL = ("bool",)
_ORDERED = ("bool", "complex")
Binary = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def _by_zero(native: Binary) -> Binary:
    """Returns an integer division that gives 0 where PyTorch raises."""

    def divided(x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
        if x1.dtype.is_floating_point:
            return native(x1, x2)
        zero = x2 == 0
        return native(x1, torch.where(zero, 1, x2)).masked_fill(zero, 0)

    return divided


def _kept(native: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """Returns a rounding op, which leaves integers and booleans as they are."""

    @fast(native, "{0}.dtype is native_float32")
    def rounded(x: torch.Tensor) -> torch.Tensor:
        return native(x) if x.dtype.is_floating_point else x

    return rounded


def _power(x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
    if x1.dtype.is_floating_point or x1.dtype.is_complex or not (x2 < 0).any():
        return torch.pow(x1, x2)
    sign = torch.where(x2 % 2 == 0, 1, x1)
    truncated = torch.where(x1.abs() == 1, sign, 0)
    return torch.where(x2 < 0, truncated, torch.pow(x1, x2.clamp_min(0)))


class TorchMathOps:
    """Holds the ops of `ops/math.py`."""

    add = staticmethod(promotion.binary(torch.add))
    subtract = staticmethod(promotion.binary(torch.subtract, kinds=_BOOL))
    multiply = staticmethod(promotion.binary(torch.multiply))
    divide = staticmethod(promotion.binary(torch.divide, inexact=True))
    floor_divide = staticmethod(
        promotion.binary(
            _by_zero(torch.floor_divide),
            kinds=_ORDERED,
            fast_native=torch.floor_divide,
            guard="{0}.dtype is native_float32",
        )
    )
    mod = staticmethod(
        promotion.binary(
            _by_zero(torch.remainder), kinds=_ORDERED, fast_native=torch.remainder, guard="{0}.dtype is native_float32"
        )
    )
    fmod = staticmethod(
        promotion.binary(
            _by_zero(torch.fmod), kinds=_ORDERED, fast_native=torch.fmod, guard="{0}.dtype is native_float32"
        )
    )
    power = staticmethod(
        promotion.binary(_power, kinds=_BOOL, fast_native=torch.pow, guard="{0}.dtype is native_float32")
    )
    maximum = staticmethod(promotion.binary(torch.maximum, weak=False, ordered=True))
    minimum = staticmethod(promotion.binary(torch.minimum, weak=False, ordered=True))
    hypot = staticmethod(promotion.binary(torch.hypot, inexact=True, weak=False))
    arctan2 = staticmethod(promotion.binary(torch.arctan2, inexact=True, weak=False))
    copysign = staticmethod(promotion.binary(torch.copysign, inexact=True))
    square = staticmethod(torch.square)
    reciprocal = staticmethod(promotion.unary(torch.reciprocal))
    sqrt = staticmethod(promotion.unary(torch.sqrt))
    rsqrt = staticmethod(promotion.unary(torch.rsqrt))
    signbit = staticmethod(torch.signbit)
    floor = staticmethod(_kept(torch.floor))
    ceil = staticmethod(_kept(torch.ceil))
    trunc = staticmethod(_kept(torch.trunc))

    @staticmethod
    def positive(x: torch.Tensor) -> torch.Tensor:
        return x

    @staticmethod
    def negative(x: torch.Tensor) -> torch.Tensor:
        if x.dtype in (torch.uint16, torch.uint32, torch.uint64):
            return (-x.to(torch.int64)).to(x.dtype)
        return torch.negative(x)

    @staticmethod
    def absolute(x: torch.Tensor) -> torch.Tensor:
        return x if x.dtype is torch.bool or not x.dtype.is_signed else torch.absolute(x)

    @staticmethod
    def sign(x: torch.Tensor) -> torch.Tensor:
        if x.dtype.is_complex:
            return torch.sgn(x)
        if x.dtype.is_floating_point:
            return torch.where(x.isnan(), x, torch.sign(x))
        return torch.sign(x) if x.dtype.is_signed else (x != 0).to(x.dtype)

    @staticmethod
    def round(x: torch.Tensor, decimals: int = 0) -> torch.Tensor:
        if x.dtype.is_floating_point:
            return torch.round(x, decimals=decimals)
        if decimals >= 0 or x.dtype is torch.bool:
            return x
        scale = 10**-decimals
        return (torch.round(x.to(torch.float64) / scale) * scale).to(x.dtype)

    @staticmethod
    def conj(x: torch.Tensor) -> torch.Tensor:
        return torch.conj_physical(x) if x.dtype.is_complex else x

    @staticmethod
    def real(x: torch.Tensor) -> torch.Tensor:
        return torch.real(x)

    @staticmethod
    def imag(x: torch.Tensor) -> torch.Tensor:
        return torch.imag(x) if x.dtype.is_complex else torch.zeros_like(x)

    @staticmethod
    def nan_to_num(
        x: torch.Tensor, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
    ) -> torch.Tensor:
        return torch.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)
