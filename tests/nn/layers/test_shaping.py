"""Layers that change shapes, on every backend."""

import numpy as np
import pytest

from emberharmony import nn, ops
from emberharmony.errors import ArgumentError, ArgumentTypeError, AxisError, ShapeError
from tests.nn.behaviours import require_behaviours, require_channels_last, require_compiled
from tests.nn.oracle import Case, dtypes_of, require_like_torch

IMAGES = (2, 8, 4, 6)

CASES = [
    Case("Flatten", (), ((2, 3, 4, 5),)),
    Case("Flatten", (), ((2, 3, 4, 5),), {"start_dim": 2}),
    Case("Flatten", (0, 1), ((2, 3, 4, 5),)),
    Case("Flatten", (-2, -1), ((2, 3, 4, 5),)),
    Case("Flatten", (0, -1), ((),)),
    Case("Flatten", (), ((2, 0, 4),)),
    Case("Flatten", (), ((2, 3, 4, 5),), {"end_dim": -2}),
    Case("Unflatten", (1, (2, 3)), ((4, 6, 5),)),
    Case("Unflatten", (-1, (2, -1, 1)), ((4, 6),)),
    Case("Unflatten", (), ((6,),), {"dim": 0, "unflattened_size": (3, 2)}),
    Case("PixelShuffle", (2,), (IMAGES,)),
    Case("PixelShuffle", (1,), (IMAGES,)),
    Case("PixelShuffle", (2,), ((8, 3, 5),)),
    Case("PixelShuffle", (2,), ((2, 3, 4, 3, 5),)),
    Case("PixelUnshuffle", (2,), (IMAGES,)),
    Case("PixelUnshuffle", (2,), ((3, 4, 6),)),
    Case("PixelUnshuffle", (3,), ((2, 2, 1, 3, 6),)),
    Case("ChannelShuffle", (2,), (IMAGES,)),
    Case("ChannelShuffle", (4,), ((3, 8, 5),)),
    Case("Unfold", (2,), ((2, 3, 4, 5),)),
    Case("Unfold", ((2, 3), 2, 1, (1, 2)), ((2, 3, 6, 7),)),
    Case("Unfold", ((3, 2),), ((3, 6, 7),), {"dilation": (1, 2), "padding": (1, 0), "stride": 2}),
    Case("Fold", ((4, 5), 2), ((2, 12, 12),)),
    Case("Fold", (4, (2, 2)), ((12, 9),)),
    Case(
        "Fold",
        (),
        ((2, 12, 15),),
        {"output_size": (6, 5), "kernel_size": (2, 3), "dilation": (2, 1), "padding": 1, "stride": (2, 1)},
    ),
    Case("Fold", ((5, 6), (3, 2), 1, (1, 0), (2, 2)), ((2, 12, 9),)),
]
OURS = [Case("Reshape", ((2, -1),), ((4, 6),)), Case("Permute", ((2, 0, -2),), ((2, 3, 4),))]
LAYERS = [CASES[0], CASES[7], CASES[10], CASES[14], CASES[17], CASES[19], CASES[22], *OURS]
"""One row of each layer, or of each kind."""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_layers_compute_what_those_of_torch_do(backend: str, case: Case) -> None:
    for dtype in dtypes_of(backend):
        require_like_torch(case, dtype)


@pytest.mark.parametrize(
    "case", [case for case in CASES if "Shuffle" in case.name or "Unshuffle" in case.name], ids=str
)
def test_channels_may_come_last(backend: str, case: Case) -> None:
    if case.shapes[0][:-3] == (2,) or case.name == "ChannelShuffle":
        require_channels_last(case)


@pytest.mark.parametrize("case", LAYERS, ids=str)
def test_copies_transforms_and_half_precision(backend: str, case: Case) -> None:
    require_behaviours(backend, case, compiled=case is LAYERS[0])


@pytest.mark.slow
@pytest.mark.parametrize("case", LAYERS[1:], ids=str)
def test_compiled_layers(backend: str, case: Case) -> None:
    require_compiled(backend, case)


