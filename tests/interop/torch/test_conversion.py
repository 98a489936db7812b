"""Captured modules give the outputs and gradients of PyTorch on every backend."""

import copy
import functools
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import emberharmony
from emberharmony import nn, ops
from emberharmony.errors import (
    ArgumentError,
    ArgumentTypeError,
    CaptureError,
    DTypeError,
    ShapeError,
    UnsupportedOpError,
)

torch: Any = pytest.importorskip("torch")

from emberharmony.interop.torch.aten.table import TABLE
from tests.interop.torch import modules


def tensors(tree: Any) -> list[Any]:
    return [leaf for leaf in ops.tree_leaves(tree) if hasattr(leaf, "shape")]


@functools.cache
def expected(name: str) -> list[tuple[list[np.ndarray], dict[str, np.ndarray], dict[str, np.ndarray]]]:
    """Returns for two calls the outputs of a module, its gradients for the sum of their sines, and its buffers."""
    net, found = modules.made(name), []
    for _ in range(2):
        net.zero_grad()
        outputs = tensors(net(*modules.CASES[name][1]))
        sum(out.sin().sum() for out in outputs).backward()
        gradients = {
            n: np.zeros(p.shape) if p.grad is None else p.grad.numpy().copy() for n, p in net.named_parameters()
        }
        buffers = {n: b.numpy().copy() for n, b in net.named_buffers()}
        found.append(([out.detach().numpy() for out in outputs], gradients, buffers))
    return found


@pytest.mark.parametrize("name", modules.CASES)
def test_outputs_gradients_and_buffers_are_those_of_pytorch(backend: str, name: str) -> None:
    net = copy.deepcopy(modules.captured(name))
    given = [ops.array(arg.numpy()) for arg in modules.CASES[name][1]]

    def loss() -> Any:
        outputs = tensors(net(*given))
        return sum(ops.sum(ops.sin(out)) for out in outputs), outputs

    # The first call is made call by call, the second by one function.
    for outputs, gradients, buffers in expected(name):
        (_, ours), own = nn.value_and_grad(net, loss, has_aux=True)()
        for got, wanted in zip(ours, outputs, strict=True):
            assert ops.to_numpy(got).dtype == wanted.dtype
            np.testing.assert_allclose(ops.to_numpy(got), wanted, rtol=2e-5, atol=1e-5)
        assert set(own) == set(gradients)
        for key, gradient in gradients.items():
            atol = 1e-5 + 1e-4 * np.abs(gradient).max()
            np.testing.assert_allclose(ops.to_numpy(own[key]), gradient, rtol=0, atol=atol, err_msg=key)
        for key, cell in net.named_buffers():
            np.testing.assert_allclose(ops.to_numpy(cell), buffers[key], rtol=1e-5, atol=1e-6, err_msg=key)


def test_a_varying_axis_takes_other_lengths(backend: str) -> None:
    net, module, x = modules.captured("shapes"), modules.made("shapes"), modules.x(5, 4)
    np.testing.assert_allclose(ops.to_numpy(net(ops.array(x.numpy()))), module(x).detach().numpy(), atol=1e-6)


def test_names_and_values_go_back(backend: str) -> None:
    net = copy.deepcopy(modules.captured("norms"))
    module = modules.made("norms")
    assert set(net.state_dict()) == set(module.state_dict())
    for cell in net.parameters():
        cell.value = ops.add(cell, 1.0)
    changed = net.to_torch(modules.made("norms")).state_dict()
    for name, value in module.state_dict().items():
        shift = 1 if name in dict(module.named_parameters()) else 0
        assert torch.equal(changed[name], value + shift)


def test_tied_weights_are_one_parameter(backend: str) -> None:
    net = modules.captured("tied")
    assert [name for name, _ in net.named_parameters()] == ["e.weight"]
    assert set(net.state_dict()) == {"e.weight", "out.weight"}


def test_tools_find_the_layers(backend: str) -> None:
    net = copy.deepcopy(modules.captured("no_grad"))
    x = ops.array(modules.x(3, 4).numpy())
    before = ops.to_numpy(net(x))
    nn.add_lora(net, rank=2)
    np.testing.assert_allclose(ops.to_numpy(net(x)), before, atol=1e-6)
    trained = {name for name, _ in net.named_parameters(trainable=True)}
    assert trained == {"a.lora_a.weight", "a.lora_b.weight", "b.lora_a.weight", "b.lora_b.weight"}


