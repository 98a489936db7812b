"""Discrete Fourier transforms, on MLX."""

from collections.abc import Callable

import mlx.core as mx

from emberharmony.backend.mlx.derivatives import with_forward_mode
from emberharmony.backend.mlx.device_ops import require_memory
from emberharmony.backend.mlx.dtypes import promotion
from emberharmony.backend.shared.images.fft import accept_fft_length, axis_and_length


def _op_of_transform(
    native: Callable[..., mx.array], *, real: bool = False, halved: bool = False
) -> Callable[..., mx.array]:
    """Returns the op over an MLX transform along one axis.

    Args:
        native: the function of MLX.
        real: whether the input must be real.
        halved: whether the input is one half of a Hermitian spectrum.
    """

    def transform(x: mx.array, n: int | None = None, axis: int = -1, norm: str = "backward") -> mx.array:
        if real:
            promotion.refuse(x, ("complex",))
        axis_index, length = axis_and_length(x.shape, n, axis, norm, halved)
        x = promotion.floats(x)
        x = x.astype(mx.float32) if x.dtype.size == 2 else x
        if not halved or not x.size:
            return require_memory(native(x, length, axis_index, norm))
        # The forward mode of mx.fft.irfft (MLX 0.32) returns one element too few if the length is odd.
        real_signal: mx.array = with_forward_mode(lambda x: native(x, length, axis_index, norm))(x)
        return require_memory(real_signal)

    return transform


class MLXFftOps:
    """Holds the ops of `ops/images/fft_ops.py`.

    MLX transforms lazily, and differentiates its own functions; the bodies compute on the host, which has no gradient.
    """

    fft = staticmethod(_op_of_transform(mx.fft.fft))
    ifft = staticmethod(_op_of_transform(mx.fft.ifft))
    rfft = staticmethod(accept_fft_length(_op_of_transform(mx.fft.rfft, real=True)))
    irfft = staticmethod(accept_fft_length(_op_of_transform(mx.fft.irfft, halved=True)))
