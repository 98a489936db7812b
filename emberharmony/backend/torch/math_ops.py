"""Elementwise mathematics, on PyTorch."""

import torch

from emberharmony.backend.torch.dtypes import promotion


class TorchMathOps:
    """Holds the ops of `ops/math.py`."""

    sin = staticmethod(promotion.unary(torch.sin))
    add = staticmethod(promotion.binary(torch.add))
