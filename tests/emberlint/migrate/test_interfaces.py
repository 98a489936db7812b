"""Migration of a different kind of project: abstract interfaces, classes, and modules that use each other."""

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
from tests.sampling import portion

INSTALLED = [name for name in BUILTIN if is_installed(name)]
LIBRARIES = {"numpy": ("Numpy", "numpy"), "torch": ("Torch", "torch"), "mlx": ("MLX", "mlx.core")}
MAKE = {"numpy": "asarray", "torch": "as_tensor", "mlx": "array"}
FRONTEND = '''"""Frontend."""

from importlib import import_module

NAMES = {"numpy": "Numpy", "torch": "Torch", "mlx": "MLX"}
_current = "numpy"


def set_backend(name):
    global _current
    _current = name


def _ops(kind):
    module = import_module(IMPORTED)
    return getattr(module, NAMES[_current] + kind)()


def sin(x):
    return _ops("MathOps").sin(x)


def scaled(x, factor=2.0):
    return _ops("MathOps").scaled(x, factor)


def gram(x):
    return _ops("SolverOps").gram(x)


def total(x):
    return _ops("SolverOps").total(x)
'''
INTERFACES = """from abc import ABC, abstractmethod


class MathOps(ABC):
    @abstractmethod
    def sin(self, x): ...

    @abstractmethod
    def scaled(self, x, factor=2.0): ...


class SolverOps(ABC):
    @abstractmethod
    def gram(self, x): ...

    @abstractmethod
    def total(self, x): ...
"""
MATH = '''"""Math operations."""

from typing import TYPE_CHECKING, Any

import LIBRARY as lib

from ember.backend.NAME.tensor import convert
from ember.ops.interfaces import MathOps
from ember.ops.NAME import config

if TYPE_CHECKING:
    from ember.ops.NAME.solver_ops import PREFIXSolverOps

_CACHE: dict[str, Any] = {}


def _prepare(x: Any) -> Any:
    # Everything goes through here.
    return convert(x)


class PREFIXMathOps(MathOps):
    """Math."""

    def sin(self, x: Any) -> Any:
        """Sine."""
        x = _prepare(x)
        return lib.sin(x)  # radians

    def scaled(self, x: Any, factor: float = 2.0) -> Any:
        return lib.multiply(_prepare(x), factor * config.UNIT["scale"])
'''
SOLVER = '''"""Solvers."""

import LIBRARY as lib

from . import math_ops as m
from .math_ops import PREFIXMathOps, _prepare
from ..interfaces import SolverOps


class PREFIXSolverOps(SolverOps):
    def __init__(self):
        self._math = PREFIXMathOps()

    def gram(self, x):
        x = _prepare(x)
        return self._math.scaled(lib.matmul(x.T, x), 0.5)

    def total(self, x):
        return lib.sum(m._prepare(x))
'''


def ember(root: Path, imported: str) -> Path:
    """Writes the project; `imported` is the expression by which the frontend imports an implementation."""
    files = {
        "ember/__init__.py": "",
        "ember/ops/__init__.py": FRONTEND.replace("IMPORTED", imported),
        "ember/ops/interfaces.py": INTERFACES,
        "ember/backend/__init__.py": "",
    }
    for name, (prefix, library) in LIBRARIES.items():
        folder = f"ember/ops/{name}"
        files[f"ember/backend/{name}/__init__.py"] = f'"""The {name} backend."""\n'
        files[f"ember/backend/{name}/tensor.py"] = (
            f"import {library} as lib\n\n\ndef convert(x):\n    return lib.{MAKE[name]}(x)\n"
        )
        files[f"{folder}/__init__.py"] = (
            f"from ember.ops.{name}.math_ops import {prefix}MathOps\n"
            f"from ember.ops.{name}.solver_ops import {prefix}SolverOps\n"
        )
        files[f"{folder}/config.py"] = 'UNIT = {"scale": 1.0}  # the scale\n'
        for stem, text in (("math_ops", MATH), ("solver_ops", SOLVER)):
            filled = text.replace("LIBRARY", library).replace("NAME", name).replace("PREFIX", prefix)
            files[f"{folder}/{stem}.py"] = filled
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


@contextmanager
def frontend(root: Path) -> Iterator[ModuleType]:
    """Yields the freshly imported frontend of the project, and removes the project from `sys.modules` afterwards."""
    sys.path.insert(0, str(root))
    importlib.invalidate_caches()
    try:
        yield importlib.import_module("ember.ops")
    finally:
        sys.path.remove(str(root))
        for name in [name for name in sys.modules if name.partition(".")[0] == "ember"]:
            del sys.modules[name]


def numbers(root: Path) -> dict[str, list[object]]:
    found: dict[str, list[object]] = {}
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    with frontend(root) as ops:
        for name in INSTALLED:
            ops.set_backend(name)
            results = [ops.sin(x), ops.scaled(x), ops.gram(x), ops.total(x)]
            found[name] = [np.asarray(one).tolist() for one in results]
    return found


def migrate(root: Path, *arguments: str) -> Result:
    result = CliRunner().invoke(main, [str(root), "--migrate", *arguments])
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture(autouse=True)
def no_compiled_files(monkeypatch: pytest.MonkeyPatch) -> None:
    # Python compares the time of a source with that of its compiled file in seconds; the tests rewrite files faster.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)


PACKAGE, MODULE = 'f"ember.ops.{_current}"', 'f"ember.ops.{_current}.{kind[:-3].lower()}_ops"'


@pytest.mark.parametrize("imported", portion([PACKAGE, MODULE], 2))
def test_the_whole_project_is_migrated_and_gives_the_same_numbers(tmp_path: Path, imported: str) -> None:
    root = ember(tmp_path, imported)
    before = numbers(root)
    assert list(before) == INSTALLED
    for name in LIBRARIES:
        migrate(root, "--backend", name)
        assert numbers(root) == before
        assert migrate(root, "--backend", name).output == f"{name}: nothing to move\n"
    assert CliRunner().invoke(main, [str(root), "--check"]).exit_code == 0


@pytest.mark.parametrize(
    "imported, order",
    [
        (PACKAGE, ("total", "scaled")),
        pytest.param(PACKAGE, ("sin", "gram", "total"), marks=pytest.mark.slow),
        pytest.param(MODULE, ("gram", "sin"), marks=pytest.mark.slow),
    ],
)
def test_the_project_is_migrated_one_operation_at_a_time(tmp_path: Path, imported: str, order: tuple[str, ...]) -> None:
    root = ember(tmp_path, imported)
    before = numbers(root)
    for name in LIBRARIES:
        for operation in order:
            migrate(root, "--backend", name, "--operation", operation)
            assert numbers(root) == before
        again = migrate(root, "--backend", name, "--operation", order[-1])
        assert again.output == f"{name}: nothing to move\n"
    migrate(root)
    assert numbers(root) == before
    assert CliRunner().invoke(main, [str(root), "--check"]).exit_code == 0
    moved = (root / "ember/backend/torch/math_ops.py").read_text()
    assert "# Everything goes through here." in moved
    assert "return lib.sin(x)  # radians" in moved


@pytest.mark.sampled(2)
def test_an_operation_that_does_not_exist_is_an_error_with_a_suggestion(tmp_path: Path) -> None:
    root = ember(tmp_path, PACKAGE)
    for _ in range(2):
        result = CliRunner().invoke(main, [str(root), "--migrate", "--backend", "torch", "--operation", "scald"])
        assert result.exit_code == 2
        assert "no operation 'scald' to move; did you mean 'scaled'?" in result.output
        migrate(root)
