"""`ops.backward` and optimizers refuse objects without parameters, and name the way out."""

from typing import Any

import pytest

from emberharmony import Parameter, nn, ops, optim
from emberharmony.errors import ArgumentError


class InClass(nn.Module):
    """Its layer is an attribute of the class, which no walk over the object finds."""

    layer = nn.Linear(2, 1)


class Local(nn.Module):
    """It assigns no layer."""

    def __init__(self) -> None:
        nn.Linear(2, 1)


@pytest.mark.parametrize(
    ("given", "way_out"),
    [
        (lambda: nn.Linear, "Linear is a class: make a model of it first, model = Linear()"),
        (lambda: nn.Linear(2, 1).parameters, r"call it: parameters\(\)"),
        (lambda: nn.Linear(2, 1).state_dict(), "a state dict has tensors: pass the model"),
        (lambda: iter(()), "an iterator gives its items once"),
        (lambda: ops.ones(2), r"pass the model, or nn.Parameter\(tensor\)"),
        (lambda: "model", r"it is a str: pass the model"),
        (lambda: nn, "emberharmony.nn is a module of Python: pass the model"),
        (InClass, "InClass.layer is made in the class: make it in __init__"),
        (Local, "Local has no layers or parameters in its attributes"),
    ],
)
def test_the_way_out_is_named(backend: str, given: Any, way_out: str) -> None:
    with pytest.raises(ArgumentError, match=f"there is no trainable Parameter in params; .*({way_out})"):
        ops.backward(lambda: ops.sum(ops.ones(2)), given())
    with pytest.raises(ArgumentError, match=rf"Adam\(\): there is no Parameter in params; .*({way_out})"):
        optim.Adam(given())


def test_an_empty_list_is_named(backend: str) -> None:
    with pytest.raises(ArgumentError, match="there is no trainable Parameter in params; the list is empty"):
        ops.backward(lambda: ops.sum(ops.ones(2)), [])


def test_frozen_parameters_and_models_of_torch(backend: str) -> None:
    with pytest.raises(ArgumentError, match=r"all 2 are frozen or buffers: use model.unfreeze\(\)"):
        ops.backward(lambda: ops.sum(ops.ones(2)), nn.Linear(2, 1).freeze())
    with pytest.raises(ArgumentError, match=r"EMA\(\): there is no trainable Parameter in params; all 1 are frozen"):
        optim.EMA([Parameter(ops.ones(2), trainable=False)])
    torch = pytest.importorskip("torch")
    with pytest.raises(ArgumentError, match=r"it is a model of PyTorch: use the layers of emberharmony.nn"):
        optim.Adam(torch.nn.Linear(2, 1))
