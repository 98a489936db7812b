"""Host computations for the image ops: axes, weights of resampling and smoothing, perspective transforms."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from emberharmony.backend.host import plain_array
from emberharmony.backend.shared.neural.convolution import has_channels_last
from emberharmony.core.axes import as_index
from emberharmony.core.dtypes import DType, default_float, float32
from emberharmony.core.errors import ArgumentError, DTypeError, LinAlgError, ShapeError
from emberharmony.core.named_tuple import Record
from emberharmony.core.numeric.finfo import IntegerInfo
from emberharmony.core.options import constant

Array = np.ndarray[Any, Any]
NEGLIGIBLE = 1000.0 * 2.0**-23
"""If the sum of a sample's weights is not above this, no pixel contributes to the sample."""


def spatial_axes(shape: Sequence[int], data_format: str | None, n: int = 2) -> tuple[int, ...]:
    """Returns the n spatial axes of an image or a batch of images, counted from the end.

    Raises:
        ArgumentError: if the layout is unknown.
        ShapeError: if the tensor has another number of axes.
    """
    is_channels_last = has_channels_last(data_format)
    if len(shape) not in (n + 1, n + 2):
        raise ShapeError(f"one image has {n + 1} axes, a batch {n + 2}; this tensor has shape {tuple(shape)}")
    return tuple(range(-n - 1, -1) if is_channels_last else range(-n, 0))


def colour_axis(shape: Sequence[int], data_format: str | None) -> int:
    """Returns the axis of the three colour channels of images, counted from the end.

    Raises:
        ArgumentError: if the layout is unknown.
        ShapeError: if there are not three channels.
    """
    axis = -1 if spatial_axes(shape, data_format)[0] == -3 else -3
    if shape[axis] != 3:
        raise ShapeError(f"expected 3 channels on axis {axis}, got shape {tuple(shape)}; check data_format")
    return axis


def pixel_compute_dtype(dtype: DType) -> DType:
    """Returns the dtype in which pixels are computed: float32 for half precision, the default float for integers.

    Raises:
        DTypeError: if the pixels are complex.
    """
    if dtype.is_complex:
        raise DTypeError(f"pixels are real numbers, not {dtype.name}")
    wide_dtype = dtype if dtype.is_floating else default_float()
    return float32 if wide_dtype.bits == 16 else wide_dtype


def clipped_pixel(value: float, dtype: DType) -> float:
    """Returns a pixel value that the dtype can hold: for integer dtypes it is rounded and clipped to their range."""
    if not dtype.is_integer:
        return value
    dtype_limits = IntegerInfo.of_dtype(dtype)
    return min(max(round(value), dtype_limits.min), dtype_limits.max)


def margins(
    before: int | None, after: int | None, target: int | None, length: int, outward: int, names: str
) -> tuple[int, int]:
    """Returns how many pixels padding or cropping adds or removes before and after an axis.

    Args:
        before: the change at the start.
        after: the change at the end.
        target: the length of the result. One of `before`, `after` and `target` is None, and follows from the others.
        length: of the axis.
        outward: 1 to pad, -1 to crop.
        names: of the three options, for the messages.

    Raises:
        ArgumentError: unless exactly two options are given, or if a change or the new length would be negative.
    """
    missing_count = (before, after, target).count(None)
    if missing_count != 1:
        raise ArgumentError(f"expected exactly two of {names}, got {3 - missing_count}")
    before, after, target = (None if n is None else as_index(n) for n in (before, after, target))
    length_change = 0 if target is None else (target - length) * outward
    start_change = length_change - (after or 0) if before is None else before
    end_change = length_change - start_change if after is None else after
    if min(start_change, end_change) < 0 or length + outward * (start_change + end_change) < 0:
        raise ArgumentError(
            f"of {names} none may be negative, nor the new length: an axis of length {length} has {start_change} and "
            f"{end_change} at its ends"
        )
    return start_change, end_change


def _triangle_kernel(x: Array) -> Array:
    return np.maximum(0.0, 1.0 - x)


def _cubic_kernel(x: Array) -> Array:
    """Returns the cubic convolution kernel of Keys (1981) with a = -1/2."""
    inner_weight = ((1.5 * x - 2.5) * x) * x + 1.0
    outer_weight = ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0
    return np.where(x < 1.0, inner_weight, np.where(x < 2.0, outer_weight, 0.0))


def _lanczos_kernel(radius: float) -> Callable[[Array], Array]:
    return lambda x: np.where(x < radius, np.sinc(x) * np.sinc(x / radius), 0.0)


KERNELS: dict[str, tuple[Callable[[Array], Array], float]] = {
    **dict.fromkeys(("linear", "bilinear", "trilinear", "triangle"), (_triangle_kernel, 1.0)),
    **dict.fromkeys(("cubic", "bicubic", "tricubic"), (_cubic_kernel, 2.0)),
    "lanczos3": (_lanczos_kernel(3.0), 3.0),
    "lanczos5": (_lanczos_kernel(5.0), 5.0),
}
"""Interpolation kernels: functions of a non-negative distance, and the distance from which they are 0."""


def check_method(method: str, methods: Sequence[str] = tuple(KERNELS)) -> None:
    """Checks that the name of a resampling method is a known one.

    Raises:
        ArgumentError: if it is unknown.
    """
    if method not in methods:
        raise ArgumentError(f"the method is one of {', '.join(methods)}, not {method!r}")


