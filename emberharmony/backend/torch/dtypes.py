"""PyTorch's dtypes by neutral name, and the promotion rule PyTorch's ops are bound with."""

import torch

from emberharmony.backend.promote import Promotion
from emberharmony.core import dtypes as neutral
from emberharmony.core.dtypes import NativeDTypes

DTYPES = NativeDTypes("torch", {d: getattr(torch, d.name) for d in neutral.ALL})


def cast(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Returns `x` in that dtype; of a complex number the real part, without PyTorch's warning."""
    if x.is_complex() and not dtype.is_complex and dtype is not torch.bool:
        x = x.real
    return x.to(dtype)


promotion = Promotion(
    DTYPES,
    cast,
    lambda number, dtype: torch.tensor(number, dtype=dtype),
    same="{0}.dtype is {1}.dtype",
    weak="({1}.__class__ is float and (float32_default or {0}.dtype.is_floating_point)"
    " or {1}.__class__ is int and (-1 < {1} < 128 or {0}.dtype.is_floating_point))",
    inexact="float32_default or {0}.dtype.is_floating_point",
    weak_inexact="(({1}.__class__ is float or {1}.__class__ is int)"
    " and (float32_default or {0}.dtype.is_floating_point))",
)
