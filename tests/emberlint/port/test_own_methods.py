"""`emberlint port` of methods whose names classes of the project share with tensors of PyTorch."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from emberlint.cli import main
from emberlint.port.own_methods import own_methods

OPERATOR = """import torch


class LinearOperator:
    def dim(self):
        return 2

    def detach(self):
        return self

    def expand(self, one, two):
        return self


def make(x):
    return LinearOperator()
"""
USE = """import torch
from .operator import LinearOperator, make


def f(a: LinearOperator, y, z: torch.Tensor):
    b = make(z)
    return {}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns the folder of a package with a class that has methods of such names, and makes its parent current."""
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'library'\n")
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "__init__.py").write_text("")
    (tmp_path / "library" / "broken.py").write_text("class C:\n    def dim(self\n")
    (tmp_path / "library" / "operator.py").write_text(OPERATOR)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "library"


def ported(project: Path, returned: str, *paths: str) -> tuple[str, str]:
    """Returns what the port of a file makes of an expression, and the report."""
    (project / "use.py").write_text(USE.format(returned))
    report = CliRunner().invoke(main, ["port", *(paths or ("library/use.py",))]).output
    return (project / "use.py").read_text().rpartition("    return ")[2].rstrip("\n"), report


@pytest.mark.parametrize(
    "call", ["a.dim()", "b.detach()", "make(z).dim()", "LinearOperator().detach()", "a.detach().dim()"]
)
def test_a_method_of_a_class_of_another_file_is_left(project: Path, call: str) -> None:
    returned, report = ported(project, call)
    assert returned == call
    assert ".dim" not in report
    assert ".detach" not in report


def test_a_class_of_a_file_without_tensors_tells_its_instances_too(project: Path) -> None:
    plain = OPERATOR.replace("import torch\n", "")
    (project / "operator.py").write_text(plain)
    returned, report = ported(project, "a.dim(), LinearOperator().detach(), z.dim(), y.dim()")
    assert returned == "a.dim(), LinearOperator().detach(), ops.ndim(z), y.dim()"
    assert report.count("may be an object of this project") == 1
    (project / "use.py").write_text(USE.format("a.dim(), LinearOperator().detach(), z.dim()"))
    found = CliRunner().invoke(main, ["check", "--select", "EMB109", "library"]).output
    assert found.count("EMB109") == 1, found


@pytest.mark.parametrize("paths", [("library/use.py",), ("library",)])
def test_a_method_that_a_class_of_the_project_has_is_listed_where_the_receiver_is_unknown(
    project: Path, paths: tuple[str, ...]
) -> None:
    returned, report = ported(project, "y.lo.detach()", *paths)
    assert returned == "y.lo.detach()"
    assert ".detach: `y.lo` may be an object of this project, which has such a method" in report
    assert "(annotate it, or write ops.stop_gradient)" in report
    before = (project / "use.py").read_text()
    assert "import torch" not in before
    CliRunner().invoke(main, ["port", *paths])
    assert (project / "use.py").read_text() == before


def test_a_receiver_that_only_a_convention_takes_for_a_tensor_is_listed(project: Path) -> None:
    returned, report = ported(project, "torch.sin(y), y.dim()")
    assert returned == "ops.sin(y), y.dim()"
    assert ".dim: `y` may be an object of this project, which has such a method" in report


@pytest.mark.parametrize("method, after", [("matmul", "root.matmul(y)"), ("exp", "ops.exp(root)")])
def test_a_name_that_one_branch_binds_to_something_unknown_is_listed(project: Path, method: str, after: str) -> None:
    (project / "operator.py").write_text(
        OPERATOR + "\n\nclass Dense(LinearOperator):\n    def matmul(self, other):\n        return self\n"
    )
    call = f"root.{method}({'y' if method == 'matmul' else ''})"
    branches = "    if y:\n        root = torch.sin(z)\n    else:\n        root = y.lo.root\n"
    (project / "use.py").write_text(f"import torch\n\n\ndef f(y, z: torch.Tensor):\n{branches}    return {call}\n")
    CliRunner().invoke(main, ["port", "library"])
    assert (project / "use.py").read_text().endswith(f"    return {after}\n")


@pytest.mark.parametrize(
    "before, after",
    [
        ("z.detach()", "ops.stop_gradient(z)"),
        ("torch.sin(z).dim()", "ops.ndim(ops.sin(z))"),
        ("y.lo.unsqueeze(0)", "ops.expand_dims(y.lo, 0)"),
        ("y.lo.expand(1, 2, 3)", "ops.broadcast_to(y.lo, (1, 2, 3))"),
    ],
)
def test_a_tensor_and_other_methods_are_ported(project: Path, before: str, after: str) -> None:
    assert ported(project, before)[0] == after


def test_the_methods_of_a_package_are_read_from_all_of_its_files(project: Path) -> None:
    found = own_methods([project / "__init__.py"], frozenset({"dim", "cpu"}))
    assert {name: [one.lineno for one in some] for name, some in found.items()} == {"dim": [5]}
    assert own_methods([project / "none.txt"], frozenset({"dim"})) == {}
