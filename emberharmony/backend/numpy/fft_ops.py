"""Discrete Fourier transforms, on NumPy; `numpy.fft` is named and not touched, for it takes 2 ms to import."""

from collections.abc import Callable, Sequence

import numpy as np

from emberharmony.backend.numpy.dtypes import promotion
from emberharmony.backend.transforms import check_fft


def _widened(x: np.ndarray) -> np.ndarray:
    x = promotion.floats(x)
    return x.astype(np.float32) if x.dtype.itemsize == 2 else x


def _one(name: str) -> Callable[..., np.ndarray]:
    def transform(x: np.ndarray, n: int | None = None, axis: int = -1, norm: str = "backward") -> np.ndarray:
        check_fft(n, norm)
        return getattr(np.fft, name)(_widened(x), n, axis, norm)

    return transform


def _many(name: str) -> Callable[..., np.ndarray]:
    def transform(
        x: np.ndarray, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
    ) -> np.ndarray:
        check_fft(s, norm)
        return getattr(np.fft, name)(_widened(x), s, range(x.ndim) if axes is None else axes, norm)

    return transform


class NumpyFftOps:
    """Holds the ops of `ops/fft.py`."""

    fft = staticmethod(_one("fft"))
    ifft = staticmethod(_one("ifft"))
    rfft = staticmethod(_one("rfft"))
    irfft = staticmethod(_one("irfft"))
    fftn = staticmethod(_many("fftn"))
    ifftn = staticmethod(_many("ifftn"))
