"""Discrete Fourier transforms, as the array API standard has them: complex tensors in, complex tensors out.

Dtype: float32 and halves give complex64, float64 complex128; MLX has complex64 only, and gives it for float64 too.
`n` is the length the axis is cut or padded with zeros to. `norm` says which direction is divided by n: "backward",
"forward", or "ortho" for both by its root.
"""

from __future__ import annotations

from collections.abc import Sequence

from emberharmony.core.dispatch import op
from emberharmony.core.types import Axis, DeviceLike, DTypeLike, Norm, Tensor, TensorLike
from emberharmony.ops.devices import to_device
from emberharmony.ops.shape import roll
from emberharmony.ops.tensor import convert_to_tensor


@op
def fft(x: TensorLike, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """Returns the discrete Fourier transform along an axis.

    Raises: ArgumentError for `n` below 1 or an unknown `norm`.
    """
    ...


@op
def ifft(x: TensorLike, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """Returns the inverse of `fft`.

    Raises: ArgumentError for `n` below 1 or an unknown `norm`.
    """
    ...


@op
def rfft(x: TensorLike, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """Returns the non-negative half of the transform of a real tensor: n // 2 + 1 terms.

    Raises: ArgumentError for `n` below 1 or an unknown `norm`.
    """
    ...


@op
def irfft(x: TensorLike, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """Returns the real inverse of `rfft`, of length n, by default even.

    Raises: ArgumentError for `n` below 1 or an unknown `norm`.
    """
    ...


@op
def fftn(
    x: TensorLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: Norm = "backward"
) -> Tensor:
    """Returns the discrete Fourier transform along several axes, by default all."""
    ...


@op
def ifftn(
    x: TensorLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: Norm = "backward"
) -> Tensor:
    """Returns the inverse of `fftn`."""
    ...


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
def fftfreq(n: int, d: float = 1.0, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """Returns the frequencies of `fft`, in cycles per unit of the sample spacing d.

    Example:
        >>> ops.fftfreq(4).tolist()
        [0.0, 0.25, -0.5, -0.25]
    """
    places = [*range((n + 1) // 2), *range(-(n // 2), 0)]
    return _vector([place / (n * d) for place in places], dtype, device)


@op
def rfftfreq(n: int, d: float = 1.0, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """Returns the frequencies of `rfft`, in cycles per unit of the sample spacing d.

    Example:
        >>> ops.rfftfreq(4).tolist()
        [0.0, 0.25, 0.5]
    """
    return _vector([place / (n * d) for place in range(n // 2 + 1)], dtype, device)


@op
def fftshift(x: TensorLike, axes: Axis = None) -> Tensor:
    """Returns `x` with the zero frequency moved to the middle of axes, by default all.

    Example:
        >>> ops.fftshift([0, 1, -2, -1]).tolist()
        [-2, -1, 0, 1]
    """
    shifted = _axes(x, axes)
    return roll(x, [x.shape[a] // 2 for a in shifted], shifted)


@op
def ifftshift(x: TensorLike, axes: Axis = None) -> Tensor:
    """Returns the inverse of `fftshift`."""
    shifted = _axes(x, axes)
    return roll(x, [-(x.shape[a] // 2) for a in shifted], shifted)


def _axes(x: Tensor, axes: Axis) -> list[int]:
    return list(range(len(x.shape))) if axes is None else [axes] if isinstance(axes, int) else list(axes)


def _vector(values: list[float], dtype: object, device: object) -> Tensor:
    x = convert_to_tensor(values, dtype)
    return x if device is None else to_device(x, device)
