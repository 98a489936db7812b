"""Layers that pad, on every backend."""

import pytest

from emberharmony import nn, ops
from emberharmony.errors import ArgumentError, ArgumentTypeError, ShapeError
from tests.nn.behaviours import require_behaviours, require_channels_last, require_compiled
from tests.nn.oracle import Case, dtypes_of, require_like_torch

SHAPES = {1: (2, 3, 5), 2: (2, 3, 4, 5), 3: (2, 2, 3, 4, 5)}
UNEVEN = {1: (1, 3), 2: (1, 3, 2, 0), 3: (1, 3, 2, 0, 0, 2)}
CUT = {1: (-1, 2), 2: (-1, 2, 1, -2), 3: (-1, 2, 1, -2, 0, -1)}
BOTH = {1: (3, -2), 2: (-2, 3, 2, -1), 3: (-2, 3, 2, -1, 1, -1)}
"""Adds more on one side of an axis than is left of it without the elements that are cut off on the other side."""
KINDS = {"ConstantPad": (0.75,), "ZeroPad": (), "ReflectionPad": (), "ReplicationPad": (), "CircularPad": ()}

CASES = [
    Case(f"{kind}{n}d", (padding, *rest), (shape,))
    for kind, rest in KINDS.items()
    for n in (1, 2, 3)
    for padding, shape in (
        (2, SHAPES[n]),
        (UNEVEN[n], SHAPES[n]),
        (CUT[n], SHAPES[n]),
        (BOTH[n], SHAPES[n]),
        (UNEVEN[n], SHAPES[n][1:]),
    )
]
LAYERS = CASES[1::15]
"""One row of each layer, or of each kind."""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_layers_compute_what_those_of_torch_do(backend: str, case: Case) -> None:
    for dtype in dtypes_of(backend):
        require_like_torch(case, dtype)


@pytest.mark.parametrize("case", [case for case in CASES if case.args[0] in CUT.values()], ids=str)
def test_channels_may_come_last(backend: str, case: Case) -> None:
    require_channels_last(case)


@pytest.mark.parametrize("case", LAYERS, ids=str)
def test_copies_transforms_and_half_precision(backend: str, case: Case) -> None:
    require_behaviours(backend, case, compiled=case is LAYERS[0])


@pytest.mark.slow
@pytest.mark.parametrize("case", LAYERS[1:], ids=str)
def test_compiled_layers(backend: str, case: Case) -> None:
    require_compiled(backend, case)


def test_what_is_cut_off_is_mirrored_or_repeated_before(backend: str) -> None:
    for layer, wanted in (
        (nn.ReflectionPad1d((2, -1)), [2, 1, 0, 1]),
        (nn.ReflectionPad1d((-3, 2)), [1, 0]),
        (nn.ReplicationPad1d((-4, 3)), [2, 2]),
        (nn.CircularPad1d((2, -1)), [0, 1, 0, 1]),
        (nn.CircularPad1d((3, -2)), [0, 0, 0, 0]),
        (nn.ConstantPad1d((-3, 2), 7), [7, 7]),
    ):
        assert ops.to_numpy(layer(ops.array([[0, 1, 2]]))).tolist() == [wanted], layer
    for layer in (
        nn.ReflectionPad1d((-4, 0)),
        nn.ReplicationPad1d((1, -5)),
        nn.ZeroPad1d((-4, 2)),
        nn.CircularPad1d(-2),
    ):
        with pytest.raises(ShapeError, match=r"cuts off more than there is of shape \(1, [34]\) \(in "):
            layer(ops.array([[0, 1, 2]]))


def test_wrong_inputs_and_options_are_refused(backend: str) -> None:
    with pytest.raises(ShapeError, match=r"at least 2 axes, got shape \(3,\) \(in 0 of Sequential, a ZeroPad2d\)"):
        nn.Sequential(nn.ZeroPad2d(1))(ops.zeros(3))
    with pytest.raises(ArgumentError, match=r"padding must be one integer or 4, two for each axis, got \(1, 2\)"):
        nn.ReflectionPad2d((1, 2))
    with pytest.raises(ArgumentTypeError, match=r"padding must be an integer, got 1\.5"):
        nn.ZeroPad1d(1.5)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"data_format must be one of .*did you mean 'channels_last'"):
        nn.ZeroPad1d(1, data_format="channel_last")  # type: ignore[arg-type]
