"""Layers that resize, on every backend."""

from typing import Any

import numpy as np
import pytest

from emberharmony import nn, ops
from emberharmony.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError
from tests.nn.behaviours import require_behaviours, require_channels_last, require_compiled
from tests.nn.oracle import Case, dtypes_of, require_like_torch, torch

SHAPES: dict[str, list[tuple[int, ...]]] = {
    "nearest": [(2, 3, 5), (2, 3, 4, 5), (1, 2, 3, 4, 5)],
    "nearest-exact": [(2, 3, 5), (2, 3, 4, 5), (1, 2, 3, 4, 5)],
    "area": [(2, 3, 5), (2, 3, 4, 5)],
    "linear": [(2, 3, 5)],
    "bilinear": [(2, 3, 4, 5)],
    "bicubic": [(2, 3, 4, 5)],
    "trilinear": [(1, 2, 3, 4, 5)],
}
SIZES: dict[int, list[Any]] = {1: [7, (3,), 1], 2: [9, (3, 7), (1, 2)], 3: [4, (6, 3, 1)]}
FACTORS: dict[int, list[Any]] = {1: [2, 1.7, 0.6], 2: [2, (1.7, 0.6), (3, 1)], 3: [2, (1.7, 0.6, 1)]}

CASES = [
    Case("Upsample", (), (shape,), {key: value, "mode": mode, **corners, **rounded})
    for mode, shapes in SHAPES.items()
    for shape in shapes
    for corners in ([{}] if mode in ("nearest", "nearest-exact", "area") else [{}, {"align_corners": True}])
    for key, values in (("size", SIZES), ("scale_factor", FACTORS))
    for i, value in enumerate(values[len(shape) - 2])
    for rounded in ([{}, {"recompute_scale_factor": True}] if key == "scale_factor" and i == 1 else [{}])
] + [
    Case("Upsample", (4,), ((2, 3, 5),)),
    Case("Upsample", (4, None, "linear", False), ((2, 3, 5),)),
    Case("Upsample", ((5, 1),), ((2, 3, 1, 1),), {"mode": "bilinear", "align_corners": True}),
    Case("Upsample", ((5, 1),), ((2, 3, 1, 1),), {"mode": "bicubic", "align_corners": True}),
    Case("Upsample", ((5, 1),), ((2, 3, 1, 1),), {"mode": "bicubic"}),
    Case("UpsamplingNearest2d", (), ((2, 3, 4, 5),), {"size": (8, 3)}),
    Case("UpsamplingNearest2d", (), ((2, 3, 4, 5),), {"scale_factor": 3}),
    Case("UpsamplingBilinear2d", (), ((2, 3, 4, 5),), {"size": 7}),
    Case("UpsamplingBilinear2d", (), ((2, 3, 4, 5),), {"scale_factor": (2, 1.5)}),
]
LAYERS = [
    Case("Upsample", (), ((2, 3, 4, 5),), {"scale_factor": 2}),
    Case("Upsample", ((3, 7), None, "nearest-exact"), ((2, 3, 4, 5),)),
    Case("Upsample", ((3, 7), None, "bilinear", True), ((2, 3, 4, 5),)),
    Case("Upsample", ((3, 7), None, "bicubic"), ((2, 3, 4, 5),)),
    Case("Upsample", ((2, 1), None, "area"), ((2, 3, 4, 5),)),
    CASES[-3],
    CASES[-1],
]
"""One row of each layer, or of each kind."""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_layers_compute_what_those_of_torch_do(backend: str, case: Case) -> None:
    for dtype in dtypes_of(backend):
        require_like_torch(case, dtype)


@pytest.mark.parametrize("case", CASES[::7], ids=str)
def test_channels_may_come_last(backend: str, case: Case) -> None:
    require_channels_last(case)


@pytest.mark.parametrize("case", LAYERS, ids=str)
def test_copies_transforms_and_half_precision(backend: str, case: Case) -> None:
    require_behaviours(backend, case, compiled=case is LAYERS[0])


@pytest.mark.slow
@pytest.mark.parametrize("case", LAYERS[1:], ids=str)
def test_compiled_layers(backend: str, case: Case) -> None:
    require_compiled(backend, case)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
def test_the_nearest_elements_are_those_that_torch_finds_in_float32(mode: str) -> None:
    for count in range(1, 140, 3):
        x = np.arange(count, dtype="float32").reshape(1, 1, count)
        for wanted in range(1, 140, 2):
            theirs = torch.nn.functional.interpolate(torch.tensor(x), size=wanted, mode=mode)
            assert nn.Upsample(wanted, mode=mode)(x).tolist() == theirs.tolist(), (count, wanted)
    for factor in np.linspace(0.3, 4, 150).tolist():
        x = np.arange(37, dtype="float32").reshape(1, 1, 37)
        theirs = torch.nn.functional.interpolate(torch.tensor(x), scale_factor=factor, mode=mode)
        assert nn.Upsample(scale_factor=factor, mode=mode)(x).tolist() == theirs.tolist(), factor


def test_nearest_keeps_integers(backend: str) -> None:
    x = ops.array([[[1, 2, 3]]], "int32")
    for size in (6, 2, 4):
        assert ops.dtype(nn.Upsample(size)(x)).name == "int32"
    with pytest.raises(DTypeError, match="mode 'linear' takes a floating tensor, got int32; cast it"):
        nn.Upsample(6, mode="linear")(x)


def test_wrong_inputs_name_the_layer(backend: str) -> None:
    for layer, shape, message in (
        (nn.Upsample(3, mode="linear"), (1, 2, 3, 3), r"takes a batch, channels and 1 spatial axes, got"),
        (nn.Upsample(3), (1, 2), "one to three spatial axes"),
        (nn.Upsample(3), (1, 2, 0), "expected spatial axes with elements"),
        (nn.Upsample((3, 4)), (1, 2, 5), r"size=\(3, 4\) does not fit 1 spatial axes"),
        (nn.Upsample(scale_factor=0.1), (1, 2, 5), r"scale_factor=0\.1 leaves no elements of spatial axes \(5,\)"),
    ):
        with pytest.raises(ShapeError, match=f"{message}.*in 0 of Sequential, an Upsample"):
            nn.Sequential(layer)(ops.zeros(shape))


def test_wrong_options_are_refused() -> None:
    for kwargs, message in (
        ({}, "give either size or scale_factor"),
        ({"size": 2, "scale_factor": 2.0}, "give either size or scale_factor"),
        ({"size": 2, "mode": "cubic"}, "mode must be one of .*got 'cubic'; did you mean 'bicubic'"),
        ({"size": 2, "align_corners": True}, "align_corners belongs to 'linear', .*not to 'nearest'"),
        ({"size": 2, "recompute_scale_factor": True}, "recompute_scale_factor needs scale_factor"),
        ({"size": 0}, "size must be at least 1"),
        ({"scale_factor": -1.0}, r"scale_factor must be positive, got -1\.0"),
    ):
        with pytest.raises(ArgumentError, match=message):
            nn.Upsample(**kwargs)  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match="scale_factor must be a number"):
        nn.Upsample(scale_factor="2")  # type: ignore[arg-type]
