"""Pools, on every backend."""

from typing import Any

import numpy as np
import pytest

from emberharmony import nn, ops
from emberharmony.errors import ArgumentError, ArgumentTypeError, ShapeError
from tests.nn.behaviours import require_behaviours, require_channels_last, require_compiled
from tests.nn.oracle import Case, dtypes_of, require_close, require_like_torch, torch

SHAPES = {1: (2, 3, 9), 2: (2, 3, 7, 8), 3: (1, 2, 5, 6, 7)}
SIZES: dict[int, Any] = {1: (3,), 2: (3, 2), 3: (2, 3, 2)}
STEPS: dict[int, Any] = {1: (2,), 2: (2, 1), 3: (1, 2, 3)}
HALVES: dict[int, Any] = {1: (1,), 2: (1, 0), 3: (0, 1, 1)}
COMMON: list[dict[str, Any]] = [
    {},
    {"stride": 1},
    {"ceil_mode": True},
    {"stride": 3, "ceil_mode": True},
]
PADDED: list[dict[str, Any]] = [
    *COMMON,
    {"padding": 1},
    {"padding": 1, "stride": 2, "ceil_mode": True},
]
MAX: list[dict[str, Any]] = [
    *PADDED,
    {"dilation": 2},
    {"dilation": 2, "padding": 1, "stride": 1, "ceil_mode": True},
    {"return_indices": True},
    {"return_indices": True, "padding": 1, "stride": 1, "dilation": 2},
]
AVERAGE: list[dict[str, Any]] = [
    *PADDED,
    {"padding": 1, "count_include_pad": False},
    {"padding": 1, "stride": 2, "count_include_pad": False, "ceil_mode": True},
]

CASES = [
    case
    for n in (1, 2, 3)
    for case in (
        *(Case(f"MaxPool{n}d", (2,), (SHAPES[n],), options) for options in MAX),
        Case(f"MaxPool{n}d", (SIZES[n], STEPS[n], HALVES[n], 1, False, True), (SHAPES[n],)),
        Case(f"MaxPool{n}d", (2,), (SHAPES[n][1:],)),
        Case(f"MaxPool{n}d", (2,), (SHAPES[n][1:],), {"return_indices": True}),
        *(Case(f"AvgPool{n}d", (2,), (SHAPES[n],), options) for options in AVERAGE),
        Case(f"AvgPool{n}d", (SIZES[n], STEPS[n], HALVES[n], True, False), (SHAPES[n],)),
        Case(f"AvgPool{n}d", (2,), (SHAPES[n][1:],)),
        *(Case(f"LPPool{n}d", (2, 2), (SHAPES[n],), options) for options in COMMON),
        Case(f"LPPool{n}d", (4.0, 3 if n == 1 else SIZES[n], STEPS[n], True), (SHAPES[n],)),
        Case(f"LPPool{n}d", (1, 3), (SHAPES[n][1:],)),
        *(Case(f"Adaptive{kind}Pool{n}d", (3,), (SHAPES[n],)) for kind in ("Avg", "Max")),
        *(Case(f"Adaptive{kind}Pool{n}d", (SHAPES[n][2:],), (SHAPES[n],)) for kind in ("Avg", "Max")),
        *(Case(f"Adaptive{kind}Pool{n}d", ((1, 4, 3)[-n:],), (SHAPES[n][1:],)) for kind in ("Avg", "Max")),
    )
] + [
    *(Case(f"AvgPool{n}d", (2,), (SHAPES[n],), {"divisor_override": 3}) for n in (2, 3)),
    *(Case(f"AvgPool{n}d", (2, 2, 1, True, False, 5), (SHAPES[n],)) for n in (2, 3)),
    *(Case(f"Adaptive{kind}Pool2d", ((None, 3),), (SHAPES[2],)) for kind in ("Avg", "Max")),
    *(Case(f"Adaptive{kind}Pool3d", ((2, None, None),), (SHAPES[3],)) for kind in ("Avg", "Max")),
]
LAYERS = [
    Case("GlobalMaxPool", (True,), (SHAPES[2],)),
    Case("MaxPool2d", (2, 2, 1), (SHAPES[2],), {"return_indices": True}),
    Case("AvgPool1d", (2, 2, 1), (SHAPES[1],), {"count_include_pad": False}),
    Case("LPPool2d", (2, 2), (SHAPES[2],)),
    Case("AdaptiveAvgPool2d", (3,), (SHAPES[2],)),
    Case("AdaptiveMaxPool1d", (3,), (SHAPES[1],)),
    Case("GlobalAvgPool", (), (SHAPES[2],)),
]
"""One row of each layer, or of each kind."""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_layers_compute_what_those_of_torch_do(backend: str, case: Case) -> None:
    for dtype in dtypes_of(backend):
        require_like_torch(case, dtype)


@pytest.mark.parametrize("case", [case for case in CASES if case.shapes[0] in (SHAPES[1], SHAPES[2])][::4], ids=str)
def test_channels_may_come_last(backend: str, case: Case) -> None:
    require_channels_last(case)


@pytest.mark.parametrize("case", LAYERS, ids=str)
def test_copies_transforms_and_half_precision(backend: str, case: Case) -> None:
    require_behaviours(backend, case, compiled=case is LAYERS[0])


