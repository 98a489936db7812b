"""Bitwise ops, on PyTorch."""

import torch

from emberharmony.backend.promote import direct
from emberharmony.backend.torch import unsigned
from emberharmony.backend.torch.unsigned import support_unsigned

_WIDE = (torch.uint16, torch.uint32, torch.uint64)


# The result of a shift by a negative count, or by the dtype's width or more, depends on the processor. The functions
# below shift by 0 there, and fill in the result.
def _shift_left(x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
    width = x1.dtype.itemsize * 8
    is_outside = (x2 < 0) | (x2 >= width)
    return torch.bitwise_left_shift(x1, torch.where(is_outside, 0, x2)).masked_fill(is_outside, 0)


def _shift_right(x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
    width = x1.dtype.itemsize * 8
    is_outside = (x2 < 0) | (x2 >= width)
    shifted_x1 = torch.bitwise_right_shift(x1, torch.where(is_outside, 0, x2))
    return torch.where(is_outside, torch.where(x1 < 0, -1, 0).to(x1.dtype), shifted_x1)


def _shift_right_64(x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
    is_outside = (x2 < 0) | (x2 >= 64)
    return unsigned.shift_right(x1, torch.where(is_outside, 0, x2)).masked_fill(is_outside, 0)


def _bitwise_not(x: torch.Tensor) -> torch.Tensor:
    # PyTorch 2.13 has no `bitwise_not` for wide unsigned dtypes.
    return torch.bitwise_not(x.to(torch.int64)).to(x.dtype) if x.dtype in _WIDE else torch.bitwise_not(x)


class TorchBitwiseOps:
    """Holds the ops of `ops/logic/bitwise.py`.

    `bitwise_not` also takes wide unsigned dtypes, which the kernel refuses; its body takes 9 times as long, for few
    elements.
    """

    bitwise_and = direct(torch.bitwise_and)
    bitwise_or = direct(torch.bitwise_or)
    bitwise_xor = direct(torch.bitwise_xor)
    bitwise_left_shift = staticmethod(support_unsigned(_shift_left, _shift_left))
    bitwise_right_shift = staticmethod(support_unsigned(_shift_right, _shift_right_64))
    bitwise_not = staticmethod(_bitwise_not)
