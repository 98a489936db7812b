"""Convolutions, also transposed, on every backend."""

from typing import Any

import numpy as np
import pytest

from emberharmony import nn, ops
from emberharmony.errors import ArgumentError, ArgumentTypeError, ShapeError, UninitializedParameterError
from tests.nn.behaviours import require_behaviours, require_channels_last, require_compiled
from tests.nn.oracle import Case, dtypes_of, require_close, require_like_torch, torch

SHAPES = {1: (2, 4, 9), 2: (2, 4, 7, 6), 3: (1, 4, 5, 4, 6)}
SIZES: dict[int, Any] = {1: (3,), 2: (3, 2), 3: (2, 3, 1)}
STEPS: dict[int, Any] = {1: (2,), 2: (2, 1), 3: (1, 2, 3)}
ZEROS: dict[int, Any] = {1: (2,), 2: (0, 2), 3: (1, 0, 2)}
OPTIONS: list[dict[str, Any]] = [
    {},
    {"stride": 2},
    {"padding": 1},
    {"dilation": 2},
    {"groups": 2},
    {"bias": False},
    {"padding": "same"},
    {"padding": "valid"},
    {"padding": "same", "dilation": 2, "groups": 4},
    {"padding": 2, "stride": 3, "dilation": 2, "groups": 2},
    {"padding": 1, "padding_mode": "reflect"},
    {"padding": 1, "padding_mode": "replicate", "stride": 2},
    {"padding": 2, "padding_mode": "circular"},
    {"padding": "same", "padding_mode": "circular", "dilation": 2},
]
TRANSPOSED: list[dict[str, Any]] = [
    {},
    {"stride": 2},
    {"padding": 1},
    {"stride": 2, "padding": 1, "output_padding": 1},
    {"dilation": 2},
    {"dilation": 3, "output_padding": 2},
    {"groups": 2},
    {"bias": False},
    {"stride": 3, "padding": 2, "output_padding": 1, "dilation": 2, "groups": 4, "padding_mode": "zeros"},
]

CONVOLUTIONS = [Case(f"Conv{n}d", (4, 8, 2), (SHAPES[n],), options) for n in (1, 2, 3) for options in OPTIONS] + [
    case
    for n in (1, 2, 3)
    for case in (
        Case(f"Conv{n}d", (4, 3, SIZES[n], STEPS[n], ZEROS[n]), (SHAPES[n],)),
        Case(f"Conv{n}d", (4, 3, SIZES[n], 1, "same"), (SHAPES[n],)),
        Case(f"Conv{n}d", (4, 3, SIZES[n], 1, ZEROS[n], 1, 1, True, "replicate"), (SHAPES[n],)),
        Case(f"Conv{n}d", (4, 3, SIZES[n], STEPS[n], ZEROS[n]), (SHAPES[n][1:],)),
        Case(f"Conv{n}d", (4, 4, 3), (SHAPES[n],), {"groups": 4, "padding": 1}),
        Case(f"Conv{n}d", (4, 5, 1), (SHAPES[n],)),
    )
]
TRANSPOSES = [
    Case(f"ConvTranspose{n}d", (4, 8, 2), (SHAPES[n],), options) for n in (1, 2, 3) for options in TRANSPOSED
] + [
    case
    for n in (1, 2, 3)
    for case in (
        Case(f"ConvTranspose{n}d", (4, 3, SIZES[n], STEPS[n], 1), (SHAPES[n],)),
        Case(f"ConvTranspose{n}d", (4, 3, SIZES[n], 3, 0, STEPS[n][::-1] if n < 3 else (1, 2, 0)), (SHAPES[n],)),
        Case(f"ConvTranspose{n}d", (4, 3, SIZES[n], STEPS[n]), (SHAPES[n][1:],)),
    )
]
CASES = CONVOLUTIONS + TRANSPOSES
LAYERS = [
    Case("Conv1d", (4, 8, 3), (SHAPES[1],), {"padding": 1}),
    Case("Conv2d", (4, 8, 3, 2, 1), (SHAPES[2],), {"groups": 2}),
    Case("Conv3d", (4, 8, 2), (SHAPES[3],), {"padding": 1, "padding_mode": "circular"}),
    Case("DepthwiseConv2d", (4, 3), (SHAPES[2],), {"padding": "same"}),
    Case("SeparableConv1d", (4, 5, 3), (SHAPES[1],)),
    Case("ConvTranspose1d", (4, 8, 3), (SHAPES[1],), {"stride": 2}),
    Case("ConvTranspose2d", (4, 8, 3), (SHAPES[2],), {"groups": 2, "padding": 1}),
    Case("ConvTranspose3d", (4, 2, 2), (SHAPES[3],)),
]
"""One row of each layer, or of each kind."""


