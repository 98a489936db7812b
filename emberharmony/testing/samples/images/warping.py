"""Sample rows of `ops/images/warping.py`; the oracles apply SciPy's interpolation to each channel of each image."""

from typing import Any

import numpy as np
from scipy import ndimage

from emberharmony.testing.left_out import NO_PIXELS
from emberharmony.testing.sample import FLOATS, HALVES, Sample, case, grid

_MODES = {"constant": "grid-constant", "wrap": "grid-wrap"}
_TABLE = np.cos(grid(0, 20, 30)).reshape(5, 6)
_PLACES = np.stack([grid(-6.9, 11.7, 40), grid(-8.8, 10.6, 40)[::-1]]).reshape(2, 8, 5)
_LINE = np.array([3.0, 1.0, 4.0, 1.5])
_SHOTS = np.cos(grid(0, 50, 84)).reshape(2, 6, 7, 1)
_FIRST = np.moveaxis(np.sin(grid(0, 40, 60)).reshape(5, 6, 2), -1, 0)
_TURN = [0.875, -0.5, 1.25, 0.375, 0.75, 0.5, 0.0, 0.0]
_TILT = [1.0, 0.125, -0.625, -0.0625, 1.125, 0.375, 0.03125, -0.015625]
_SHARES = np.stack([grid(-1.3, 1.2, 30), grid(-0.9, 1.1, 30)[::-1]], -1).reshape(2, 3, 5, 2)
_VOLUME = np.sin(grid(0, 30, 48)).reshape(1, 3, 4, 2, 2)
_CORNERS = [[0.0, 0.0], [6.0, 0.0], [0.0, 5.0], [6.0, 5.0]]
_BENT = [[0.5, 0.25], [5.0, 1.0], [-0.5, 4.5], [6.25, 5.5]]


def _sample_image_oracle(x: Any, places: Any, order: int, mode: str = "constant", value: float = 0.0) -> Any:
    integer_dtype = x.dtype if x.dtype.kind in "iu" else None
    if order == 0:
        # SciPy rounds halves up, but the op rounds them away from zero.
        places = np.sign(places) * np.floor(np.abs(places) + 0.5)
    sampled_image = ndimage.map_coordinates(x.astype(np.float64), places, None, order, _MODES.get(mode, mode), value)
    return sampled_image if integer_dtype is None else np.rint(sampled_image).astype(integer_dtype)


def _warp_oracle(
    x: Any,
    transform: Any,
    interpolation: str = "bilinear",
    mode: str = "constant",
    value: float = 0.0,
    data_format: Any = None,
) -> Any:
    if data_format == "channels_first":
        return np.moveaxis(_warp_oracle(np.moveaxis(x, -3, -1), transform, interpolation, mode, value), -1, -3)
    if x.ndim == 3:
        return _warp_oracle(x[None], transform, interpolation, mode, value)[0]
    transform_rows = np.broadcast_to(np.asarray(transform), (len(x), 8))
    row_grid, column_grid = np.mgrid[: x.shape[1], : x.shape[2]]
    warped_images = np.empty(x.shape, x.dtype)
    for image, row, warped_image in zip(x, transform_rows, warped_images, strict=True):
        matrix = np.append(row, 1.0).reshape(3, 3)
        u, v, k = np.tensordot(matrix, np.stack([column_grid, row_grid, np.ones_like(column_grid)]), 1)
        for channel in range(x.shape[-1]):
            positions = np.stack([v / k, u / k])
            warped_image[..., channel] = _sample_image_oracle(
                image[..., channel], positions, int(interpolation == "bilinear"), mode, value
            )
    return warped_images


def _warp_perspective_oracle(
    x: Any, start: Any, end: Any, interpolation: str = "bilinear", value: float = 0.0, data_format: Any = None
) -> Any:
    """Warps images by the perspective transforms that map `end` to `start`.

    Each transform is the null vector of the equations of the direct linear transformation (DLT).
    """
    transforms = []
    for start_corners, end_corners in zip(np.reshape(start, (-1, 4, 2)), np.reshape(end, (-1, 4, 2)), strict=True):
        equation_rows = []
        for (u, v), (a, b) in zip(start_corners, end_corners, strict=True):
            equation_rows += [[a, b, 1, 0, 0, 0, -u * a, -u * b, -u], [0, 0, 0, a, b, 1, -v * a, -v * b, -v]]
        null_vector = np.linalg.svd(np.array(equation_rows, np.float64))[2][-1]
        transforms.append(null_vector[:8] / null_vector[8])
    return _warp_oracle(x, np.array(transforms), interpolation, "constant", value, data_format)


