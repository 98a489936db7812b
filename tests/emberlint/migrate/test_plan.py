"""Migration of a project from `ops/<backend>/` to `backend/<backend>/`: moved code, clashes, failed writes."""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from click.testing import CliRunner, Result

from emberharmony.backend.discovery import BUILTIN, is_installed
from emberlint.commands.parity import main
from emberlint.migrate import transaction
from tests.sampling import portion

INSTALLED = [name for name in BUILTIN if is_installed(name)]
LIBRARIES = {
    "numpy": ("Numpy", "import numpy as np", "np"),
    "torch": ("Torch", "import torch", "torch"),
    "mlx": ("MLX", "import mlx.core as mx", "mx"),
}
FRONTEND = '''"""The frontend."""

from importlib import import_module

_name = "numpy"


def set_backend(name):
    global _name
    _name = name


def _backend():
    return import_module(f"toy.backend.{_name}")


def sin(x):
    return _backend().sin(x)


def softplus(x):
    return _backend().softplus(x)


def total(x, axis=None):
    return _backend().TENSOR.total(x, axis)


def mean(x, axis=None):
    return _backend().TENSOR.mean(x, axis)
'''
HELPERS = '''"""Helpers."""

SCALE = 2.0  # twice


def twice(x):
    return x * SCALE
'''
MATH = '''"""Math."""

from __future__ import annotations

import functools

IMPORT

from .helpers import twice

__all__ = ["sin", "softplus"]


# Why it is checked.
def _checked(function):
    """Checks."""

    @functools.wraps(function)
    def inner(*args):
        return function(*args)  # an inner comment

    return inner


@_checked
def sin(x: LIB.SomeType) -> LIB.SomeType:
    """Sine."""
    # why it is so
    return LIB.sin(x)


def _plus(x):
    return x + 1


def softplus(x):
    return LIB.log(_plus(LIB.exp(twice(x))))
'''
TENSOR = '''IMPORT


class NAMETensorOps:
    """Tensor ops."""

    default = 0

    def _axis(self, axis):
        return self.default if axis is None else axis

    # sums up
    def total(self, x, axis=None):
        return LIB.sum(x, self._axis(axis))

    def mean(self, x, axis=None):
        return LIB.mean(x, self._axis(axis))


TENSOR = NAMETensorOps()
'''


def toy(root: Path, frontend: str = FRONTEND) -> Path:
    """Writes a project whose implementations are in `ops/<backend>/`."""
    files = {
        "toy/__init__.py": "",
        "toy/ops/__init__.py": frontend,
        "toy/backend/__init__.py": "",
        "toy/backend/torch/tensor_ops.py": "import torch\n\n\nclass TorchTensorOps:\n    def zeros(self, shape):\n"
        "        return torch.zeros(shape)\n",
        "tests/test_toy.py": "import toy.ops.mlx.tensor_ops as t\nfrom toy.ops.torch.math_ops import sin, softplus\n"
        'NAME = "toy.ops.numpy.math_ops"\n',
    }
    for name, (title, statement, library) in LIBRARIES.items():
        folder = f"toy/ops/{name}"
        files[f"{folder}/__init__.py"] = (
            f"from .math_ops import *\nfrom .tensor_ops import TENSOR, {title}TensorOps\nfrom . import helpers\n"
        )
        files[f"{folder}/helpers.py"] = HELPERS
        for path, text in (("math_ops", MATH), ("tensor_ops", TENSOR)):
            filled = text.replace("IMPORT", statement).replace("LIB", library).replace("NAME", title)
            files[f"{folder}/{path}.py"] = filled
        files[f"toy/backend/{name}/__init__.py"] = (
            f'"""The {name} backend."""\n\nfrom toy.ops.{name} import TENSOR as TENSOR\n'
            f"from toy.ops.{name}.math_ops import sin as sin\n"
            f"from toy.ops.{name}.math_ops import softplus as softplus\n"
        )
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def texts(root: Path) -> dict[str, str]:
    return {path.relative_to(root).as_posix(): path.read_text() for path in root.rglob("*.py")}