# PyTorch warns that it pads a copy.
@pytest.mark.filterwarnings("ignore:Using padding='same':UserWarning")
@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_layers_compute_what_those_of_torch_do(backend: str, case: Case) -> None:
    for dtype in dtypes_of(backend):
        require_like_torch(case, dtype)


@pytest.mark.parametrize("case", [case for case in CASES if case.name[-2] in "12"][::3], ids=str)
def test_channels_may_come_last(backend: str, case: Case) -> None:
    if case.shapes[0][0] == 2:
        require_channels_last(case)


@pytest.mark.parametrize("case", LAYERS, ids=str)
def test_copies_transforms_and_half_precision(backend: str, case: Case) -> None:
    require_behaviours(backend, case, compiled=case is LAYERS[0])


@pytest.mark.slow
@pytest.mark.parametrize("case", LAYERS[1:], ids=str)
def test_compiled_layers(backend: str, case: Case) -> None:
    require_compiled(backend, case)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_depthwise_convolutions_are_those_of_torch_with_as_many_groups_as_channels(backend: str, n: int) -> None:
    for options in ({}, {"padding": 2, "stride": 2, "dilation": 2}, {"padding": 1, "padding_mode": "reflect"}):
        theirs = getattr(torch.nn, f"Conv{n}d")(4, 12, 2, groups=4, **options)
        ours = getattr(nn, f"DepthwiseConv{n}d")(4, 2, depth_multiplier=3, **options)
        ours.load_state_dict(theirs.state_dict())
        x = np.random.default_rng(0).standard_normal(SHAPES[n]).astype("float32")
        require_close(ours(x), theirs(torch.tensor(x)).detach().numpy(), 2e-6, f"DepthwiseConv{n}d {options}")


@pytest.mark.parametrize("n", [1, 2, 3])
def test_separable_convolutions_are_two_of_torch(backend: str, n: int) -> None:
    kind = getattr(torch.nn, f"Conv{n}d")
    theirs = torch.nn.ModuleDict({"depthwise": kind(4, 8, 2, 2, 1, groups=4, bias=False), "pointwise": kind(8, 5, 1)})
    ours = getattr(nn, f"SeparableConv{n}d")(4, 5, 2, 2, 1, depth_multiplier=2)
    ours.load_state_dict(theirs.state_dict())
    x = np.random.default_rng(0).standard_normal(SHAPES[n]).astype("float32")
    wanted = theirs["pointwise"](theirs["depthwise"](torch.tensor(x))).detach().numpy()
    require_close(ours(x), wanted, 2e-6, f"SeparableConv{n}d")


def test_the_padding_may_differ_on_the_two_sides_of_an_axis(backend: str) -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 5, 6)).astype("float32")
    for mode in ("zeros", "reflect", "replicate", "circular"):
        layer = nn.Conv2d(3, 4, 3, padding=[(0, 1), (2, 1)], padding_mode=mode)  # type: ignore[arg-type]
        plain = nn.Conv2d(3, 4, 3)
        plain.load_state_dict(layer.state_dict())
        pads = {"zeros": nn.ZeroPad2d, "reflect": nn.ReflectionPad2d, "replicate": nn.ReplicationPad2d}
        pad = pads.get(mode, nn.CircularPad2d)((2, 1, 0, 1))
        require_close(layer(x), ops.to_numpy(plain(pad(x))), 2e-6, mode)
    assert "padding=((0, 1), (2, 1)), padding_mode='circular'" in repr(layer)


@pytest.mark.parametrize("last", [False, True])
def test_a_size_of_the_output_decides_the_output_padding(backend: str, last: bool) -> None:
    theirs = torch.nn.ConvTranspose2d(3, 4, 3, stride=(3, 2), padding=1)
    ours = nn.ConvTranspose2d(
        3, 4, 3, stride=(3, 2), padding=1, data_format="channels_last" if last else "channels_first"
    )
    ours.load_state_dict(theirs.state_dict())
    x = np.random.default_rng(0).standard_normal((2, 3, 4, 5)).astype("float32")
    given = x.transpose(0, 2, 3, 1) if last else x
    for size in ((10, 9), (11, 10), (12, 9)):
        wanted = theirs(torch.tensor(x), size).detach().numpy()
        found = ours(given, size)
        require_close(found, wanted.transpose(0, 2, 3, 1) if last else wanted, 2e-6, f"{size}")
    with pytest.raises(ShapeError, match=r"output_size must be from \(10, 9\) to \(12, 10\), got \(13, 9\)"):
        ours(given, (13, 9))
    with pytest.raises(ShapeError, match=r"output_size must be from .* got \(10,\)"):
        ours(given, (10,))