def test_layers_of_pytorch_are_layers_here() -> None:
    net = modules.captured("layers")
    kinds = {name: type(part).__name__ for name, part in net.named_modules() if name}
    assert kinds == {
        "conv": "Conv1d",
        "same": "Conv1d",
        "table": "Embedding",
        "line": "Linear",
        "norm": "LayerNorm",
        "groups": "GroupNorm",
        "root": "RMSNorm",
    }
    assert repr(dict(net.members())["conv"]) == "Conv1d(4, 4, (3,), padding=(1,), groups=2)"
    assert {name for name, _ in net.named_parameters()} == {n for n, _ in modules.made("layers").named_parameters()}


def test_a_layer_that_is_called_with_other_options_is_none() -> None:
    net = modules.captured("other_options")
    assert [type(part).__name__ for name, part in net.named_modules() if name] == []
    assert net.check(["numpy"]).ok


def test_the_second_mode_may_call_what_the_first_did_not(backend: str) -> None:
    net, x = modules.copy_of("modes"), modules.x(2, 4)
    module = modules.made("modes")
    for training in (True, False):
        module.train(training), net.train(training)
        np.testing.assert_allclose(ops.to_numpy(net(x.numpy())), module(x).detach().numpy(), atol=1e-6)


@pytest.mark.parametrize("name", ["lora", "quantized"])
def test_layers_in_the_place_of_captured_ones_give_their_weights(backend: str, name: str) -> None:
    net, x, tokens = modules.copy_of("layers"), modules.x(2, 4, 32), torch.tensor([[1, 4], [0, 2]])
    if name == "lora":
        nn.add_lora(net, "line", rank=2)
        net.cell("line.bias").value = ops.add(net.cell("line.bias").value, 1.0)
        correction = dict(net.named_parameters())["line.lora_b.weight"]
        correction.value = ops.random.normal((32, 2), seed=1)
    else:
        nn.quantize(net, bits=8, group_size=32)
    module = net.to_torch(modules.made("layers"))
    expected = ops.to_numpy(net(x.numpy(), tokens.numpy()))
    np.testing.assert_allclose(module(x, tokens).detach().numpy(), expected, rtol=1e-4, atol=1e-5)


@pytest.fixture
def transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the class of the tests that of transformers."""
    monkeypatch.setitem(sys.modules, "transformers.pytorch_utils", modules)


@pytest.mark.parametrize("name", ["plain", "lora", "quantized"])
def test_transposed_linear_layers_are_found(backend: str, name: str, transformers: None, tmp_path: Path) -> None:
    module, x = torch.nn.Sequential(modules.Conv1D(32, 32), torch.nn.Tanh(), modules.Conv1D(3, 32)), modules.x(2, 4, 32)
    net = emberharmony.from_torch(module, x)
    assert [type(part).__name__ for _, part in net.named_modules()] == ["Captured", "Conv1D", "Conv1D"]
    assert net.check([backend]).ok
    if name == "lora":
        nn.add_lora(net, rank=2)
        dict(net.named_parameters())["0.lora_b.weight"].value = ops.random.normal((32, 2), seed=1)
    elif name == "quantized":
        assert list(nn.quantization_error(net, bits=8, group_size=32)) == ["0", "2"]
        nn.quantize(net, bits=8, group_size=32)
    expected = ops.to_numpy(net(x.numpy()))
    unchanged = module(x).detach().numpy()
    np.testing.assert_allclose(unchanged, expected, atol=10.0 if name == "lora" else 0.3)
    assert name == "plain" or not np.allclose(unchanged, expected, atol=1e-6)
    net.save(tmp_path)
    np.testing.assert_allclose(
        ops.to_numpy(emberharmony.load_program(tmp_path)(x.numpy())), expected, rtol=1e-4, atol=1e-5
    )
    net.to_torch(module)
    np.testing.assert_allclose(module(x).detach().numpy(), expected, rtol=1e-4, atol=1e-5)


def test_a_scaled_addmm_is_no_layer(transformers: None) -> None:
    class Scaled(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.line = modules.Conv1D(4, 4)

        def forward(self, x: Any) -> Any:
            return torch.addmm(self.line.bias, x, self.line.weight, alpha=2.0)

    net = emberharmony.from_torch(Scaled(), modules.x(2, 4))
    assert [type(part).__name__ for _, part in net.named_modules()] == ["Captured"]


def test_results_have_the_structure_of_the_model() -> None:
    net = modules.captured("scalars")
    found = net(ops.array(modules.x(4, 4).numpy()))
    assert found["n"] == 3
    assert isinstance(found["parts"], tuple)


def test_pytorch_compiles_a_module_as_a_whole(quick: str) -> None:
    if quick != "torch":
        pytest.skip("Dynamo follows PyTorch's tensors only")
    from torch._dynamo.utils import counters

    x, tokens = modules.x(1, 4), torch.tensor([[1], [3], [0]])
    expected = modules.captured("kinks")(x, tokens)
    for ran in (False, True):
        net = modules.copy_of("kinks")
        if ran:
            net(x, tokens)
        counters.clear()
        np.testing.assert_allclose(ops.compile(net)(x, tokens).detach(), expected.detach(), atol=1e-6)
        assert counters["stats"]["unique_graphs"] == 1
        assert not counters["graph_break"]


MOVED = """
import numpy as np, torch, emberharmony
from emberharmony import ops
from torch._dynamo.utils import counters
ops.set_backend("torch")
module, x = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3)).eval(), torch.ones(2, 4)
net = emberharmony.from_torch(module, x)
with ops.use_backend("numpy"):
    net(x.numpy())
