"""Codes are exchanged where that is tested; everywhere else the ops are ordinary functions."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from emberharmony.core.errors import ArgumentError
from emberharmony.core.op_code import code_swap
from emberharmony.core.op_code.code_swap import ENVIRONMENT, NEWEST, OLDEST, choose_dispatch

ROOT = Path(__file__).parents[3]


def interpreter(
    name: str = "cpython", version: tuple[int, int] = (3, 12), build: str = "(main)", gil: bool | None = None
) -> SimpleNamespace:
    """Returns a stand-in for the module `sys`; before Python 3.13 it cannot be asked for the lock."""
    made: dict[str, Any] = {
        "implementation": SimpleNamespace(name=name),
        "version_info": (*version, 1, "final", 0),
        "version": f"{version[0]}.{version[1]}.1 {build}",
    }
    if gil is not None:
        made["_is_gil_enabled"] = lambda: gil
    return SimpleNamespace(**made)


@pytest.fixture(autouse=True)
def without_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ENVIRONMENT, raising=False)


@pytest.mark.parametrize("version", [(3, minor) for minor in range(OLDEST[1], NEWEST[1] + 1)])
def test_a_tested_cpython_exchanges_codes(version: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_swap, "sys", interpreter(version=version, gil=True if version >= (3, 13) else None))
    assert choose_dispatch() == (
        "swap",
        f"Python is 3.{version[1]}, and exchanged codes are tested on CPython 3.11 to 3.13",
    )


@pytest.mark.parametrize(
    ("python", "reason"),
    [
        (interpreter(name="pypy", version=(3, 11)), "the interpreter is pypy"),
        (interpreter(version=(3, 14), gil=True), "Python is 3.14, and exchanged codes are tested on CPython 3.11 to"),
        (interpreter(version=(4, 0), gil=True), "Python is 4.0"),
        (interpreter(version=(3, 14), gil=False), "without the global interpreter lock"),
        (
            interpreter(version=(3, 13), build="experimental free-threading build (main)", gil=True),
            "without the global",
        ),
        (interpreter(version=(3, 14), build="free-threading build (main)", gil=False), "without the global"),
    ],
    ids=["pypy", "newer", "python-4", "gil-off", "free-threading-3.13-with-gil", "free-threading-3.14"],
)
def test_all_other_interpreters_get_ordinary_functions(
    python: SimpleNamespace, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(code_swap, "sys", python)
    kind, why = choose_dispatch()
    assert kind == "portable"
    assert reason in why


@pytest.mark.parametrize("kind", ["swap", "portable"])
@pytest.mark.parametrize("python", [interpreter(), interpreter(name="pypy")], ids=["cpython", "pypy"])
def test_the_environment_variable_comes_first(
    kind: str, python: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(code_swap, "sys", python)
    monkeypatch.setenv(ENVIRONMENT, kind)
    assert choose_dispatch() == (kind, "EMBERHARMONY_DISPATCH is set")


def test_an_empty_variable_counts_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_swap, "sys", interpreter())
    monkeypatch.setenv(ENVIRONMENT, "")
    assert choose_dispatch()[0] == "swap"


def test_another_value_of_the_variable_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT, "fast")
    with pytest.raises(ArgumentError, match="EMBERHARMONY_DISPATCH is 'fast'; expected 'swap' or 'portable'"):
        choose_dispatch()


def test_every_supported_python_is_tested_with_exchanged_codes() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    minors = [int(m) for m in re.findall(r"Python :: 3\.(\d+)", "\n".join(project["classifiers"]))]
    assert OLDEST <= (3, min(minors))
    assert (3, max(minors)) <= NEWEST


def test_a_process_that_exchanges_codes_never_loads_the_other_form() -> None:
    program = (
        "import sys\nfrom emberharmony import ops\nops.set_backend('numpy')\nops.sin([1.0])\n"
        "assert 'numpy_sin' in ops.sin.__code__.co_names\n"
        "assert 'emberharmony.core.op_code.portable' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, env={**os.environ, ENVIRONMENT: "swap"})
