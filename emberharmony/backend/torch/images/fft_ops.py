"""Discrete Fourier transforms, on PyTorch."""

from collections.abc import Callable, Sequence

import torch

from emberharmony.backend.shared.images.fft import accept_fft_length, axes_and_lengths, axis_and_length
from emberharmony.backend.torch.dtypes import promotion

Native = Callable[..., torch.Tensor]


def _widen_half(x: torch.Tensor) -> torch.Tensor:
    """Returns a floating or complex tensor, half precision as float32: PyTorch has no half-precision FFT on the CPU."""
    x = promotion.floats(x)
    return x.to(torch.float32) if x.dtype.itemsize == 2 else x


def _transform_of_empty(native: Native, x: torch.Tensor, length: int, axis: int) -> torch.Tensor:
    """Returns the transform of an empty tensor: zeros of the right shape and dtype. MKL raises for it."""
    single_transform = native(x.new_zeros(length), length)
    return single_transform.new_zeros((*x.shape[:axis], single_transform.shape[0], *x.shape[axis + 1 :]))


def _op_of_transform(native: Native, *, real: bool = False, halved: bool = False) -> Native:
    """Returns the op over a PyTorch transform along one axis.

    Args:
        native: the function of PyTorch.
        real: whether the input must be real.
        halved: whether the input is one half of a Hermitian spectrum.
    """

    def transform(x: torch.Tensor, n: int | None = None, axis: int = -1, norm: str = "backward") -> torch.Tensor:
        if real:
            promotion.refuse(x, ("complex",))
        axis_index, length = axis_and_length(x.shape, n, axis, norm, halved)
        x = _widen_half(x)
        return native(x, length, axis_index, norm) if x.numel() else _transform_of_empty(native, x, length, axis_index)

    return transform


def _transform_of_axes(native: Native, transform_of_axis: Native) -> Native:
    """Returns the op over a PyTorch transform along several axes; `transform_of_axis` is that along one axis."""

    def transform(
        x: torch.Tensor, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
    ) -> torch.Tensor:
        axis_length_pairs = axes_and_lengths(x.shape, s, axes, norm)
        x = _widen_half(x)
        if x.numel():
            return native(x, [n for _, n in axis_length_pairs], [a for a, _ in axis_length_pairs], norm)
        for axis, length in axis_length_pairs:
            x = _transform_of_empty(transform_of_axis, x, length, axis)
        return x

    return transform


class TorchFftOps:
    """Holds the ops of `ops/images/fft_ops.py`.

    The bodies compute on the host, which has no gradient; on the CPU they take up to 3.6 times as long, for few
    elements.
    """

    fft = staticmethod(_op_of_transform(torch.fft.fft))
    ifft = staticmethod(_op_of_transform(torch.fft.ifft))
    rfft = staticmethod(accept_fft_length(_op_of_transform(torch.fft.rfft, real=True)))
    irfft = staticmethod(accept_fft_length(_op_of_transform(torch.fft.irfft, halved=True)))
    fftn = staticmethod(_transform_of_axes(torch.fft.fftn, torch.fft.fft))
    ifftn = staticmethod(_transform_of_axes(torch.fft.ifftn, torch.fft.ifft))
