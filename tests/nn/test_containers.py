"""Containers, on every backend."""

from typing import Any

import numpy as np
import pytest

from emberharmony import nn, ops
from emberharmony.errors import ArgumentError, ArgumentTypeError, ShapeError, TrainingWarning


def test_sequential_calls_its_modules_in_order(backend: str) -> None:
    net = nn.Sequential(nn.Linear(3, 4), ops.relu, nn.Linear(4, 2))
    x = ops.ones((2, 3))
    np.testing.assert_array_equal(ops.to_numpy(net(x)), ops.to_numpy(net[2](ops.relu(net[0](x)))))
    assert len(net) == 3
    assert isinstance(net[:2], nn.Sequential)
    assert net[:2][0] is net[0]
    assert [type(module).__name__ for module in net] == ["Linear", "Lambda", "Linear"]
    net.append(nn.Identity())
    net.insert(0, nn.Identity())
    net[1] = nn.Linear(3, 4, bias=False)
    del net[-1]
    assert list(net.state_dict()) == ["1.weight", "3.weight", "3.bias"]
    assert repr(net[:2]) == "Sequential(\n  (0): Identity()\n  (1): Linear(3, 4, bias=False)\n)"
    with pytest.raises(ArgumentTypeError, match="Sequential holds Module objects, not 3"):
        net.append(3)


def test_the_class_of_a_layer_is_no_layer() -> None:
    with pytest.raises(ArgumentTypeError, match=r"Sequential got the class ReLU, which makes layers: write ReLU\(\)"):
        nn.Sequential(nn.Linear(2, 3), nn.ReLU)


def test_lists_and_dicts_hold_modules_and_parameters(backend: str) -> None:
    layers = nn.ModuleList([nn.Linear(1, 1), nn.Linear(1, 2)])
    assert [len(layers), len(layers[1:])] == [2, 1]
    weights = nn.ParameterList([ops.zeros(2), nn.Parameter([1.0], trainable=False)])
    assert [name for name, _ in weights.named_parameters(trainable=True)] == ["0"]
    named = nn.ModuleDict({"b": nn.Linear(1, 1), "a": nn.Identity()})
    assert [list(named), list(named.keys()), len(named), "a" in named] == [["b", "a"], ["b", "a"], 2, True]
    assert named["b"] is next(iter(named.values()))
    assert dict(named.items())["b"] is named["b"]
    del named["a"]
    assert list(named.state_dict()) == ["b.weight", "b.bias"]
    assert list(nn.ParameterDict({"x": [1.0]}).state_dict()) == ["x"]
    assert named.replace("b", nn.Identity()).state_dict() == {}
    with pytest.raises(ArgumentError, match="ModuleDict has no member 'c'"):
        named["c"]
    with pytest.raises(ArgumentError, match=r"text without dots, not 'a\.b'"):
        named["a.b"] = nn.Identity()
    with pytest.raises(ArgumentTypeError, match="ModuleDict holds Module objects"):
        named["c"] = 1
    with pytest.raises(ArgumentTypeError, match="ModuleList holds Module objects"):
        nn.ModuleList([ops.relu])


def test_lambda_residual_repeat_and_remat(backend: str) -> None:
    double = nn.Lambda(lambda x: ops.multiply(x, 2.0))
    assert nn.Residual(double)([1.0, 2.0]).tolist() == [3.0, 6.0]
    assert nn.Residual(double, double)([1.0]).tolist() == [5.0]
    assert nn.Repeat(double, 3)([1.0]).tolist() == [8.0]
    assert nn.Repeat(double, 0)([1.0]) == [1.0]
    layer = nn.Linear(2, 2)
    plain = nn.value_and_grad(layer, lambda: ops.sum(ops.square(layer([[1.0, 2.0]]))))()[1]
    remat = nn.Remat(layer)
    _, found = nn.value_and_grad(remat, lambda: ops.sum(ops.square(remat([[1.0, 2.0]]))))()
    np.testing.assert_allclose(ops.to_numpy(found["module.weight"]), ops.to_numpy(plain["weight"]), rtol=1e-6)
    with pytest.raises(ArgumentError, match="Repeat takes a number of times"):
        nn.Repeat(double, -1)
    with pytest.raises(ArgumentTypeError, match="Lambda takes a function"):
        nn.Lambda(1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "way_out"),
    [
        (lambda: nn.Sequential(nn.Linear(2, 3), "relu"), r"write a layer or a function, as nn.ReLU\(\) or ops.relu"),
        (lambda: nn.Sequential({"a": nn.Linear(2, 3)}), r"\*layers.values\(\), or use nn.ModuleDict"),
        (lambda: nn.Sequential(nn.Linear(2, 3)(ops.ones(2))), "pass the layer itself, without calling it"),
        (lambda: nn.Linear(2, 3, "relu"), "bias is True or False, got 'relu'; an activation is a layer of its own"),
        (lambda: nn.Conv2d(1, 2, 3, bias=nn.ReLU()), "bias is True or False"),
        (lambda: nn.Linear(ops.ones((4, 2)), 3), r"make the layer first, and then call it .* of shape \(4, 2\)"),
        (lambda: nn.init.normal(nn.Linear(2, 3).weight), r"use nn.init.apply\(parameter, nn.init.normal\(\)\)"),
        (lambda: nn.Linear(2, 3, rng=3), r"use ops.random.Generator\(3\)"),
        (lambda: nn.Linear(2, 3).freeze(nn.ReLU()), r"a layer has the method itself: model.layer.freeze\(\)"),
        (lambda: nn.CrossEntropyLoss(ops.ones((2, 2)), [0, 1]), r"nn.CrossEntropyLoss\(\)\(outputs, target\)"),
        (lambda: nn.MSELoss(ops.ones(2), ops.ones(2)), r"nn.MSELoss\(\)\(outputs, target\)"),
        (lambda: nn.losses.mse(ops.ones((2, 2)), [0, 1]), "class ids go to nn.losses.cross_entropy"),
    ],
)
def test_what_is_no_layer_or_option_is_refused_with_the_way_out(backend: str, make: Any, way_out: str) -> None:
    with pytest.raises((ArgumentTypeError, ShapeError), match=way_out):
        make()


def test_a_module_without_a_call_says_what_to_write() -> None:
    class Keras(nn.Module):
        def call(self, x: Any) -> Any:
            return x

    class Empty(nn.Module):
        pass

    for module, way_out in (
        (Keras(), r"rename call\(\) to __call__\(\)"),
        (Empty(), r"define it, as def __call__\(self, x\)"),
        (nn.ModuleList([nn.ReLU()]), "loop over it, or use nn.Sequential"),
    ):
        with pytest.raises(NotImplementedError, match=way_out):
            module(1.0)


def test_an_attribute_that_freezes_nothing_is_told() -> None:
    layer = nn.Linear(2, 1)
    with pytest.warns(TrainingWarning, match=r"Linear.trainable = False freezes no parameter: use freeze\(\)"):
        layer.trainable = False
    assert layer.weight.trainable
