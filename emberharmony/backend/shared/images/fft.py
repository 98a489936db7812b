"""Checks of the arguments of Fourier transforms, the same on every backend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from emberharmony.backend.promote import nonnegative_axes
from emberharmony.backend.shared.device import check_memory
from emberharmony.core.axes import as_index
from emberharmony.core.deferred import Deferred
from emberharmony.core.dtypes import DType
from emberharmony.core.errors import ArgumentError
from emberharmony.core.options import as_integer

if TYPE_CHECKING:
    import numpy as np
else:
    np = Deferred("numpy")


def axis_and_length(shape: Sequence[int], n: int | None, axis: int, norm: str, halved: bool = False) -> tuple[int, int]:
    """Returns the axis of a Fourier transform, counted from 0, and the length of the transform.

    Args:
        shape: of the input.
        n: the length of the transform; None for the length of the input.
        axis: the axis of the transform.
        norm: the normalisation.
        halved: whether the input is the non-negative half of the spectrum of a real signal (as for irfft).

    Raises:
        ArgumentError: if the length is below 1 or the normalisation is unknown.
        AxisError: if the axis is out of range.
        OutOfMemoryError: if no memory holds the result.
    """
    (axis_index,) = nonnegative_axes(axis, len(shape))
    length = as_index(n) if n is not None else 2 * (shape[axis_index] - 1) if halved else shape[axis_index]
    if length < 1:
        raise ArgumentError(f"expected a transform of length 1 or more, got {length}")
    if norm not in ("backward", "ortho", "forward"):
        raise ArgumentError(f"norm is 'backward', 'ortho' or 'forward', not {norm!r}")
    # The smallest complex number takes 8 bytes.
    check_memory((*shape[:axis_index], length, *shape[axis_index + 1 :]), 8)
    return axis_index, length


def accept_fft_length(transform: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a Fourier transform along one axis that also takes its length as Keras names it, `fft_length`."""

    def transform_of_length(
        x: Any, n: int | None = None, axis: int = -1, norm: str = "backward", *, fft_length: Any = None
    ) -> Any:
        return transform(x, transform_length(n, fft_length), axis, norm)

    return transform_of_length


def transform_length(n: int | None, fft_length: int | None) -> int | None:
    """Returns the length of a transform, given as `n` or as `fft_length`, the name that Keras has for it.

    Raises:
        ArgumentError: if it is given by both names.
    """
    if n is None or fft_length is None:
        return fft_length if n is None else n
    raise ArgumentError(f"n={n} and fft_length={fft_length} are names of one option; pass one of them")


def axes_and_lengths(
    shape: Sequence[int], s: Sequence[int] | None, axes: Sequence[int] | None, norm: str, halved: bool = False
) -> list[tuple[int, int]]:
    """Returns the axes, counted from 0, of a Fourier transform along several axes, each with its length.

    `axis_and_length` says what `halved` means.

    Raises:
        ArgumentError: if `x` has no axes, the numbers of lengths and axes differ, or a length is below 1.
        AxisError: if an axis is out of range or repeated.
        OutOfMemoryError: if no memory holds the result.
    """
    if axes is None:
        axes = range(len(shape)) if s is None else range(-len(s), 0)
    positive_axes = nonnegative_axes(list(axes), len(shape))
    lengths = [None] * len(positive_axes) if s is None else list(s)
    if not positive_axes or len(lengths) != len(positive_axes):
        raise ArgumentError(
            f"expected one length per axis, and at least one axis, got s={s} along axes {positive_axes}"
        )
    last_index = len(positive_axes) - 1
    return [
        axis_and_length(shape, n, a, norm, halved and i == last_index)
        for i, (a, n) in enumerate(zip(positive_axes, lengths, strict=True))
    ]


def frequencies(n: int, d: float, halved: bool, dtype: DType) -> np.ndarray:
    """Returns the frequencies of the terms of a Fourier transform of length n, the negative ones last.

    Args:
        d: the distance from one sample to the next.
        halved: whether the transform is that of a real tensor, which has no terms below zero.
        dtype: what the frequencies will be cast to; they are of single precision where that is enough.

    Raises:
        ArgumentError: if the length is below 1, or the distance of the samples is 0.
        OutOfMemoryError: if no memory holds the frequencies.
    """
    length = as_integer("n", n, 1)
    if d == 0:
        raise ArgumentError(f"expected a sample spacing d other than 0, got {d}")
    check_memory((length,), 8)
    harmonics = np.arange(length // 2 + 1 if halved else length, dtype=np.float64)
    if not halved:
        harmonics[(length + 1) // 2 :] -= length
    harmonics /= float(length * d)
    # Return float32 where that suffices, because MLX has no float64 on a GPU.
    is_single_precision = (dtype.is_floating or dtype.is_complex) and dtype not in ("float64", "complex128")
    return harmonics.astype(np.float32) if is_single_precision else harmonics
