"""Rounding, signs, `nextafter`, `ldexp` and `nan_to_num`, on PyTorch."""

from collections.abc import Callable
from typing import Any

import torch

from emberharmony.backend.promote import direct
from emberharmony.backend.shared.elementwise.rounding import Decimals, holds_tensor, replacement_numbers
from emberharmony.backend.torch.dtypes import promotion

_REACH = {torch.float16: 15, torch.bfloat16: 100, torch.float32: 100, torch.float64: 1000}
"""An exponent e for which the dtype can represent 2**e and 2**-e; three such steps exceed its range of exponents."""


def _rounding_op(native: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """Returns a rounding op over a native function; it returns integers and booleans unchanged."""
    return direct(native, lambda x: native(x) if x.dtype.is_floating_point else x, when="{0}.dtype is native_float32")


def _signbit(x: torch.Tensor) -> torch.Tensor:
    if x.dtype in (torch.uint16, torch.uint32, torch.uint64):  # PyTorch 2.12 has no kernel for them
        return torch.zeros_like(x, dtype=torch.bool)
    return torch.signbit(x)


class TorchRoundingOps(Decimals):
    """Holds the ops of `ops/elementwise/rounding.py`.

    The bodies take 4.7 to 23 times as long, for few elements. `signbit`, `nan_to_num` and `ldexp` correct the kernels
    for dtypes and at the ends of the range.
    """

    composed: Callable[[str], Callable[..., torch.Tensor]]

    floor = _rounding_op(torch.floor)
    ceil = _rounding_op(torch.ceil)
    trunc = _rounding_op(torch.trunc)
    copysign = direct(torch.copysign)
    signbit = direct(torch.signbit, _signbit, when="{0}.dtype.is_floating_point")
    nextafter = direct(torch.nextafter, weak=False)

    _round_to_integers = staticmethod(torch.round)

    @staticmethod
    def _round_scaled(x: torch.Tensor, decimals: int, bound: float) -> torch.Tensor:
        rounded_x = torch.round(x, decimals=decimals)
        if decimals < 0:
            return rounded_x
        # A number so large that it has no such decimals must stay the same, but torch.round may scale it to infinity.
        # For such a number `x - unit` and `x + unit` are the number itself, so clamping restores it. This is
        # faster than a comparison with `bound`.
        rounding_unit, x_detached = 10.0**-decimals, x.detach()
        return torch.clamp(rounded_x, x_detached - rounding_unit, x_detached + rounding_unit)

    def nan_to_num(self, x: torch.Tensor, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> torch.Tensor:
        if holds_tensor(nan, posinf, neginf):
            return self.composed("nan_to_num")(x, nan, posinf, neginf)
        nan, posinf, neginf = replacement_numbers(nan, posinf, neginf)
        return torch.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)

    @staticmethod
    def ldexp(x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
        promotion.refuse(x2, ("float", "complex"))
        x = promotion.floats(x1)
        promotion.refuse(x, ("complex",))
        # 2 ** x2 alone may overflow where the product does not, so multiply in three steps.
        largest_step = _REACH[x.dtype]
        remaining_shift = x2.to(torch.int64)
        if x2.dtype is torch.uint64:
            remaining_shift = torch.where(remaining_shift < 0, 3 * largest_step, remaining_shift)
        remaining_shift = remaining_shift.clamp(-3 * largest_step, 3 * largest_step)
        for _ in range(3):
            exponent_step = remaining_shift.clamp(-largest_step, largest_step)
            x, remaining_shift = x * torch.exp2(exponent_step.to(x.dtype)), remaining_shift - exponent_step
        return x
