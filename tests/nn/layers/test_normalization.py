"""Normalisations on every backend."""

import functools
from typing import Any

import numpy as np
import pytest

from emberharmony import TensorSpec, nn, ops
from emberharmony.errors import ArgumentError, ArgumentTypeError, ShapeError, UninitializedParameterError
from tests.nn.behaviours import quick_compiler, require_behaviours
from tests.nn.oracle import Case, dtypes_of, require_close, require_like_torch

INPUTS: dict[int, tuple[int, ...]] = {1: (4, 3, 5), 2: (3, 3, 4, 2), 3: (2, 3, 2, 3, 2)}
BATCH: list[dict[str, Any]] = [
    {},
    {"eps": 0.1},
    {"momentum": 0.3},
    {"momentum": None},
    {"affine": False},
    {"bias": False},
    {"track_running_stats": False},
]
INSTANCE: list[dict[str, Any]] = [
    {},
    {"eps": 0.1},
    {"affine": True},
    {"affine": True, "bias": False},
    {"track_running_stats": True},
    {"track_running_stats": True, "momentum": 0.3, "affine": True},
]
CASES = [
    *(Case(f"BatchNorm{n}d", (3,), (INPUTS[n],), options) for n in INPUTS for options in BATCH),
    *(Case(f"BatchNorm{n}d", (3,), (INPUTS[n],), options, train=False) for n in INPUTS for options in BATCH),
    Case("BatchNorm1d", (3,), ((5, 3),)),
    Case("BatchNorm1d", (3,), ((5, 3),), train=False),
    Case("BatchNorm1d", (3, 1e-3, 0.2, True, True), ((5, 3),)),
    *(Case(f"InstanceNorm{n}d", (3,), (INPUTS[n],), options) for n in INPUTS for options in INSTANCE),
    *(Case(f"InstanceNorm{n}d", (3,), (INPUTS[n],), options, train=False) for n in INPUTS for options in INSTANCE),
    *(Case(f"InstanceNorm{n}d", (3,), (INPUTS[n][1:],)) for n in INPUTS),
    Case("InstanceNorm1d", (3, 1e-3, 0.2, True, True), ((4, 3, 5),)),
    Case("LayerNorm", (5,), ((2, 3, 5),)),
    Case("LayerNorm", ((3, 5),), ((2, 3, 5),)),
    Case("LayerNorm", ([2, 3, 5],), ((2, 3, 5),)),
    Case("LayerNorm", (5, 0.1), ((4, 5),)),
    Case("LayerNorm", (5,), ((5,),), {"elementwise_affine": False}),
    Case("LayerNorm", (5,), ((4, 5),), {"bias": False}),
    Case("LayerNorm", ((3, 5),), ((3, 5),), {"eps": 1e-3, "bias": False}),
    Case("RMSNorm", (5,), ((2, 3, 5),)),
    Case("RMSNorm", ((3, 5),), ((2, 3, 5),)),
    Case("RMSNorm", (5, 0.1), ((4, 5),)),
    Case("RMSNorm", (5,), ((5,),), {"elementwise_affine": False, "eps": 1e-6}),
    Case("GroupNorm", (2, 8), ((3, 8),)),
    Case("GroupNorm", (2, 4), ((3, 4, 5),)),
    Case("GroupNorm", (1, 4), ((3, 4, 2, 3),)),
    Case("GroupNorm", (4, 4), ((3, 4, 2, 3),), {"eps": 0.1}),
    Case("GroupNorm", (3, 6), ((2, 6, 2, 2, 3),), {"affine": False}),
    Case("GroupNorm", (2, 6), ((2, 6, 5),), {"bias": False}),
    Case("LocalResponseNorm", (2,), ((3, 4, 5),)),
    Case("LocalResponseNorm", (5,), ((3, 4, 2, 3),)),
    Case("LocalResponseNorm", (3, 0.5, 0.6, 2.0), ((2, 6, 3, 2),)),
    Case("LocalResponseNorm", (9,), ((2, 3, 4),), {"alpha": 1.0, "beta": 1.0, "k": 0.5}),
]
LAST = [
    *(Case(f"BatchNorm{n}d", (3,), (INPUTS[n],), train=train) for n in INPUTS for train in (True, False)),
    *(Case(f"InstanceNorm{n}d", (3,), (INPUTS[n],), {"affine": True}) for n in INPUTS),
    Case("InstanceNorm2d", (3,), ((3, 4, 5),)),
    Case("InstanceNorm1d", (3,), ((2, 3, 4),), {"track_running_stats": True}, train=False),
    Case("GroupNorm", (2, 4), ((3, 4, 5),)),
    Case("GroupNorm", (2, 4), ((3, 4, 2, 5),)),
    Case("GroupNorm", (2, 4), ((3, 4),)),
    Case("LocalResponseNorm", (3, 0.5), ((2, 6, 3, 2),)),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_layers_compute_what_those_of_torch_do(backend: str, case: Case) -> None:
    for dtype in dtypes_of(backend):
        require_like_torch(case, dtype)


EACH = {case.name: case._replace(train=False) for case in reversed(CASES)}


@pytest.mark.parametrize("name", EACH)
def test_layers_stay_the_same_under_transforms_and_copies(backend: str, name: str) -> None:
    require_behaviours(backend, EACH[name])


@pytest.mark.parametrize("case", LAST, ids=str)
def test_the_channels_may_be_the_last_axis(backend: str, case: Case) -> None:
    x = np.random.default_rng(0).standard_normal(case.shapes[0]).astype("float32")
    first = getattr(nn, case.name)(*case.args, **case.kwargs).train(case.train)
    last = getattr(nn, case.name)(*case.args, **case.kwargs, data_format="channels_last").train(case.train)
    channels = 0 if len(case.shapes[0]) == 3 and case.name == "InstanceNorm2d" else 1
    require_close(last(np.moveaxis(x, channels, -1)), np.moveaxis(ops.to_numpy(first(x)), channels, -1), 2e-6, "last")
    for name, value in first.state_dict(host=True).items():
        require_close(last.state_dict()[name], value, 2e-6, name)


def squared(layer: nn.Module, x: Any) -> Any:
    return ops.mean(ops.square(layer(x)))


@pytest.mark.parametrize("momentum", [0.1, None])
def test_running_statistics_are_those_of_torch_after_several_batches(backend: str, momentum: float | None) -> None:
    torch = pytest.importorskip("torch")
    theirs, ours = torch.nn.BatchNorm2d(3, momentum=momentum).double(), nn.BatchNorm2d(3, momentum=momentum)
    draw = np.random.default_rng(0)
    for _ in range(4):
        x = draw.standard_normal((4, 3, 2, 2)).astype("float32") * 3 + 1
        theirs(torch.tensor(x.astype("float64")))
        ops.backward(functools.partial(squared, ours, x), ours)
    assert ours.state_dict()["num_batches_tracked"].tolist() == 4
    for name in ("running_mean", "running_var"):
        require_close(getattr(ours, name), getattr(theirs, name).numpy(), 2e-6, name)


def test_value_and_grad_and_grad_keep_the_running_statistics(backend: str) -> None:
    x = ops.convert_to_tensor([[1.0], [3.0]])
    layer = nn.BatchNorm1d(1)
    nn.value_and_grad(layer, lambda: ops.sum(layer(x)))()
    ops.grad(lambda x: ops.sum(layer(x)))(x)
    assert layer.state_dict()["num_batches_tracked"].tolist() == 2
    require_close(layer.running_mean, np.array([0.38]), 2e-6, "running_mean")


def test_a_compiled_layer_keeps_the_running_statistics(backend: str) -> None:
    x = ops.random.normal((5, 3), generator=ops.random.Generator(0))
    plain, layer = nn.BatchNorm1d(3), nn.BatchNorm1d(3)
    with quick_compiler(backend):
        compiled = ops.compile(layer)
        for _ in range(2):
            require_close(compiled(x), ops.to_numpy(plain(x)), 2e-6, "output")
    for name, value in plain.state_dict(host=True).items():
        require_close(layer.state_dict()[name], value, 2e-6, name)


def test_vmap_and_eval_shape_treat_the_running_statistics_as_calls_do(backend: str) -> None:
    x = ops.random.normal((2, 5, 3), generator=ops.random.Generator(0))
    plain, layer = nn.BatchNorm1d(3), nn.BatchNorm1d(3)
    ops.eval_shape(layer, x[0])
    assert layer.state_dict()["num_batches_tracked"].tolist() == 0
    require_close(ops.vmap(layer)(x), np.stack([ops.to_numpy(plain(x[i])) for i in range(2)]), 2e-6, "vmap")
    for name, value in plain.state_dict(host=True).items():
        require_close(layer.state_dict()[name], value, 2e-6, name)


def test_build_finds_the_number_of_channels(backend: str) -> None:
    for name, shape in {"BatchNorm1d": (4, 3), "BatchNorm2d": (4, 3, 2, 2), "InstanceNorm1d": (3, 2)}.items():
        lazy = getattr(nn, name)(None, affine=True, track_running_stats=True)
        layer = getattr(nn, name)(3, affine=True, track_running_stats=True)
        with pytest.raises(UninitializedParameterError, match=r"nn\.build"):
            lazy.state_dict()
        assert nn.build(lazy, TensorSpec(shape)) is lazy
        assert repr(lazy) == repr(layer)
        x = ops.random.normal(shape, generator=ops.random.Generator(0))
        require_close(lazy(x), ops.to_numpy(layer(x)), 2e-6, name)
        for key, value in layer.state_dict(host=True).items():
            require_close(lazy.state_dict()[key], value, 2e-6, key)
    last = nn.build(nn.InstanceNorm2d(None, data_format="channels_last"), TensorSpec((4, 2, 3)))
    assert last.num_features == 3


def test_a_large_mean_costs_no_digits(backend: str) -> None:
    x = (np.random.default_rng(0).standard_normal((64, 3)) + 1e4).astype("float32")
    wide = x.astype("float64")
    right = (wide - wide.mean(0)) / np.sqrt(wide.var(0) + 1e-5)
    require_close(nn.BatchNorm1d(3)(x), right, 2e-3, "BatchNorm1d")  # the mean itself is rounded to 1e-3


def test_half_precision_is_normalised_in_single_precision(backend: str) -> None:
    x = (300 * np.random.default_rng(0).standard_normal((64, 3))).astype("float16")  # squares overflow float16
    wide = x.astype("float64")
    for layer in (nn.BatchNorm1d(3), nn.LayerNorm(3), nn.GroupNorm(1, 3), nn.RMSNorm(3)):
        found = layer.to(dtype="float16")(ops.convert_to_tensor(x))
        assert ops.dtype(found).name == "float16"
        assert np.isfinite(ops.to_numpy(found)).all()
    right = (wide - wide.mean(0)) / np.sqrt(wide.var(0) + 1e-5)
    require_close(nn.BatchNorm1d(3).to(dtype="float16")(ops.convert_to_tensor(x)), right, 2e-3, "BatchNorm1d")


def test_integers_are_normalised_as_floats(backend: str) -> None:
    for layer in (nn.BatchNorm1d(2, eps=0.0), nn.BatchNorm1d(2).eval(), nn.LayerNorm(2), nn.GroupNorm(1, 2)):
        assert ops.dtype(layer(ops.convert_to_tensor([[1, 2], [3, 5]]))).name == "float32"
    assert ops.to_numpy(nn.RMSNorm(2)([[1, -1]])).tolist() == [[1.0, -1.0]]


def test_wrong_options_are_refused() -> None:
    with pytest.raises(ArgumentError, match="num_features must be at least 1, got 0"):
        nn.BatchNorm2d(0)
    with pytest.raises(ArgumentTypeError, match="momentum must be a number, got 'x'"):
        nn.BatchNorm2d(1, momentum="x")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="num_groups must divide num_channels, got 3 and 4"):
        nn.GroupNorm(3, 4)
    with pytest.raises(ArgumentError, match="at least one length"):
        nn.LayerNorm(())
    with pytest.raises(ArgumentError, match="data_format must be one of"):
        nn.BatchNorm1d(1, data_format="NCHW")  # type: ignore[arg-type]


