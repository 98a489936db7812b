"""Discrete Fourier transforms, as the array API standard has them: complex tensors in, complex tensors out.

Dtype: float32 and halves give complex64, float64 complex128; MLX has complex64 only, and gives it for float64 too.
`n` is the length the axis is cut or padded with zeros to, and for several axes `s` the lengths, by default of the last
ones. `norm` says which direction is divided by the length: "backward", "forward", or "ortho" for both by its root.
Raises: AxisError; ArgumentError for a length below 1 or an unknown `norm`.
"""

from __future__ import annotations

from collections.abc import Sequence

from emberharmony.backend.promote import normalized
from emberharmony.backend.shared.fft import along_all
from emberharmony.core.dispatch import op
from emberharmony.core.errors import ArgumentError, ShapeError
from emberharmony.core.promotion import as_inexact
from emberharmony.core.types import Axis, DeviceLike, DTypeLike, Norm, Tensor, TensorLike
from emberharmony.ops.comparison import greater
from emberharmony.ops.complexes import conj
from emberharmony.ops.creation import arange, hamming, hanning, ones
from emberharmony.ops.device import get_device, to_device
from emberharmony.ops.dtype import dtype as dtype_of
from emberharmony.ops.indexing import scatter, take, where
from emberharmony.ops.math import add, divide, multiply, square
from emberharmony.ops.shape import broadcast_to, expand_dims, moveaxis, pad, reshape, roll
from emberharmony.ops.tensor import cast, convert_to_tensor

_OPPOSITE: dict[Norm, Norm] = {"backward": "forward", "forward": "backward"}


