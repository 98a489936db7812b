"""Discrete Fourier transforms, on PyTorch."""

from collections.abc import Callable, Sequence

import torch

from emberharmony.backend.torch.dtypes import promotion
from emberharmony.backend.transforms import check_fft


def _widened(x: torch.Tensor) -> torch.Tensor:
    x = promotion.floats(x)
    return x.to(torch.float32) if x.dtype.itemsize == 2 else x


def _one(native: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def transform(x: torch.Tensor, n: int | None = None, axis: int = -1, norm: str = "backward") -> torch.Tensor:
        check_fft(n, norm)
        return native(_widened(x), n, axis, norm)

    return transform


def _many(native: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def transform(
        x: torch.Tensor, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
    ) -> torch.Tensor:
        check_fft(s, norm)
        return native(_widened(x), s, list(range(x.ndim)) if axes is None else axes, norm)

    return transform


class TorchFftOps:
    """Holds the ops of `ops/fft.py`."""

    fft = staticmethod(_one(torch.fft.fft))
    ifft = staticmethod(_one(torch.fft.ifft))
    rfft = staticmethod(_one(torch.fft.rfft))
    irfft = staticmethod(_one(torch.fft.irfft))
    fftn = staticmethod(_many(torch.fft.fftn))
    ifftn = staticmethod(_many(torch.fft.ifftn))
