"""The port of modules, losses, optimizers and training loops of PyTorch: together or not at all."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from emberharmony import ops
from emberlint.cli import main
from tests.emberlint.port.porting import ported

SCRIPT = '''"""Trains a small classifier."""

import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, kernel_size=3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.hidden = nn.Sequential(nn.Linear(64, 16), nn.ReLU(inplace=True))
        self.head = nn.Linear(16, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.conv(x))), 2)
        return self.head(self.hidden(x.flatten(1)))


def train(images, labels, weights, epochs=2):
    torch.manual_seed(0)
    model = Net()
    model.load_state_dict({name: torch.tensor(value) for name, value in weights.items()})
    data = TensorDataset(torch.tensor(images), torch.tensor(labels))
    loader = DataLoader(data, batch_size=16, num_workers=0)
    optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for _ in range(epochs):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            logits = model(x)
            loss = F.cross_entropy(logits, y)  # of a batch
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
            losses.append((logits.argmax(dim=1) == y).sum().item())
    model.eval()
    with torch.no_grad():
        right = (model(torch.tensor(images)).argmax(dim=1) == torch.tensor(labels)).sum()
    return losses, int(right)
'''


def run(text: str, *arguments: Any) -> Any:
    space: dict[str, Any] = {"__name__": "script"}
    exec(compile(text, "script", "exec"), space)
    return space["train"](*arguments)


@pytest.mark.sampled(2)
def test_a_training_script_trains_to_the_same_losses() -> None:
    torch = pytest.importorskip("torch")
    done = ported(SCRIPT)
    total = len(done.ported) + len(done.remaining)
    assert total >= 15
    assert len(done.ported) / total >= 0.8
    assert [one.native for one in done.remaining] == ["torch.manual_seed"]
    assert ported(done.after).after == done.after
    draw = np.random.default_rng(0)
    images = draw.normal(size=(40, 1, 8, 8)).astype("float32")
    labels = np.arange(40) % 10
    space: dict[str, Any] = {}
    exec(compile(SCRIPT, "script", "exec"), space)
    torch.manual_seed(0)
    weights = {name: value.numpy() for name, value in space["Net"]().state_dict().items()}
    losses, right = run(SCRIPT, images, labels, weights)
    for backend in ("torch", "numpy"):
        with ops.use_backend(backend):
            mine, count = run(done.after, images, labels, weights)
        np.testing.assert_allclose(mine, losses, rtol=2e-5)
        assert count == right
    assert losses[-2] < losses[0]


HEAD = "import torch\nfrom torch import nn, optim\n\n\n"


@pytest.mark.parametrize(
    "before, after",
    [
        ("nn.Linear(3, 4, bias=False)", "nn.Linear(3, 4, bias=False)"),
        ("nn.Conv2d(3, 8, 3, 1, 1)", "nn.Conv2d(3, 8, 3, 1, 1)"),
        ("nn.Conv2d(3, 8, 3, dtype=torch.float64)", "nn.Conv2d(3, 8, 3, dtype=ops.float64)"),
        ("nn.MSELoss(None, None, 'sum')", None),
        ("nn.MSELoss(reduction='sum')", "nn.MSELoss(reduction='sum')"),
        ("nn.BatchNorm1d(3, 1e-3)", "nn.BatchNorm1d(3, 1e-3)"),
        ("nn.Linear(3, 4, device=d)", None),
        ("nn.ReLU(inplace=True)", None),
        ("nn.ReLU(inplace=False)", "nn.ReLU()"),
        ("nn.LeakyReLU(0.1, inplace=False)", "nn.LeakyReLU(0.1)"),
        ("nn.LeakyReLU(inplace=False, negative_slope=0.1)", "nn.LeakyReLU(negative_slope=0.1)"),
        ("nn.Sequential(nn.Linear(3, 4), nn.ReLU(True))", "nn.Sequential(nn.Linear(3, 4), nn.ReLU())"),
        ("nn.Sequential(nn.ReLU(True), nn.Linear(3, 4))", None),
        ("nn.Parameter(torch.zeros(3))", "nn.Parameter(ops.zeros((3,)))"),
        ("nn.Parameter(torch.zeros(3), requires_grad=False)", "nn.Parameter(ops.zeros((3,)), trainable=False)"),
        ("optim.AdamW(d, lr=1e-3, weight_decay=0.1)", "optim.AdamW(d, lr=1e-3, weight_decay=0.1)"),
        ("optim.Adam(d, 1e-3, fused=True)", None),
        ("optim.lr_scheduler.StepLR(d, 10)", None),
        ("torch.nn.Linear(3, 4)", "nn.Linear(3, 4)"),
        ("nn.utils.clip_grad_norm_(d, 1.0)", "optim.clip_by_global_norm(d, 1.0)"),
        ("nn.utils.clip_grad_norm_(d, 1.0, norm_type=1)", "optim.clip_by_global_norm(d, 1.0, norm_type=1)"),
        ("nn.utils.clip_grad_value_(d, 0.5)", "optim.clip_by_value(d, 0.5)"),
        ("nn.Linear(3, 4).to(device)", "nn.Linear(3, 4).to(device=device)"),
        ("nn.Linear(3, 4).to(torch.float64)", "nn.Linear(3, 4).to(dtype=ops.float64)"),
        ("nn.Linear(3, 4).cuda()", None),
        ("isinstance(d, nn.Linear)", "isinstance(d, nn.Linear)"),
        ("nn.functional.mse_loss(d, device)", "nn.losses.mse(d, device)"),
    ],
)  # fmt: skip
def test_layers_and_optimizers_are_rewritten(before: str, after: str | None) -> None:
    done = ported(f"{HEAD}def f(d, device):\n    return {before}\n")
    if after is None:
        assert f"    return {before}\n" in done.after
        assert done.keeps_modules
        assert not done.has_modules
    else:
        assert f"    return {after}\n" in done.after
        assert "torch." not in done.after
        assert re.search(r"from emberharmony import .*\b(nn|optim)\b", done.after)


def test_one_use_that_stays_keeps_all_others() -> None:
    done = ported(HEAD + "a = nn.Linear(3, 4)\nb = nn.FractionalMaxPool2d(2)\nc = torch.sin(torch.ones(3))\n")
    assert "a = nn.Linear(3, 4)\n" in done.after
    assert "from torch import nn" in done.after
    assert "c = ops.sin(ops.ones((3,)))\n" in done.after
    reasons = {one.native: one.reason for one in done.remaining}
    assert reasons["torch.nn.Linear"].startswith("`torch.nn.FractionalMaxPool2d` stays native, and")
    assert {one.advice for one in done.remaining} >= {"nn.Linear"}


MODEL = (
    HEAD
    + """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(3))
        self.layer: nn.Module = nn.Linear(3, 3)

    def forward(self, x):
        return self.layer(x)


