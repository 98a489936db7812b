"""Sample rows of `ops/images/resampling.py`; the oracles loop over pixels, or are functions of SciPy."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import ndimage

from emberharmony.testing.left_out import DIFFERENCE, NO_PIXELS, NO_WINDOW
from emberharmony.testing.sample import FLOATS, HALVES, Sample, case, grid

_SHOT = 0.5 + 0.5 * np.cos(grid(0, 60, 84)).reshape(2, 6, 7, 1)
_PIXELS = np.rint(3 * _SHOT)
_COLOURS = np.sin(grid(0, 90, 60)).reshape(4, 5, 3)
_FIRST = np.moveaxis(np.sin(grid(3, 70, 72)).reshape(2, 6, 3, 2), -1, 1)
_LARGE = 0.5 + 0.3 * np.cos(grid(0, 200, 13 * 12 * 2)).reshape(13, 12, 2)
_OTHER = _LARGE + 0.1 * np.sin(grid(0, 350, 13 * 12 * 2)).reshape(13, 12, 2)


def _linear_kernel(x: float) -> float:
    return max(0.0, 1.0 - abs(x))


def _cubic_kernel(x: float) -> float:
    x = abs(x)
    if x < 1.0:
        return 1.5 * x**3 - 2.5 * x**2 + 1.0
    return -0.5 * x**3 + 2.5 * x**2 - 4.0 * x + 2.0 if x < 2.0 else 0.0


def _lanczos_kernel(radius: int) -> Callable[[float], float]:
    def kernel(x: float) -> float:
        if x == 0.0 or abs(x) >= radius:
            return float(x == 0.0)
        angle = math.pi * x
        return radius * math.sin(angle) * math.sin(angle / radius) / angle**2

    return kernel


_KERNELS = {
    "bilinear": _linear_kernel,
    "bicubic": _cubic_kernel,
    "lanczos3": _lanczos_kernel(3),
    "lanczos5": _lanczos_kernel(5),
}


def _resample_row(row: Any, target: int, step: float, translation: float, method: str, antialias: bool) -> Any:
    """Returns a row of pixels resampled to `target` pixels, by a loop over these."""
    kernel_function, width_scale = _KERNELS[method], max(step, 1.0) if antialias else 1.0
    resampled_row = np.zeros(target)
    for i in range(target):
        source_position = (i + 0.5 - translation) * step
        if 0.0 <= source_position <= len(row):
            weights = [kernel_function((j + 0.5 - source_position) / width_scale) for j in range(len(row))]
            resampled_row[i] = sum(w * pixel for w, pixel in zip(weights, row, strict=True)) / sum(weights)
    return resampled_row


def _resize_oracle(
    x: Any, size: Sequence[int], method: str = "bilinear", antialias: bool = False, **options: Any
) -> Any:
    if options.get("data_format") == "channels_first":
        options.pop("data_format")
        return np.moveaxis(_resize_oracle(np.moveaxis(x, -3, -1), size, method, antialias, **options), -1, -3)
    (h, w), (height, width) = x.shape[-3:-1], size
    if options.get("crop_to_aspect_ratio"):
        cropped_height, cropped_width = min(h, w * height // width), min(w, h * width // height)
        top_edge, left_edge = (h - cropped_height) // 2, (w - cropped_width) // 2
        x = x[..., top_edge : top_edge + cropped_height, left_edge : left_edge + cropped_width, :]
    if options.get("pad_to_aspect_ratio"):
        top_edge, left_edge = max(w * height // width - h, 0) // 2, max(h * width // height - w, 0) // 2
        paddings = [(0, 0)] * (x.ndim - 3) + [(top_edge, top_edge), (left_edge, left_edge), (0, 0)]
        x = np.pad(x, paddings, constant_values=options.get("fill_value", 0.0))
    resized_image = x
    for axis, target_length in ((-3, height), (-2, width)):
        axis_length = x.shape[axis]
        if method == "nearest":
            resized_image = np.take(
                resized_image, [math.floor((i + 0.5) * axis_length / target_length) for i in range(target_length)], axis
            )
        else:
            resized_image = np.apply_along_axis(
                _resample_row, axis, resized_image, target_length, axis_length / target_length, 0.0, method, antialias
            )
    return _round_to_dtype(x, resized_image)


def _round_to_dtype(x: Any, result: Any) -> Any:
    """Returns `result` rounded and clipped to the dtype of `x`, if that is an integer dtype."""
    if x.dtype.kind not in "iu":
        return result
    integer_limits = np.iinfo(x.dtype)
    return np.clip(np.rint(result), integer_limits.min, integer_limits.max).astype(x.dtype)


def _resample_axes_oracle(
    x: Any, shape: Any, scale: Any, translation: Any, axes: Any, method: str, antialias: bool = True
) -> Any:
    resampled_array = x
    for k, axis in enumerate(axes):
        s, t = (np.broadcast_to(v, (len(axes),))[k] for v in (scale, translation))
        resampled_array = np.apply_along_axis(
            _resample_row, axis, resampled_array, shape[axis], 1.0 / s, t, method, antialias
        )
    return _round_to_dtype(x, resampled_array)


def _gaussian_window(size: int, sigma: float) -> Any:
    gaussian_weights = np.exp(-0.5 * ((np.arange(size) - (size - 1) / 2) / sigma) ** 2)
    return gaussian_weights / gaussian_weights.sum()


def _blur_oracle(x: Any, size: Any = (3, 3), sigma: Any = (1.0, 1.0), data_format: str | None = None) -> Any:
    kernel = np.outer(*(_gaussian_window(n, s) for n, s in zip(size, sigma, strict=True)))
    kernel_with_axis = kernel[..., None] if data_format != "channels_first" else kernel[None]
    return ndimage.correlate(x, kernel_with_axis.reshape((1,) * (x.ndim - 3) + kernel_with_axis.shape), mode="constant")


def _sobel_oracle(x: Any, data_format: str | None = None) -> Any:
    axes = (-3, -2) if data_format != "channels_first" else (-2, -1)
    smoothing_weights, slope_weights = np.array([1.0, 2.0, 1.0]), np.array([-1.0, 0.0, 1.0])
    return np.stack(
        [
            ndimage.correlate1d(
                ndimage.correlate1d(x, slope_weights, a, mode="reflect"), smoothing_weights, b, mode="reflect"
            )
            for a, b in (axes, axes[::-1])
        ],
        -1,
    )


def _ssim_oracle(
    a: Any, b: Any, peak: float = 1.0, n: int = 11, sigma: float = 1.5, k1: float = 0.01, k2: float = 0.03
) -> Any:
    weights = np.outer(_gaussian_window(n, sigma), _gaussian_window(n, sigma))
    luminance_constant, contrast_constant, similarities = (k1 * peak) ** 2, (k2 * peak) ** 2, []
    for channel in range(a.shape[-1]):
        for i in range(a.shape[0] - n + 1):
            for j in range(a.shape[1] - n + 1):
                x, y = (z[i : i + n, j : j + n, channel] for z in (a, b))
                mean_x, mean_y = (weights * x).sum(), (weights * y).sum()
                variance_x, variance_y = (weights * (x - mean_x) ** 2).sum(), (weights * (y - mean_y) ** 2).sum()
                covariance = (weights * (x - mean_x) * (y - mean_y)).sum()
                similarities.append(
                    (2 * mean_x * mean_y + luminance_constant)
                    * (2 * covariance + contrast_constant)
                    / (
                        (mean_x * mean_x + mean_y * mean_y + luminance_constant)
                        * (variance_x + variance_y + contrast_constant)
                    )
                )
    return np.mean(similarities)


D: dict[str, Any] = {"dtypes": FLOATS + HALVES, "differentiable": True}
_SIZES = ((9, 5), (3, 7), (6, 10))
_RESIZE = [case(_SHOT, _SIZES[i % 3], method, i % 2 == 1) for i, method in enumerate(_KERNELS)]
_RESIZE += [
    case(_COLOURS, (2, 9), "nearest"),
    case(_PIXELS, (4, 9), "bicubic", True),
    case(_FIRST, (4, 4), data_format="channels_first"),
    case(_SHOT, (4, 2), crop_to_aspect_ratio=True),
    case(_SHOT, (2, 5), pad_to_aspect_ratio=True, fill_value=0.25),
]

SAMPLES = [
    Sample(
        "resize",
        _resize_oracle,
        _RESIZE,
        integers=("uint8", "int32"),
        **D,
        tolerance=24,
        left_out={"results of empty axes": NO_PIXELS},
    ),
    Sample(
        "scale_and_translate",
        _resample_axes_oracle,
        (
            case(_COLOURS, (7, 5, 3), [1.5], [0.25], (0,), "bilinear"),
            case(_COLOURS, (3, 4, 3), [0.5, 0.75], [-0.25, 1.5], (0, 1), "bicubic"),
            case(_COLOURS, (3, 4, 5), 0.625, 0.5, (2, 0, 1), "lanczos3", False),
            case(_PIXELS, (2, 9, 5, 1), [1.25, 0.75], [0.0, -2.0], (1, 2), "lanczos5"),
        ),
        integers=("uint8",),
        **D,
        tolerance=8,
        left_out={"results of empty axes": NO_PIXELS},
    ),
    Sample(
        "gaussian_blur",
        _blur_oracle,
        (
            case(_COLOURS),
            case(_SHOT, (5, 3), (0.8, 2.0)),
            case(_FIRST, (3, 7), (1.5, 0.5), "channels_first"),
        ),
        **D,
        tolerance=3,
    ),
    Sample(
        "sobel_edges",
        _sobel_oracle,
        (case(_COLOURS), case(_FIRST, "channels_first"), case(_PIXELS)),
        integers=("uint8",),
        result="float",
        **D,
        tolerance=4,
        left_out={"results of empty axes": NO_PIXELS},
    ),
    Sample(
        "ssim",
        _ssim_oracle,
        (case(_LARGE, _OTHER), case(_LARGE, _OTHER, 2.0, 5, 0.9, 0.02, 0.05)),
        **D | {"dtypes": FLOATS},
        tolerance=6,
        left_out={"results of empty axes": NO_WINDOW, "large offsets": DIFFERENCE},
    ),
]
