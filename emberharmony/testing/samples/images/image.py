"""Sample rows of `ops/images/image_ops.py`; the oracles loop over pixels, and convert colours by `colorsys`."""

import colorsys
from collections.abc import Callable
from typing import Any

import numpy as np

from emberharmony.testing.left_out import DIFFERENCE, NO_WINDOW
from emberharmony.testing.sample import FLOATS, HALVES, Sample, case, grid

_COLOURS = 0.5 + 0.45 * np.sin(grid(0.3, 90, 72)).reshape(2, 3, 4, 3)
_FIRST = np.moveaxis(_COLOURS, -1, 1).copy()
_PIXELS = np.rint(255 * _COLOURS)
_HUE = np.array([1.0, 0.0, 0.0])
_VOLUME = np.arange(2 * 5 * 4 * 3 * 2.0).reshape(2, 5, 4, 3, 2)


def _oracle_of_pixels(convert: Callable[..., Any]) -> Callable[..., Any]:
    def convert_channels(x: Any, data_format: str | None = None) -> Any:
        if data_format == "channels_first":
            return np.moveaxis(convert_channels(np.moveaxis(x, -3, -1)), -1, -3)
        return np.apply_along_axis(lambda colour: np.array(convert(*colour)), -1, x)

    return convert_channels


def _grey_value(red: Any, green: Any, blue: Any) -> Any:
    luminance = 0.2989 * float(red) + 0.587 * float(green) + 0.114 * float(blue)
    return [np.rint(luminance).astype(np.int64) if isinstance(red, np.integer) else luminance]


def _pad(x: Any, top: int, left: int, bottom: int, right: int, data_format: Any = None) -> Any:
    padded_image = np.zeros((x.shape[0], x.shape[1] + top + bottom, x.shape[2] + left + right, x.shape[3]), x.dtype)
    padded_image[:, top : top + x.shape[1], left : left + x.shape[2]] = x
    return padded_image


def _patches_oracle(
    x: Any, size: Any, strides: Any = None, rate: int = 1, padding: str = "valid", data_format: Any = None
) -> Any:
    axis_count = 2 if isinstance(size, int) else len(size)
    if data_format == "channels_first":
        channels_last_patches = _patches_oracle(np.moveaxis(x, -axis_count - 1, -1), size, strides, rate, padding)
        return np.moveaxis(channels_last_patches, -1, -axis_count - 1)
    if x.ndim == axis_count + 1:
        return _patches_oracle(x[None], size, strides, rate, padding)[0]
    size = (size,) * axis_count if isinstance(size, int) else size
    steps = size if strides is None else (strides,) * axis_count if isinstance(strides, int) else strides
    padded_image, window_counts = x, []
    for axis, (k, step) in enumerate(zip(size, steps, strict=True), 1):
        window_length, length = (k - 1) * rate + 1, x.shape[axis]
        window_counts.append(-(-length // step) if padding == "same" else (length - window_length) // step + 1)
        padding_length = max((window_counts[-1] - 1) * step + window_length - length, 0) if padding == "same" else 0
        paddings = [(0, 0)] * x.ndim
        paddings[axis] = (padding_length // 2, padding_length - padding_length // 2)
        padded_image = np.pad(padded_image, paddings)
    patches = np.empty((len(x), *window_counts, int(np.prod(size)) * x.shape[-1]), x.dtype)
    for window_index in np.ndindex(*window_counts):
        window_starts = [i * step for i, step in zip(window_index, steps, strict=True)]
        window_slices = [slice(s, s + (k - 1) * rate + 1, rate) for s, k in zip(window_starts, size, strict=True)]
        window = padded_image[(slice(None), *window_slices)]
        patches[(slice(None), *window_index)] = window.reshape(len(x), -1)
    return patches


def _volume_patches_oracle(x: Any, size: Any, *options: Any) -> Any:
    return _patches_oracle(x, (size,) * 3 if isinstance(size, int) else size, *options)


D: dict[str, Any] = {"dtypes": FLOATS + HALVES, "differentiable": True}
_WHOLE: dict[str, Any] = D | {"integers": ("int32", "uint8")}

SAMPLES = [
    Sample(
        "rgb_to_grayscale",
        _oracle_of_pixels(_grey_value),
        (case(_COLOURS), case(_FIRST, "channels_first"), case(_PIXELS)),
        integers=("uint8",),
        **D,
        tolerance=2,
    ),
    Sample(
        "rgb_to_hsv",
        _oracle_of_pixels(colorsys.rgb_to_hsv),
        (case(_COLOURS), case(_FIRST, "channels_first")),
        **D,
        tolerance=1,
    ),
    Sample(
        "hsv_to_rgb",
        _oracle_of_pixels(colorsys.hsv_to_rgb),
        (case(_COLOURS), case(_FIRST, "channels_first"), case(_COLOURS + _HUE)),
        **D,
        tolerance=8,
        left_out={"large offsets": DIFFERENCE},
    ),
    Sample(
        "pad_images",
        lambda x, *sizes: _pad(x, 1, 0, 2, 3),
        (case(_COLOURS, 1, 0, 2, 3), case(_COLOURS, 1, None, None, 3, 6, 7)),
        **_WHOLE,
        left_out={"empty axes": "the oracle computes the padding from the length"},
    ),
    Sample(
        "crop_images",
        lambda x, *sizes: x[:, 1:2, 0:3],
        (case(_COLOURS, 1, 0, 1, 1), case(_COLOURS, 1, None, None, 1, 1, 3)),
        **_WHOLE,
        left_out={"results of empty axes": "an empty image cannot be cropped"},
    ),
    Sample(
        "extract_patches",
        _patches_oracle,
        (
            case(_COLOURS, (3, 2)),
            case(_COLOURS[0], 2, 1),
            case(_COLOURS, 2, (2, 1), 2, "same"),
            case(_FIRST, (2, 3), 1, 1, "valid", "channels_first"),
            case(_VOLUME, (2, 2, 1)),
        ),
        **_WHOLE,
        left_out={"results of empty axes": NO_WINDOW},
    ),
    Sample(
        "extract_patches_3d",
        _volume_patches_oracle,
        (
            case(_VOLUME, 2),
            case(_VOLUME[0], (2, 3, 1), (1, 1, 2)),
            case(np.moveaxis(_VOLUME, -1, 1), 2, 1, 1, "same", "channels_first"),
        ),
        **_WHOLE,
        left_out={"results of empty axes": NO_WINDOW},
    ),
]
