"""`to_backend` moves everything that an object holds, or nothing."""

import contextlib
import dataclasses
import importlib
import itertools
import random
import types
from collections import OrderedDict, defaultdict, namedtuple
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from emberharmony import Buffer, Parameter, errors, ops, to_backend
from emberharmony.backend import create_backend
from emberharmony.backend.base import Backend
from emberharmony.backend.discovery import BUILTIN, is_installed
from emberharmony.core.cells.cell import Cell
from tests.interruptions.harness import InterruptionError, trace
from tests.ops.trees import lists

INSTALLED = [name for name in BUILTIN if is_installed(name)]
pairs = pytest.mark.parametrize("here, there", list(itertools.permutations(INSTALLED, 2)))
Pair = namedtuple("Pair", "first second")


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    before = ops.get_backend()
    yield
    ops.set_backend(before)


def kind(name: str) -> type:
    return create_backend(name).tensor_type


class Layer:
    def __init__(self, n: int) -> None:
        self.weight = Parameter([float(n), 2.0], name=f"w{n}")
        self.mean = Buffer(float(n))
        self.scale = ops.array([float(n)])


class Slotted:
    __slots__ = ("__hidden", "plain")

    def __init__(self) -> None:
        self.__hidden = ops.array([7.0])
        self.plain = [ops.array([8.0])]

    def hidden(self) -> Any:
        return self.__hidden


class Guarded:
    def __init__(self) -> None:
        self.__dict__["x"] = ops.array([1.0])

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("read-only")


@dataclasses.dataclass
class State:
    momentum: Any
    label: str = "x"


@dataclasses.dataclass(frozen=True)
class Frozen:
    x: Any
    inner: Any = None


class Model:
    """A model with shared parts, a cycle, an optimizer-like state and things that are not tensors."""

    def __init__(self) -> None:
        self.layers = [Layer(0), Layer(1)]
        self.head = self.layers[0]
        self.me = self
        shared = ops.array([5.0])
        self.state = {"m": shared, 3: State(ops.array([6.0])), "again": (shared, "text", None)}
        self.ordered = OrderedDict(b=ops.array([1.0]), a=defaultdict(list, k=[ops.array([2.0])]))
        self.pair = Pair(ops.array([3.0]), Pair(1, self.layers[1].weight))
        self.slotted, self.guarded = Slotted(), Guarded()
        self.frozen, self.same = Frozen(ops.array([4.0])), Frozen(3)
        self.space = types.SimpleNamespace(x=ops.array([9.0]))
        self.generator = ops.random.Generator(0)
        self.names, self.activation, self.words = {"a", "b"}, ops.relu, np.array(["a", "b"])
        for layer in self.layers:
            layer.weight.grad = layer.weight.value

    def tensors(self) -> list[Any]:
        """Returns all tensors, those of the cells without a move."""
        cells = [cell for layer in self.layers for cell in (layer.weight, layer.mean)]
        plain = [
            *(layer.scale for layer in self.layers),
            *(self.state["m"], self.state[3].momentum, self.state["again"][0]),
            *(self.ordered["b"], *self.ordered["a"]["k"], self.pair.first),
            *(self.slotted.hidden(), *self.slotted.plain, self.guarded.x, self.frozen.x, self.space.x),
        ]
        grads = [layer.weight._grad[0] for layer in self.layers if layer.weight._grad]
        return [*(cell.tensor_and_home()[0] for cell in cells), *grads, *plain]

    def numbers(self) -> list[Any]:
        return [tensor.tolist() for tensor in self.tensors()]


@pairs
def test_everything_in_a_model_moves_and_stays_itself(here: str, there: str) -> None:
    ops.set_backend(here)
    model = Model()
    before, layers, state, draws = model.numbers(), list(model.layers), model.state, model.generator
    weights = [layer.weight for layer in layers]
    assert to_backend(model, there) is model
    assert {type(tensor) for tensor in model.tensors()} == {kind(there)}
    assert model.numbers() == before
    assert len(before) == 19
    assert [layer.weight for layer in model.layers] == weights
    assert (model.layers, model.head, model.me, model.state, model.generator) == (
        layers,
        layers[0],
        model,
        state,
        draws,
    )
    assert model.state["m"] is model.state["again"][0]
    assert (type(model.pair), model.pair.second.second) == (Pair, weights[1])
    assert list(model.ordered) == ["b", "a"]
    assert (model.state[3].label, model.same.x, model.words.tolist()) == ("x", 3, ["a", "b"])
    assert ops.get_backend() == here
    ops.set_backend(there)
    held = [weight.tensor_and_home() for weight in weights]
    assert [weight.value is pair[0] for weight, pair in zip(weights, held, strict=True)] == [True, True]
    ops.set_backend(here)
    to_backend(model, here)
    assert model.numbers() == before


