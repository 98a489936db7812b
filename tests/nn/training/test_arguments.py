"""`nn.fit` refuses what is no model, loss, optimizer or batch, and says what to pass."""

import warnings
from typing import Any

import numpy as np
import pytest

from emberharmony import nn, ops, optim
from emberharmony.errors import ArgumentError, ArgumentTypeError, TrainingWarning

X, Y = np.ones((8, 2), "float32"), np.array([0, 1] * 4)


def fit(**options: Any) -> nn.History:
    model = nn.Linear(2, 2)
    given = {
        "module": model,
        "loss_fn": lambda x, y: nn.losses.cross_entropy(model(x), y),
        "optimizer": optim.Adam(model),
        "batches": nn.data.batches(X, Y, batch_size=4),
        "progress": False,
    }
    return nn.fit(**{**given, **options})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"module": nn.Linear}, r"make a model of the class, Linear\(\)"),
        ({"module": nn.Linear(2, 2).freeze()}, r"all 2 are frozen or buffers: use model.unfreeze\(\)"),
        ({"optimizer": optim.Adam}, r"optim.Adam\(model\), batches\)"),
        ({"batches": (X, Y)}, r"nn.data.batches\(x, y, batch_size=32\)"),
        ({"batches": X}, r"nn.data.batches\(x, y, batch_size=32\)"),
        ({"epochs": "3"}, r"epochs must be a number, got '3'"),
        ({"callbacks": print}, "callbacks is a list of functions of a Step"),
        ({"callbacks": [3]}, "callbacks is a list of functions of a Step"),
        ({"loss_fn": lambda x: x}, r"with the 2 parts of a batch, and this one takes \(x\)"),
        ({"loss_fn": lambda m, x, y: x}, r"takes \(m, x, y\): missing a required argument"),
    ],
)
def test_a_wrong_argument_is_refused(options: dict[str, Any], message: str) -> None:
    ops.set_backend("numpy")
    with pytest.raises((ArgumentError, ArgumentTypeError), match=message):
        fit(**options)


def test_an_iterator_that_ends_before_the_epochs_is_told(backend: str) -> None:
    with pytest.warns(TrainingWarning, match="fit\\(\\) made 1 of 3 epochs, because batches gave no more"):
        assert len(fit(batches=iter([(X, Y), (X, Y)]), epochs=3)) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(fit(batches=iter([(X, Y), (X, Y)]), epochs=1)) == 2


def test_a_layer_replaced_after_the_optimizer_was_made_is_told(backend: str) -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 2))

    def loss(x: Any, y: Any) -> Any:
        return nn.losses.cross_entropy(model(x), y)

    optimizer = optim.Adam(model.parameters())
    model[1] = nn.Linear(3, 2)
    batches = nn.data.batches(X, Y, batch_size=8)
    told = r"fit\(\) does not change 1.weight, 1.bias: the model got new parameters"
    with pytest.warns(TrainingWarning, match=told):
        nn.fit(model, loss, optimizer, batches, progress=False)
    for optimizer in (optim.Adam(model), optim.Lookahead(optim.Adam(model))):
        model[1] = nn.Linear(3, 2)
        with pytest.warns(TrainingWarning, match=told) as warned:
            nn.fit(model, loss, optimizer, batches, progress=False)
        assert len(warned) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nn.fit(model, loss, optim.Adam(model[1]), batches, progress=False)  # a part of the model on purpose


@pytest.mark.parametrize("part", ["x", "y", "scale", "mean"])
def test_one_float64_among_float32_is_named(backend: str, part: str) -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            self.layer = nn.Linear(2, 1)
            self.scale = nn.Parameter(np.ones(2, "float64" if part == "scale" else "float32"))
            self.mean = nn.Buffer(np.zeros(2, "float64" if part == "mean" else "float32"))

        def __call__(self, x: Any) -> Any:
            return self.layer(ops.multiply(ops.subtract(x, self.mean), self.scale))

    model = Scaled()
    arrays = [
        np.ones(shape, "float64" if part == name else "float32") for name, shape in (("x", (8, 2)), ("y", (8, 1)))
    ]
    loss = lambda x, y: nn.losses.mse(model(x), y)
    name = f"{part} of the batch" if part in "xy" else repr(part)
    with pytest.warns(TrainingWarning, match=rf"these are of float64.*: {name}; .*astype\('float32'\)") as warned:
        nn.fit(model, loss, optim.SGD(model, lr=0.1), nn.data.batches(*arrays, batch_size=4), epochs=2, progress=False)
    assert len(warned) == 1
    assert warned[0].filename == __file__


def test_float64_on_purpose_is_no_fault(backend: str) -> None:
    model = nn.Linear(2, 1).to(dtype="float64")
    narrow = nn.Linear(2, 1)
    batches = nn.data.batches(X, np.ones((8, 1)), batch_size=8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nn.fit(model, lambda x, y: nn.losses.mse(model(x), y), optim.SGD(model, lr=0.1), batches, progress=False)
        loss = lambda x, y: nn.losses.mse(narrow(x), ops.cast(y, "float32"))
        nn.fit(narrow, loss, optim.SGD(narrow, lr=0.1), batches, progress=False)
