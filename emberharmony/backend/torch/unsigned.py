"""Arithmetic of uint16, uint32 and uint64, computed in int64, because PyTorch 2.13 has no kernels for them.

All functions below `support_unsigned` compute uint64: they take and return int64 tensors of the same bits.

Source: for the division, Warren, "Hacker's Delight", section 9-3.
"""

from collections.abc import Callable

import torch

Binary = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
_LOWEST = -(2**63)
_HIGHEST = 2**63 - 1


def support_unsigned(native: Binary, bits64: Binary) -> Binary:
    """Returns a binary op that also supports uint16, uint32 and uint64.

    Args:
        native: the op for all other dtypes. It computes uint16 and uint32 too, whose values int64 can represent.
        bits64: the op for uint64, on int64 tensors of the same bits.
    """

    def call_wide(x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
        if x1.dtype not in (torch.uint16, torch.uint32, torch.uint64):
            return native(x1, x2)
        op = bits64 if x1.dtype is torch.uint64 else native
        return op(x1.to(torch.int64), x2.to(torch.int64)).to(x1.dtype)

    return call_wide


def _is_less(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Returns whether `a < b` as unsigned numbers: flipping the highest bit maps their order to that of int64."""
    return (a ^ _LOWEST) < (b ^ _LOWEST)


def floor_divide(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Returns the quotient of unsigned integers, rounded down; 0 where the divisor is 0."""
    divisor = torch.where(b > 0, b, 1)
    # Half the dividend fits into int64. Twice its quotient is at most one too small.
    quotient = torch.floor_divide(shift_right(a, torch.ones_like(a)), divisor) << 1
    quotient = quotient + ~_is_less(a - quotient * divisor, divisor)
    # A divisor of 2**63 or more, negative as int64, fits into the dividend at most once.
    return torch.where(b < 0, (~_is_less(a, b)).to(torch.int64), quotient).masked_fill(b == 0, 0)


def mod(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Returns the remainder of unsigned integers; 0 where the divisor is 0."""
    return (a - floor_divide(a, b) * b).masked_fill(b == 0, 0)


def power(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Returns the power of unsigned integers modulo 2**64."""
    # An exponent of 2**63 or more would be negative as int64, so raise to half the exponent, and square.
    half_power = torch.pow(a, shift_right(b, torch.ones_like(b)))
    return half_power * half_power * torch.where(b & 1 == 1, a, 1)


def gcd(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Returns the greatest common divisor of unsigned integers by Euclid's algorithm."""
    a = a + torch.zeros_like(b)
    while bool(b.any()):
        a, b = torch.where(b == 0, a, b), mod(a, b)
    return a


def shift_right(a: torch.Tensor, count: torch.Tensor) -> torch.Tensor:
    """Returns the bits shifted right by `count`, from 0 to 63; zeros enter from the left, as unsigned shifts demand."""
    shifted_by_1 = (a >> 1) & _HIGHEST
    return torch.where(count == 0, a, shifted_by_1 >> (count - 1).clamp_min(0))
