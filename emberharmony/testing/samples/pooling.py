"""Sample rows of `ops/pooling.py`; the oracles loop over windows, and ignore elements outside of the image."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from emberharmony.testing.sample import FLOATS, HALVES, Sample, case, grid

D: dict[str, Any] = {"dtypes": FLOATS + HALVES, "floor": 4, "differentiable": True}
_LINE = np.cos(grid(0, 60, 42)).reshape(2, 7, 3)
_PLANE = np.cos(grid(0, 60, 60)).reshape(1, 6, 5, 2)


def _over(reduce: Callable[..., Any]) -> Callable[..., Any]:
    def pooled(x: Any, size: Any, strides: Any = None, padding: str = "valid", data_format: Any = None) -> Any:
        if data_format == "channels_first":
            return np.moveaxis(pooled(np.moveaxis(x, 1, -1), size, strides, padding), -1, 1)
        n = x.ndim - 2
        sizes = [size] * n if isinstance(size, int) else list(size)
        steps = sizes if strides is None else [strides] * n if isinstance(strides, int) else list(strides)
        spans = []
        for length, k, s in zip(x.shape[1:-1], sizes, steps, strict=True):
            count = -(-length // s) if padding == "same" else (length - k) // s + 1
            before = max((count - 1) * s + k - length, 0) // 2 if padding == "same" else 0
            spans.append([slice(max(i * s - before, 0), i * s - before + k) for i in range(count)])
        return _gathered(x, spans, reduce)

    return pooled


def _adapted(reduce: Callable[..., Any]) -> Callable[..., Any]:
    def pooled(x: Any, size: Any, data_format: Any = None) -> Any:
        if data_format == "channels_first":
            return np.moveaxis(pooled(np.moveaxis(x, 1, -1), size), -1, 1)
        counts = [size] * (x.ndim - 2) if isinstance(size, int) else list(size)
        spans = [
            [slice(int(np.floor(i * n / c)), int(np.ceil((i + 1) * n / c))) for i in range(c)]
            for n, c in zip(x.shape[1:-1], counts, strict=True)
        ]
        return _gathered(x, spans, reduce)

    return pooled


def _gathered(x: Any, spans: list[list[slice]], reduce: Callable[..., Any]) -> Any:
    axes = tuple(range(1, x.ndim - 1))
    parts = [reduce(x[:, *span], axes) for span in itertools.product(*spans)]
    return np.stack(parts, 1).reshape(len(x), *map(len, spans), x.shape[-1])


_CASES = (
    case(_LINE, 2),
    case(_LINE, 3, 2, "same"),
    case(_PLANE, (2, 3), 1, "same"),
    case(_PLANE, 2, (2, 1)),
    case(np.moveaxis(_PLANE, -1, 1), 2, None, "valid", "channels_first"),
)
_ADAPTIVE = (
    case(_LINE, 3),
    case(_PLANE, (4, 2)),
    case(_PLANE, 1),
    case(np.moveaxis(_PLANE, -1, 1), (5, 3), "channels_first"),
)

SAMPLES = [
    Sample("max_pool", _over(np.max), _CASES, integers=("int32", "uint8"), **D),
    Sample("average_pool", _over(np.mean), _CASES, integers=("int32", "uint8"), result="float", **D, tolerance=1),
    Sample(
        "adaptive_average_pool",
        _adapted(np.mean),
        _ADAPTIVE,
        integers=("int32", "uint8"),
        result="float",
        **D,
        tolerance=1,
    ),
    Sample("adaptive_max_pool", _adapted(np.max), _ADAPTIVE, integers=("int32", "uint8"), **D),
]
