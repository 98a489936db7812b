"""Bitwise ops, on PyTorch."""

import torch

from emberharmony.backend.torch.dtypes import promotion

_INEXACT = ("float", "complex")


def _left(x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
    width = x1.dtype.itemsize * 8
    outside = (x2 < 0) | (x2 >= width)
    return torch.bitwise_left_shift(x1, torch.where(outside, 0, x2)).masked_fill(outside, 0)


def _right(x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
    width = x1.dtype.itemsize * 8
    outside = (x2 < 0) | (x2 >= width)
    shifted = torch.bitwise_right_shift(x1, torch.where(outside, 0, x2))
    return torch.where(outside, torch.where(x1 < 0, -1, 0).to(x1.dtype), shifted)


class TorchBitwiseOps:
    """Holds the ops of `ops/bitwise.py`."""

    bitwise_and = staticmethod(promotion.binary(torch.bitwise_and, kinds=_INEXACT))
    bitwise_or = staticmethod(promotion.binary(torch.bitwise_or, kinds=_INEXACT))
    bitwise_xor = staticmethod(promotion.binary(torch.bitwise_xor, kinds=_INEXACT))
    bitwise_left_shift = staticmethod(promotion.binary(_left, kinds=("bool", *_INEXACT), direct=False))
    bitwise_right_shift = staticmethod(promotion.binary(_right, kinds=("bool", *_INEXACT), direct=False))

    @staticmethod
    def bitwise_not(x: torch.Tensor) -> torch.Tensor:
        promotion.refuse(x, _INEXACT)
        return torch.bitwise_not(x)
