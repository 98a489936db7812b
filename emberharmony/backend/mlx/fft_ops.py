"""Discrete Fourier transforms, on MLX."""

from collections.abc import Callable, Sequence

import mlx.core as mx

from emberharmony.backend.mlx.dtypes import promotion
from emberharmony.backend.transforms import check_fft


def _widened(x: mx.array) -> mx.array:
    x = promotion.floats(x)
    return x.astype(mx.float32) if x.dtype.size == 2 else x


def _one(native: Callable[..., mx.array]) -> Callable[..., mx.array]:
    def transform(x: mx.array, n: int | None = None, axis: int = -1, norm: str = "backward") -> mx.array:
        check_fft(n, norm)
        return native(_widened(x), n, axis, norm)

    return transform


def _many(native: Callable[..., mx.array]) -> Callable[..., mx.array]:
    def transform(
        x: mx.array, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
    ) -> mx.array:
        check_fft(s, norm)
        return native(_widened(x), s, list(range(x.ndim)) if axes is None else axes, norm)

    return transform


class MLXFftOps:
    """Holds the ops of `ops/fft.py`."""

    fft = staticmethod(_one(mx.fft.fft))
    ifft = staticmethod(_one(mx.fft.ifft))
    rfft = staticmethod(_one(mx.fft.rfft))
    irfft = staticmethod(_one(mx.fft.irfft))
    fftn = staticmethod(_many(mx.fft.fftn))
    ifftn = staticmethod(_many(mx.fft.ifftn))