def test_nn_build_finds_the_channels(backend: str) -> None:
    net = nn.Sequential(
        nn.Conv2d(None, 6, 3),
        nn.Conv2d(None, 4, 1, groups=2, data_format="channels_last"),
        nn.ConvTranspose2d(None, 5, 2, bias=False),
    )
    with pytest.raises(UninitializedParameterError, match="before the model is used"):
        net(ops.zeros((1, 3, 8, 8)))
    nn.build(net, ops.zeros((1, 3, 8, 8)))
    assert [tuple(x.shape) for x in net.state_dict().values()] == [
        (6, 3, 3, 3),
        (6,),
        (4, 3, 1, 1),
        (4,),
        (6, 5, 2, 2),
    ]
    with pytest.raises(ArgumentError, match="groups=2 does not divide in_channels=3"):
        nn.build(nn.Conv1d(None, 4, 1, groups=2), ops.zeros((1, 3, 8)))


@pytest.mark.parametrize("kind", ["Conv2d", "ConvTranspose2d"])
def test_the_initial_values_are_those_of_torch_in_distribution(backend: str, kind: str) -> None:
    theirs = getattr(torch.nn, kind)(16, 32, (3, 5), groups=2)
    ours = getattr(nn, kind)(16, 32, (3, 5), groups=2, rng=ops.random.Generator(0))
    for name, value in ours.state_dict(host=True).items():
        bound = float(theirs.state_dict()[name].abs().max())
        assert 0.9 * bound < abs(value).max() < 1.1 * bound
    with ops.use_backend("numpy"):
        again = getattr(nn, kind)(16, 32, (3, 5), groups=2, rng=ops.random.Generator(0)).state_dict(host=True)
    for name, value in ours.state_dict(host=True).items():
        assert value.tolist() == again[name].tolist()


@pytest.mark.parametrize(
    ("layer", "shape", "message"),
    [
        (
            nn.Conv2d(3, 4, 3),
            (1, 6, 8, 8),
            r"3 channels .* \(batch, channels, 2 spatial\), got .*\(1, 6, 8, 8\)",
        ),
        (
            nn.Conv2d(3, 4, 3, data_format="channels_last"),
            (1, 3, 8, 8),
            r"3 channels .* \(batch, 2 spatial, channels\)",
        ),
        (nn.Conv1d(3, 4, 3), (3,), r"got shape \(3,\)"),
        (nn.Conv1d(3, 4, 3), (1, 3, 2), "a window of 3 does not fit an axis of length 2"),
        (nn.ConvTranspose1d(3, 4, 3), (1, 4, 3), r"3 channels in an input \(batch, channels, 1 spatial\)"),
        (nn.DepthwiseConv1d(3, 3), (1, 6, 3), r"3 channels in an input \(batch, channels, 1 spatial\)"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_a_wrong_shape_names_the_layer(backend: str, layer: nn.Module, shape: Any, message: str) -> None:
    with pytest.raises(ShapeError, match=rf"{message}.*in 0 of Sequential, an? {type(layer).__name__}"):
        nn.Sequential(layer)(ops.zeros(shape))


def test_wrong_options_are_refused() -> None:
    for make, message in (
        (lambda: nn.Conv2d(3, 4, 3, groups=2), "groups=2 does not divide in_channels=3"),
        (lambda: nn.Conv2d(4, 3, 3, groups=2), "groups=2 does not divide out_channels=3"),
        (lambda: nn.Conv2d(4, 3, (3, 3, 3)), r"kernel_size must be one integer or 2, got \(3, 3, 3\)"),
        (lambda: nn.Conv2d(4, 3, 3, padding=(1, 2, 3)), "padding must be one integer, or one integer or pair for each"),
        (lambda: nn.Conv2d(4, 3, 3, 2, "same"), r"padding='same' needs stride 1, got \(2, 2\); give the padding as"),
        (lambda: nn.Conv2d(4, 3, 3, padding="full"), "padding must be one of 'same', 'valid', got 'full'"),
        (lambda: nn.Conv2d(4, 3, 3, padding=-1), "padding must be at least 0, got -1"),
        (lambda: nn.Conv2d(4, 3, 3, padding_mode="mirror"), "padding_mode must be one of 'zeros', 'reflect'"),
        (lambda: nn.ConvTranspose2d(4, 3, 3, output_padding=1), r"output_padding must be smaller .* got \(1, 1\) with"),
        (lambda: nn.ConvTranspose2d(4, 3, 3, padding_mode="reflect"), "padding_mode must be one of 'zeros', got"),
        (lambda: nn.DepthwiseConv1d(4, 3, depth_multiplier=0), "depth_multiplier must be at least 1"),
    ):
        with pytest.raises(ArgumentError, match=message):
            make()
    with pytest.raises(ArgumentTypeError, match=r"stride must be an integer, got 1\.5"):
        nn.Conv1d(1, 1, 1, 1.5)  # type: ignore[arg-type]
