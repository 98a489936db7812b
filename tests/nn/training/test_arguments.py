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