class Twice(Net):
    def forward(self, x):
        return super().forward(x) + self.forward(x)
"""
)


def test_forward_becomes_call() -> None:
    after = ported(MODEL).after
    assert "forward" not in after
    assert "return super().__call__(x) + self(x)\n" in after
    assert "self.mean = nn.Buffer(ops.zeros((3,)))\n" in after
    assert "self.layer: nn.Module = nn.Linear(3, 3)\n" in after


def test_the_packages_keep_their_names_only_if_nothing_native_is_left_under_them() -> None:
    after = ported(HEAD + "a = nn.Linear(3, 4)\nb = nn.functional.grid_sample(1, 2)\n").after
    assert "a = emberharmony.nn.Linear(3, 4)\n" in after
    assert "import emberharmony\n" in after
    assert "from torch import nn" in after
    after = ported("import torch.nn as nn, torch\nx = nn.ReLU()\ny = torch.compile\n").after
    assert after.splitlines()[:2] == ["import torch", "from emberharmony import nn"]
    after = ported("from torch.nn import Linear, Module\n\n\nclass A(Module):\n    b = Linear(2, 3)\n").after
    assert "class A(nn.Module):\n    b = nn.Linear(2, 3)\n" in after
    assert "torch" not in after


LOOP = (
    HEAD
    + """def train(model, loss_fn, data, optimizer: optim.Optimizer, h=None):
    for x, y in data:
{}
"""
)


@pytest.mark.parametrize(
    "lines, expected",
    [
        (
            ["optimizer.zero_grad()", "loss = loss_fn(model(x), y)", "loss.backward()", "optimizer.step()"],
            ["optimizer.zero_grad()", "def compute_loss():", "    return loss_fn(model(x), y)", "",
             "loss = ops.backward(compute_loss, optimizer.parameters())", "optimizer.step()"],
        ),
        (
            ["x = x.to('cpu')", "out = model(x)", "loss = loss_fn(out, y)", "loss += 0.1 * model.penalty()",
             "optimizer.zero_grad()", "loss.backward()", "optimizer.step()"],
            ["x = x.to('cpu')", "def compute_loss():", "    out = model(x)", "    loss = loss_fn(out, y)",
             "    loss += 0.1 * model.penalty()", "    return loss", "", "optimizer.zero_grad()",
             "loss = ops.backward(compute_loss, optimizer.parameters())", "optimizer.step()"],
        ),
        (
            ["out = model(x)", "loss = loss_fn(out, y)", "loss.backward()", "optimizer.step()", "print(out)",
             "optimizer.zero_grad()"],
            ["kept = []", "def compute_loss():", "    out = model(x)", "    kept.append(ops.stop_gradient(out))",
             "    return loss_fn(out, y)", "", "loss = ops.backward(compute_loss, optimizer.parameters())",
             "out = kept[0]", "optimizer.step()", "print(out)", "optimizer.zero_grad()"],
        ),
        (
            ["loss = loss_fn(model(x), y)", "loss.backward()", "optimizer.step()", "optimizer.zero_grad()"],
            ["def compute_loss():", "    return loss_fn(model(x), y)", "",
             "loss = ops.backward(compute_loss, optimizer.parameters())", "optimizer.step()", "optimizer.zero_grad()"],
        ),
        (
            ["loss = loss_fn(model(x), y)", "loss.backward()", "optimizer.step()", "if h:",
             "    optimizer.zero_grad()"],
            ["def compute_loss():", "    return loss_fn(model(x), y)", "",
             "loss = ops.backward(compute_loss, optimizer.parameters())", "optimizer.step(clear=False)", "if h:",
             "    optimizer.zero_grad()"],
        ),
        (
            ["loss = loss_fn(model(x), y)", "loss.backward()", "nn.utils.clip_grad_norm_(model.parameters(), 1)",
             "optimizer.step()", "optimizer.zero_grad()"],
            ["def compute_loss():", "    return loss_fn(model(x), y)", "",
             "loss = ops.backward(compute_loss, [model.parameters(), optimizer.parameters()])",
             "optim.clip_by_global_norm(model.parameters(), 1)", "optimizer.step()", "optimizer.zero_grad()"],
        ),
    ],
)  # fmt: skip
def test_a_training_step_becomes_a_function_of_the_loss(lines: list[str], expected: list[str]) -> None:
    body = ["        " + one for one in lines]
    after = ported(LOOP.format("\n".join(body))).after
    mine = [one.removeprefix("        ") for one in after.splitlines()]
    assert mine[-len(expected) :] == expected, after
    assert "torch." not in after


@pytest.mark.parametrize(
    "lines, reason",
    [
        (["out = model(x)", "loss = loss_fn(out, y)", "loss.backward()", "optimizer.step()", "print(out)",
          "loss = h(out)", "loss.backward()"], "and there are others"),
        (["h = model(x, h)", "loss = loss_fn(h, y)", "loss.backward()", "optimizer.step()"],
         "`h` is assigned from itself"),
        (["loss = loss_fn(model(x), y)", "print(loss)", "loss.backward()", "optimizer.step()"],
         "the loss is used before"),
        (["loss = loss_fn(model(x), y)", "loss.backward(retain_graph=True)", "optimizer.step()"],
         "given a gradient or an"),
        (["loss = loss_fn(model(x), y)", "loss.backward()"], "no optimizer in the same function"),
        (["loss = loss_fn(model(x), y)", "loss.backward()", "optimizer.step()", "h.step()"],
         "several optimizers: h, optimizer"),
        (["out = model(x)", "if h:", "    loss = loss_fn(out, y)", "    loss.backward()", "    optimizer.step()"],
         "computed in another block"),
        (["loss_fn(model(x), y).backward()", "optimizer.step()"], "the loss has no name"),
        (["with h:", "    loss = loss_fn(model(x), y)", "loss.backward()", "optimizer.step()"], "no assignment"),
    ],
)  # fmt: skip
def test_a_training_step_of_another_form_keeps_the_modules(lines: list[str], reason: str) -> None:
    text = LOOP.format("\n".join("        " + one for one in lines))
    done = ported(text)
    assert any(one.native == ".backward" and reason in one.reason for one in done.remaining)
    assert not done.has_modules
    assert "optimizer: optim.Optimizer" in done.after


def test_the_gradients_of_a_module_are_cleared_by_a_function() -> None:
    done = ported(HEAD + "net = nn.Linear(2, 2)\nnet.zero_grad()\n")
    assert done.after.endswith("net = nn.Linear(2, 2)\nops.zero_grad(net)\n")
    assert not done.remaining


def test_a_scheduler_keeps_the_modules_for_its_own_reason() -> None:
    clip = "nn.utils.clip_grad_norm_(net.parameters(), 1)"
    lines = ("loss = g(x)", "a.zero_grad()", "loss.backward()", clip, "a.step()", "s.step()")
    head = HEAD + "net = nn.Linear(2, 2)\na = optim.SGD(net.parameters(), 0.1)\n"
    scheduler = "s = optim.lr_scheduler.StepLR(a, 30)\n"
    done = ported(head + scheduler + "".join(f"{line}\n" for line in lines))
    reasons = {one.native: one.reason for one in done.remaining}
    assert "epochs * len(loader)" in reasons["torch.optim.lr_scheduler.StepLR"]
    assert not done.has_modules
    others = {one for native, one in reasons.items() if native != "torch.optim.lr_scheduler.StepLR"}
    assert all(one.startswith("`torch.optim.lr_scheduler.StepLR` stays native, and") for one in others)
    assert len(reasons) == 5
    by_hand = ported(head + "".join(f"{line}\n" for line in lines[:-1])).after
    assert "loss = ops.backward(compute_loss, a.parameters())\n" in by_hand


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("x", "x, approximate=False"),
        ("input=x", "x=x, approximate=False"),
        ("x, approximate='none'", "x, approximate=False"),
        ("x, approximate='tanh'", "x, approximate=True"),
        ("x, approximate=mode", None),
    ],
)
def test_gelu_becomes_that_of_the_same_formula(arguments: str, expected: str | None) -> None:
    done = ported(f"import torch.nn.functional as F\n\n\ndef f(x, mode):\n    return F.gelu({arguments})\n")
    if expected is None:
        assert [one.reason for one in done.remaining] == ["approximate= is not written as 'none' or 'tanh'"]
        return
    assert f"    return ops.gelu({expected})\n" in done.after
    torch = pytest.importorskip("torch")
    x = torch.linspace(-3.0, 3.0, 13)
    with ops.use_backend("torch"):
        mine = eval(f"ops.gelu({expected})", {"ops": ops, "x": x})
    theirs = eval(f"F.gelu({arguments})", {"F": torch.nn.functional, "x": x})
    assert torch.allclose(mine, theirs, rtol=1e-5, atol=1e-6)
    other = torch.nn.functional.gelu(x, approximate="tanh" if "False" in expected else "none")
    assert not torch.allclose(mine, other, rtol=1e-5, atol=1e-6)


def test_with_several_optimizers_the_gradients_are_cleared_just_before() -> None:
    head = HEAD + "a = optim.SGD(nn.Linear(2, 2).parameters(), 0.1)\nb = optim.SGD(nn.Linear(2, 2).parameters(), 0.1)\n"
    lines = ("loss = g(x)", "loss.backward()", "a.step()")
    body = "\n\ndef f(x, g):\n" + "".join(f"    {one}\n" for one in lines)
    (use, *_) = [one for one in ported(f"{head}{body}    a.zero_grad()\n").remaining if one.native == ".backward"]
    assert "a.zero_grad() does not come before it" in use.reason
    assert not ported(head + body.replace("    loss = g", "    a.zero_grad()\n    loss = g")).keeps_modules


def test_requires_grad_of_parameters_is_trainable() -> None:
    text = HEAD + "net = nn.Linear(3, 4)\nfor p in net.parameters():\n    p.requires_grad = False\n"
    after = ported(text + "n = sum(p.requires_grad for name, p in net.named_parameters())\n").after
    assert "    p.trainable = False\n" in after
    assert "n = sum(p.trainable for" in after
    assert ported(text + "x = torch.ones(3)\nx.requires_grad = True\n").keeps_modules


@pytest.mark.parametrize(
    "before, after",
    [
        ("out.view(-1, 10)", "ops.reshape(out, (-1, 10))"),
        ("out.view(x.size(0), -1)", "ops.reshape(out, (x.shape[0], -1))"),
        ("out.sum(dim=-1)", "ops.sum(out, axis=-1)"),
        ("sum(p.numel() for p in net.parameters())", "sum(ops.size(p) for p in net.parameters())"),
        ("out.view(torch.int32)", None),
        ("out.size()", None),
    ],
)
def test_arguments_tell_the_methods_of_pytorch(before: str, after: str | None) -> None:
    text = ported(f"import torch\n\n\ndef f(net, x):\n    out = net(x)\n    return {before}\n").after
    assert f"    return {before if after is None else after}\n" in text


def test_modules_of_a_project_are_ported_together(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.emberlint]\n")
    (tmp_path / "model.py").write_text(HEAD + "net = nn.Linear(3, 4)\n")
    (tmp_path / "other.py").write_text(HEAD + "net = nn.FractionalMaxPool2d(2)\n")
    runner = CliRunner()
    output = runner.invoke(main, ["port", "--check", str(tmp_path)]).output
    assert "torch.nn.Linear: modules stay native in other.py, and" in output
    output = runner.invoke(main, ["port", "--check", str(tmp_path / "model.py")]).output
    assert "1 of 1 native uses ported" in output


def test_dtypes_that_a_file_keeps_for_native_calls_of_another_stay(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.emberlint]\n")
    kept = "import torch\n\nFLOAT = torch.float64\nzero = torch.zeros(3, dtype=torch.float64)\n"
    (tmp_path / "settings.py").write_text(kept)
    native = (
        "import torch\nfrom settings import FLOAT\n\n\ndef f(x):\n    return torch.linalg.eigh(x.to(dtype=FLOAT))\n"
    )
    (tmp_path / "other.py").write_text(native)
    runner = CliRunner()
    output = runner.invoke(main, ["port", str(tmp_path)]).output
    assert "settings.py:4: torch.float64: a native call that is left may be given this dtype" in output
    after = (tmp_path / "settings.py").read_text()
    assert "FLOAT = torch.float64\nzero = ops.zeros((3,), dtype=ops.float64)\n" in after
    assert runner.invoke(main, ["port", "--check", str(tmp_path)]).exit_code == 0
    (tmp_path / "other.py").write_text("FLOAT = 1\n")
    runner.invoke(main, ["port", str(tmp_path)])
    assert "FLOAT = ops.float64\n" in (tmp_path / "settings.py").read_text()


def test_data_sets_that_are_used_otherwise_stay() -> None:
    head = "from torch.utils.data import DataLoader, TensorDataset\n\n"
    text = head + "data = TensorDataset({})\nloader = DataLoader(data, {})\n"
    after = ported(text.format("a, b", "batch_size=2, shuffle=True")).after
    assert "data = (a, b)\nloader = nn.data.batches(*data, batch_size=2, shuffle=True)\n" in after
    assert "batches(*data, batch_size=8, shuffle=False)" in ported(text.format("a, b", "8")).after
    for given, options in (("a", "8"), ("a, b", "8, sampler=s"), ("a, b", "8)\nprint(len(data)")):
        assert ported(text.format(given, options)).keeps_modules
    lines = "data, \n    batch_size=8,\n    pin_memory=True,\n    num_workers=2, shuffle=True,\n"
    after = ported(text.format("a, b", "").replace("data, )", lines + ")")).after
    assert "    batch_size=8,\n    shuffle=True,\n" in after
