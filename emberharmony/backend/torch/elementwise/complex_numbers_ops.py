"""Complex numbers and their parts, on PyTorch."""

import torch

from emberharmony.backend.shared.arrays.shape import check_complex_pairs
from emberharmony.backend.torch.dtypes import promotion


class TorchComplexNumbersOps:
    """Holds the ops of `ops/elementwise/complex_numbers.py`.

    PyTorch conjugates lazily, and views pairs as complex numbers; the bodies compute them, in 3 to 8 times the time.
    """

    real = staticmethod(torch.real)
    conj = staticmethod(torch.conj_physical)

    @staticmethod
    def imag(x: torch.Tensor) -> torch.Tensor:
        return torch.imag(x) if x.dtype.is_complex else torch.zeros_like(x)

    @staticmethod
    def view_as_complex(x: torch.Tensor) -> torch.Tensor:
        promotion.refuse(x, ("complex",))
        check_complex_pairs(x.shape)
        x = x if x.dtype is torch.float64 else x.to(torch.float32)
        return torch.complex(x[..., 0], x[..., 1])
