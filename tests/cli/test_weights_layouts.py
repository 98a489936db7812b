"""`emberharmony weights convert --layout`: models by file and by module, and what is refused."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from emberharmony import io, nn, ops
from emberharmony.cli.main import command

MODEL = """
from sizes_of_a_test import WIDTH
from emberharmony import nn

class Net(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Conv1d(3, WIDTH, 2), nn.Linear(WIDTH, WIDTH))

net = Net()
make = lambda: Net()
number = 3
needs = lambda width: width
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "model.py").write_text(MODEL, encoding="utf-8")
    (tmp_path / "sizes_of_a_test.py").write_text("WIDTH = 4", encoding="utf-8")
    net = nn.Sequential(nn.Conv1d(3, 4, 2), nn.Linear(4, 4))
    io.save(net.state_dict(), tmp_path / "a.safetensors", metadata={"epoch": "7"})
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in ("model", "sizes_of_a_test"):
        sys.modules.pop(name, None)


def run(*arguments: str) -> tuple[int, str]:
    path = list(sys.path)
    result = CliRunner().invoke(command, ["weights", "convert", *arguments])
    assert sys.path == path
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


@pytest.mark.parametrize("name", ["model.py:Net", "model.py:net", "model.py:make", "model:Net"])
def test_a_file_is_converted_by_a_model(folder: Path, name: str) -> None:
    status, output = run("a.safetensors", "b.safetensors", "--layout", "mlx", "--model", name, "--metadata", "by=me")
    assert (status, output) == (0, "b.safetensors\n4 tensors, 192 B\n")
    with io.open("b.safetensors") as file:
        assert file.info("layers.0.weight").shape == (4, 2, 3)
        assert file.metadata == {"format": "mlx", "epoch": "7", "by": "me", "layout": "mlx"}


def test_options_go_with_a_layout(folder: Path) -> None:
    first = ("a.safetensors", "b.safetensors", "--layout", "keras", "--model", "model.py:Net")
    status, output = run(*first, "--dtype", "float16", "--max-shard-size", "40", "--json")
    assert status == 0
    found = json.loads(output)
    assert (found["tensors"], found["nbytes"]) == (4, 96)
    assert len(found["files"]) > 2
    tensors = io.load("b.safetensors", backend="numpy")
    io.save({f"x.{name}": x for name, x in tensors.items()}, "c.safetensors")
    again = ("--model", "model.py:Net", "--source", "keras", "--rename", "^x.", "")
    assert run("c.safetensors", "d.safetensors", "--layout", "torch", *again)[0] == 0
    half = ops.cast(io.load("a.safetensors")["0.weight"], "float16")
    assert ops.array_equal(io.load("d.safetensors")["0.weight"], half)
    assert run("d.safetensors", "e.safetensors", "--layout", "torch")[0] == 0, "the tag says so, without a model"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--layout", "mlx"), "only the layers of a model say how"),
        (("--model", "model.py:Net"), "--model and --source are for --layout"),
        (("--layout", "mlx", "--match", "0.*"), "--match does not go with it"),
        (("--layout", "mlx", "--model", "model.py"), "--model takes FILE.py:NAME or MODULE:NAME, not 'model.py'"),
        (("--layout", "mlx", "--model", "none.py:Net"), "there is no file none.py"),
        (("--layout", "mlx", "--model", "no_such_module:Net"), "No module named 'no_such_module'"),
        (("--layout", "mlx", "--model", "model.py:mkae"), "model.py has no mkae; did you mean 'make'?"),
        (("--layout", "mlx", "--model", "model.py:number"), "number gives 3, expected a module of emberharmony.nn"),
        (("--layout", "mlx", "--model", "model.py:needs"), "needs() failed:"),
        (("--layout", "mlx", "--model", "model.py:Net", "--dtype", "int32"), "casts to a floating dtype, not 'int32'"),
        (
            ("--layout", "mlx", "--model", "model.py:Net", "--source", "keras"),
            "missing: layers.0.kernel of Conv1d at 0",
        ),
    ],
)
def test_what_does_not_fit_is_refused(folder: Path, arguments: tuple[str, ...], message: str) -> None:
    status, output = run("a.safetensors", "b.safetensors", *arguments)
    assert status == 2
    assert message in output
    assert not Path("b.safetensors").exists()
