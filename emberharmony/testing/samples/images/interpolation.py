"""Sample rows of `ops/images/interpolation.py`: the oracle multiplies each axis by a matrix of weights."""

import math
from typing import Any

import numpy as np

from emberharmony.testing.left_out import NO_PIXELS
from emberharmony.testing.sample import FLOATS, HALVES, Sample, case, grid

_LINE, _PLANE = np.sin(grid(-9, 9, 30)).reshape(2, 5, 3), np.sin(grid(-20, 20, 40)).reshape(1, 4, 5, 2)


def _cubic_weight(t: float) -> float:
    return (1.25 * t - 2.25) * t * t + 1 if t <= 1 else -0.75 * (((t - 5) * t + 8) * t - 4)


def _interpolation_matrix(count: int, output_length: int, step: float, mode: str, corners: bool) -> Any:
    weights = np.zeros((output_length, count))
    for i in range(output_length):
        if mode == "area":
            first_index, end_index = i * count // output_length, -(-(i + 1) * count // output_length)
            weights[i, first_index:end_index] = 1 / (end_index - first_index)
        elif mode.startswith("nearest"):
            weights[i, min(math.floor((i + 0.5 * (mode != "nearest")) * step), count - 1)] = 1
        else:
            source_position = (
                (i * (count - 1) / (output_length - 1) if output_length > 1 else 0.0)
                if corners
                else (i + 0.5) * step - 0.5
            )
            source_position = source_position if mode == "bicubic" else max(source_position, 0.0)
            for j in range(math.floor(source_position) - 1, math.floor(source_position) + 3):
                weight = (
                    _cubic_weight(abs(source_position - j))
                    if mode == "bicubic"
                    else max(1 - abs(source_position - j), 0.0)
                )
                weights[i, min(max(j, 0), count - 1)] += weight
    return weights


def _interpolate_oracle(
    x: Any,
    size: Any = None,
    scale: Any = None,
    mode: str = "nearest",
    corners: Any = None,
    recompute: Any = None,
    data_format: Any = None,
) -> Any:
    n, first_axis = x.ndim - 2, 2 if data_format == "channels_first" else 1
    size_or_scale = scale if size is None else size
    sizes = list(size_or_scale) if isinstance(size_or_scale, (tuple, list)) else [size_or_scale] * n
    for axis, value in enumerate(sizes, first_axis):
        axis_length = x.shape[axis]
        output_length = math.floor(axis_length * value) if size is None else value
        source_step = 1 / value if size is None and not recompute else axis_length / output_length
        matrix = _interpolation_matrix(axis_length, output_length, source_step, mode, bool(corners))
        x = np.moveaxis(np.tensordot(matrix, x, (1, axis)), 0, axis)
    return x


SAMPLES = [
    Sample(
        "interpolate",
        _interpolate_oracle,
        (
            case(_LINE, 7),
            case(_LINE, None, 2),
            case(_LINE, (3,), None, "nearest-exact", None, None, "channels_first"),
            case(_LINE, None, 1.7, "linear"),
            case(_LINE, None, 1.7, "linear", None, True),
            case(_LINE, 3, None, "linear", True),
            case(_LINE, 3, None, "area"),
            case(_PLANE, (6, 3), None, "bilinear"),
            case(_PLANE, None, (0.6, 2.5), "bilinear", False, None, "channels_first"),
            case(_PLANE, (7, 1), None, "bicubic", True),
            case(_PLANE, None, (1.5, 2), "bicubic"),
            case(_PLANE.reshape(1, 2, 4, 5, 1), (3, 2, 7), None, "trilinear"),
            # Lengths that stay or double only after rounding.
            case(_LINE, None, 1.15),
            case(_LINE, None, 2.15),
            case(_LINE, None, 1.15, "linear"),
            case(_PLANE, None, (1.2, 1.5), "bilinear"),
            case(_PLANE, None, (1.2, 1.1), "bicubic"),
            case(_PLANE.reshape(1, 2, 4, 5, 1), None, (1.4, 1.2, 1.5), "trilinear"),
        ),
        dtypes=FLOATS + HALVES,
        differentiable=True,
        tolerance=12,
        left_out={"results of empty axes": NO_PIXELS},
    ),
]
