"""Discrete Fourier transforms, on NumPy; the ops look up `numpy.fft` when called, because its import takes 2 ms."""

from collections.abc import Callable

import numpy as np

from emberharmony.backend.numpy.dtypes import promotion
from emberharmony.backend.shared.images.fft import accept_fft_length, axis_and_length


def _op_of_transform(name: str, *, real: bool = False, halved: bool = False) -> Callable[..., np.ndarray]:
    def transform(x: np.ndarray, n: int | None = None, axis: int = -1, norm: str = "backward") -> np.ndarray:
        if real:
            promotion.refuse(x, ("complex",))
        axis_index, length = axis_and_length(x.shape, n, axis, norm, halved)
        x = promotion.floats(x)
        if halved and not x.shape[axis_index]:  # irfft of NumPy 2.4 returns uninitialised memory for an empty spectrum
            x = np.zeros((*x.shape[:axis_index], 1, *x.shape[axis_index + 1 :]), x.dtype)
        return getattr(np.fft, name)(x.astype(np.float32) if x.dtype.itemsize == 2 else x, length, axis_index, norm)

    return transform


class NumpyFftOps:
    """Holds the ops of `ops/images/fft_ops.py`.

    The bodies take 1.8 to 2 times as long, for few elements, because they leave the library and come back.
    """

    fft = staticmethod(_op_of_transform("fft"))
    ifft = staticmethod(_op_of_transform("ifft"))
    rfft = staticmethod(accept_fft_length(_op_of_transform("rfft", real=True)))
    irfft = staticmethod(accept_fft_length(_op_of_transform("irfft", halved=True)))