compiled, graphs = ops.compile(net), []
for _ in range(3):
    counters.clear()
    np.testing.assert_allclose(compiled(x).detach(), module(x).detach(), atol=1e-6)
    graphs.append(counters["stats"]["unique_graphs"])
print(graphs)
"""
"""A program of its own, because the graphs that other tests have compiled decide what PyTorch compiles in parts."""


def test_parameters_from_another_backend_compile_as_a_whole() -> None:
    done = subprocess.run([sys.executable, "-c", MOVED], capture_output=True, text=True, check=False)
    # The first call moves the parameters, the second one is compiled, the third one finds the graph.
    assert done.stdout == "[0, 1, 0]\n", done.stderr


def test_transforms_differentiate_and_compile(backend: str) -> None:
    if backend == "torch":
        pytest.skip("torch.compile takes seconds")
    net, x = modules.captured("kinks"), ops.array(modules.x(1, 4).numpy())
    tokens = ops.array([[1], [3], [0]])
    plain = ops.to_numpy(net(x, tokens))
    np.testing.assert_allclose(ops.to_numpy(ops.compile(net)(x, tokens)), plain, atol=1e-6)
    _, tangent = ops.jvp(lambda x: net(x, tokens), (x,), (ops.ones_like(x),))
    step = (ops.to_numpy(net(ops.add(x, 1e-2), tokens)) - plain) / 1e-2
    np.testing.assert_allclose(ops.to_numpy(tangent), step, atol=1e-2)


def test_bad_arguments_are_typed_errors() -> None:
    net, x = modules.captured("in_place"), modules.x(3, 4).numpy()
    with pytest.raises(ShapeError, match=r"x must have the shape \(3, 4\)"):
        net(x[:2])
    with pytest.raises(DTypeError, match="float32"):
        net(x.astype("float64"))
    with pytest.raises(ArgumentError, match="'x' is missing"):
        net()
    with pytest.raises(ArgumentError, match="captured without the argument 'y'; its arguments are x"):
        net(x, y=x)
    with pytest.raises(ArgumentTypeError, match=r"torch\.nn\.Module"):
        emberharmony.from_torch(lambda x: x, modules.x(1))  # type: ignore[arg-type]


class LayerDrop(modules.Base):
    def forward(self, x: Any) -> Any:
        if torch.rand([]) < 0.5:
            return self.a(x)
        return self.b(x)


class Sign(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.sign()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * 2


class Straight(modules.Base):
    def forward(self, x: Any) -> Any:
        return Sign.apply(self.a(x))


class Lacking(modules.Base):
    def forward(self, x: Any) -> Any:
        return torch.geqrf(self.a(x))[0]


@pytest.mark.parametrize(
    ("kind", "error", "says"),
    [
        (LayerDrop, CaptureError, r"test_conversion\.py:\d+ \(if torch\.rand.*layerdrop"),
        (Straight, CaptureError, r"Sign, a torch\.autograd\.Function, at .*test_conversion\.py:\d+"),
        (Lacking, UnsupportedOpError, r"aten\.geqrf.*test_conversion\.py:\d+.*register_aten\("),
    ],
)
def test_what_cannot_be_captured_is_named_with_its_line(kind: Any, error: Any, says: str) -> None:
    with pytest.raises(error, match=says):
        emberharmony.from_torch(kind(), modules.x(3, 4))


def test_the_other_mode_is_captured_when_it_is_used() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.5)).eval()
    net = emberharmony.from_torch(module, modules.x(3, 4))
    x = ops.array(modules.x(3, 4).numpy())
    np.testing.assert_allclose(ops.to_numpy(net(x)), module(modules.x(3, 4)).detach().numpy(), atol=1e-6)
    assert "captured for eval)" in repr(net)
    dropped = ops.to_numpy(net.train()(x))
    assert not module.training
    assert (dropped == 0).any()
    assert "eval and train" in repr(net)


def test_an_error_names_the_operator_and_the_line() -> None:
    net = copy.deepcopy(modules.captured("recurrent"))
    net.cell("g.weight_ih_l0").value = ops.ones((2, 2))
    for _ in range(2):
        with pytest.raises(ShapeError) as caught:
            net(modules.x(3, 4).numpy())
        assert any("aten.gru.input" in note for note in caught.value.__notes__)


def test_an_operator_of_others_is_registered() -> None:
    @torch.library.custom_op("emberharmony_tests::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    twice.register_fake(torch.empty_like)
    module = modules.Base()
    module.forward = lambda x: torch.ops.emberharmony_tests.twice(module.a(x))
    emberharmony.register_aten("emberharmony_tests::twice", lambda x: ops.multiply(x, 2))
    x = modules.x(3, 4)
    found = emberharmony.from_torch(module, x)(x.numpy())
    np.testing.assert_allclose(ops.to_numpy(found), 2 * module.a(x).detach().numpy(), atol=1e-6)
    with pytest.raises(ArgumentError, match="namespace"):
        emberharmony.register_aten("twice", lambda x: x)


def test_check_agrees_and_names_the_first_call_that_differs(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "scalars"
    modules.captured("kinks")  # with the right table
    report = modules.captured(name).check([backend])
    assert report.ok, report
    assert "agrees" in repr(report)
    for target, wrong, says in (
        ("aten.max.dim", lambda x, dim, keepdim=False: (ops.max(x, dim) + 1e-2, ops.argmax(x, dim)), "result differs"),
        ("aten.hardtanh", lambda x, low, high: ops.clip(x, low, high), "gradient differs"),
    ):
        monkeypatch.setitem(TABLE, target, wrong)
        report = modules.copy_of("kinks").check([backend])
        assert not report.ok
        assert target in report.rows[0].first
        assert "modules.py:" in report.rows[0].first
        assert says in report.rows[0].first
        monkeypatch.undo()


def test_check_needs_the_module(tmp_path: Any) -> None:
    modules.captured("tied").save(tmp_path)
    with pytest.raises(ArgumentError, match="needs the module of PyTorch"):
        emberharmony.load_program(tmp_path).check()


def test_positions_from_the_end_are_those_of_pytorch(backend: str) -> None:
    array = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
    x, native = ops.convert_to_tensor(array), torch.tensor(array)
    for name, cases in {
        "narrow": [(0, 1, 1), (1, -2, 2), (-1, -3, 1), (2, 0, 4)],
        "select": [(1, -1), (-1, -4), (0, 1)],
        "slice": [(1, -2), (2, -3, -1), (-1, 0, -2, 2)],
    }.items():
        for case in cases:
            operator = getattr(torch.ops.aten, name)
            assert ops.to_numpy(TABLE[f"aten.{name}"](x, *case)).tolist() == operator(native, *case).tolist()
