"""Trainings of 20 steps give the losses of `torch.nn` and `torch.optim` in float64, from the same initial weights."""

import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pytest

from emberharmony import nn, ops, optim
from tests.nn.oracle import dtypes_of, torch

STEPS = 20
LOSS = {"float32": 1e-5, "float64": 1e-12}
"""By dtype, the greatest error of a loss, as a share of the greatest one."""


class Model(NamedTuple):
    """A model, as both libraries make and call it.

    Attributes:
        make: takes `nn` or `torch.nn`, and returns the model.
        call: takes the model and an input, and returns the logits of three classes.
        shape: the shape of an input.
    """

    make: Callable[[Any], Any]
    call: Callable[[Any, Any], Any]
    shape: tuple[int, ...]


MODELS = {
    "perceptron": Model(
        lambda lib: lib.Sequential(
            lib.Linear(6, 8), lib.BatchNorm1d(8), lib.ReLU(), lib.Dropout(0.0), lib.Linear(8, 8, bias=False),
            lib.BatchNorm1d(8), lib.Tanh(), lib.Linear(8, 3),
        ),
        lambda net, x: net(x),
        (6, 6),
    ),
    "convolutional": Model(
        lambda lib: lib.Sequential(
            lib.Conv2d(2, 4, 3, padding=1), lib.GroupNorm(2, 4), lib.ReLU(), lib.MaxPool2d(2),
            lib.Conv2d(4, 6, 3, stride=2, padding=1), lib.BatchNorm2d(6), lib.GELU(),
            lib.AdaptiveAvgPool2d(2), lib.Flatten(), lib.Linear(24, 3),
        ),
        lambda net, x: net(x),
        (4, 2, 8, 8),
    ),
    "lstm": Model(
        lambda lib: lib.ModuleDict(
            {"lstm": lib.LSTM(3, 5, num_layers=2, batch_first=True), "head": lib.Linear(5, 3)}
        ),
        lambda net, x: net["head"](net["lstm"](x)[0][:, -1]),
        (4, 4, 3),
    ),
    "encoder": Model(
        lambda lib: lib.ModuleDict(
            {
                "inner": lib.Linear(3, 8),
                "block": lib.TransformerEncoderLayer(8, 2, 12, 0.0, "gelu", batch_first=True),
                "head": lib.Linear(8, 3),
            }
        ),
        lambda net, x: net["head"](net["block"](net["inner"](x))[:, -1]),
        (4, 5, 3),
    ),
}  # fmt: skip
OPTIMIZERS: Mapping[str, tuple[str, Mapping[str, float]]] = {
    "adamw": ("AdamW", {"lr": 0.01, "weight_decay": 0.1}),
    "momentum": ("SGD", {"lr": 0.05, "momentum": 0.9, "weight_decay": 0.01}),
}


def batches(model: str) -> list[tuple[Any, Any]]:
    """Returns the batches of the steps: inputs in float32, and classes."""
    draw = np.random.default_rng(0)
    shape = MODELS[model].shape
    made = [(draw.standard_normal(shape).astype("float32"), draw.integers(0, 3, shape[0])) for _ in range(4)]
    return [made[step % len(made)] for step in range(STEPS)]


@functools.cache
def right(model: str, optimizer: str) -> tuple[dict[str, Any], list[float]]:
    """Returns the initial weights in float32, and the losses of torch in float64."""
    torch.manual_seed(0)
    make, call, _ = MODELS[model]
    net = make(torch.nn)
    weights = {name: x.detach().numpy().copy() for name, x in net.state_dict().items()}
    net = net.double()
    kind, options = OPTIMIZERS[optimizer]
    rule = getattr(torch.optim, kind)(net.parameters(), **options)
    losses = []
    for x, y in batches(model):
        rule.zero_grad()
        loss = torch.nn.functional.cross_entropy(call(net, torch.tensor(x).double()), torch.tensor(y))
        loss.backward()
        rule.step()
        losses.append(loss.item())
    return weights, losses


@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.slow)])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("model", MODELS)
def test_the_losses_of_a_training_are_those_of_torch(backend: str, model: str, optimizer: str, dtype: Any) -> None:
    if dtype not in dtypes_of(backend):
        pytest.skip("MLX has float64 on the CPU alone")
    weights, wanted = right(model, optimizer)
    make, call, _ = MODELS[model]
    kind, options = OPTIMIZERS[optimizer]
    net = make(nn).to(dtype=dtype)
    assert len(net.load_state_dict(weights).loaded) == len(weights)
    rule = getattr(optim, kind)(net, **options)
    losses = []
    for x, y in batches(model):
        given, classes = ops.convert_to_tensor(x.astype(dtype)), ops.convert_to_tensor(y)
        loss = ops.backward(functools.partial(_loss, call, net, given, classes), net)
        losses.append(float(loss))
        rule.step()
    assert np.abs(np.subtract(losses, wanted)).max() <= LOSS[dtype] * max(wanted)
    assert sum(losses[-4:]) < sum(losses[:4]), "the training reduces the losses of the batches"


def _loss(call: Callable[[Any, Any], Any], net: Any, x: Any, classes: Any) -> Any:
    return nn.losses.cross_entropy(call(net, x), classes)
