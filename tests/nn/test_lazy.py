"""Layers whose input sizes are found by `nn.build`, on every backend."""

import pytest

from emberharmony import TensorSpec, nn, ops
from emberharmony.errors import ArgumentError, UninitializedParameterError


def test_build_finds_the_sizes_without_computing(backend: str) -> None:
    net = nn.Sequential(nn.Linear(None, 4), ops.relu, nn.Linear(None, 2, bias=False))
    assert nn.build(net, TensorSpec((5, 3))) is net
    assert [type(part) for part in net] == [nn.Linear, nn.Lambda, nn.Linear]
    assert {name: tuple(x.shape) for name, x in net.state_dict().items()} == {
        "0.weight": (4, 3),
        "0.bias": (4,),
        "2.weight": (2, 4),
    }
    assert tuple(net(ops.zeros((5, 3))).shape) == (5, 2)
    before = net[0].weight
    assert nn.build(net, TensorSpec((5, 3)))[0].weight is before


def test_values_do_not_depend_on_how_the_size_was_found(backend: str) -> None:
    built = nn.build(nn.Linear(None, 4, rng=ops.random.Generator(1)), TensorSpec((3,)))
    assert built.weight.value.tolist() == nn.Linear(3, 4, rng=ops.random.Generator(1)).weight.value.tolist()


def test_use_before_build_names_the_layer(backend: str) -> None:
    net = nn.Sequential(nn.Identity(), nn.Linear(None, 4))
    for use in (lambda: net(ops.zeros((2, 3))), net.state_dict, lambda: ops.backward(lambda: 0.0, net)):
        with pytest.raises(UninitializedParameterError, match=r"call nn\.build\(model, example\)"):
            use()
    with pytest.raises(UninitializedParameterError, match="in 1 of Sequential, a Linear"):
        net(ops.zeros((2, 3)))
    assert repr(net[1].weight) == "UninitializedParameter()"


def test_a_layer_that_is_not_called_is_named(backend: str) -> None:
    class Skipping(nn.Module):
        def __init__(self) -> None:
            self.used, self.unused = nn.Linear(None, 2), nn.Linear(None, 2)

        def __call__(self, x: object) -> object:
            return self.used(x)  # type: ignore[arg-type]

    with pytest.raises(ArgumentError, match=r"build\(\) did not call unused of Skipping"):
        nn.build(Skipping(), TensorSpec((3,)))