@pytest.mark.slow
@pytest.mark.parametrize("case", LAYERS[1:], ids=str)
def test_compiled_layers(backend: str, case: Case) -> None:
    require_compiled(backend, case)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_max_unpool_puts_the_results_of_a_pool_back(backend: str, n: int) -> None:
    x = np.random.default_rng(0).standard_normal(SHAPES[n]).astype("float32")
    whole = x[(..., *[slice(4)] * n)]
    for options, given, sizes in (
        ((2,), whole, (None, whole.shape[2:], whole.shape)),
        ((2, None, 1), whole, (None,)),
        ((3, 1), x, (None, SHAPES[n])),
        ((2,), x, (SHAPES[n][2:], SHAPES[n])),
    ):
        theirs, indices = getattr(torch.nn, f"MaxPool{n}d")(*options, return_indices=True)(torch.tensor(given))
        back, layer = getattr(torch.nn, f"MaxUnpool{n}d")(*options), getattr(nn, f"MaxUnpool{n}d")(*options)
        for size in sizes:
            found, wanted = layer(theirs.numpy(), indices.numpy(), size), back(theirs, indices, size).numpy()
            require_close(found, wanted, 0, f"MaxUnpool{n}d{options} {size}")
        alone = layer(theirs.numpy()[0], indices.numpy()[0], sizes[-1] and sizes[-1][1:])
        require_close(alone, wanted[0], 0, f"MaxUnpool{n}d{options} without batch")
    last = getattr(nn, f"MaxUnpool{n}d")(2, data_format="channels_last")
    pool = getattr(nn, f"MaxPool{n}d")(2, return_indices=True, data_format="channels_last")
    first = getattr(nn, f"MaxUnpool{n}d")(2)(*getattr(nn, f"MaxPool{n}d")(2, return_indices=True)(whole))
    moved = last(*pool(np.moveaxis(whole, 1, -1)))
    assert ops.to_numpy(ops.moveaxis(moved, -1, 1)).tolist() == ops.to_numpy(first).tolist()


def test_global_pools_reduce_all_spatial_axes(backend: str) -> None:
    for shape in SHAPES.values():
        x = np.random.default_rng(0).standard_normal(shape).astype("float32")
        axes = tuple(range(2, len(shape)))
        for keepdims in (False, True):
            mean, greatest = nn.GlobalAvgPool(keepdims)(x), nn.GlobalMaxPool(keepdims)(x)
            require_close(mean, x.astype("float64").mean(axes, keepdims=keepdims), 2e-6, "mean")
            require_close(greatest, x.max(axes, keepdims=keepdims), 0, "maximum")
        last = np.moveaxis(x, 1, -1)
        require_close(nn.GlobalAvgPool(data_format="channels_last")(last), x.astype("float64").mean(axes), 2e-6, "last")
        require_close(nn.GlobalMaxPool(data_format="channels_last")(last), x.max(axes), 0, "last")


@pytest.mark.parametrize(
    ("layer", "shape", "message"),
    [
        (nn.MaxPool2d(2), (3, 4), r"a batch of 4 axes, .* or a sample of 3, got shape \(3, 4\)"),
        (nn.MaxPool1d(5), (1, 2, 3), "a window of 5 does not fit an axis of length 3"),
        (nn.AvgPool2d(2), (1, 1, 1, 1, 1), "a batch of 4 axes"),
        (nn.AdaptiveAvgPool3d(2), (2, 2), "a batch of 5 axes"),
        (nn.GlobalAvgPool(), (2, 2), r"a batch, channels and spatial axes, got shape \(2, 2\)"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_a_wrong_shape_names_the_layer(backend: str, layer: nn.Module, shape: Any, message: str) -> None:
    with pytest.raises(ShapeError, match=rf"{message}.*in 0 of Sequential, an? {type(layer).__name__}"):
        nn.Sequential(layer)(ops.zeros(shape))
    with pytest.raises(ShapeError, match=r"expected indices of shape \(1, 1, 2\), got \(1, 2\)"):
        nn.MaxUnpool1d(2)(ops.zeros((1, 1, 2)), [[0, 1]])


def test_wrong_options_are_refused() -> None:
    for make, message in (
        (lambda: nn.MaxPool2d(2, padding=2), r"padding must be at most half of the window, got \(2, 2\) and \(2, 2\)"),
        (lambda: nn.MaxPool2d(2, dilation=0), "dilation must be at least 1"),
        (lambda: nn.AvgPool2d(2, divisor_override=0), "divisor_override must be at least 1"),
        (lambda: nn.LPPool1d(0, 2), "norm_type must be positive, got 0"),
        (lambda: nn.AdaptiveAvgPool2d((1, 2, 3)), r"output_size must be one integer or 2, got \(1, 2, 3\)"),
        (lambda: nn.AdaptiveMaxPool1d(0), "output_size must be at least 1"),
    ):
        with pytest.raises(ArgumentError, match=message):
            make()
    with pytest.raises(ArgumentTypeError, match="norm_type must be a number"):
        nn.LPPool1d("2", 2)  # type: ignore[arg-type]
