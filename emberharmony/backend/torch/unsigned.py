"""The arithmetic of uint16, uint32 and uint64, for which PyTorch has no kernels, through int64.

uint64 is worked on as the int64 of the same bits. Source: division by Hacker's Delight (Warren), section 9-3.
"""

from collections.abc import Callable

import torch

Binary = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
_LOWEST = -(2**63)
_HIGHEST = 2**63 - 1


def wide(native: Binary, bits64: Binary) -> Binary:
    """Returns a binary op over `native` that also takes the wide unsigned dtypes, of uint64 by `bits64`."""

    def called(x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
        if x1.dtype not in (torch.uint16, torch.uint32, torch.uint64):
            return native(x1, x2)
        op = bits64 if x1.dtype is torch.uint64 else native
        return op(x1.to(torch.int64), x2.to(torch.int64)).to(x1.dtype)

    return called


def _below(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a ^ _LOWEST) < (b ^ _LOWEST)


def floor_divide(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Returns the quotient; 0 by zero."""
    divisor = torch.where(b > 0, b, 1)
    # Half the dividend fits int64; twice its quotient is at most one too small.
    quotient = torch.floor_divide(shift_right(a, torch.ones_like(a)), divisor) << 1
    quotient = quotient + ~_below(a - quotient * divisor, divisor)
    # A divisor from 2**63 on is held once at most.
    return torch.where(b < 0, (~_below(a, b)).to(torch.int64), quotient).masked_fill(b == 0, 0)


def mod(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Returns the remainder; 0 by zero."""
    return (a - floor_divide(a, b) * b).masked_fill(b == 0, 0)


def power(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Returns the power modulo 2**64."""
    root = torch.pow(a, shift_right(b, torch.ones_like(b)))
    return root * root * torch.where(b & 1 == 1, a, 1)


def gcd(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Returns the greatest common divisor by Euclid's algorithm."""
    a = a + torch.zeros_like(b)
    while bool(b.any()):
        a, b = torch.where(b == 0, a, b), mod(a, b)
    return a


def shift_right(a: torch.Tensor, count: torch.Tensor) -> torch.Tensor:
    """Returns the bits moved down, zeros following; `count` is from 0 to 63."""
    once = (a >> 1) & _HIGHEST
    return torch.where(count == 0, a, once >> (count - 1).clamp_min(0))