@op
def fft(x: TensorLike, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """Returns the discrete Fourier transform along an axis.

    Raises: AxisError; ArgumentError for `n` below 1 or an unknown `norm`.
    """
    ...


@op
def ifft(x: TensorLike, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """Returns the inverse of `fft`.

    Raises: AxisError; ArgumentError for `n` below 1 or an unknown `norm`.
    """
    ...


@op
def rfft(x: TensorLike, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """Returns the non-negative half of the transform of a real tensor: n // 2 + 1 terms.

    Raises: AxisError; ArgumentError for `n` below 1 or an unknown `norm`; DTypeError for a complex tensor.
    """
    ...


@op
def irfft(x: TensorLike, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """Returns the real inverse of `rfft`, of length n, by default even.

    Raises: AxisError; ArgumentError for `n` below 1 or an unknown `norm`.
    """
    ...


@op
def hfft(x: TensorLike, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """Returns the real transform, of length n, of the non-negative half of a signal that is Hermitian about zero.

    Raises: as `irfft`.
    """
    return irfft(conj(x), n, axis, _OPPOSITE.get(norm, norm))


@op
def ihfft(x: TensorLike, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """Returns the inverse of `hfft`: n // 2 + 1 terms.

    Raises: as `rfft`.
    """
    return conj(rfft(x, n, axis, _OPPOSITE.get(norm, norm)))


@op
def fftn(
    x: TensorLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: Norm = "backward"
) -> Tensor:
    """Returns the discrete Fourier transform along several axes, by default all."""
    for axis, n in along_all(x.shape, s, axes, norm):
        x = fft(x, n, axis, norm)
    return x


@op
def ifftn(
    x: TensorLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: Norm = "backward"
) -> Tensor:
    """Returns the inverse of `fftn`."""
    for axis, n in along_all(x.shape, s, axes, norm):
        x = ifft(x, n, axis, norm)
    return x


@op
def rfftn(
    x: TensorLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: Norm = "backward"
) -> Tensor:
    """Returns the transform of a real tensor along several axes, of the last one the non-negative half.

    Raises: DTypeError for a complex tensor.
    """
    *others, (last, length) = along_all(x.shape, s, axes, norm)
    x = rfft(x, length, last, norm)
    for axis, n in others:
        x = fft(x, n, axis, norm)
    return x


@op
def irfftn(
    x: TensorLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: Norm = "backward"
) -> Tensor:
    """Returns the real inverse of `rfftn`; without `s` the last axis' length is even."""
    *others, (last, length) = along_all(x.shape, s, axes, norm, True)
    for axis, n in others:
        x = ifft(x, n, axis, norm)
    return irfft(x, length, last, norm)


@op
def fft2(
    x: TensorLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: Norm = "backward"
) -> Tensor:
    """Returns the discrete Fourier transform along two axes."""
    return fftn(x, s, axes, norm)


@op
def ifft2(
    x: TensorLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: Norm = "backward"
) -> Tensor:
    """Returns the inverse of `fft2`."""
    return ifftn(x, s, axes, norm)


@op
def rfft2(
    x: TensorLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: Norm = "backward"
) -> Tensor:
    """Returns `rfftn` along two axes."""
    return rfftn(x, s, axes, norm)


@op
def irfft2(
    x: TensorLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: Norm = "backward"
) -> Tensor:
    """Returns the real inverse of `rfft2`."""
    return irfftn(x, s, axes, norm)


@op
def fftfreq(n: int, d: float = 1.0, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """Returns the frequencies of `fft`, in cycles per unit of the sample spacing d.

    Dtype: the default float. Raises: ArgumentError for `n` below 1.

    Example:
        >>> ops.fftfreq(4).tolist()
        [0.0, 0.25, -0.5, -0.25]
    """
    return _frequencies([*range((n + 1) // 2), *range(-(n // 2), 0)], n, d, dtype, device)


@op
def rfftfreq(n: int, d: float = 1.0, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """Returns the frequencies of `rfft`, in cycles per unit of the sample spacing d.

    Dtype: the default float. Raises: ArgumentError for `n` below 1.

    Example:
        >>> ops.rfftfreq(4).tolist()
        [0.0, 0.25, 0.5]
    """
    return _frequencies(range(n // 2 + 1), n, d, dtype, device)


@op
def fftshift(x: TensorLike, axes: Axis = None) -> Tensor:
    """Returns `x` with the zero frequency moved to the middle of axes, by default all.

    Raises: AxisError.

    Example:
        >>> ops.fftshift([0, 1, -2, -1]).tolist()
        [-2, -1, 0, 1]
    """
    shifted = normalized(axes, len(x.shape))
    return roll(x, [x.shape[a] // 2 for a in shifted], shifted)


@op
def ifftshift(x: TensorLike, axes: Axis = None) -> Tensor:
    """Returns the inverse of `fftshift`.

    Raises: AxisError.

    Example:
        >>> ops.ifftshift([-2, -1, 0, 1]).tolist()
        [0, 1, -2, -1]
    """
    shifted = normalized(axes, len(x.shape))
    return roll(x, [-(x.shape[a] // 2) for a in shifted], shifted)


@op
def stft(
    x: TensorLike,
    sequence_length: int,
    sequence_stride: int,
    fft_length: int,
    window: str | Tensor | Sequence[float] | None = "hann",
    center: bool = True,
) -> Tensor:
    """Returns the transforms of overlapping parts of a real signal, along its last axis.

    Unlike Keras's it is one complex tensor, not a pair of real ones.

    Shape: (..., t) to (..., frames, fft_length // 2 + 1).

    Args:
        sequence_length: the window's length, up to `fft_length`, in whose middle it stands.
        sequence_stride: the step from one part to the next.
        window: "hann" and "hamming" are periodic; a tensor is used as it is; None is ones.
        center: whether the signal is continued by reflection, so that frame k is centred at k * sequence_stride.

    Raises: ArgumentError; ShapeError for a signal shorter than one part; DTypeError for a complex one.
    """
    shaped = _window(x, window, sequence_length, sequence_stride, fft_length)
    if center and len(x.shape):
        x = pad(x, [(0, 0)] * (len(x.shape) - 1) + [(fft_length // 2, fft_length // 2)], "reflect")
    if len(x.shape) == 0 or x.shape[-1] < fft_length:
        raise ShapeError(f"a signal of shape {tuple(x.shape)} has no part of length {fft_length}")
    frames = 1 + (x.shape[-1] - fft_length) // sequence_stride
    return rfft(multiply(take(x, _places(x, frames, sequence_stride, fft_length), -1), shaped))


@op
def istft(
    x: TensorLike,
    sequence_length: int,
    sequence_stride: int,
    fft_length: int,
    length: int | None = None,
    window: str | Tensor | Sequence[float] | None = "hann",
    center: bool = True,
) -> Tensor:
    """Returns the signal of which `x` is the `stft`, the best one by least squares where no signal is.

    Shape: (..., frames, fft_length // 2 + 1) to (..., length), by default all that the frames cover.

    Raises: ArgumentError; ShapeError for another number of frequencies, and for no frames.

    Source: Griffin and Lim (1984), Signal estimation from modified short-time Fourier transform, equation 6.
    """
    if length is not None and length < 0:
        raise ArgumentError(f"a signal has no negative length {length}")
    if len(x.shape) < 2 or x.shape[-1] != fft_length // 2 + 1 or x.shape[-2] == 0:
        raise ShapeError(f"(..., frames, {fft_length // 2 + 1}) is wanted, this tensor has shape {tuple(x.shape)}")
    parts = irfft(x, fft_length)
    shaped = _window(parts, window, sequence_length, sequence_stride, fft_length)
    frames, batch = x.shape[-2], tuple(x.shape[:-2])
    covered = fft_length + sequence_stride * (frames - 1)
    places = reshape(_places(parts, frames, sequence_stride, fft_length), (-1, 1))

    def overlapped(terms: Tensor) -> Tensor:
        rest = len(terms.shape) - 2
        flat = reshape(moveaxis(terms, (-2, -1), (0, 1)), (frames * fft_length, *terms.shape[:rest]))
        return moveaxis(scatter(places, flat, (covered, *terms.shape[:rest])), 0, -1)

    weight = overlapped(broadcast_to(square(shaped), (frames, fft_length)))
    signal = divide(overlapped(multiply(parts, shaped)), where(greater(weight, 1e-10), weight, 1.0))
    start = fft_length // 2 if center else 0
    wanted = covered - 2 * start if length is None else length
    signal = signal[..., start : start + wanted]
    return pad(signal, [(0, 0)] * len(batch) + [(0, wanted - signal.shape[-1])])


def _frequencies(places: Sequence[int], n: int, d: float, dtype: DTypeLike | None, device: DeviceLike | None) -> Tensor:
    if n < 1:
        raise ArgumentError(f"a transform has at least one element, not {n}")
    x = convert_to_tensor([place / (n * d) for place in places], dtype)
    return x if device is None else to_device(x, device)


def _places(x: Tensor, frames: int, stride: int, length: int) -> Tensor:
    """Returns where in the signal the elements of each part stand, (frames, length), on the device of `x`."""
    device = get_device(x)
    return add(expand_dims(multiply(arange(frames, device=device), stride), -1), arange(length, device=device))


def _window(x: Tensor, window: object, length: int, stride: int, fft_length: int) -> Tensor:
    """Returns the window in the middle of zeros, in the dtype of the signal."""
    if not 1 <= length <= fft_length or stride < 1:
        raise ArgumentError(
            f"sequence_length from 1 to fft_length and a stride from 1 are wanted, not {length}, {fft_length}, {stride}"
        )
    kind = as_inexact(dtype_of(x))
    if isinstance(window, str):
        if window not in ("hann", "hamming"):
            raise ArgumentError(f"window is 'hann', 'hamming', a tensor or None, not {window!r}")
        # The symmetric window of one point more, without it, is the periodic one.
        shaped = (hanning if window == "hann" else hamming)(length + 1, kind)[:length]
    else:
        shaped = ones((length,), kind) if window is None else cast(window, kind)
    shaped = to_device(shaped, get_device(x))
    if tuple(shaped.shape) != (length,):
        raise ShapeError(f"a window of shape ({length},) is wanted, not {tuple(shaped.shape)}")
    before = (fft_length - length) // 2
    return pad(shaped, [(before, fft_length - length - before)])