@contextmanager
def imported(root: Path) -> Iterator[ModuleType]:
    """Yields the freshly imported toy project, and removes it from `sys.modules` afterwards."""
    sys.path.insert(0, str(root))
    importlib.invalidate_caches()
    try:
        yield importlib.import_module("toy.ops")
    finally:
        sys.path.remove(str(root))
        for name in [name for name in sys.modules if name.partition(".")[0] == "toy"]:
            del sys.modules[name]


def numbers(root: Path) -> dict[str, list[object]]:
    host = np.arange(6, dtype=np.float32).reshape(2, 3)
    found: dict[str, list[object]] = {}
    with imported(root) as ops:
        for name in INSTALLED:
            ops.set_backend(name)
            library = importlib.import_module({"mlx": "mlx.core"}.get(name, name))
            make = {"numpy": "asarray", "torch": "from_numpy", "mlx": "array"}[name]
            x = getattr(library, make)(host)
            results = [ops.sin(x), ops.softplus(x), ops.total(x), ops.mean(x, 1)]
            found[name] = [np.asarray(result).tolist() for result in results]
    return found


def migrate(root: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, [str(root), "--migrate", *arguments])


@pytest.fixture(autouse=True)
def no_compiled_files(monkeypatch: pytest.MonkeyPatch) -> None:
    # Python compares the time of a source with that of its compiled file in seconds; the tests rewrite files faster.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)


def test_a_project_is_migrated_for_every_backend_and_gives_the_same_numbers(tmp_path: Path) -> None:
    root = toy(tmp_path)
    before = numbers(root)
    assert list(before) == INSTALLED
    for name in LIBRARIES:
        result = migrate(root, "--backend", name)
        assert result.exit_code == 0, result.output
        assert numbers(root) == before
    assert sorted(path.name for path in (root / "toy/ops").iterdir()) == ["__init__.py"]
    assert CliRunner().invoke(main, [str(root), "--check"]).exit_code == 0
    after = texts(root)
    math = after["toy/backend/torch/math_ops.py"]
    original = MATH.replace("IMPORT", "import torch").replace("LIB", "torch")
    assert math == original.replace("from .helpers", "from toy.backend.torch.helpers")
    assert after["tests/test_toy.py"] == (
        "import toy.backend.mlx.tensor_ops as t\nfrom toy.backend.torch.math_ops import sin, softplus\n"
        'NAME = "toy.backend.numpy.math_ops"\n'
    )
    tensor = after["toy/backend/torch/tensor_ops.py"]
    assert tensor.count("class TorchTensorOps") == 1
    assert tensor.index("def zeros") < tensor.index("# sums up\n    def total") < tensor.index("TENSOR = ")


def test_a_second_run_changes_nothing(tmp_path: Path) -> None:
    root = toy(tmp_path)
    migrate(root)
    after = texts(root)
    second = migrate(root)
    assert second.output == "numpy: nothing to move\ntorch: nothing to move\nmlx: nothing to move\n"
    assert texts(root) == after


def test_a_dry_run_prints_a_diff_and_writes_nothing(tmp_path: Path) -> None:
    root = toy(tmp_path)
    before = texts(root)
    result = migrate(root, "--backend", "torch", "--dry-run")
    assert result.exit_code == 0, result.output
    assert texts(root) == before
    assert "--- toy/ops/torch/math_ops.py\n+++ /dev/null\n" in result.output
    assert "--- /dev/null\n+++ toy/backend/torch/math_ops.py\n" in result.output
    assert "+from toy.backend.torch.helpers import twice" in result.output


OPERATIONS = [["softplus"], ["total"], ["sin", "mean"], ["softplus", "total", "sin", "mean"]]


