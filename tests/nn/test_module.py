"""Modules: what they hold, names, modes, copies, and their place in trees, on every backend."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from emberharmony import TensorSpec, nn, ops
from emberharmony.errors import ArgumentError, ArgumentTypeError, DTypeError
from tests.nn.behaviours import quick_compiler


class Head(nn.Module):
    def __init__(self) -> None:
        self.scale = nn.Parameter([2.0])
        self.linear = nn.Linear(3, 2)

    def __call__(self, x: Any) -> Any:
        return ops.multiply(self.linear(x), self.scale)


class Net(nn.Module):
    """A model with parts in attributes, lists, tuples and dicts, a buffer before its parameter, and a tied part."""

    def __init__(self) -> None:
        self.blocks = [nn.Linear(3, 3), (nn.Linear(3, 3), nn.Identity())]
        self.steps = nn.Buffer([0.0])
        self.shift = nn.Parameter([1.0, 1.0, 1.0])
        self.heads = {"mean": Head(), "other": Head()}
        self.tied = self.blocks[0]
        self.cache = nn.Buffer([0.0], persistent=False)
        self.name = "net"

    def __call__(self, x: Any) -> Any:
        self.steps.value = ops.add(self.steps, 1.0)
        x = ops.add(self.blocks[1][0](self.blocks[0](x)), self.shift)  # type: ignore[index]
        return self.heads["mean"](self.tied(x))


NAMES = [
    "shift",
    *("blocks.0.weight", "blocks.0.bias", "blocks.1.0.weight", "blocks.1.0.bias"),
    *("heads.mean.scale", "heads.mean.linear.weight", "heads.mean.linear.bias"),
    *("heads.other.scale", "heads.other.linear.weight", "heads.other.linear.bias"),
]


def values(module: nn.Module) -> dict[str, Any]:
    return {name: np.asarray(x).tolist() for name, x in module.state_dict(host=True).items()}


def test_parameters_and_buffers_are_found_in_attributes_lists_tuples_and_dicts(backend: str) -> None:
    net = Net()
    assert [name for name, _ in net.named_parameters()] == NAMES
    assert [name for name, _ in net.named_buffers()] == ["steps", "cache"]
    assert [len(net.parameters()), len(net.buffers()), len(net.children())] == [len(NAMES), 2, 5]
    assert [name for name, _ in net.named_modules()][:4] == ["", "blocks.0", "blocks.1.0", "blocks.1.1"]
    assert list(net.state_dict()) == ["shift", "steps", *NAMES[1:], "tied.weight", "tied.bias"]
    assert "cache" in net.state_dict(persistent_only=False)


def test_the_names_are_those_of_torch() -> None:
    torch = pytest.importorskip("torch")

    def built(library: Any, parameter: Any) -> Any:
        class Pair(library.Module):  # type: ignore[misc]
            def __init__(self) -> None:
                super().__init__()
                self.body = library.Sequential(library.Linear(2, 3), library.Sequential(library.Linear(3, 3)))
                self.scale = parameter
                self.heads = library.ModuleDict({"b": library.Linear(3, 1), "a": library.Linear(3, 1)})
                self.rest = library.ModuleList([library.Linear(3, 1, bias=False)])

        return Pair()

    theirs = built(torch.nn, torch.nn.Parameter(torch.ones(3)))
    assert list(built(nn, nn.Parameter(ops.ones(3))).state_dict()) == list(theirs.state_dict())


def test_train_eval_and_apply_reach_all_modules(backend: str) -> None:
    net = Net()
    assert net.training
    assert net.eval() is net
    assert not any(module.training for _, module in net.named_modules())
    assert all(module.training for _, module in net.train().named_modules())
    met: list[nn.Module] = []
    net.apply(met.append)
    assert met[-1] is net
    assert len(met) == len(list(net.named_modules()))


def test_freeze_and_unfreeze_take_patterns_and_refuse_what_fits_nothing(backend: str) -> None:
    net = Net()
    net.freeze("heads.*.linear", "tied")
    left = [name for name, _ in net.named_parameters(trainable=True)]
    assert left == ["shift", "blocks.1.0.weight", "blocks.1.0.bias", "heads.mean.scale", "heads.other.scale"]
    net.unfreeze("heads.mean.linear.bias")
    assert "heads.mean.linear.bias" in dict(net.named_parameters(trainable=True))
    assert not net.freeze().parameters(trainable=True)
    assert net.parameters(trainable=False) != []
    with pytest.raises(ArgumentError, match=r"freeze\(\): 'head' fits no parameter of Net"):
        net.freeze("shift", "head")
    ops.backward(lambda: ops.sum(net(ops.ones((2, 3)))), net.unfreeze("shift"))
    assert net.shift.grad is not None
    assert net.blocks[0].weight.grad is None  # type: ignore[union-attr]


def test_what_a_loss_assigns_to_buffers_is_kept(backend: str) -> None:
    net = Net()
    ops.backward(lambda: ops.sum(net(ops.ones((2, 3)))), net)
    nn.value_and_grad(net, lambda x: ops.sum(net(x)))(ops.ones((2, 3)))
    assert net.steps.value.tolist() == [2.0]


def test_modules_are_copied_and_pickled(backend: str) -> None:
    net = Net()
    x = ops.ones((2, 3))
    for made in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert values(made) == values(net)
        assert made.tied is made.blocks[0]
        made.shift.value = ops.zeros(3)
        assert net.shift.value.tolist() == [1.0, 1.0, 1.0]
        assert np.shape(ops.to_numpy(made(x))) == (2, 2)


def test_a_module_follows_the_active_backend(backend: str) -> None:
    net = Net()
    x = ops.to_numpy(net(ops.ones((2, 3))))
    for other in ops.available_backends():
        with ops.use_backend(other):
            np.testing.assert_allclose(ops.to_numpy(net(ops.ones((2, 3)))), x, rtol=1e-5)
    moved = net.to(backend="numpy")
    assert moved is net


def test_to_casts_floating_parameters_and_gradients(backend: str) -> None:
    net = Net()
    net.count = nn.Buffer(ops.array([3], "int32"))  # type: ignore[attr-defined]
    ops.backward(lambda: ops.sum(net(ops.ones((2, 3)))), net)
    net.to(dtype="float16")
    assert {ops.dtype(x).name for name, x in net.state_dict().items() if name != "count"} == {"float16"}
    assert ops.dtype(net.state_dict()["count"]).name == "int32"
    assert ops.dtype(net.shift.grad).name == "float16"
    with pytest.raises(DTypeError, match="floating dtype, not int32"):
        net.to(dtype="int32")
    net.to(device=ops.get_default_device())
    assert net.shift.value.tolist() == [1.0, 1.0, 1.0]


def test_modules_are_nodes_of_trees(backend: str) -> None:
    head = Head()
    x = ops.ones((4, 3))
    gradient = ops.grad(lambda h: ops.sum(h(x)))(head)
    assert isinstance(gradient, Head)
    assert gradient.linear.bias.tolist() == [8.0, 8.0]  # type: ignore[union-attr]
    doubled = ops.tree_map(lambda leaf: ops.multiply(leaf, 2.0), head)
    np.testing.assert_allclose(ops.to_numpy(doubled(x)), 4 * ops.to_numpy(head(x)), rtol=1e-6)
    assert [str(path) for path in ops.tree_paths(head)] == ["scale", "linear.weight", "linear.bias"]
    ensemble = ops.tree_map(lambda a, b: ops.stack([a.value, b.value]), head, Head())
    found = ops.to_numpy(ops.vmap(lambda h, x: h(x), in_axes=(0, None))(ensemble, x))
    np.testing.assert_allclose(found[0], ops.to_numpy(head(x)), rtol=1e-6)


def test_a_module_can_be_compiled_and_checkpointed(backend: str) -> None:
    head, x = Head(), ops.ones((4, 3))
    with quick_compiler(backend):
        for fn in (ops.compile(head), ops.checkpoint(head), nn.Remat(head)):
            np.testing.assert_allclose(ops.to_numpy(fn(x)), ops.to_numpy(head(x)), rtol=1e-6)


def test_parts_are_replaced_by_name(backend: str) -> None:
    net = Net()
    made = nn.Linear(3, 2)
    net.replace("heads.mean.linear", made).replace("blocks.0", nn.Identity())
    assert net.heads["mean"].linear is made
    assert isinstance(net.blocks[0], nn.Identity)
    with pytest.raises(ArgumentError, match=r"Net has no module 'heads\.mena'; did you mean 'heads\.mean'"):
        net.replace("heads.mena", made)
    with pytest.raises(ArgumentTypeError, match="in a tuple cannot be replaced"):
        net.replace("blocks.1.0", made)
    with pytest.raises(ArgumentTypeError, match="replace"):
        net.replace("tied", ops.relu)  # type: ignore[arg-type]


def test_a_module_that_contains_itself_and_hidden_parameters_are_refused(backend: str) -> None:
    head = Head()
    head.linear.parent = head  # type: ignore[attr-defined]
    with pytest.raises(ArgumentError, match=r"Head contains itself: linear\.parent is Head again"):
        head.parameters()

    class Plain:
        def __init__(self) -> None:
            self.weight = nn.Parameter(1.0)

    class Holder(nn.Module):
        def __init__(self) -> None:
            self.plain = Plain()

    with pytest.raises(ArgumentError, match=r"parameter at plain\.weight is held by a Plain"):
        Holder().state_dict()


def test_a_module_without_a_call_says_what_is_missing() -> None:
    class Torchlike(nn.Module):
        def forward(self, x: Any) -> Any:
            return x

    with pytest.raises(NotImplementedError, match=r"Torchlike does not define __call__\(\): rename forward\(\)"):
        Torchlike()(1)


def test_the_summary_shows_names_shapes_and_counts(backend: str) -> None:
    net = Net().freeze("shift")
    text = net.summary(TensorSpec((5, 3)))
    assert net.steps.value.tolist() == [0.0]
    lines = text.splitlines()
    assert lines[0].split() == ["name", "module", "output", "parameters", "bytes"]
    assert next(line for line in lines if line.startswith("heads.mean.linear")).split() == [
        *("heads.mean.linear", "Linear", "(5,", "2)", "8", "32")
    ]
    assert lines[-1] == "45 parameters, 42 of them trainable, and 2 elements in buffers"
    names = [line.partition(" ")[0] for line in net.summary(depth=1).splitlines()]
    assert "heads.mean" in names, "a module in a dict or list is of the first level, as one in an attribute"
    assert "heads.mean.linear" not in names


def test_an_unknown_name_gets_a_hint_and_all_names_load() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Liner'; did you mean 'Linear'"):
        _ = nn.Liner  # type: ignore[attr-defined]
    assert all(getattr(nn, name) is not None for name in nn.__all__)
    assert dir(nn) == sorted(nn.__all__)


def test_a_module_in_two_places_is_listed_once(backend: str) -> None:
    shared = nn.Linear(2, 2)
    net = nn.Sequential(shared, nn.ReLU(), nn.Sequential(shared))
    assert [name for name, _ in net.named_modules()] == ["", "0", "1", "2"]
    assert [name for name, _ in net.named_parameters()] == ["0.weight", "0.bias"]
    visits: list[nn.Module] = []
    net.apply(visits.append)
    assert sum(each is shared for each in visits) == 1