def _sample_at_shares_oracle(
    x: Any,
    shares: Any,
    interpolation: str = "bilinear",
    mode: str = "constant",
    value: float = 0.0,
    corners: bool = False,
    data_format: Any = None,
) -> Any:
    if data_format == "channels_first":
        channels_last_image = np.moveaxis(x, 1, -1)
        return np.moveaxis(
            _sample_at_shares_oracle(channels_last_image, shares, interpolation, mode, value, corners), -1, 1
        )
    image_sizes = np.array(x.shape[1:-1])
    shares = np.asarray(shares, np.float64)[..., ::-1]
    pixel_positions = (shares + 1) * (image_sizes - 1) / 2 if corners else (shares + 1) * image_sizes / 2 - 0.5
    spline_order = int(interpolation == "bilinear")
    pixel_positions = pixel_positions if spline_order else np.rint(pixel_positions)
    return np.stack(
        [
            np.stack(
                [
                    _sample_image_oracle(image[..., c], np.moveaxis(image_places, -1, 0), spline_order, mode, value)
                    for c in range(x.shape[-1])
                ],
                -1,
            )
            for image, image_places in zip(x, pixel_positions, strict=True)
        ]
    )


D: dict[str, Any] = {"dtypes": FLOATS + HALVES, "differentiable": True}

SAMPLES = [
    Sample(
        "map_coordinates",
        _sample_image_oracle,
        (
            case(_TABLE, _PLACES, 1),
            case(_TABLE, _PLACES, 1, "nearest"),
            case(_TABLE, _PLACES, 1, "wrap"),
            case(_TABLE, _PLACES, 1, "mirror"),
            case(_TABLE, _PLACES, 1, "reflect"),
            case(_TABLE, _PLACES, 0, "constant", 0.5),
            case(_TABLE, _PLACES, 0, "reflect"),
            case(_LINE, np.array([[-1.25, -0.75, 0.25, 1.5, 2.875, 3.25, 4.5]]), 1, "constant", 2.0),
        ),
        **D,
        tolerance=3,
        left_out={"results of empty axes": NO_PIXELS},
    ),
    Sample(
        "affine_transform",
        _warp_oracle,
        (
            case(_SHOTS, _TURN),
            case(_SHOTS, [_TURN, _TILT], "bilinear", "reflect"),
            case(_SHOTS, [_TILT, _TURN], "nearest", "constant", 0.5),
            case(_FIRST, _TILT, "bilinear", "wrap", 0.0, "channels_first"),
            case(np.rint(127 + 127 * _SHOTS), _TURN, "bilinear", "mirror"),
        ),
        integers=("uint8", "int32"),
        **D,
        tolerance=6,
        left_out={"results of empty axes": NO_PIXELS},
    ),
    Sample(
        "grid_sample",
        _sample_at_shares_oracle,
        (
            case(_SHOTS, _SHARES),
            case(_SHOTS, _SHARES, "bilinear", "nearest", 0.0, True),
            case(_SHOTS, _SHARES, "bilinear", "reflect"),
            case(_SHOTS, _SHARES, "nearest", "constant", 0.5),
            case(np.moveaxis(_SHOTS, -1, 1), _SHARES, "bilinear", "mirror", 0.0, True, "channels_first"),
            case(_VOLUME, grid(-1.1, 0.95, 24).reshape(1, 2, 2, 2, 3)),
        ),
        **D,
        tolerance=8,
        left_out={"results of empty axes": NO_PIXELS},
    ),
    Sample(
        "perspective_transform",
        _warp_perspective_oracle,
        (
            case(_SHOTS[0], _CORNERS, _BENT),
            case(_SHOTS, [_CORNERS, _BENT], [_BENT, _CORNERS], "bilinear", 1.0),
            case(_FIRST, _CORNERS, _BENT, "nearest", 0.0, "channels_first"),
        ),
        **D,
        tolerance=48,
        left_out={"results of empty axes": NO_PIXELS},
    ),
    Sample("elastic_transform", str, (case(_SHOTS, seed=3),), reference="tests"),
]
