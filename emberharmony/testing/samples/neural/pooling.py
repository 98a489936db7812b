"""Sample rows of `ops/neural/pooling.py`; the oracles loop over windows, and ignore elements outside of the image."""

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from emberharmony.core.errors import ArgumentError, IndexOutOfBoundsError, ShapeError
from emberharmony.testing.gradient_row import TIES, GradientRow
from emberharmony.testing.refused import LINE
from emberharmony.testing.sample import FLOATS, HALVES, Sample, case, grid

D: dict[str, Any] = {"dtypes": FLOATS + HALVES, "floor": 4, "differentiable": True}
_LINE = np.cos(grid(0, 60, 42)).reshape(2, 7, 3)
_PLANE = np.cos(grid(0, 60, 60)).reshape(1, 6, 5, 2)


def _window_positions(
    lengths: Any, sizes: Any, steps: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> list[list[tuple[range, int]]]:
    """Returns, for each axis, the places of each window, and how many of them are up to the end of the padding."""
    n, windows_by_axis = len(lengths), []
    paddings = [padding] * n if isinstance(padding, (int, str)) else list(padding)
    for length, k, s, side, d in zip(lengths, sizes, steps, paddings, dilation, strict=True):
        padding_before, padding_after = (
            (side, side) if isinstance(side, int) else (0, 0) if isinstance(side, str) else side
        )
        window_length = (k - 1) * d + 1
        window_count = (length + padding_before + padding_after - window_length) / s + 1
        window_count = int(np.ceil(window_count) if ceil_mode else np.floor(window_count))
        if side == "same":
            window_count = -(-length // s)
            padding_before = max((window_count - 1) * s + window_length - length, 0) // 2
            padding_after = max((window_count - 1) * s + window_length - length, 0) - padding_before
        start_positions = [
            i * s - padding_before
            for i in range(window_count)
            if not ceil_mode or i * s - padding_before < length or i == 0
        ]
        end_positions = [min(start + window_length, length + padding_after) for start in start_positions]
        windows_by_axis.append(
            [
                (range(a, a + window_length, d), len(range(a, b, d)))
                for a, b in zip(start_positions, end_positions, strict=True)
            ]
        )
    return windows_by_axis


def _window_places(x: Any, size: Any, strides: Any, padding: Any, dilation: Any, ceil_mode: bool) -> Any:
    axis_count = x.ndim - 2
    sizes = [size] * axis_count if isinstance(size, int) else list(size)
    steps = sizes if strides is None else [strides] * axis_count if isinstance(strides, int) else list(strides)
    dilations = [dilation] * axis_count if isinstance(dilation, int) else list(dilation)
    return _window_positions(x.shape[1:-1], sizes, steps, padding, dilations, ceil_mode)


def _reduce_windows(x: Any, spans: Any, reduce: Callable[..., Any]) -> Any:
    """Applies `reduce(elements, places, held)` to each window: its elements, their places, the places that count."""
    window_values = []
    for window in itertools.product(*spans):
        places_inside = [
            [i for i in axis_positions if 0 <= i < n]
            for (axis_positions, _), n in zip(window, x.shape[1:-1], strict=True)
        ]
        index_grids = np.ix_(*places_inside)
        window_elements = x[:, *index_grids].reshape(len(x), -1, x.shape[-1])
        flat_positions = np.ravel_multi_index(index_grids, x.shape[1:-1]).reshape(-1)
        window_values.append(
            reduce(window_elements, flat_positions, int(np.prod([element_count for _, element_count in window])))
        )
    return np.stack(window_values, 1).reshape(len(x), *map(len, spans), x.shape[-1])


def _channels_first_oracle(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns an oracle of both data formats, for one that takes the channels last."""

    @functools.wraps(function)
    def pool_channels_last(
        x: Any,
        size: Any,
        strides: Any = None,
        padding: Any = "valid",
        data_format: Any = None,
        *options: Any,
        **keywords: Any,
    ) -> Any:
        if data_format == "channels_first":
            return np.moveaxis(function(np.moveaxis(x, 1, -1), size, strides, padding, *options, **keywords), -1, 1)
        return function(x, size, strides, padding, *options, **keywords)

    return pool_channels_last


@_channels_first_oracle
def _max_pool_oracle(
    x: Any, size: Any, strides: Any, padding: Any, dilation_rate: Any = 1, ceil_mode: bool = False
) -> Any:
    return _reduce_windows(
        x, _window_places(x, size, strides, padding, dilation_rate, ceil_mode), lambda w, *_: w.max(1)
    )


@_channels_first_oracle
def _max_pool_indices_oracle(
    x: Any, size: Any, strides: Any, padding: Any, dilation_rate: Any = 1, ceil_mode: bool = False
) -> Any:
    spans = _window_places(x, size, strides, padding, dilation_rate, ceil_mode)
    return _reduce_windows(x, spans, lambda w, flat, _: flat[w.argmax(1)])


@_channels_first_oracle
def _average_pool_oracle(
    x: Any,
    size: Any,
    strides: Any,
    padding: Any,
    ceil_mode: bool = False,
    count_include_pad: bool = False,
    divisor_override: int | None = None,
) -> Any:
    def mean(w: Any, _: Any, element_count: int) -> Any:
        return w.sum(1) / (divisor_override or (element_count if count_include_pad else w.shape[1]))

    return _reduce_windows(x, _window_places(x, size, strides, padding, 1, ceil_mode), mean)


def _lp_pool_oracle(
    x: Any, p: float, size: Any, strides: Any = None, data_format: Any = None, ceil_mode: bool = False
) -> Any:
    if np.isinf(p):
        return _max_pool_oracle(x, size, strides, "valid", data_format, 1, ceil_mode)
    axis_count = x.ndim - 2
    element_count = size**axis_count if isinstance(size, int) else int(np.prod(size))
    return (_average_pool_oracle(x**p, size, strides, "valid", data_format, ceil_mode) * element_count) ** (1 / p)


def _max_unpool_oracle(x: Any, indices: Any, size: Any, data_format: Any = None) -> Any:
    if data_format == "channels_first":
        return np.moveaxis(_max_unpool_oracle(np.moveaxis(x, 1, -1), np.moveaxis(indices, 1, -1), size), -1, 1)
    unpooled_image = np.zeros((len(x), int(np.prod(size)), x.shape[-1]))
    flat_positions = indices.astype(int).reshape(len(x), -1, x.shape[-1])
    np.put_along_axis(unpooled_image, flat_positions, x.reshape(flat_positions.shape), 1)
    return unpooled_image.reshape(len(x), *size, x.shape[-1])


def _adaptive_pool_oracle(reduce: Callable[..., Any]) -> Callable[..., Any]:
    def pool(x: Any, size: Any, data_format: Any = None) -> Any:
        if data_format == "channels_first":
            return np.moveaxis(pool(np.moveaxis(x, 1, -1), size), -1, 1)
        output_sizes = [size] * (x.ndim - 2) if isinstance(size, int) else list(size)
        slices_by_axis = [
            [slice(int(np.floor(i * n / c)), int(np.ceil((i + 1) * n / c))) for i in range(c)]
            for n, c in zip(x.shape[1:-1], output_sizes, strict=True)
        ]
        return _reduce_spans(x, slices_by_axis, reduce)

    return pool


def _reduce_spans(x: Any, spans: list[list[slice]], reduce: Callable[..., Any]) -> Any:
    axes = tuple(range(1, x.ndim - 1))
    reduced_spans = [reduce(x[:, *span], axes) for span in itertools.product(*spans)]
    return np.stack(reduced_spans, 1).reshape(len(x), *map(len, spans), x.shape[-1])


_CASES = (
    case(_LINE, 2),
    case(_LINE, 3, 2, "same"),
    case(_PLANE, (2, 3), 1, "same"),
    case(_PLANE, 2, (2, 1)),
    case(np.moveaxis(_PLANE, -1, 1), 2, None, "valid", "channels_first"),
    case(_LINE, 3, 2, 1, ceil_mode=True),
    case(_PLANE, (3, 2), (2, 3), (1, 0), ceil_mode=True),
    case(_PLANE, 3, 2, [(1, 0), (0, 1)]),
)
_DILATED = (case(_LINE, 2, 2, 1, None, 3), case(_PLANE, (2, 3), 1, (0, 1), dilation_rate=(4, 2), ceil_mode=True))
_COUNTED = (
    case(_LINE, 3, 2, 1, None, True, True),
    case(_PLANE, 2, 2, 1, count_include_pad=True),
    case(_PLANE, (3, 2), (2, 3), (1, 0), ceil_mode=True, count_include_pad=True),
    case(_PLANE, 3, 2, "same", count_include_pad=True),
    case(_PLANE, 2, divisor_override=3),
    case(_LINE, 3, 2, 1, divisor_override=2),
)
_ADAPTIVE = (
    case(_LINE, 3),
    case(_PLANE, (4, 2)),
    case(_PLANE, 1),
    case(np.moveaxis(_PLANE, -1, 1), (5, 3), "channels_first"),
)

SAMPLES = [
    Sample(
        "max_pool",
        _max_pool_oracle,
        (*_CASES, *_DILATED),
        integers=("int32", "uint8"),
        **D,
        refuses=((ArgumentError, case(LINE, 0)),),
    ),
    Sample(
        "max_pool_indices",
        _max_pool_indices_oracle,
        (*_CASES, *_DILATED),
        dtypes=FLOATS + HALVES,
        integers=("int32", "uint8"),
        result="int64",
        refuses=((ArgumentError, case(LINE, 3, 1, -1)),),
    ),
    Sample(
        "max_unpool",
        _max_unpool_oracle,
        (
            case(_LINE[:, :2], np.array([[[0, 6, 3], [1, 2, 4]], [[5, 0, 1], [4, 1, 2]]]), (7,)),
            case(_PLANE[:, 0:1, 0:2], np.array([[[[3, 2], [1, 11]]]]), (3, 4)),
            case(
                np.moveaxis(_LINE[:, :1], -1, 1), np.array([[[0], [3], [1]], [[2], [0], [3]]]), (4,), "channels_first"
            ),
        ),
        integers=("int32", "uint8"),
        **D,
        refuses=(
            (ShapeError, case(LINE, np.zeros((1, 1, 2), np.int64), (3,))),
            (IndexOutOfBoundsError, case(np.ones((1, 1, 1)), np.array([[[3]]]), (3,))),
        ),
    ),
    Sample(
        "average_pool",
        _average_pool_oracle,
        (*_CASES, *_COUNTED),
        integers=("int32", "uint8"),
        result="float",
        **D,
        tolerance=1,
        left_out={"large offsets": "a window is summed one element after the other, so rounding errors add up"},
        refuses=(
            (ArgumentError, case(LINE, (2, 2))),
            (ArgumentError, case(LINE, 2, 2, 2)),
            (ArgumentError, case(LINE, 2, divisor_override=0)),
        ),
    ),
    Sample(
        "lp_pool",
        _lp_pool_oracle,
        (
            case(_LINE, 2, 3, 2),
            case(_PLANE, 2.0, (2, 3), 1, ceil_mode=True),
            case(np.moveaxis(_PLANE, -1, 1), 4, 2, None, "channels_first", True),
            case(1 + _LINE**2, 1.5, 2),
            case(_LINE, np.inf, 2),
        ),
        result="float",
        **D,
        tolerance=4,
        refuses=((ArgumentError, case(LINE, 0, 2)), (ArgumentError, case(LINE, "two", 2))),
    ),
    Sample(
        "adaptive_average_pool",
        _adaptive_pool_oracle(np.mean),
        _ADAPTIVE,
        integers=("int32", "uint8"),
        result="float",
        **D,
        tolerance=1,
    ),
    Sample(
        "adaptive_max_pool",
        _adaptive_pool_oracle(np.max),
        _ADAPTIVE,
        integers=("int32", "uint8"),
        **D,
        gradient=GradientRow(skipped={3: TIES}),
    ),
]
