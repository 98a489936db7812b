"""Tests the guards of compiled functions on PyTorch: what can change is looked at, what cannot is not."""

import functools
import gc
import warnings
import weakref
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from emberharmony import nn, ops
from emberharmony.backend.torch.flow import compilation
from emberharmony.backend.torch.flow.guards import needed_guards
from emberharmony.core import selection

activation = ops.relu
scale = 2.0


@pytest.fixture(autouse=True)
def quick_torch(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Makes PyTorch the backend, and torch.compile only trace."""
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="eager"))
    before = ops.get_backend()
    ops.set_backend("torch")
    yield
    ops.set_backend(before)


@pytest.fixture
def model() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.GELU(), nn.Dropout(0.5)).eval()


class Guards:
    """The kinds and names of the guards of what is compiled, those that are kept and those that are left out."""

    def __init__(self) -> None:
        self.kept: list[tuple[str, str]] = []
        self.dropped: list[tuple[str, str]] = []

    def judged(self, guards: Any) -> list[bool]:
        found = needed_guards(guards)
        for guard, needed in zip(guards, found, strict=True):
            (self.kept if needed else self.dropped).append((guard.guard_type, guard.name))
        return found


@pytest.fixture
def guards(monkeypatch: pytest.MonkeyPatch) -> Guards:
    found = Guards()
    monkeypatch.setattr("emberharmony.backend.torch.flow.compilation.needed_guards", found.judged)
    return found


def test_definitions_of_the_package_are_not_guarded(model: nn.Module, guards: Guards) -> None:
    ops.compile(lambda x: model(x))(ops.ones((2, 3)))
    assert len(guards.dropped) > len(guards.kept) / 2
    own = [(kind, name) for kind, name in guards.kept if "__import_emberharmony" in name]
    assert not [each for each in own if each[0] in ("CLOSURE_MATCH", "MODULE_MATCH", "CLASS_MATCH")]
    lacking = "NOT_PRESENT_IN_GENERIC_DICT"  # `__call__`, and private methods
    assert lacking in dict(guards.dropped)
    assert lacking not in dict(guards.kept)


def test_declarations_and_classes_of_the_package_are_not_guarded(guards: Guards) -> None:
    """Attention without a gradient converts its arguments by their declarations, and asks for ops of the backend."""
    ops.compile(lambda x: ops.dot_product_attention(x, x, x, is_causal=True))(ops.ones((1, 3, 2, 4)))
    assert any(".OPS[" in name for _, name in guards.dropped)
    assert any("torch_backend).__mro__[" in name for _, name in guards.dropped)
    own = [(kind, name) for kind, name in guards.kept if "OPS" in name or "torch_backend)." in name]
    assert not [each for each in own if "__defaults__" not in each[1]]


def test_a_range_of_a_length_has_few_guards(guards: Guards) -> None:
    counts = []
    for function in (lambda x: x + ops.arange(3), lambda x: x + ops.arange(0, 3)):
        ops.compile(function)(ops.ones(3))
        counts.append(len(guards.kept) + len(guards.dropped) - sum(counts))
    assert counts[0] < counts[1]


def test_tensors_and_attributes_of_layers_are_guarded(model: nn.Module, guards: Guards) -> None:
    ops.compile(lambda x: model(x))(ops.ones((2, 3)))
    names = [name for _, name in guards.kept]
    assert sum(name.endswith("._held[0]") for name in names) == 4
    assert any(name.endswith(".training") for name in names)
    assert any(name.endswith(".eps") for name in names)


@pytest.mark.parametrize("change", ["weight", "training", "eps", "shape", "dtype"])
def test_compiled_model_follows_its_changes(model: nn.Module, change: str) -> None:
    call, x = ops.compile(lambda x: model(x)), ops.ones((2, 3))
    assert ops.allclose(call(x), model(x))
    if change == "weight":
        model[0].weight.value = ops.ones((4, 3)) / 7
    elif change == "training":
        model.train()
        model[3].p = 0.0
    elif change == "eps":
        model[1].eps = 10.0
    elif change == "shape":
        x = ops.ones((5, 3))
    else:
        model.to(dtype="float64")
        x = ops.ones((2, 3), "float64")
    got = call(x)
    assert got.dtype == x.dtype
    assert ops.allclose(got, model(x))


class Mine(nn.Linear):
    """A layer of the user's with an attribute in its class."""

    factor = 2.0


def test_classes_of_the_user_are_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    layer, x = nn.Sequential(Mine(3, 4)), ops.ones((2, 3))
    call = ops.compile(lambda x: layer(x) * layer[0].factor)
    assert ops.allclose(call(x), layer(x) * 2.0)
    monkeypatch.setattr(Mine, "factor", 5.0)
    assert ops.allclose(call(x), layer(x) * 5.0)
    monkeypatch.setattr(Mine, "__call__", lambda self, x: x)
    assert ops.allclose(call(x), x * 5.0)


def test_a_layer_in_the_place_of_another_is_followed(model: nn.Module) -> None:
    call, x = ops.compile(lambda x: model(x)), ops.ones((2, 3))
    call(x)
    model[2] = nn.ReLU()
    assert ops.allclose(call(x), model(x))
    model[0].bias = None
    assert ops.allclose(call(x), model(x))


def test_only_the_class_says_how_an_object_is_called(model: nn.Module) -> None:
    call, x = ops.compile(lambda x: model(x)), ops.ones((2, 3))
    wanted = call(x)
    object.__setattr__(model[0], "__call__", lambda x: x)
    assert ops.allclose(model(x), wanted)
    assert ops.allclose(call(x), wanted)


def test_equal_numbers_are_followed_wherever_they_are(model: nn.Module) -> None:
    """Dynamo guards a number once for each time that it reads it."""
    call, x = ops.compile(lambda x: x * model[3].p + x * model[3].p), ops.ones((2, 3))
    for p in (0.5, 0.25):
        model[3].p = p
        assert call(x).tolist() == (x * 2 * p).tolist()


def test_another_function_in_a_variable_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    call, x = ops.compile(lambda x: activation(x) * scale), ops.array([-1.0, 2.0])
    assert call(x).tolist() == [0.0, 4.0]
    monkeypatch.setitem(globals(), "activation", ops.abs)
    assert call(x).tolist() == [2.0, 4.0]
    monkeypatch.setitem(globals(), "scale", 3.0)
    assert call(x).tolist() == [3.0, 6.0]


def test_defaults_of_the_users_functions_are_followed() -> None:
    def scaled(x: Any, factor: float = 2.0) -> Any:
        return x * factor

    call, x = ops.compile(lambda x: scaled(x)), ops.array([1.0])
    assert call(x).tolist() == [2.0]
    scaled.__defaults__ = (5.0,)
    assert call(x).tolist() == [5.0]


def test_default_float_is_followed() -> None:
    call = ops.compile(lambda x: ops.zeros((2,)) + ops.cast(x, "float16"))
    x, before = ops.array([1.0], "float32"), ops.default_float()
    assert call(x).dtype == torch.float32
    try:
        ops.set_default_float("float64")
        assert call(x).dtype == torch.float64
    finally:
        ops.set_default_float(before)


def test_backend_is_followed(model: nn.Module) -> None:
    call, x = ops.compile(lambda x: model(x)), [[1.0, 2.0, 3.0]]
    wanted = ops.to_numpy(call(ops.array(x)))
    with ops.use_backend("numpy"):
        assert abs(ops.to_numpy(call(ops.array(x))) - wanted).max() < 1e-6
    assert abs(ops.to_numpy(call(ops.array(x))) - wanted).max() < 1e-6


def test_a_class_of_the_package_that_a_caller_names_is_guarded() -> None:
    for kind in ("ID_MATCH", "EQUALS_MATCH", "TYPE_MATCH"):
        guard = SimpleNamespace(name="L['kind']", guard_type=kind, value=nn.Linear, has_value=True)
        assert needed_guards([guard]) == [True]
    guard = SimpleNamespace(name="L['kind']", guard_type="HASATTR", value=nn.Linear, has_value=True)
    assert needed_guards([guard]) == [False]


def test_tracing_in_a_block_imports_what_ops_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    imported: list[str] = []
    monkeypatch.setattr("emberharmony.core.dispatch.import_what_ops_reach", lambda: imported.append("all"))
    monkeypatch.setattr(compilation, "_Entries", type("_Entries", (), {}))
    with ops.use_backend("torch"):
        compilation._make_ops_traceable(selection.active())
        compilation._make_ops_traceable(selection.active())
    assert imported == ["all"]


def _call_layer(layer: nn.Module, x: Any) -> Any:
    return layer(x)


def _call_layer_in_parts(layer: nn.Module, x: Any) -> Any:
    torch._dynamo.graph_break()
    return layer(x)


@pytest.mark.parametrize("function", [_call_layer, _call_layer_in_parts])
def test_each_layer_of_a_gradient_has_its_own_parameters(function: Any) -> None:
    net = nn.Sequential(nn.LayerNorm(4), nn.LayerNorm(4), nn.LayerNorm(4))
    for factor, layer in enumerate(net, 2):
        layer.weight.value = layer.weight.value * factor
        layer.bias.value = layer.bias.value + factor
    x = ops.array([[1.0, 2.0, 3.0, 5.0], [3.0, 1.0, 0.0, 7.0]])

    def loss(call: Any) -> Any:
        return ops.sum(ops.square(call(net[2], call(net[1], call(net[0], x)))))

    compiled = ops.compile(function)
    expected, gradients = nn.value_and_grad(net, lambda: loss(function))()
    value, compiled_gradients = nn.value_and_grad(net, lambda: loss(compiled))()
    assert float(value) == pytest.approx(float(expected))
    for name, gradient in gradients.items():
        assert compiled_gradients[name].tolist() == pytest.approx(gradient.tolist(), rel=1e-4, abs=1e-4), name


def test_a_function_is_compiled_where_a_warning_of_the_compiler_is_an_error() -> None:
    layer, x = nn.LayerNorm(4), ops.array([[1.0, 2.0, 3.0, 5.0]])
    graphs = torch._dynamo.utils.counters["stats"]
    before = graphs["unique_graphs"]

    def loss(call: Any) -> Any:
        # Dynamo looks at the gradient of the layer's parameters, which are no leaves here; PyTorch warns of that.
        return ops.sum(ops.square(call(layer, call(layer, x))))

    compiled = ops.compile(_call_layer)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value, _ = nn.value_and_grad(layer, lambda: loss(compiled))()
    assert float(value) == pytest.approx(float(loss(_call_layer)))
    assert graphs["unique_graphs"] == before + 2


def _sum_of(net: nn.Module, x: Any) -> Any:
    return ops.compile(lambda: ops.sum(net(x)))


def test_functions_of_one_def_with_other_models_have_their_own_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = []

    def note(entry: Any) -> Any:
        codes.append(entry.__code__)
        return entry

    monkeypatch.setattr(compilation, "_compile_whole", note)
    net, other = nn.Linear(3, 2), nn.Linear(5, 4)
    for model, length in ((net, 3), (net, 3), (other, 5)):
        _sum_of(model, ops.ones((2, length)))()
    assert codes[0] is codes[1]
    assert codes[0] is not codes[2]


def test_what_is_compiled_does_not_keep_its_model() -> None:
    net = nn.Linear(3, 2)
    function = _sum_of(net, ops.ones((2, 3)))
    function()
    model = weakref.ref(net)
    del net, function
    gc.collect()
    assert model() is None


def test_a_generator_function_runs_as_it_is() -> None:
    def pairs(x: Any) -> Any:
        yield ops.add(x, 1.0)
        yield ops.multiply(x, 2.0)

    assert [y.tolist() for y in ops.compile(pairs)(ops.ones(2))] == [[2.0, 2.0], [2.0, 2.0]]


def test_an_error_of_what_is_compiled_stays_itself() -> None:
    compiled = ops.compile(lambda x, places: x[places])
    x = torch.arange(3.0)
    for _ in range(2):
        assert compiled(x, torch.tensor([2, 0])).tolist() == [2.0, 0.0]
    with pytest.raises(IndexError, match="out of bounds"):
        compiled(x, torch.tensor([2, 7]))
    assert compiled(x, torch.tensor([1, 1])).tolist() == [1.0, 1.0]