def test_reshape_keeps_the_batch(backend: str) -> None:
    x = np.arange(24.0, dtype="float32").reshape(4, 6)
    for shape in ((2, -1), (3, 2), (-1,), (6, 1, 1)):
        assert nn.Reshape(shape)(x).tolist() == x.reshape(4, *shape).tolist()
    assert tuple(nn.Reshape((0, 5))(ops.zeros((3, 0))).shape) == (3, 0, 5)
    assert tuple(nn.Reshape((2, 3))(ops.zeros((0, 6))).shape) == (0, 2, 3)


def test_permute_changes_the_order_of_axes(backend: str) -> None:
    x = np.arange(24.0, dtype="float32").reshape(2, 3, 4)
    assert nn.Permute([0, 2, 1])(x).tolist() == x.transpose(0, 2, 1).tolist()


def test_integers_keep_their_dtype(backend: str) -> None:
    x = ops.array(np.arange(48).reshape(1, 4, 3, 4), "int32")
    for layer in (nn.Flatten(), nn.PixelShuffle(2), nn.ChannelShuffle(2), nn.Permute((0, 2, 3, 1)), nn.Reshape(48)):
        assert ops.dtype(layer(x)).name == "int32"


@pytest.mark.parametrize(
    ("layer", "shape", "message"),
    [
        (nn.Unflatten(1, (4, 2)), (2, 6), r"6 elements of shape \(2, 6\) do not fill \(4, 2\)"),
        (nn.Unflatten(1, (4, -1)), (2, 6), r"6 elements of shape \(2, 6\) do not fill \(4, -1\)"),
        (nn.Reshape((5,)), (2, 3, 2), r"6 elements of shape \(2, 3, 2\) do not fill \(5,\)"),
        (nn.PixelShuffle(2), (1, 6, 2, 2), r"channels that 2 \* 2 divides, got 6 in \(1, 6, 2, 2\)"),
        (nn.PixelUnshuffle(2), (1, 6, 2, 3), r"height and width that 2 divides, got shape \(1, 6, 2, 3\)"),
        (nn.PixelShuffle(2), (4, 2), r"channels, a height and a width, got shape \(4, 2\)"),
        (nn.ChannelShuffle(4), (1, 6, 2), r"channels that 4 groups divide, got 6 in \(1, 6, 2\)"),
        (nn.ChannelShuffle(2), (2, 6), r"a batch, channels and spatial axes, got shape \(2, 6\)"),
        (nn.Unfold(3), (1, 2, 2, 5), "a window of 3 does not fit an axis of length 2"),
        (nn.Unfold(3), (5, 5), r"a batch of 4 axes.*or a sample of 3, got shape \(5, 5\)"),
        (nn.Fold(4, 2), (1, 5, 9), r"columns of shape \(batch, channels \* 4, 9\)"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_a_wrong_shape_names_the_layer(backend: str, layer: nn.Module, shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(ShapeError, match=rf"{message}.*in 0 of Sequential, an? {type(layer).__name__}"):
        nn.Sequential(layer)(ops.zeros(shape))


def test_wrong_axes_and_options_are_refused() -> None:
    with pytest.raises(AxisError, match="start_dim=3 is out of range for an input of 2 axes"):
        nn.Flatten(3)(ops.zeros((2, 3)))
    with pytest.raises(ArgumentError, match=r"start_dim=2 is after end_dim=1 in shape \(2, 3, 4\)"):
        nn.Flatten(2, 1)(ops.zeros((2, 3, 4)))
    with pytest.raises(AxisError, match="dim=-3 is out of range"):
        nn.Unflatten(-3, (1,))(ops.zeros((2, 3)))
    with pytest.raises(ArgumentError, match=r"unflattened_size may contain -1 once, got \(-1, -1\)"):
        nn.Unflatten(0, (-1, -1))
    with pytest.raises(ArgumentTypeError, match="axes must be a sequence"):
        nn.Permute(1)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="upscale_factor must be at least 1"):
        nn.PixelShuffle(0)
    with pytest.raises(ArgumentError, match="kernel_size must be one integer or 2"):
        nn.Unfold((1, 2, 3))