class Taps(Record):
    """The input pixels and the weights that make each output pixel of a resampled axis, both (taps, pixels)."""

    places: Array
    weights: Array


def resampling_taps(length: int, target: int, step: float, translation: float, method: str, antialias: bool) -> Taps:
    """Returns the indices of the input pixels, and their weights, by which an axis is resampled.

    The centre of pixel i is at i + 1/2. A sample outside the axis is 0.

    Args:
        length: of the axis.
        target: the length of the result.
        step: the distance of two samples, in pixels of the axis.
        translation: the shift of the result, in pixels of the result.
        method: a key of `KERNELS`.
        antialias: whether to widen the kernel if the axis shrinks.

    Source: `jax.image.scale_and_translate`.
    """
    kernel, radius = KERNELS[method]
    kernel_stretch = max(step, 1.0) if antialias else 1.0
    kernel_radius = radius * kernel_stretch
    centres = (np.arange(target) + 0.5 - translation) * step - 0.5
    tap_count = math.ceil(2 * kernel_radius)
    # A kernel wider than the axis uses all of its pixels.
    first_indices = np.floor(centres - kernel_radius) + 1 if tap_count <= length else np.zeros(target)
    source_positions = first_indices + np.arange(min(tap_count, length))[:, None]
    weights = np.where(
        (source_positions >= 0) & (source_positions < length),
        kernel(np.abs(centres - source_positions) / kernel_stretch),
        0.0,
    )
    # Near the ends of the axis a part of the kernel is missing, so scale the other weights to a sum of 1.
    weight_sums = weights.sum(0)
    is_visible = (np.abs(weight_sums) > NEGLIGIBLE) & (centres >= -0.5) & (centres <= length - 0.5)
    weights = np.where(is_visible, weights / np.where(is_visible, weight_sums, 1.0), 0.0)
    return Taps(source_positions.clip(0, length - 1).astype(np.int64), weights)


def numbers_per_axis(value: Any, n: int, name: str, positive: bool = True) -> list[float]:
    """Returns one number for all axes, or one per axis, as a list of n numbers.

    Raises:
        ArgumentError: if they are not 1 or n finite numbers, or not positive though `positive` is True.
        UnsupportedOpError: if they are a tensor that is being differentiated.
    """
    numbers = plain_array(constant(name, value)).astype(np.float64)
    if numbers.ndim > 1 or numbers.size not in (1, n) or not np.isfinite(numbers).all():
        raise ArgumentError(f"{name} is one finite number or {n}, not {value!r}")
    if positive and not (numbers > 0).all():
        raise ArgumentError(f"{name} is positive, not {value!r}")
    return [float(number) for number in np.broadcast_to(numbers, (n,))]


def nearest_indices(length: int, target: int) -> Array:
    """Returns, for each pixel of an axis resized to the target length, the index of the nearest input pixel."""
    return (2 * np.arange(target) + 1) * length // (2 * target)


def proportional_size(size: Sequence[int], target: Sequence[int]) -> tuple[int, int]:
    """Returns the height for an image's width, and the width for its height, in the aspect ratio of the target size.

    Args:
        size: the (height, width) of the image.
        target: the (height, width) with the aspect ratio.
    """
    return size[1] * target[0] // target[1], size[0] * target[1] // target[0]


def gaussian_window(size: int, sigma: float) -> list[float]:
    """Returns the weights of a Gaussian window; they add up to 1."""
    exponents = -0.5 * ((np.arange(size) - (size - 1) / 2) / sigma) ** 2
    # Subtract the maximum, because all weights of a narrow Gaussian centred between two pixels would underflow.
    weights = np.exp(exponents - exponents.max())
    return list(map(float, weights / weights.sum()))


def homography(start_points: Any, end_points: Any) -> Array:
    """Returns the eight parameters (..., 8) of the perspective transforms that map four end points to the start points.

    Raises:
        LinAlgError: if three of four points are collinear.
        ShapeError: unless both have the shape (4, 2), or both (batch, 4, 2).
        UnsupportedOpError: if they are tensors that are being differentiated.
    """
    start_corners, end_corners = (
        plain_array(constant(name, points)).astype(np.float64)
        for name, points in (("start_points", start_points), ("end_points", end_points))
    )
    if (
        start_corners.shape != end_corners.shape
        or start_corners.ndim not in (2, 3)
        or start_corners.shape[-2:] != (4, 2)
    ):
        raise ShapeError(
            f"expected start and end points of shape (4, 2), or both (batch, 4, 2), got {start_corners.shape} "
            f"and {end_corners.shape}"
        )
    (u, v), (x, y) = np.moveaxis(start_corners, -1, 0), np.moveaxis(end_corners, -1, 0)
    zero, one = np.zeros_like(x), np.ones_like(x)
    upper_rows = np.stack([x, y, one, zero, zero, zero, -u * x, -u * y], -1)
    lower_rows = np.stack([zero, zero, zero, x, y, one, -v * x, -v * y], -1)
    target_corners = np.concatenate([u, v], -1)
    try:
        return np.linalg.solve(np.concatenate([upper_rows, lower_rows], -2), target_corners[..., None])[..., 0]
    except np.linalg.LinAlgError as error:
        raise LinAlgError("three of four points lie on a line, so no perspective transform maps the points") from error


def smoothing_size(sigma: float) -> int:
    """Returns the odd length of a window that covers three standard deviations to each side."""
    return math.floor(6 * sigma) | 1
