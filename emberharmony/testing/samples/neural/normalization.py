"""Sample rows of `ops/neural/normalization.py`."""

from typing import Any

import numpy as np

from emberharmony.core.errors import ArgumentError, AxisError, ShapeError
from emberharmony.testing.left_out import ROUNDED_MEAN
from emberharmony.testing.refused import ONES_3_4
from emberharmony.testing.sample import FLOATS, HALVES, Sample, case, grid

D: dict[str, Any] = {"dtypes": FLOATS + HALVES, "result": "float", "differentiable": True}
A: dict[str, Any] = D | {"integers": ("int32", "uint8")}
_X = grid(-4, 4, 24).reshape(2, 3, 4)
_T, _P = grid(0, 1, 12).reshape(3, 4), grid(0.05, 0.95, 12).reshape(3, 4)


def _layer_norm_oracle(x: Any, gamma: Any = None, beta: Any = None, axis: int = -1, epsilon: float = 1e-7) -> Any:
    deviations = x - x.mean(axis, keepdims=True)
    normalized_array = deviations / np.sqrt((deviations**2).mean(axis, keepdims=True) + epsilon)
    parameter_shape = [n if i == axis else 1 for i, n in enumerate(x.shape)] if axis >= 0 else x.shape[-1:]
    normalized_array = normalized_array if gamma is None else normalized_array * gamma.reshape(parameter_shape)
    return normalized_array if beta is None else normalized_array + beta.reshape(parameter_shape)


def _rms_norm_oracle(x: Any, scale: Any = None, axis: int = -1, epsilon: float = 1e-7) -> Any:
    normalized_array = x / np.sqrt((x**2).mean(axis, keepdims=True) + epsilon)
    return normalized_array if scale is None else normalized_array * scale


def _group_norm_oracle(
    x: Any, groups: int, scale: Any = None, offset: Any = None, axis: int = -1, epsilon: float = 1e-3
) -> Any:
    axis_last_array = np.moveaxis(x, axis, -1)
    normalized_groups = []
    for group in np.split(axis_last_array, groups, -1):
        reduced_axes = tuple(range(1, x.ndim))
        deviations = group - group.mean(reduced_axes, keepdims=True)
        normalized_groups.append(deviations / np.sqrt((deviations**2).mean(reduced_axes, keepdims=True) + epsilon))
    normalized_array = np.concatenate(normalized_groups, -1)
    normalized_array = normalized_array if scale is None else normalized_array * scale
    return np.moveaxis(normalized_array if offset is None else normalized_array + offset, -1, axis)


def _local_response_norm_oracle(
    x: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0, axis: int = -1
) -> Any:
    axis_last_array = np.moveaxis(x, axis, -1)
    neighbour_windows = [
        axis_last_array[..., max(i - size // 2, 0) : i + (size - 1) // 2 + 1] for i in range(axis_last_array.shape[-1])
    ]
    sums_of_squares = (
        np.stack([(neighbours**2).sum(-1) for neighbours in neighbour_windows], -1)
        if neighbour_windows
        else axis_last_array
    )
    return np.moveaxis(axis_last_array / (k + alpha * sums_of_squares / size) ** beta, -1, axis)


def _batch_norm_in_training_oracle(
    x: Any, axis: int, offset: Any = None, scale: Any = None, epsilon: float = 1e-3
) -> tuple[Any, Any, Any]:
    axis_last_array = np.moveaxis(x, axis, -1)
    channel_rows = axis_last_array.reshape(-1, axis_last_array.shape[-1])
    center, variance = channel_rows.mean(0), ((channel_rows - channel_rows.mean(0)) ** 2).mean(0)
    normalized_array = (axis_last_array - center) / np.sqrt(variance + epsilon)
    normalized_array = normalized_array if scale is None else normalized_array * scale
    return np.moveaxis(normalized_array if offset is None else normalized_array + offset, -1, axis), center, variance


_IMAGE = np.sin(grid(0, 50, 144)).reshape(2, 3, 4, 6)

SAMPLES = [
    Sample(
        "layer_normalization",
        _layer_norm_oracle,
        (case(_X), case(_X, _P[0], _T[0]), case(_X, axis=1), case(_X, _T[:, 0], _P[:, 1], 1, 1e-3)),
        floor=4,
        **A,
        tolerance=16,
        left_out={"large offsets": ROUNDED_MEAN},
    ),
    Sample("rms_normalization", _rms_norm_oracle, (case(_X), case(_X, _P[0])), **A, tolerance=3),
    Sample(
        "batch_normalization",
        lambda x, mean, variance, axis, offset=0.0, scale=1.0, epsilon=1e-3: (
            (x - mean) / np.sqrt(variance + epsilon) * scale + offset
        ),
        (case(_X, _P[0], _P[1], -1), case(_X, _P[0], _P[1], 2, _T[0], _T[1], 0.1)),
        floor=8,
        **A,
        tolerance=2,
    ),
    Sample(
        "batch_normalization_training",
        _batch_norm_in_training_oracle,
        (
            case(_X, -1),
            case(_X, 1, _T[:, 0], _P[:, 1], 0.1),
            case(_IMAGE, 1, None, _P[0, :3], 1e-5),
            case(_IMAGE, 3, _T.reshape(-1)[:6]),
            case(_X[:, 0], 0, epsilon=0.1),
        ),
        floor=4,
        dtypes=FLOATS + HALVES,
        integers=("int32", "uint8"),
        result=("float", "float wide", "float wide"),
        tolerance=4,
        left_out={"large offsets": ROUNDED_MEAN},
    ),
    Sample(
        "group_normalization",
        _group_norm_oracle,
        (
            case(_X, 2),
            case(_IMAGE, 3, _T.reshape(-1)[:6], _P.reshape(-1)[3:9]),
            case(_IMAGE, 1, _P[0, :3], None, 1, 0.1),
            case(_IMAGE, 4, None, _P[0], 2, 1e-5),
            case(_X[:, 0], 4),
        ),
        floor=4,
        **A,
        tolerance=4,
        left_out={"large offsets": ROUNDED_MEAN},
        refuses=(
            (ArgumentError, case(ONES_3_4, 0)),
            (ArgumentError, case(ONES_3_4, 1, axis=0)),
            (ShapeError, case(ONES_3_4, 3)),
            (ShapeError, case(ONES_3_4, 1, ONES_3_4)),
        ),
    ),
    Sample(
        "local_response_normalization",
        _local_response_norm_oracle,
        (
            case(_IMAGE, 3),
            case(_IMAGE, 4, 0.5, 0.6, 2.0, 1),
            case(_X, 20, 0.3),
            case(_X, 1, 2.0, 1.0, 0.5, 0),
        ),
        **A,
        tolerance=4,
        refuses=((ArgumentError, case(ONES_3_4, 0)), (AxisError, case(ONES_3_4, 1, axis=2))),
    ),
]
