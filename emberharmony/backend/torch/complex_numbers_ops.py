"""Complex numbers and their parts, on PyTorch."""

import torch

from emberharmony.backend.torch.dtypes import promotion
from emberharmony.core.errors import ShapeError


class TorchComplexNumbersOps:
    """Holds the ops of `ops/complex_numbers.py`."""

    real = staticmethod(torch.real)

    @staticmethod
    def imag(x: torch.Tensor) -> torch.Tensor:
        return torch.imag(x) if x.dtype.is_complex else torch.zeros_like(x)

    @staticmethod
    def conj(x: torch.Tensor) -> torch.Tensor:
        return torch.conj_physical(x) if x.dtype.is_complex else x

    @staticmethod
    def view_as_complex(x: torch.Tensor) -> torch.Tensor:
        promotion.refuse(x, ("complex",))
        if x.shape[-1:] != (2,):
            raise ShapeError(f"shape {tuple(x.shape)} must end in 2, the real and the imaginary part")
        x = x if x.dtype is torch.float64 else x.to(torch.float32)
        return torch.complex(x[..., 0], x[..., 1])