@pytest.mark.parametrize("operations", portion(OPERATIONS, 2))
def test_single_operations_move_with_the_code_that_they_need(tmp_path: Path, operations: list[str]) -> None:
    root = toy(tmp_path)
    before = numbers(root)
    for name in operations:
        result = migrate(root, "--backend", "torch", "--operation", name)
        assert result.exit_code == 0, result.output
        assert numbers(root) == before
    after = texts(root)
    again = migrate(root, "--backend", "torch", *(word for name in operations for word in ("--operation", name)))
    assert again.output == "torch: nothing to move\n"
    assert texts(root) == after
    assert migrate(root).exit_code == 0
    assert numbers(root) == before
    assert sorted(path.name for path in (root / "toy/ops").iterdir()) == ["__init__.py"]


def test_a_moved_operation_takes_comments_decorators_helpers_and_imports(tmp_path: Path) -> None:
    root = toy(tmp_path)
    migrate(root, "--backend", "torch", "--operation", "sin")
    moved = (root / "toy/backend/torch/math_ops.py").read_text()
    for part in (
        "from __future__ import annotations\n",
        "import functools\n",
        "import torch\n",
        '__all__ = ["sin"]\n',
        "# Why it is checked.\ndef _checked(function):",
        "# an inner comment",
        "@_checked\ndef sin(x: torch.SomeType)",
        "    # why it is so\n",
    ):
        assert part in moved
    assert "twice" not in moved
    assert "softplus" not in moved
    left = (root / "toy/ops/torch/math_ops.py").read_text()
    assert "from toy.backend.torch.math_ops import sin\n" in left
    assert "functools" not in left
    assert "def softplus" in left


def test_a_clash_stops_with_both_bodies_and_writes_nothing(tmp_path: Path) -> None:
    root = toy(tmp_path)
    (root / "toy/backend/torch/math_ops.py").write_text("import torch\n\n\ndef sin(x):\n    return torch.sin(x) + 0\n")
    before = texts(root)
    result = migrate(root, "--backend", "torch")
    assert result.exit_code == 1
    assert "--- toy/ops/torch/math_ops.py\n@_checked\ndef sin(x: torch.SomeType)" in result.output
    assert "--- toy/backend/torch/math_ops.py\ndef sin(x):\n    return torch.sin(x) + 0" in result.output
    assert texts(root) == before


def test_a_clash_in_one_backend_stops_all(tmp_path: Path) -> None:
    root = toy(tmp_path)
    (root / "toy/backend/mlx/math_ops.py").write_text("def sin(x):\n    return x\n")
    before = texts(root)
    result = migrate(root)
    assert result.exit_code == 1
    assert result.output.startswith("nothing was changed:\n")
    assert texts(root) == before


def test_a_definition_in_another_file_of_the_backend_is_a_clash(tmp_path: Path) -> None:
    root = toy(tmp_path)
    (root / "toy/backend/torch/waves_ops.py").write_text("import torch\n\n\ndef sin(x):\n    return torch.cos(x)\n")
    result = migrate(root, "--backend", "torch")
    assert result.exit_code == 1
    assert "--- toy/backend/torch/waves_ops.py:4\ndef sin(x):" in result.output


def test_an_import_with_another_meaning_in_the_target_is_a_clash(tmp_path: Path) -> None:
    root = toy(tmp_path)
    (root / "toy/backend/torch/math_ops.py").write_text(
        "import numpy as torch\n\n\ndef cos(x):\n    return torch.cos(x)\n"
    )
    result = migrate(root, "--backend", "torch")
    assert result.exit_code == 1
    assert "'torch' is defined twice" in result.output


def test_the_same_definition_on_both_sides_is_moved_once(tmp_path: Path) -> None:
    root = toy(tmp_path)
    before = numbers(root)
    (root / "toy/backend/torch/helpers.py").write_text(HELPERS)
    result = migrate(root, "--backend", "torch")
    assert result.exit_code == 0, result.output
    assert (root / "toy/backend/torch/helpers.py").read_text() == HELPERS
    assert numbers(root) == before


