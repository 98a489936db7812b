"""`compare` of two models: PyTorch, MLX, ours and functions; which module is named, and which side."""

import contextlib
import importlib.util
import json
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import emberharmony
from emberharmony import nn, ops, testing
from emberharmony.cli.main import command
from emberharmony.errors import ArgumentError, ArgumentTypeError
from emberharmony.testing.models import libraries
from emberharmony.testing.models.adapters.ours import OurModels

torch: Any = pytest.importorskip("torch", reason="two models are compared with one of PyTorch")

WIDTH, HEADS, TOKENS = 8, 2, 5
X = np.random.default_rng(0).normal(size=(3, TOKENS, WIDTH)).astype("float32")


class TorchBlock(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = torch.nn.LayerNorm(WIDTH), torch.nn.LayerNorm(WIDTH)
        self.q, self.k, self.v, self.o = (torch.nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.fc1, self.fc2 = torch.nn.Linear(WIDTH, 2 * WIDTH), torch.nn.Linear(2 * WIDTH, WIDTH)
        self.scale = (WIDTH // HEADS) ** -0.5

    def forward(self, x: Any) -> Any:
        y = self.norm1(x)
        q, k, v = (f(y).view(*y.shape[:2], HEADS, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        scores = torch.softmax(q @ k.transpose(-1, -2) * self.scale, -1)
        x = x + self.o((scores @ v).transpose(1, 2).reshape(y.shape))
        return x + self.fc2(torch.nn.functional.gelu(self.fc1(self.norm2(x))))


class TorchNet(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(TorchBlock() for _ in range(2))
        self.norm, self.head = torch.nn.LayerNorm(WIDTH), torch.nn.Linear(WIDTH, 3)

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


class Block(nn.Module):
    def __init__(self) -> None:
        self.before, self.after = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.queries, self.keys, self.values, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        self.scale, self.half = (WIDTH // HEADS) ** -0.5, False

    def __call__(self, x: Any) -> Any:
        y = self.before(x)
        split = [ops.reshape(f(y), (*y.shape[:2], HEADS, -1)) for f in (self.queries, self.keys, self.values)]
        q, k, v = (ops.transpose(part, (0, 2, 1, 3)) for part in split)
        scores = ops.softmax(ops.multiply(ops.matmul(q, ops.swapaxes(k, -1, -2)), self.scale))
        x = ops.add(x, self.out(ops.reshape(ops.transpose(ops.matmul(scores, v), (0, 2, 1, 3)), y.shape)))
        wide = ops.gelu(self.up(self.after(x)), approximate=False)
        if self.half and ops.dtype(wide).name == "float32":
            wide = ops.cast(ops.cast(wide, "float16"), "float32")
        return ops.add(x, self.down(wide))


class Net(nn.Module):
    def __init__(self) -> None:
        self.blocks = [Block() for _ in range(2)]
        self.last, self.classify = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 3)

    def __call__(self, x: Any) -> Any:
        for block in self.blocks:
            x = block(x)
        return self.classify(self.last(x))


NAMES = {"layers": "blocks", "norm1": "before", "norm2": "after", "norm": "last", "head": "classify", "fc1": "up"}
NAMES |= {"fc2": "down", "q": "queries", "k": "keys", "v": "values", "o": "out"}


def made() -> tuple[Any, Any]:
    torch.manual_seed(0)
    theirs, ours = TorchNet(), Net()
    for parameter in theirs.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)

    def renamed(name: str) -> str:
        return ".".join(NAMES.get(part, part) for part in name.split("."))

    ours.load_state_dict({name: value.numpy() for name, value in theirs.state_dict().items()}, rename=renamed)
    return theirs, ours


@pytest.fixture
def pair() -> Any:
    with ops.use_backend("numpy"):
        yield made()


def test_a_right_pair_is_not_accused(backend: str) -> None:
    report = emberharmony.compare(*made(), X, stop="all")
    assert report.ok, report.table()
    assert report.sides == ("torch", "emberharmony")
    assert {row.path for row in report.rows} >= {"TorchNet.layers.1.o", "TorchNet.layers.0", "TorchNet"}
    assert {row.verdict for row in report.rows} <= {"equal", "rounding"}


def test_an_option_that_differs_is_named_on_the_side_where_it_is_odd(pair: Any) -> None:
    theirs, ours = pair
    ours.blocks[1].after.eps = 1e-6
    first = emberharmony.compare(theirs, ours, X).first
    assert (first.path, first.other, first.cause) == ("TorchNet.layers.1.norm2", "Net.blocks.1.after", "formula")
    assert (first.wrong, first.options) == ("emberharmony", {"eps": (1e-5, 1e-6)})
    ours.blocks[1].after.eps = 1e-5
    theirs.layers[0].norm1.eps = 1e-3
    first = emberharmony.compare(theirs, ours, X).first
    assert (first.path, first.wrong, first.options) == ("TorchNet.layers.0.norm1", "torch", {"eps": (1e-3, 1e-5)})


def test_the_code_of_a_module_between_its_parts_is_named(pair: Any) -> None:
    theirs, ours = pair
    ours.blocks[1].scale = 1.0
    report = emberharmony.compare(theirs, ours, X, stop="all")
    assert [(x.path, x.wrong) for x in report.divergences] == [("TorchNet.layers.1", "emberharmony")]
    assert "before it calls o" in report.first.message
    assert "other modules of its class" in report.first.judge


def test_a_formula_is_compared_with_that_of_the_modules_of_its_class(pair: Any, monkeypatch: Any) -> None:
    theirs, ours = pair
    whole = TorchBlock.forward

    def forward(self: Any, x: Any) -> Any:
        return whole(self, x) * (1.0 if self is theirs.layers[0] else 1.01)

    monkeypatch.setattr(TorchBlock, "forward", forward)
    report = emberharmony.compare(theirs, ours, X)
    assert (report.first.path, report.first.wrong) == ("TorchNet.layers.1", "torch")
    assert "another formula" in report.first.judge


def test_a_cast_to_half_precision_is_wrong_on_its_side(pair: Any) -> None:
    theirs, ours = pair
    ours.blocks[0].half = True
    first = emberharmony.compare(theirs, ours, X).first
    assert (first.path, first.cause, first.wrong) == ("TorchNet.layers.0", "precision", "emberharmony")


class Rounded(nn.Module):
    """Computes tanh in float32 for every dtype, as functions of Keras do on JAX."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def __call__(self, x: Any) -> Any:
        return np.tanh(x).astype(np.float32) * np.float32(self.factor)


def test_a_module_that_rounds_float64_is_judged_by_the_tolerance_of_its_dtype() -> None:
    with ops.use_backend("numpy"):
        for pair in ((Rounded(1.0), torch.nn.Tanh()), (torch.nn.Tanh(), Rounded(1.0))):
            report = emberharmony.compare(*pair, np.full((1, 3), 3, np.float32))
            assert report.ok, report.table()
        wrong = emberharmony.compare(torch.nn.Tanh(), Rounded(1.0 + 1e-4), X[0]).divergences
    assert [divergence.wrong for divergence in wrong] == ["emberharmony"]


def test_tensors_that_differ_are_named_with_what_differs(pair: Any) -> None:
    theirs, ours = pair
    with torch.no_grad():
        theirs.layers[0].q.weight.copy_(theirs.layers[0].q.weight.T.clone())
        theirs.layers[1].fc1.weight.copy_(theirs.layers[1].fc1.weight.half().float())
        first, second = theirs.layers[1].norm1, theirs.layers[1].norm2
        swapped = second.weight.clone()
        second.weight.copy_(first.weight)
        first.weight.copy_(swapped)
    report = emberharmony.compare(theirs, ours, X, stop="all")
    said = {x.path: (x.wrong, x.message.partition(";")[0]) for x in report.divergences}
    assert set(said) == {f"TorchNet.layers.{name}" for name in ("0.q", "1.fc1", "1.norm1", "1.norm2")}
    assert "is transposed" in said["TorchNet.layers.0.q"][1]
    assert said["TorchNet.layers.1.fc1"] == (
        "torch",
        "the tensor TorchNet.layers.1.fc1.weight is rounded to float16 on torch",
    )
    assert "is that of layers.1.norm2.weight" in said["TorchNet.layers.1.norm1"][1]


def test_without_an_original_no_side_is_named_where_nothing_tells(pair: Any) -> None:
    theirs, ours = pair
    theirs.norm.eps = ours.last.eps = 1e-4
    theirs.head.bias.data[0] += 1
    report = emberharmony.compare(theirs, ours, X, original="neither")
    assert (report.first.path, report.first.wrong) == ("TorchNet.head", "")
    assert emberharmony.compare(theirs, ours, X, original="second").first.wrong == "torch"
    with pytest.raises(ArgumentError, match="original must be"):
        emberharmony.compare(theirs, ours, X, original="third")


def test_modules_are_matched_by_hand_and_unknown_names_are_refused(pair: Any) -> None:
    theirs, ours = pair
    report = emberharmony.compare(theirs, ours, X, match={"layers.0.norm1": "blocks.0.after"})
    assert report.first.path == "TorchNet.layers.0.norm1"
    with pytest.raises(ArgumentError, match=r"no module 'layer\.0'"):
        emberharmony.compare(theirs, ours, X, match={"layer.0": "blocks.0"})
    with pytest.raises(ArgumentError, match="for two models"):
        emberharmony.compare(ops.tanh, X, match={"": ""})
    with pytest.raises(ArgumentTypeError, match="none of the libraries"):
        emberharmony.compare(theirs, print, X)


def test_an_error_of_one_side_is_a_difference(pair: Any) -> None:
    theirs, ours = pair
    ours.blocks[1].up = nn.Linear(WIDTH + 1, 2 * WIDTH)
    report = emberharmony.compare(theirs, ours, X, stop="all")
    assert report.divergences[-1].wrong == "emberharmony"
    assert any("raises an error" in note for note in report.notes)


def test_the_models_stay_as_they_are(pair: Any) -> None:
    theirs, ours = pair
    with torch.no_grad():
        before = [p.clone() for p in theirs.parameters()], [ops.to_numpy(p.value).copy() for p in ours.parameters()]
    calls = vars(Block)["__call__"]
    emberharmony.compare(theirs, ours, X)
    assert all(torch.equal(a, b) and b.dtype == a.dtype for a, b in zip(before[0], theirs.parameters(), strict=True))
    assert all(np.array_equal(a, ops.to_numpy(b.value)) for a, b in zip(before[1], ours.parameters(), strict=True))
    assert vars(Block)["__call__"] is calls
    assert not theirs.layers[0]._forward_hooks


def test_gradients_of_a_right_pair_agree(backend: str) -> None:
    report = emberharmony.compare(*made(), X, gradients=True)
    assert report.ok, report.table()


def test_a_gradient_that_is_cut_is_wrong_on_its_side(pair: Any, monkeypatch: Any) -> None:
    theirs, ours = pair
    whole = TorchBlock.forward

    def forward(self: Any, x: Any) -> Any:
        return whole(self, x) if self is theirs.layers[0] else whole(self, x) - x + x.detach()

    monkeypatch.setattr(TorchBlock, "forward", forward)
    first = emberharmony.compare(theirs, ours, X, gradients=True).first
    assert (first.path, first.cause, first.wrong) == ("TorchNet.layers.1", "gradient", "torch")
    assert "finite differences" in first.judge


def test_a_parameter_without_its_gradient_is_named(pair: Any, monkeypatch: Any) -> None:
    theirs, ours = pair
    cut = ours.blocks[0].up

    def call(self: Any, x: Any) -> Any:
        weight = ops.stop_gradient(self.weight) if self is cut else self.weight
        return ops.add(ops.matmul(x, ops.transpose(weight)), self.bias)

    monkeypatch.setattr(nn.Linear, "__call__", call)
    first = emberharmony.compare(theirs, ours, X, gradients=True).first
    assert (first.path, first.wrong) == ("TorchNet.layers.0.fc1", "emberharmony"), first.message
    assert "with respect to its weight" in first.message


def test_functions_are_models() -> None:
    head = torch.nn.Linear(WIDTH, 2)
    report = emberharmony.compare(lambda x: head(x) * 2, lambda x: head(x) * 2.001, X)
    assert (report.first.path, report.first.cause) == ("function", "formula")
    assert emberharmony.compare(lambda x: torch.tanh(x), lambda x: ops.tanh(x), X).ok


def test_a_library_can_be_registered() -> None:
    with pytest.raises(ArgumentError, match="top package"):
        testing.register_adapter("a.b", "a:B")


MODELS = """
import torch
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.LayerNorm(8, eps=EPS), torch.nn.Linear(8, 2))
"""


def test_the_command_compares_two_models_and_writes_a_page(tmp_path: Path) -> None:
    for name, eps in (("a", "1e-5"), ("b", "1e-3")):
        (tmp_path / f"{name}.py").write_text(MODELS.replace("EPS", eps))
    np.savez(tmp_path / "batch.npz", input=np.ones((2, 4), "float32") * np.arange(4, dtype="float32"))
    a, b = (f"{tmp_path}/{name}.py:net" for name in "ab")
    page = tmp_path / "page.html"
    given = ["compare", a, b, "--inputs", f"{tmp_path}/batch.npz"]
    result = CliRunner().invoke(command, [*given, "--json", "--html", str(page)])
    assert result.exit_code == 1, result.output
    report = json.loads(result.output)
    assert report["first"]["path"] == "Sequential.1"
    assert report["first"]["options"] == {"eps": [1e-5, 1e-3]}
    assert "Sequential.1" in page.read_text()
    assert CliRunner().invoke(command, [*given[:2], a, *given[3:]]).exit_code == 0
    assert CliRunner().invoke(command, [*given, "--match", "x"]).exit_code == 2
    for wrong, said in ((f"{tmp_path}/c.py:net", "there is no file"), (f"{tmp_path}/b.py:nte", "did you mean 'net'")):
        result = CliRunner().invoke(command, ["compare", a, wrong])
        assert (result.exit_code, said in result.output) == (2, True), result.output
    assert CliRunner().invoke(command, [*given[:4], f"{tmp_path}/none.npz"]).exit_code == 2


LAYERS = {
    "emberharmony": "from emberharmony import nn\nnets.append(nn.Tanh())",
    "torch": "import torch\nnets.append(torch.nn.Tanh())",
    "mlx": "import mlx.nn\nnets.append(mlx.nn.Tanh())",
    "keras": "import keras\nnets.append(keras.layers.Activation('tanh'))",
    "flax": "import flax.nnx, jax\nclass Flax(flax.nnx.Module):\n    def __call__(self, x): return jax.numpy.tanh(x)\n"
    "nets.append(Flax())",
    "equinox": "import equinox, jax\nnets.append(equinox.nn.Lambda(jax.numpy.tanh))",
}
"""For each library, what makes a model of it."""

NEEDS = {"keras": {"keras", "jax"}, "flax": {"flax", "jax"}, "equinox": {"equinox", "jax"}, "emberharmony": set()}
"""The libraries that a library of models imports itself; Keras runs on JAX here."""


@pytest.mark.parametrize(
    "pair",
    [
        ("emberharmony", "emberharmony"),
        ("torch", "emberharmony"),
        ("mlx", "emberharmony"),
        ("torch", "mlx"),
        ("keras", "emberharmony"),
        ("flax", "mlx"),
        ("equinox", "flax"),
        ("torch", "keras"),
    ],
    ids="-".join,
)
def test_libraries_of_models_are_imported_only_when_given(pair: tuple[str, str]) -> None:
    if missing := [name for name in pair if importlib.util.find_spec(name) is None]:
        pytest.skip(f"{missing} are not installed")
    code = "\n".join(
        [
            "import sys, numpy as np, emberharmony",
            "nets = []",
            *(LAYERS[name] for name in pair),
            "report = emberharmony.compare(*nets, np.ones((1, 3), 'float32'))",
            "assert report.ok, report.table()",
            "names = ('torch', 'mlx', 'jax', 'keras', 'flax', 'equinox', 'tensorflow', 'torch._dynamo')",
            "print(*[name for name in names if name in sys.modules])",
        ]
    )
    environment = {"EMBERHARMONY_BACKEND": "numpy", "KERAS_BACKEND": "jax", "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    wanted = set().union(*(NEEDS.get(name, {name}) for name in pair))
    assert set(done.stdout.split()) == wanted, done.stderr


def test_a_compiled_model_is_compared_module_by_module() -> None:
    def net(eps: float) -> Any:
        torch.manual_seed(0)
        return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.LayerNorm(8, eps=eps), torch.nn.Linear(8, 2))

    compiled = torch.compile(net(1e-2), backend="eager")
    first = emberharmony.compare(net(1e-5), compiled, X[..., :4]).first
    assert (first.path, first.wrong, first.options) == ("Sequential.1", "torch (2)", {"eps": (1e-5, 1e-2)})
    assert emberharmony.compare(net(1e-2), compiled, X[..., :4]).ok


def test_models_of_a_registered_library_are_compared(monkeypatch: Any) -> None:
    package = types.ModuleType("another_library")
    monkeypatch.setitem(sys.modules, "another_library", package)
    monkeypatch.setattr(libraries, "_ADAPTERS", dict(libraries._ADAPTERS))

    class Scale:
        __module__ = "another_library.layers"

        def __init__(self, factor: float) -> None:
            self.factor = factor

        def __call__(self, x: Any) -> Any:
            return x * self.factor

    class Scales(OurModels):
        name = "another"

        def modules(self, model: Any) -> dict[str, Any]:
            return {"": model}

        def own(self, module: Any) -> dict[str, Any]:
            return {}

        def keep_state(self, model: Any) -> Any:
            return contextlib.nullcontext()

    testing.register_adapter("another_library", Scales)
    with ops.use_backend("numpy"):
        assert emberharmony.compare(Scale(2.0), Scale(2.0), X).ok
        report = emberharmony.compare(Scale(2.0), Scale(2.5), X)
    assert (report.sides, report.first.options) == (("another (1)", "another (2)"), {"factor": (2.0, 2.5)})