def test_wrong_inputs_name_the_layer(backend: str) -> None:
    net = nn.Sequential(nn.Identity(), nn.BatchNorm2d(3))
    with pytest.raises(ShapeError, match=r"expected 3 channels on axis 1, got shape \(2, 4, 5, 5\).*1 of Sequential"):
        net(ops.zeros((2, 4, 5, 5)))
    with pytest.raises(ShapeError, match=r"expected a batch of 4 axes, got shape \(2, 3\) \(in BatchNorm2d\)"):
        nn.BatchNorm2d(3)(ops.zeros((2, 3)))
    with pytest.raises(ShapeError, match=r"more than one value for each channel in training, got shape \(1, 3\)"):
        nn.BatchNorm1d(3)(ops.zeros((1, 3)))
    assert ops.to_numpy(nn.BatchNorm1d(3).eval()(ops.zeros((1, 3)))).tolist() == [[0.0, 0.0, 0.0]]
    with pytest.raises(ShapeError, match=r"more than one value for each sample and channel, got shape \(2, 3, 1\)"):
        nn.InstanceNorm1d(3)(ops.zeros((2, 3, 1)))
    with pytest.raises(ShapeError, match=r"expected 3 channels on axis 1"):
        nn.InstanceNorm1d(3)(ops.zeros((2, 4, 5)))
    with pytest.raises(ShapeError, match=r"last axes of lengths \(3, 4\), got shape \(2, 4\); .* \(in LayerNorm\)"):
        nn.LayerNorm((3, 4))(ops.zeros((2, 4)))
    with pytest.raises(ShapeError, match=r"expected last axes of lengths \(3,\), got shape \(\) \(in RMSNorm\)"):
        nn.RMSNorm(3)(ops.zeros(()))
    with pytest.raises(ShapeError, match=r"expected a batch with 4 channels on axis 1, got shape \(2, 3\)"):
        nn.GroupNorm(2, 4)(ops.zeros((2, 3)))
    with pytest.raises(ShapeError, match=r"got shape \(2, 3\) \(in LocalResponseNorm\)"):
        nn.LocalResponseNorm(2)(ops.zeros((2, 3)))
