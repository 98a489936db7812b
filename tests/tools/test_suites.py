"""The command that runs suites of other projects: its lists of known failures, and how they are compared."""

import csv
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).parents[2] / "tools" / "suites"


@pytest.fixture(scope="module")
def suites() -> ModuleType:
    """Returns the command as a module."""
    spec = importlib.util.spec_from_file_location("suites_command", FOLDER / "__main__.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", sorted((FOLDER / "known").glob("*.csv")), ids=lambda path: path.stem)
def test_each_known_failure_has_a_cause_and_is_listed_once(path: Path) -> None:
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert all(row["cause"] and row["test"] and row["backend"] in ("*", "numpy", "torch", "mlx", "jax") for row in rows)
    assert len({(row["backend"], row["test"]) for row in rows}) == len(rows)


def test_a_pattern_names_tests(suites: ModuleType) -> None:
    assert suites.matches_pattern("a.py::test_b[x-1]", "a.py::test_b[x-1]")
    assert suites.matches_pattern("a.py::test_b[x-1]", "a.py::test_b[*")
    assert not suites.matches_pattern("a.py::test_c", "a.py::test_b*")


def test_a_run_fails_for_unknown_failures_and_for_known_ones_that_pass(
    suites: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["suites", "scikit-learn", "mlx"])
    counts = {"passed": 5, "failed": 1, "skipped": 0}
    for failures, causes, code in (
        ({}, {}, 0),
        ({"t": "E"}, {"t": "a cause"}, 0),
        ({"t": "E"}, {}, 1),
        ({}, {"t": "a cause"}, 1),
        ({}, {"t": "a cause (sometimes)"}, 0),
    ):
        monkeypatch.setattr(suites, "run_suite", lambda _, failures=failures: counts | {"failures": failures})
        monkeypatch.setattr(suites, "known_causes", lambda *_, causes=causes: causes)
        with pytest.raises(SystemExit) as ended:
            suites.main()
        assert ended.value.code == code
    assert "known, but passes: t" in capsys.readouterr().out
