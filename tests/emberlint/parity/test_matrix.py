"""The parity matrix: the status of each op on each backend, the layouts of projects, the formats, the command."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from emberlint.commands.parity import main
from emberlint.config.settings import Settings
from emberlint.parity import report
from emberlint.parity.layout import find_layout
from emberlint.parity.matrix import Matrix, Status, build_matrix
from emberlint.source.project import Project

ROOT = Path(__file__).resolve().parents[3]

DECLARED = '''
from lib.dispatch import alias, op

@op
def arcsin(x):
    """Declares a primitive."""
    ...

asin = alias("asin", arcsin)

@op
def sum(x, axis=None):
    """Declares another."""

@op
def eig(x): ...

@op
def prod(x, axis=None): ...

@op
def mean(x, axis=None):
    return sum(x, axis) / len(x)

@op
def softmax(x, axis=-1):
    return exp(x)

@op
def hidden(x): ...
'''
TORCH = """
import torch
from lib.backend.base import unsupported

def _made(native):
    def reduced(x, dim=None):
        return native(x, dim)
    return reduced

class TorchMathOps:
    arcsin = staticmethod(torch.arcsin)
    eig = unsupported("no kernel")
    softmax = staticmethod(lambda x, axis=-1: torch.softmax(x, axis))
    prod = staticmethod(_made(torch.prod))
    tensor_type = torch.Tensor

    @staticmethod
    def hidden(x):
        return x

    def sum(self, x, axis=None):
        return torch.sum(x, axis)
"""
NUMPY = """
import numpy as np

def helper(native):
    return native

class _Shared:
    def sum(self, x, axis=None):
        return np.sum(x, axis)

class NumpyMathOps(_Shared):
    arcsin = staticmethod(helper(np.arcsin))
    prod = staticmethod(np.prod)

    @staticmethod
    def eig(x):
        raise NotImplementedError("not yet")

    def mean(self, x, axis=0):
        return x