@pairs
def test_tensors_trees_and_cells_move_alone(here: str, there: str) -> None:
    ops.set_backend(here)
    tensor = ops.array([1.0, 2.0])
    found = to_backend(tensor, there)
    assert (type(found), lists(found)) == (kind(there), [1.0, 2.0])
    assert to_backend(found, there) is found
    tree = {"a": [tensor, tensor], "b": (1, "text")}
    assert to_backend(tree, there) is tree
    assert tree["a"][0] is tree["a"][1]
    assert type(tree["a"][0]) is kind(there)
    assert to_backend((tensor, 1), there)[1] == 1
    cell = Parameter([1.0])
    assert to_backend(cell, there) is cell
    assert type(cell.tensor_and_home()[0]) is kind(there)
    for nothing in (3, "text", None, [], {}, Model, ops, len):
        assert to_backend(nothing, there) is nothing


def test_the_backend_may_be_an_object_and_wrong_names_raise_typed_errors() -> None:
    backend = create_backend(INSTALLED[-1])
    assert isinstance(to_backend(np.ones(2), backend), backend.tensor_type)
    for name in ("nmpy", 3, None):
        with pytest.raises(errors.BackendNotFoundError):
            to_backend([], name)  # type: ignore[arg-type]


@pytest.mark.skipif("mlx" not in INSTALLED, reason="MLX lacks complex128")
def test_a_dtype_that_the_backend_lacks_leaves_all_where_it_was_and_is_named() -> None:
    ops.set_backend("numpy")
    for bad, message in (
        (Parameter(np.array([1j]), name="phase"), r"'phase'.*complex128"),
        ({"deep": [np.array([1j])]}, r"Model\.bad\['deep'\]\[0\].*mlx.*complex128"),
    ):
        model = Model()
        model.bad = bad  # type: ignore[attr-defined]
        before = model.tensors()
        with pytest.raises(errors.DTypeError, match=message):
            to_backend(model, "mlx")
        assert all(new is old for new, old in zip(model.tensors(), before, strict=True))


def test_a_tensor_that_is_being_differentiated_does_not_move(backend: str) -> None:
    there = next((name for name in INSTALLED if name != backend), None) or pytest.skip("needs two backends")
    weight = Parameter([1.0, 2.0])

    def loss() -> Any:
        to_backend([weight], there)
        return ops.sum(weight)

    with pytest.raises(errors.TracedTensorError):
        ops.backward(loss, weight)
    with pytest.raises(errors.TracedTensorError, match=r"dict\['x'\]"):
        ops.grad(lambda x: ops.sum(to_backend({"x": ops.square(x)}, there)["x"]))([1.0])
    assert type(weight.tensor_and_home()[0]) is kind(backend)


def test_an_object_that_is_nested_too_deeply_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(errors.ArgumentError, match="too deeply"):
        to_backend(deep, "numpy")


