"""Functional forms of modules, on every backend."""

import copy
import importlib
from typing import Any

import numpy as np
import pytest

from emberharmony import nn, ops, optim
from emberharmony.errors import ArgumentError, ArgumentTypeError


class Counting(nn.Module):
    def __init__(self) -> None:
        self.linear = nn.Linear(3, 1)
        self.calls = nn.Buffer([0.0])

    def __call__(self, x: Any) -> Any:
        self.calls.value = ops.add(self.calls, 1.0)
        return self.linear(x)


def test_value_and_grad_returns_gradients_by_name_and_keeps_buffers(backend: str) -> None:
    net, x = Counting(), ops.array([[1.0, 2.0, 3.0]])
    (loss, out), gradients = nn.value_and_grad(net, lambda x: (ops.sum(net(x)), net(x)), has_aux=True)(x)
    assert gradients["linear.weight"].tolist() == [[1.0, 2.0, 3.0]]
    assert gradients["linear.bias"].tolist() == [1.0]
    assert net.calls.value.tolist() == [2.0]
    np.testing.assert_allclose(ops.to_numpy(out)[0, 0], ops.to_numpy(loss))
    before = ops.to_numpy(net.linear.bias.value)
    optim.SGD(net.named_parameters(), lr=1.0).step(gradients)
    np.testing.assert_allclose(ops.to_numpy(net.linear.bias.value), before - 1.0, rtol=1e-6)
    with pytest.raises(ArgumentError, match="Counting has no trainable parameter"):
        nn.value_and_grad(net.freeze(), lambda x: ops.sum(net(x)))(x)


@pytest.mark.parametrize("has_aux", [False, True])
def test_value_and_grad_compiles_as_a_whole(quick: str, has_aux: bool) -> None:
    graphs: dict[str, Any] = {}
    if quick == "torch":
        graphs = importlib.import_module("torch._dynamo.utils").counters
        graphs.clear()
    net, x = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)), ops.array([[1.0, 2.0, 3.0], [0, 1, 5]])
    other = copy.deepcopy(net)

    def gradient_of(net: nn.Module) -> Any:
        def loss(x: Any) -> Any:
            total = ops.sum(ops.square(net(x)))
            return (total, ops.add(x, 1.0)) if has_aux else total

        return nn.value_and_grad(net, loss, has_aux=has_aux)

    compiled, plain = ops.compile(gradient_of(net)), gradient_of(other)
    for _ in range(2):
        for pair in zip(ops.tree_leaves(compiled(x)), ops.tree_leaves(plain(x)), strict=True):
            np.testing.assert_allclose(*map(ops.to_numpy, pair), rtol=1e-5, atol=1e-5)
        for name, buffer in net.named_buffers():
            np.testing.assert_allclose(ops.to_numpy(buffer), ops.to_numpy(dict(other.named_buffers())[name]), rtol=1e-6)
    if quick == "torch":
        assert graphs["stats"]["unique_graphs"] == 1
        assert not graphs["graph_break"]


def test_a_tied_parameter_has_one_gradient(backend: str) -> None:
    first = nn.Linear(2, 2, bias=False)
    first.load_state_dict({"weight": [[1.0, 0.0], [0.0, 1.0]]})
    net = nn.Sequential(first, first)
    _, gradients = nn.value_and_grad(net, lambda: ops.sum(net([[1.0, 2.0]])))()
    assert {name: x.tolist() for name, x in gradients.items()} == {"0.weight": [[2.0, 4.0], [2.0, 4.0]]}


def test_functional_call_uses_other_tensors_and_changes_nothing(backend: str) -> None:
    net = Counting()
    weight = ops.zeros((1, 3))
    found = nn.functional_call(net, {"linear.weight": weight, "linear.bias": ops.array([4.0])}, ops.ones((2, 3)))
    assert found.tolist() == [[4.0], [4.0]]
    assert net.calls.value.tolist() == [0.0]
    stacked = ops.stack([weight, ops.ones((1, 3))])
    found = ops.vmap(lambda w: nn.functional_call(net.linear, {"weight": w, "bias": [0.0]}, ops.ones(3)))(stacked)
    assert found.tolist() == [[0.0], [3.0]]
    with pytest.raises(ArgumentError, match=r"no parameter or buffer 'linear\.wieght'; did you mean 'linear\.weight'"):
        nn.functional_call(net, {"linear.wieght": weight}, ops.ones(3))


def test_split_and_merge_take_the_state_through_transforms(backend: str) -> None:
    net, x = Counting(), ops.ones((2, 3))
    structure, params, buffers = nn.split(net)
    assert sorted(params) == ["linear.bias", "linear.weight"]
    assert list(buffers) == ["calls"]

    def loss(params: dict[str, Any], buffers: dict[str, Any]) -> object:
        made = nn.merge(structure, params, buffers)
        value = ops.sum(made(x))
        return value, nn.split(made)[2]

    (_, after), gradients = ops.value_and_grad(loss, has_aux=True)(params, buffers)
    assert gradients["linear.bias"].tolist() == [2.0]
    assert after["calls"].tolist() == [1.0]
    assert net.calls.value.tolist() == [0.0]
    made = nn.merge(structure, params, after)
    assert made.calls.value.tolist() == [1.0]
    assert made.linear.weight is not net.linear.weight
    (rest, only) = nn.split(net, nn.Buffer)
    assert nn.merge(rest, only).linear.weight is net.linear.weight
    with pytest.raises(ArgumentError, match=r"missing \['calls'\], unexpected \[\]"):
        nn.merge(structure, params)
    with pytest.raises(ArgumentTypeError, match="classes of cells"):
        nn.split(net, dict)  # type: ignore[arg-type]


def test_a_merged_module_follows_the_backend_and_trains(backend: str) -> None:
    structure, params, buffers = nn.split(Counting())
    made = nn.merge(structure, params, buffers)
    optimizer = optim.SGD(made, lr=0.1)
    for other in ops.available_backends():
        with ops.use_backend(other):
            ops.backward(lambda: ops.sum(made(ops.ones((2, 3)))), made)
            optimizer.step()
    assert made.calls.value.tolist() == [float(len(ops.available_backends()))]


def test_an_optimizer_of_a_module_knows_its_names(backend: str) -> None:
    net = Counting()
    optimizer = optim.SGD(net, lr=1.0)
    assert optimizer.param_groups[0]["param_names"] == ["linear.weight", "linear.bias"]
    optimizer.step({"linear.bias": [2.0]})
    groups = optim.SGD([{"params": net.linear, "lr": 0.5}], lr=1.0).param_groups
    assert groups[0]["param_names"] == ["weight", "bias"]
