"""`emberharmony capture`: what it writes runs, what differs ends with 1, what is no model with 2."""

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import emberharmony
from emberharmony import ops
from emberharmony.cli.main import command
from emberharmony.interop.torch.checking import Report

torch = pytest.importorskip("torch")

MODEL = """
import torch

def example():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU()).eval(), torch.ones(4, 3)

def alone():
    return torch.nn.Linear(3, 2)
"""


def run(folder: Path, name: str, *options: str) -> Result:
    path = folder / "model.py"
    path.write_text(MODEL)
    return CliRunner().invoke(command, ["capture", f"{path}:{name}", str(folder / "program"), *options])


def test_the_program_runs(tmp_path: Path) -> None:
    result = run(tmp_path, "example", "--backend", "numpy", "--dynamic")
    assert result.exit_code == 0, result.output
    assert "agrees" in result.output
    torch.manual_seed(0)
    module, x = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU()), torch.ones(5, 3)
    with ops.use_backend("numpy"):
        found = emberharmony.load_program(tmp_path / "program")(x.numpy())
    np.testing.assert_allclose(found, module(x).detach().numpy(), rtol=1e-6)


def test_training_is_captured(tmp_path: Path) -> None:
    assert run(tmp_path, "example", "--backend", "numpy", "--train").exit_code == 0
    assert list(emberharmony.load_program(tmp_path / "program").graphs) == ["train"]


def test_a_difference_ends_with_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Report, "ok", False)
    assert run(tmp_path, "example", "--backend", "numpy").exit_code == 1
    assert (tmp_path / "program" / "program.json").exists()


@pytest.mark.parametrize(
    ("name", "message"), [("alone", "expected (module, args)"), ("exampel", "did you mean"), ("", "takes FILE.py:NAME")]
)
def test_what_is_no_model_ends_with_2(tmp_path: Path, name: str, message: str) -> None:
    result = run(tmp_path, name)
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())