def failing(backend: Backend, at: int, error: type[BaseException], monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes a backend fail at its conversion number `at`."""
    count = itertools.count()
    convert = type(backend).unpack

    def unpack(self: Backend, *args: Any) -> Any:
        if next(count) == at:
            raise error("planted")
        return convert(self, *args)

    monkeypatch.setattr(type(backend), "unpack", unpack)


@pairs
@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_full_memory_or_ctrl_c_at_any_conversion_leaves_all_where_it_was(
    error: type[BaseException], here: str, there: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ops.set_backend(here)
    model = Model()
    before = model.tensors()
    conversions = len({id(tensor) for tensor in before}) + 2  # the gradients are the tensors of the cells here
    for at in range(conversions):
        with monkeypatch.context() as patch:
            failing(load_backend(there), at, error, patch)
            with pytest.raises(error, match="planted"):
                to_backend(model, there)
        assert all(new is old for new, old in zip(model.tensors(), before, strict=True))
    to_backend(model, there)
    assert {type(tensor) for tensor in model.tensors()} == {kind(there)}


def load_backend(name: str) -> Backend:
    backend = create_backend(name)
    assert isinstance(backend, Backend)
    return backend


@pairs
@pytest.mark.parametrize("trials", [40, pytest.param(167, marks=pytest.mark.slow)])
def test_an_interruption_at_any_instruction_moves_all_or_nothing(here: str, there: str, trials: int) -> None:
    """Interrupts moves at random instructions, seeded; 1,000 moves together with the slow tests of all pairs."""
    ops.set_backend(here)
    model = Model()
    names = (here, there)
    numbers = model.numbers()
    to_backend(model, there)
    to_backend(model, here)
    ran, _ = trace(lambda: to_backend(model, there))
    to_backend(model, here)
    choose, places, arrived = random.Random(0), set(), 0
    for _ in range(trials):
        at = choose.randrange(len(ran))
        _, was = trace(lambda: to_backend(model, there), at)
        arrived += was
        (found,) = {type(tensor) for tensor in model.tensors()}
        places.add(found)
        assert found in [kind(name) for name in names]
        assert model.numbers() == numbers
        to_backend(model, here)
    assert arrived > 0.89 * trials
    assert kind(here) in places


@pairs
def test_an_interrupted_read_loses_nothing(here: str, there: str) -> None:
    ops.set_backend(here)
    cell = Parameter([1.0, 2.0])
    cell.grad = [3.0, 4.0]

    def reads() -> None:
        with ops.use_backend(there):
            assert type(cell.value) is type(cell.grad) is kind(there)

    reads()
    ops.backward(lambda: ops.sum(cell), cell)
    numbers = [lists(cell.value), lists(cell.grad)]
    ran, _ = trace(reads)
    choose = random.Random(1)
    for _ in range(100):
        assert [lists(cell.value), lists(cell.grad)] == numbers
        trace(reads, choose.randrange(len(ran)))
        assert ops.get_backend() == here
    assert isinstance(cell, Cell)


def test_an_interrupted_gradient_leaves_the_cells_as_they_were(backend: str) -> None:
    weight, mean = Parameter([1.0, 2.0]), Buffer([0.0, 0.0])

    def loss() -> Any:
        mean.value = ops.square(weight)
        return ops.sum(mean.value)

    run: Callable[[], Any] = lambda: ops.backward(loss, weight)
    run()
    ran, _ = trace(run)
    choose = random.Random(2)
    for _ in range(100):
        mean.value = [0.0, 0.0]
        with contextlib.suppress(InterruptionError, errors.EmberError):
            trace(run, choose.randrange(len(ran)))
        assert lists(weight.value) == [1.0, 2.0]
        assert type(weight.value) is kind(backend)
        assert not ops.is_traced(weight.value)
        assert lists(mean.value) in ([0.0, 0.0], [1.0, 4.0])
        if backend == "mlx":
            assert not importlib.import_module("emberharmony.backend.mlx.tracing").is_nested()
        if backend == "torch":
            assert not importlib.import_module("emberharmony.backend.torch.tracing").is_watched()


@pytest.mark.parametrize("derive", [ops.grad, lambda f: lambda x: ops.jvp(f, (x,), (x,))], ids=["grad", "jvp"])
def test_no_interruption_leaves_a_transform_of_pytorch_open(derive: Callable[..., Any]) -> None:
    torch = pytest.importorskip("torch")
    tracing = importlib.import_module("emberharmony.backend.torch.tracing")
    with ops.use_backend("torch"):
        x = ops.array([1.0, 2.0])
        run: Callable[[], Any] = lambda: derive(lambda x: ops.sum(ops.square(x)))(x)
        run()
        ran, _ = trace(run)
        for place in range(len(ran)):
            with contextlib.suppress(InterruptionError, errors.EmberError):
                trace(run, place)
            assert not tracing.is_watched(), ran[place]
            assert not torch._C._dispatch_tls_is_dispatch_key_included(tracing._register_kernels()[0]), ran[place]
            assert not tracing.in_functional_transform(), ran[place]


def test_modules_of_pytorch_are_left_alone() -> None:
    torch = pytest.importorskip("torch")

    class Net(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(2, 3)

    model = {"net": Net(), "weight": Parameter([1.0, 2.0])}
    assert to_backend(model, "numpy") is model
    assert all(isinstance(p, torch.nn.Parameter) for p in model["net"].parameters())


@pairs
def test_what_only_has_a_dtype_is_no_tensor_and_stays(here: str, there: str) -> None:
    ops.set_backend(here)
    limits = [np.finfo("float32"), ops.finfo("float32"), np.float32(2.0)]
    moved = to_backend({"x": ops.array([1.0]), "limits": limits}, there)
    assert type(moved["x"]) is kind(there)
    assert all(a is b for a, b in zip(moved["limits"], limits, strict=True))
