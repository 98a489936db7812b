"""What image ops know on the host: layouts, weights of resampling and smoothing, transforms of the plane."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from emberharmony.backend.host import plain
from emberharmony.backend.shared.convolution import channels_last
from emberharmony.core.dtypes import DType, default_float, float32
from emberharmony.core.errors import ArgumentError, DTypeError, LinAlgError, ShapeError
from emberharmony.core.named_tuple import Record
from emberharmony.core.numeric.finfo import IntegerInfo
from emberharmony.core.options import constant

Array = np.ndarray[Any, Any]
NEGLIGIBLE = 1000.0 * 2.0**-23
"""Weights whose sum is below this are those of a sample to which no pixel contributes."""


def spatial_axes(shape: Sequence[int], data_format: str | None, n: int = 2) -> tuple[int, ...]:
    """Returns the n spatial axes, counted from the end, of an image or a batch of them.

    Raises: ShapeError for another number of axes; ArgumentError for an unknown layout.
    """
    last = channels_last(data_format)
    if len(shape) not in (n + 1, n + 2):
        raise ShapeError(f"one image has {n + 1} axes, a batch {n + 2}; this tensor has shape {tuple(shape)}")
    return tuple(range(-n - 1, -1) if last else range(-n, 0))


def colours(shape: Sequence[int], data_format: str | None) -> int:
    """Returns the axis, counted from the end, of the three colours of images.

    Raises: ShapeError where there are not three; ArgumentError for an unknown layout.
    """
    axis = -1 if spatial_axes(shape, data_format)[0] == -3 else -3
    if shape[axis] != 3:
        raise ShapeError(f"three colours are wanted on axis {axis}, this tensor has shape {tuple(shape)}")
    return axis


def computed_in(dtype: DType) -> DType:
    """Returns the dtype pixels are computed in: float32 for half precision, the default float for integers.

    Raises: DTypeError for complex pixels.
    """
    if dtype.is_complex:
        raise DTypeError(f"pixels are real numbers, not {dtype.name}")
    wide = dtype if dtype.is_floating else default_float()
    return float32 if wide.bits == 16 else wide


def held(value: float, dtype: DType) -> float:
    """Returns a value of pixels as a dtype holds it: for integers the nearest, at the end of their range at most."""
    if not dtype.is_integer:
        return value
    limits = IntegerInfo.of(dtype)
    return min(max(round(value), limits.min), limits.max)


def margins(
    before: int | None, after: int | None, target: int | None, length: int, outward: int, names: str
) -> tuple[int, int]:
    """Returns how much an axis grows (`outward` 1) or shrinks (-1) at its ends, two of three sizes being given.

    Raises: ArgumentError unless exactly two are given, and where an end or what remains would be negative.
    """
    missing = (before, after, target).count(None)
    if missing != 1:
        raise ArgumentError(f"exactly two of {names} are given, not {3 - missing}")
    change = 0 if target is None else (target - length) * outward
    first = change - (after or 0) if before is None else before
    last = change - first if after is None else after
    if min(first, last) < 0 or length + outward * (first + last) < 0:
        raise ArgumentError(f"of {names} none may be negative: a length of {length} has {first} and {last} at its ends")
    return first, last


def _triangle(x: Array) -> Array:
    return np.maximum(0.0, 1.0 - x)


def _cubic(x: Array) -> Array:
    """Returns the cubic kernel of Keys with a = -1/2."""
    near = ((1.5 * x - 2.5) * x) * x + 1.0
    far = ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0
    return np.where(x < 1.0, near, np.where(x < 2.0, far, 0.0))


def _lanczos(radius: float) -> Callable[[Array], Array]:
    return lambda x: np.where(x < radius, np.sinc(x) * np.sinc(x / radius), 0.0)


KERNELS: dict[str, tuple[Callable[[Array], Array], float]] = {
    **dict.fromkeys(("linear", "bilinear", "trilinear", "triangle"), (_triangle, 1.0)),
    **dict.fromkeys(("cubic", "bicubic", "tricubic"), (_cubic, 2.0)),
    "lanczos3": (_lanczos(3.0), 3.0),
    "lanczos5": (_lanczos(5.0), 5.0),
}
"""Kernels of distances from 0 on, and from where on they are 0."""


def check_method(method: str, known: Sequence[str] = tuple(KERNELS)) -> None:
    """Checks the name of a resampling method.

    Raises: ArgumentError for an unknown one.
    """
    if method not in known:
        raise ArgumentError(f"the method is one of {', '.join(known)}, not {method!r}")


class Taps(Record):
    """Holds, for each pixel of an axis, the places on another it is made of, and what they weigh: (taps, pixels)."""

    places: Array
    weights: Array


def resampling(length: int, target: int, step: float, translation: float, method: str, antialias: bool) -> Taps:
    """Returns how the pixels of an axis are made of those of another.

    Pixel i lies at i + 1/2; a sample outside the axis is 0.

    Args:
        step: how far apart samples are; `translation` counts in such steps.

    Source: `jax.image.scale_and_translate`.
    """
    kernel, radius = KERNELS[method]
    spread = max(step, 1.0) if antialias else 1.0
    reach = radius * spread
    at = (np.arange(target) + 0.5 - translation) * step - 0.5
    count = math.ceil(2 * reach)
    first = np.floor(at - reach) + 1 if count <= length else np.zeros(target)
    places = first + np.arange(min(count, length))[:, None]
    weights = np.where((places >= 0) & (places < length), kernel(np.abs(at - places) / spread), 0.0)
    total = weights.sum(0)
    seen = (np.abs(total) > NEGLIGIBLE) & (at >= -0.5) & (at <= length - 0.5)
    weights = np.where(seen, weights / np.where(seen, total, 1.0), 0.0)
    return Taps(places.clip(0, length - 1).astype(np.int64), weights)


def per_axis(value: Any, n: int, name: str, positive: bool = True) -> list[float]:
    """Returns one number, or n, as n numbers.

    Raises: ArgumentError for another count, and for what is not finite or, if it is to be, not positive.
    """
    numbers = plain(constant(name, value)).astype(np.float64)
    if numbers.ndim > 1 or numbers.size not in (1, n) or not np.isfinite(numbers).all():
        raise ArgumentError(f"{name} is one finite number or {n}, not {value!r}")
    if positive and not (numbers > 0).all():
        raise ArgumentError(f"{name} is positive, not {value!r}")
    return [float(number) for number in np.broadcast_to(numbers, (n,))]


def nearest(length: int, target: int) -> Array:
    """Returns, for each pixel of an axis stretched to a target length, the index of the one it shows."""
    return (2 * np.arange(target) + 1) * length // (2 * target)


def in_proportion(size: Sequence[int], target: Sequence[int]) -> tuple[int, int]:
    """Returns the height that goes with an image's width in the target's aspect ratio, and the other way round."""
    return size[1] * target[0] // target[1], size[0] * target[1] // target[0]


def bell(size: int, sigma: float) -> list[float]:
    """Returns the weights of a Gaussian window, which add up to 1."""
    exponents = -0.5 * ((np.arange(size) - (size - 1) / 2) / sigma) ** 2
    # Subtract the maximum: all weights of a narrow Gaussian centred between pixels would underflow.
    weights = np.exp(exponents - exponents.max())
    return list(map(float, weights / weights.sum()))


def homography(start_points: Any, end_points: Any) -> Array:
    """Returns the eight numbers, (..., 8), of the transforms that take four end points each to the start points.

    Raises: ShapeError unless both are (4, 2) or (batch, 4, 2); LinAlgError where three points lie on a line.
    """
    start, end = (
        plain(constant(name, points)).astype(np.float64)
        for name, points in (("start_points", start_points), ("end_points", end_points))
    )
    if start.shape != end.shape or start.ndim not in (2, 3) or start.shape[-2:] != (4, 2):
        raise ShapeError(
            f"start and end points are (4, 2) or (batch, 4, 2) both, not of shapes {start.shape} and {end.shape}"
        )
    (u, v), (x, y) = np.moveaxis(start, -1, 0), np.moveaxis(end, -1, 0)
    zero, one = np.zeros_like(x), np.ones_like(x)
    above = np.stack([x, y, one, zero, zero, zero, -u * x, -u * y], -1)
    below = np.stack([zero, zero, zero, x, y, one, -v * x, -v * y], -1)
    wanted = np.concatenate([u, v], -1)
    try:
        return np.linalg.solve(np.concatenate([above, below], -2), wanted[..., None])[..., 0]
    except np.linalg.LinAlgError as error:
        raise LinAlgError("three of four points lie on a line: no perspective takes them to the others") from error


def smoothing_size(sigma: float) -> int:
    """Returns the odd length of a window that holds three sigmas to each side."""
    return math.floor(6 * sigma) | 1