def test_modules_of_a_computed_import_stay_as_lists_of_imports(tmp_path: Path) -> None:
    root = toy(tmp_path, FRONTEND.replace('f"toy.backend.{_name}"', 'f"toy.ops.{_name}"'))
    before = numbers(root)
    result = migrate(root)
    assert "note: toy/ops/torch/math_ops.py stays as a list of imports: toy/ops/__init__.py:14" in result.output
    assert "def " not in (root / "toy/ops/torch/math_ops.py").read_text()
    assert numbers(root) == before
    assert "nothing to move" in migrate(root, "--backend", "torch").output
    (root / "toy/ops/__init__.py").write_text(FRONTEND)
    migrate(root)
    assert sorted(path.name for path in (root / "toy/ops").iterdir()) == ["__init__.py"]
    assert numbers(root) == before


def test_an_unknown_operation_is_an_error_with_a_suggestion(tmp_path: Path) -> None:
    result = migrate(toy(tmp_path), "--backend", "torch", "--operation", "softpluss")
    assert result.exit_code == 2
    assert "did you mean 'softplus'?" in result.output


def test_a_failed_write_restores_all_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = toy(tmp_path)
    before = texts(root)
    put, done = transaction._replace_or_remove, []

    def failing(path: Path, content: bytes | None) -> None:
        done.append(path)
        if len(done) == 3:
            raise OSError("disk full")
        put(path, content)

    monkeypatch.setattr(transaction, "_replace_or_remove", failing)
    result = migrate(root, "--backend", "torch")
    assert isinstance(result.exception, OSError)
    assert texts(root) == before


def test_a_text_that_does_not_parse_is_never_written(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    with pytest.raises(SyntaxError):
        transaction.write_files(tmp_path, {"a.py": "y = 2\n", "b.py": "def\n"})
    assert (tmp_path / "a.py").read_text() == "x = 1\n"


def test_a_moved_file_keeps_its_line_ends(tmp_path: Path) -> None:
    root = toy(tmp_path)
    old = root / "toy/ops/torch/tensor_ops.py"
    old.write_bytes(old.read_bytes().replace(b"\n", b"\r\n"))
    (root / "toy/backend/torch/tensor_ops.py").unlink()
    assert migrate(root, "--backend", "torch").exit_code == 0
    moved = (root / "toy/backend/torch/tensor_ops.py").read_bytes()
    assert moved.count(b"\r\n") == moved.count(b"\n") > 0
    assert b"\r\n" not in (root / "toy/backend/torch/math_ops.py").read_bytes()


def with_frontend_import(root: Path, frontend: str = FRONTEND) -> Path:
    """Returns a project with a module of a backend that imports a helper from the frontend."""
    root = toy(root, frontend)
    (root / "toy/ops/common.py").write_text("def check(x):\n    return x\n")
    place = root / "toy/ops/torch/math_ops.py"
    place.write_text(f"{place.read_text()}\n\nfrom ..common import check\n\n\ndef checked(x):\n    return check(x)\n")
    return root


def test_an_import_of_the_frontend_that_makes_a_circle_stops_the_migration(tmp_path: Path) -> None:
    root = with_frontend_import(tmp_path, f"from toy.backend import torch\n{FRONTEND}")
    before = texts(root)
    result = migrate(root, "--backend", "torch")
    assert result.exit_code == 1
    assert "toy/ops/torch/math_ops.py imports toy.ops.common.check of the frontend" in result.output
    assert "move what both need to toy/backend/ first" in result.output
    assert texts(root) == before


def test_another_import_of_the_frontend_is_a_warning(tmp_path: Path) -> None:
    result = migrate(with_frontend_import(tmp_path), "--backend", "torch")
    assert result.exit_code == 0
    assert "warning: toy/ops/torch/math_ops.py imports toy.ops.common.check of the frontend" in result.output


def test_a_clash_names_the_option_that_goes_on_without_it(tmp_path: Path) -> None:
    root = toy(tmp_path)
    (root / "toy/backend/torch/math_ops.py").write_text("import torch\n\n\ndef sin(x):\n    return torch.sin(x) + 0\n")
    assert "`--operation NAME` moves other operations and leaves sin where it is" in migrate(root).output