"""
FILES = {
    "lib/ops/__init__.py": "from lib.ops.math import arcsin as arcsin, sum, eig, prod, mean, softmax\n",
    "lib/ops/math.py": DECLARED,
    "lib/backend/base.py": "def unsupported(reason): ...\n",
    "lib/backend/torch/math_ops.py": TORCH,
    "lib/backend/numpy/math_ops.py": NUMPY,
}


def read(files: dict[str, str], tmp_path: Path) -> Matrix:
    project = Project(Settings(root=tmp_path), texts=files)
    layout = find_layout(project)
    assert layout is not None
    return build_matrix(project, layout)


def test_every_status_of_a_declared_op(tmp_path: Path) -> None:
    found = read(FILES, tmp_path)
    statuses = {row.name: tuple(str(row.cells[name].status) for name in ("numpy", "torch")) for row in found.rows}
    assert statuses == {
        "arcsin": ("ok", "ok"),
        "sum": ("ok", "ok"),
        "eig": ("unsupported", "unsupported"),
        "prod": ("ok", "signature differs"),
        "mean": ("signature differs", "composite"),
        "softmax": ("composite", "override"),
        "hidden": ("missing", "ok"),
    }
    by_name = {row.name: row for row in found.rows}
    assert by_name["eig"].cells["torch"].detail == "no kernel"
    assert by_name["eig"].cells["numpy"].detail == "not yet"
    differs = by_name["prod"].cells["torch"]
    assert (differs.declared, differs.defined) == ("(x, axis=None)", "(x, dim=None)")
    assert [row.name for row in found.rows if not row.exported] == ["hidden"]
    declaration = by_name["arcsin"].declaration
    assert declaration is not None
    assert declaration.aliases == ("asin",)
    assert found.missing_ops("numpy") == ["hidden"]
    assert found.coverage("numpy") == pytest.approx(4 / 7)


def test_implementations_in_the_frontend_are_misplaced(tmp_path: Path) -> None:
    files = {
        "toy/ops/__init__.py": "def sin(x):\n    return backend().sin(x)\ndef cos(x):\n    return backend().cos(x)\n",
        "toy/ops/torch/math_ops.py": "import torch\ndef sin(x):\n    return torch.sin(x)\n",
        "toy/backend/torch/__init__.py": "",
        "toy/backend/numpy/math_ops.py": "import numpy as np\ncos = np.cos\ndef sin(x):\n    return np.sin(x)\n",
    }
    found = read(files, tmp_path)
    assert found.backends == ("numpy", "torch")
    statuses = {row.name: {name: cell.status for name, cell in row.cells.items()} for row in found.rows}
    assert statuses["sin"] == {"numpy": Status.OK, "torch": Status.MISPLACED}
    assert statuses["cos"] == {"numpy": Status.OK, "torch": Status.MISSING}


@pytest.mark.parametrize("single", ["torch_backend.py", "torch.py"])
def test_a_backend_may_be_a_file_next_to_its_folder(tmp_path: Path, single: str) -> None:
    files = {
        "toy/ops/math_ops.py": "def sin(x): ...\ndef cos(x): ...\n",
        "toy/ops/__init__.py": "from toy.ops.math_ops import cos, sin\n",
        f"toy/backend/{single}": "import torch\ndef cos(x):\n    return torch.cos(x)\n",
        "toy/backend/torch/math_ops.py": "import torch\ndef sin(x):\n    return torch.sin(x)\n",
    }
    assert read(files, tmp_path).missing_ops("torch") == []


def test_a_category_may_be_a_folder_of_ops(tmp_path: Path) -> None:
    files = {
        "toy/ops/__init__.py": "",
        "toy/backend/torch/math_ops.py": "import torch\ndef sin(x):\n    return torch.sin(x)\n",
        "toy/backend/torch/tensor/ops/casting.py": "import torch\ndef cast(x, dtype):\n    return x.to(dtype)\n",
        "toy/backend/torch/tensor/helpers.py": "def helper(x): ...\n",
    }
    assert {row.name: row.category for row in read(files, tmp_path).rows} == {"sin": "math", "cast": "casting"}


def test_the_methods_of_an_abstract_class_are_declarations(tmp_path: Path) -> None:
    files = {
        "toy/ops/math_ops.py": "from abc import ABC, abstractmethod\nclass MathOps(ABC):\n"
        "    @abstractmethod\n    def add(self, x, y):\n        pass\n",
        "toy/backend/torch/math_ops.py": "class TorchMathOps:\n    def add(self, x, z): return x + z\n",
    }
    (row,) = read(files, tmp_path).rows
    assert row.cells["torch"].status is Status.DIFFERS
    assert row.cells["torch"].detail == "names differ: z for y"


def test_without_declarations_the_backends_are_compared_with_each_other(tmp_path: Path) -> None:
    files = {
        "toy/ops/__init__.py": "",
        "toy/backend/torch/math_ops.py": "def add(x, y): ...\ndef sin(x): ...\n",
        "toy/backend/mlx/math_ops.py": "def add(x, y): ...\n",
    }
    found = read(files, tmp_path)
    assert found.missing_ops("mlx") == ["sin"]
    assert found.missing_ops("torch") == []


def test_no_op_is_missing_in_this_project() -> None:
    project = Project(Settings(root=ROOT))
    layout = find_layout(project)
    assert layout is not None
    found = build_matrix(project, layout)
    assert len(found.rows) > 250
    assert [(row.name, backend, cell.detail) for row, backend, cell in found.gaps()] == []


def write(files: dict[str, str], root: Path) -> None:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


def test_every_format_contains_the_statuses(tmp_path: Path) -> None:
    found = read(FILES, tmp_path)
    data = json.loads(report.report_json(found))
    assert data["version"] == 1
    assert data["backends"]["numpy"]["missing"] == ["hidden"]
    by_name = {one["name"]: one for one in data["ops"]}
    assert by_name["prod"]["backends"]["torch"]["defined"] == "(x, dim=None)"
    assert by_name["mean"]["kind"] == "composite"
    assert "| `hidden` | MISSING | ok |" in report.report_markdown(found)
    page = report.report_html(found)
    assert 'class="gap" title="missing (x)">MISSING' in page
    assert "declared prod(x, axis=None), defined prod(x, dim=None)" in report.report_text(found)


def test_the_command_exits_with_1_if_an_op_is_missing(tmp_path: Path) -> None:
    write(FILES, tmp_path)
    run = CliRunner().invoke
    checked = run(main, [str(tmp_path), "--check", "--verbose"])
    assert checked.exit_code == 1, checked.output
    assert "hidden: missing (x)" in checked.output
    assert run(main, [str(tmp_path)]).exit_code == 0
    assert run(main, [str(tmp_path / "lib"), "--check", "--backend", "torch"]).exit_code == 1
    output = tmp_path / "report.json"
    written = run(main, [str(tmp_path), "--format", "json", "--output", str(output), "--category", "math"])
    assert (written.exit_code, written.output) == (0, "")
    assert len(json.loads(output.read_text())["ops"]) == 7
    nowhere = run(main, [str(tmp_path), "--output", str(tmp_path / "nowhere" / "report.md")])
    assert nowhere.exit_code == 2
    assert "cannot be written" in nowhere.output


@pytest.mark.parametrize("form", ["text", "md", "json", "html"])
@pytest.mark.parametrize("to_file", [False, True])
def test_every_format_shows_only_the_requested_backends_and_categories(
    tmp_path: Path, form: str, to_file: bool
) -> None:
    write({**FILES, "lib/ops/waves.py": "@op\ndef wave(x):\n    ...\n"}, tmp_path)
    output = ["--output", str(tmp_path / "report")] if to_file else []
    asked = ["--verbose", "--backend", "torch", "--category", "math", "--format", form, *output]
    result = CliRunner().invoke(main, [str(tmp_path), *asked])
    assert result.exit_code == 0
    text = (tmp_path / "report").read_text() if to_file else result.output
    assert to_file == (result.output == "")
    assert "torch" in text
    assert "softmax" in text
    assert "numpy" not in text
    assert "wave" not in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["--backend", "troch"], "did you mean 'torch'?"), (["--category", "maths"], "did you mean 'math'?")],
)
def test_an_unknown_word_is_an_error_with_a_suggestion(tmp_path: Path, arguments: list[str], said: str) -> None:
    write(FILES, tmp_path)
    result = CliRunner().invoke(main, [str(tmp_path), *arguments])
    assert result.exit_code == 2
    assert said in result.output


def test_a_folder_without_backends_is_an_error(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, [str(tmp_path)])
    assert result.exit_code == 2
    assert "found no folder 'ops'" in result.output


def test_a_class_in_a_module_does_not_hide_its_functions() -> None:
    texts = {
        "lib/ops/__init__.py": "def sin(x): ...\n\n\ndef mean(x): ...\n",
        "lib/backend/numpy/math_ops.py": "def sin(x):\n    return x\n\n\ndef mean(x):\n    return x\n\n\n"
        "class NumpyMathOps:\n    def sin(self, x):\n        return x\n",
        "lib/backend/torch/math_ops.py": "def sin(x):\n    return x\n\n\ndef mean(x):\n    return x\n",
    }
    project = Project(Settings(root=Path("/nowhere")), texts=texts)
    layout = find_layout(project)
    assert layout is not None
    found = build_matrix(project, layout)
    assert {cell.status for row in found.rows for cell in row.cells.values()} == {Status.OK}


def test_a_class_that_a_call_makes_may_hold_what_is_not_defined_elsewhere(tmp_path: Path) -> None:
    made = 'NumpyMathOps: Any = type("NumpyMathOps", (), made(np))\n'
    other = "TorchNames = made(torch)\n\nclass TorchMathOps:\n    pass\n"
    found = read(FILES | {"lib/backend/numpy/math_ops.py": made, "lib/backend/torch/math_ops.py": other}, tmp_path)
    assert (found.missing_ops("numpy"), found.coverage("numpy")) == ([], 1.0)
    assert "arcsin" in found.missing_ops("torch")
