"""Discrete Fourier transforms of the array API standard: complex tensors in, complex tensors out.

Dtype: float32 and halves give complex64; float64 gives complex128. MLX has only complex64, so float64 gives complex64
there.

The axis is cut, or padded with zeros, to the length `n`. For several axes, `s` lists the lengths, by default those of
the last axes. `norm` chooses the transform that is divided by the length: "backward" the inverse one, "forward" the
forward one, and "ortho" divides both by the square root of the length.

An axis out of range raises `AxisError`. A length below 1 or an unknown `norm` raises `ArgumentError`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from emberharmony.backend.promote import nonnegative_axes
from emberharmony.core.axes import as_index
from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import op
from emberharmony.core.dtypes import as_dtype, default_float
from emberharmony.core.errors import ArgumentError, ShapeError
from emberharmony.core.numeric.promotion import as_inexact
from emberharmony.core.options import as_integer
from emberharmony.core.types import Axis, ComplexTensorLike, DeviceLike, DTypeLike, Norm, Tensor, TensorLike
from emberharmony.ops.arrays.creation import arange, hamming, hanning, ones
from emberharmony.ops.arrays.indexing import scatter, take, where
from emberharmony.ops.arrays.shape import broadcast_to, expand_dims, moveaxis, pad, reshape, roll
from emberharmony.ops.device import get_device, to_device
from emberharmony.ops.dtype import dtype as dtype_of
from emberharmony.ops.elementwise.complex_numbers import conj
from emberharmony.ops.logic.comparison import greater
from emberharmony.ops.math import add, divide, multiply, square
from emberharmony.ops.tensor import cast

if TYPE_CHECKING:
    from emberharmony.backend.shared.algebra import linear
    from emberharmony.backend.shared.images import fft as shared_fft
else:
    linear, shared_fft = (
        Deferred("emberharmony.backend.shared.algebra.linear"),
        Deferred("emberharmony.backend.shared.images.fft"),
    )

_OPPOSITE: dict[Norm, Norm] = {"backward": "forward", "forward": "backward"}


@op(along="axis", reads="data")
def fft(x: ComplexTensorLike, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """Returns the discrete Fourier transform along an axis.

    Raises:
        AxisError: if `axis` is out of range.
        ArgumentError: if `n` is below 1 or `norm` is unknown.

    See also: `ifft`, the inverse; `rfft`, of real tensors; `fftn`, along several axes; `fftfreq`, the frequencies.
    """
    return linear.transform_on_host("fft", x, n, axis, norm)


@op(along="axis", reads="data")
def ifft(x: ComplexTensorLike, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """Returns the inverse of `fft`.

    Raises:
        AxisError: if `axis` is out of range.
        ArgumentError: if `n` is below 1 or `norm` is unknown.

    See also: `fft`, the inverse.
    """
    return linear.transform_on_host("ifft", x, n, axis, norm)


@op(along="axis", reads="data")
def rfft(
    x: TensorLike, n: int | None = None, axis: int = -1, norm: Norm = "backward", *, fft_length: int | None = None
) -> Tensor:
    """Returns the non-negative frequencies of the transform of a real tensor: n // 2 + 1 terms.

    Args:
        fft_length: Keras's name of `n`; None leaves the choice to `n`.

    Raises:
        AxisError: if `axis` is out of range.
        ArgumentError: if `n` is below 1, `norm` is unknown, or both `n` and `fft_length` are given.
        DTypeError: if `x` is complex.

    See also: `irfft`, the inverse; `fft`, of complex tensors; `rfftfreq`, the frequencies.
    """
    return linear.transform_on_host(
        "rfft", x, shared_fft.transform_length(n, fft_length), axis, norm, refused_kinds=("complex",)
    )


@op(along="axis", reads="data")
def irfft(
    x: ComplexTensorLike,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = "backward",
    *,
    fft_length: int | None = None,
) -> Tensor:
    """Returns the real inverse of `rfft`.

    Args:
        n: the length of the result; None is the even length `2 * (m - 1)` for m frequencies.
        fft_length: Keras's name of `n`; None leaves the choice to `n`.

    Raises:
        AxisError: if `axis` is out of range.
        ArgumentError: if `n` is below 1, `norm` is unknown, or both `n` and `fft_length` are given.

    See also: `rfft`, the inverse.
    """
    return linear.transform_on_host(
        "irfft", x, shared_fft.transform_length(n, fft_length), axis, norm, is_half_spectrum=True
    )


@op
def hfft(x: ComplexTensorLike, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """Returns the real transform of a Hermitian signal, given by its non-negative half.

    Args:
        n: the length of the result; None is the even length `2 * (m - 1)` for m elements.

    Raises:
        AxisError: if `axis` is out of range.
        ArgumentError: if `n` is below 1 or `norm` is unknown.

    See also: `ihfft`, the inverse.
    """
    return irfft(conj(x), n, axis, _OPPOSITE.get(norm, norm))


@op
def ihfft(x: TensorLike, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """Returns the inverse of `hfft`: n // 2 + 1 terms.

    Raises:
        AxisError: if `axis` is out of range.
        ArgumentError: if `n` is below 1 or `norm` is unknown.
        DTypeError: if `x` is complex.

    See also: `hfft`, the inverse.
    """
    return conj(rfft(x, n, axis, _OPPOSITE.get(norm, norm)))


@op
def fftn(
    x: ComplexTensorLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: Norm = "backward"
) -> Tensor:
    """Returns the discrete Fourier transform along several axes, by default along all.

    See also: `ifftn`, the inverse; `fft`, along one axis; `fft2`, along two axes.
    """
    for axis, n in shared_fft.axes_and_lengths(x.shape, s, axes, norm):
        x = fft(x, n, axis, norm)
    return x


@op
def ifftn(
    x: ComplexTensorLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: Norm = "backward"
) -> Tensor:
    """Returns the inverse of `fftn`.

    See also: `fftn`, the inverse.
    """
    for axis, n in shared_fft.axes_and_lengths(x.shape, s, axes, norm):
        x = ifft(x, n, axis, norm)
    return x


@op
def rfftn(
    x: TensorLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: Norm = "backward"
) -> Tensor:
    """Returns the transform of a real tensor along several axes; the last of them keeps non-negative frequencies only.

    Raises:
        DTypeError: if `x` is complex.

    See also: `irfftn`, the inverse; `rfft`, along one axis.
    """
    *other_axes, (last, length) = shared_fft.axes_and_lengths(x.shape, s, axes, norm)
    x = rfft(x, length, last, norm)
    for axis, n in other_axes:
        x = fft(x, n, axis, norm)
    return x


@op
def irfftn(
    x: ComplexTensorLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: Norm = "backward"
) -> Tensor:
    """Returns the real inverse of `rfftn`; without `s` the last axis gets an even length.

    Args:
        s: the lengths of `axes` in the result; None leaves all but the last, which gets the even length `2 * (m - 1)`
            for m frequencies.

    See also: `rfftn`, the inverse.
    """
    *other_axes, (last, length) = shared_fft.axes_and_lengths(x.shape, s, axes, norm, True)
    for axis, n in other_axes:
        x = ifft(x, n, axis, norm)
    return irfft(x, length, last, norm)


@op
def fft2(
    x: ComplexTensorLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: Norm = "backward"
) -> Tensor:
    """Returns the discrete Fourier transform along two axes.

    See also: `ifft2`, the inverse; `fftn`, along any axes.
    """
    return fftn(x, s, axes, norm)


@op
def ifft2(
    x: ComplexTensorLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: Norm = "backward"
) -> Tensor:
    """Returns the inverse of `fft2`.

    See also: `fft2`, the inverse.
    """
    return ifftn(x, s, axes, norm)


@op
def rfft2(
    x: TensorLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: Norm = "backward"
) -> Tensor:
    """Returns `rfftn` along two axes.

    See also: `irfft2`, the inverse.
    """
    return rfftn(x, s, axes, norm)


@op
def irfft2(
    x: ComplexTensorLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: Norm = "backward"
) -> Tensor:
    """Returns the real inverse of `rfft2`.

    Args:
        s: the lengths of `axes` in the result; None leaves the first, and the last gets the even length `2 * (m - 1)`
            for m frequencies.

    See also: `rfft2`, the inverse.
    """
    return irfftn(x, s, axes, norm)


@op
def fftfreq(n: int, d: float = 1.0, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """Returns the frequencies of the terms of `fft`, in cycles per unit of the sample spacing `d`.

    Dtype: the default float.

    Args:
        n: the length of the transformed axis, at least 1.
        d: the distance of the samples, in seconds for frequencies in hertz.

    Raises:
        ArgumentError: if `n` is below 1 or `d` is 0.

    See also: `rfftfreq`, for `rfft`; `fftshift`, in ascending order.

    Example:
        >>> ops.fftfreq(4).tolist()
        [0.0, 0.25, -0.5, -0.25]
    """
    return _frequencies(n, d, False, dtype, device)


@op
def rfftfreq(n: int, d: float = 1.0, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """Returns the frequencies of the terms of `rfft`, in cycles per unit of the sample spacing `d`.

    Dtype: the default float.

    Args:
        n: the length of the transformed axis, at least 1.
        d: the distance of the samples, in seconds for frequencies in hertz.

    Raises:
        ArgumentError: if `n` is below 1 or `d` is 0.

    See also: `fftfreq`, for `fft`.

    Example:
        >>> ops.rfftfreq(4).tolist()
        [0.0, 0.25, 0.5]
    """
    return _frequencies(n, d, True, dtype, device)


@op
def fftshift(x: TensorLike, axes: Axis = None) -> Tensor:
    """Returns `x` with the zero frequency moved to the middle of axes, by default of all.

    Args:
        x: a tensor of any shape and dtype.
        axes: the axis or the axes to shift; None shifts all of them.

    Raises:
        AxisError: if an axis is out of range.

    See also: `ifftshift`, the inverse.

    Example:
        >>> ops.fftshift([0, 1, -2, -1]).tolist()
        [-2, -1, 0, 1]
    """
    shifted_axes = nonnegative_axes(axes, len(x.shape))
    return roll(x, [x.shape[a] // 2 for a in shifted_axes], shifted_axes)


@op
def ifftshift(x: TensorLike, axes: Axis = None) -> Tensor:
    """Returns the inverse of `fftshift`.

    Args:
        x: a tensor of any shape and dtype.
        axes: the axis or the axes to shift; None shifts all of them.

    Raises:
        AxisError: if an axis is out of range.

    See also: `fftshift`, the inverse.

    Example:
        >>> ops.ifftshift([-2, -1, 0, 1]).tolist()
        [0, 1, -2, -1]
    """
    shifted_axes = nonnegative_axes(axes, len(x.shape))
    return roll(x, [-(x.shape[a] // 2) for a in shifted_axes], shifted_axes)


@op
def stft(
    x: TensorLike,
    sequence_length: int,
    sequence_stride: int,
    fft_length: int,
    window: str | Tensor | Sequence[float] | None = "hann",
    center: bool = True,
) -> Tensor:
    """Returns the short-time Fourier transform of a real signal: transforms of overlapping frames of its last axis.

    The result is one complex tensor; Keras returns a pair of real ones.

    Shape: (..., t) to (..., frames, fft_length // 2 + 1).

    Args:
        x: a real signal (..., t); integers become the default float.
        sequence_length: the length of the window in samples, up to `fft_length`; the window is centred in the frame.
        sequence_stride: the number of samples from one frame to the next.
        fft_length: the length of each frame in samples, at least `sequence_length`.
        window: "hann" or "hamming" for the periodic window, a tensor of length `sequence_length`, or None for ones.
        center: whether to pad the signal by reflection, so that frame k is centred at k * sequence_stride.

    Raises:
        ArgumentError: if a length or the stride is out of range, or the name of the window is unknown.
        ShapeError: if the signal is shorter than one frame, or the window has another length.
        DTypeError: if the signal is complex.

    See also: `istft`, the inverse; `hanning`, the window; `rfft`, of each frame.
    """
    window_values = _window(x, window, sequence_length, sequence_stride, fft_length)
    if center and len(x.shape):
        x = pad(x, [(0, 0)] * (len(x.shape) - 1) + [(fft_length // 2, fft_length // 2)], "reflect")
    if len(x.shape) == 0 or x.shape[-1] < fft_length:
        raise ShapeError(f"expected a signal of at least fft_length={fft_length} samples, got shape {tuple(x.shape)}")
    frame_count = 1 + (x.shape[-1] - fft_length) // sequence_stride
    return rfft(multiply(take(x, _frame_positions(x, frame_count, sequence_stride, fft_length), -1), window_values))


@op
def istft(
    x: ComplexTensorLike,
    sequence_length: int,
    sequence_stride: int,
    fft_length: int,
    length: int | None = None,
    window: str | Tensor | Sequence[float] | None = "hann",
    center: bool = True,
) -> Tensor:
    """Returns the signal whose `stft` is `x`; if there is none, the best approximation by least squares.

    Shape: (..., frames, fft_length // 2 + 1) to (..., length).

    Args:
        x: complex frames (..., frames, fft_length // 2 + 1), as `stft` returns them.
        sequence_length: the length of the window in samples, as it was in `stft`.
        sequence_stride: the number of samples from one frame to the next, as it was in `stft`.
        fft_length: the length of each frame in samples, as it was in `stft`.
        length: the number of samples of the result; None is all that the frames cover.
        window: "hann" or "hamming" for the periodic window, a tensor of length `sequence_length`, or None for ones.
        center: whether `stft` padded the signal, so that the padding is cut off.

    Raises:
        ArgumentError: if a length or the stride is out of range, or the name of the window is unknown.
        ShapeError: if there are no frames, or the number of frequencies is not `fft_length // 2 + 1`.

    See also: `stft`, the inverse; `irfft`, of each frame.

    Source: Griffin and Lim (1984), Signal estimation from modified short-time Fourier transform, equation 6.
    """
    if length is not None and length < 0:
        raise ArgumentError(f"expected length of 0 or more, got {length}")
    if len(x.shape) < 2 or x.shape[-1] != fft_length // 2 + 1 or x.shape[-2] == 0:
        raise ShapeError(f"expected shape (..., frames, {fft_length // 2 + 1}), got {tuple(x.shape)}")
    frames_in_time = irfft(x, fft_length)
    window_values = _window(frames_in_time, window, sequence_length, sequence_stride, fft_length)
    frame_count, batch_shape = x.shape[-2], tuple(x.shape[:-2])
    covered_length = fft_length + sequence_stride * (frame_count - 1)
    positions = reshape(_frame_positions(frames_in_time, frame_count, sequence_stride, fft_length), (-1, 1))

    def add_overlapping(terms: Tensor) -> Tensor:
        leading_axis_count = len(terms.shape) - 2
        flat_terms = reshape(
            moveaxis(terms, (-2, -1), (0, 1)), (frame_count * fft_length, *terms.shape[:leading_axis_count])
        )
        return moveaxis(scatter(positions, flat_terms, (covered_length, *terms.shape[:leading_axis_count])), 0, -1)

    window_weight = add_overlapping(broadcast_to(square(window_values), (frame_count, fft_length)))
    signal = divide(
        add_overlapping(multiply(frames_in_time, window_values)),
        where(greater(window_weight, 1e-10), window_weight, 1.0),
    )
    margin = fft_length // 2 if center else 0
    output_length = covered_length - 2 * margin if length is None else as_index(length)
    signal = signal[..., margin : margin + output_length]
    return pad(signal, [(0, 0)] * len(batch_shape) + [(0, output_length - signal.shape[-1])])


def _frequencies(n: int, d: float, halved: bool, dtype: DTypeLike | None, device: DeviceLike | None) -> Tensor:
    result_dtype = default_float() if dtype is None else as_dtype(dtype)
    if isinstance(d, (int, float)):
        frequencies = cast(shared_fft.frequencies(n, d, halved, result_dtype), result_dtype)
    else:  # a tensor, which may be differentiated by
        frequencies = cast(
            divide(cast(shared_fft.frequencies(n, 1.0, halved, result_dtype), default_float()), d), result_dtype
        )
    return frequencies if device is None else to_device(frequencies, device)


def _frame_positions(x: Tensor, frames: int, stride: int, length: int) -> Tensor:
    """Returns the positions in the signal of the elements of each frame, (frames, length), on the device of `x`."""
    device = get_device(x)
    return add(expand_dims(multiply(arange(frames, device=device), stride), -1), arange(length, device=device))


def _window(x: Tensor, window: object, length: int, stride: int, fft_length: int) -> Tensor:
    """Returns the window, padded with zeros on both sides to `fft_length`, in the dtype of the signal."""
    fft_length = as_integer("fft_length", fft_length, 1)
    length, stride = as_integer("sequence_length", length, 1), as_integer("sequence_stride", stride, 1)
    if length > fft_length:
        raise ArgumentError(f"expected a sequence_length of at most fft_length, got {length} and {fft_length}")
    float_dtype = as_inexact(dtype_of(x))
    if isinstance(window, str):
        if window not in ("hann", "hamming"):
            raise ArgumentError(f"expected window 'hann', 'hamming', a tensor or None, got {window!r}")
        # The periodic window is the symmetric window of one more point, without its last point.
        window_values = (hanning if window == "hann" else hamming)(length + 1, float_dtype)[:length]
    else:
        window_values = ones((length,), float_dtype) if window is None else cast(window, float_dtype)
    window_values = to_device(window_values, get_device(x))
    if tuple(window_values.shape) != (length,):
        raise ShapeError(f"expected a window of shape ({length},), got {tuple(window_values.shape)}")
    left_zeros = (fft_length - length) // 2
    return pad(window_values, [(left_zeros, fft_length - length - left_zeros)])
