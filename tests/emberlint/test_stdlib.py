"""The standard library has no tensors, so every finding there at default settings is a mistake.

`make lint-stdlib` checks all of it, including its tests.
"""

import sysconfig
from collections.abc import Iterable
from pathlib import Path

import pytest

from emberlint.config.settings import Settings
from emberlint.findings import Finding
from emberlint.run.engine import check
from emberlint.run.registry import all_rules
from emberlint.source.discover import discover

ROOT = Path(sysconfig.get_path("stdlib"))
# These modules use numbers, dates, paths, strings, containers, overloaded operators, and locals named like `np`.
TELLING = ["_pydecimal", "datetime", "fractions", "pathlib", "statistics", "random", "colorsys", "heapq", "bisect"]
TELLING += ["collections/__init__", "dataclasses", "difflib", "enum", "functools", "ipaddress", "operator", "typing"]
TELLING += ["_pydatetime", "turtle", "wave", "weakref", "ctypes/__init__", "email/message", "xml/dom/minidom", "ast"]


def found(paths: Iterable[Path], settings: Settings, jobs: int = 1) -> list[Finding]:
    files = {path: file for path, file in discover(paths, settings).items() if "site-packages/" not in path}
    assert files
    return check(files, settings, frozenset(all_rules()), jobs, cached=False).findings


def test_selected_modules_of_the_standard_library_are_clean() -> None:
    files = [file for name in TELLING if (file := ROOT / f"{name}.py").is_file()]
    assert len(files) > 20
    assert found(files, Settings(root=ROOT)) == []


@pytest.mark.slow
def test_the_whole_standard_library_is_clean() -> None:
    findings = found([ROOT], Settings(root=ROOT), jobs=2)
    # Some of the tests contain text that does not parse on purpose.
    assert [one for one in findings if not ("test" in one.path and one.code == "EMB000")] == []


@pytest.mark.slow
def test_the_tests_of_the_standard_library_are_clean_in_the_frontend_role() -> None:
    settings = Settings(root=ROOT, roles=(("**", "frontend"),))
    findings = found([ROOT / "test"], settings, jobs=2)
    wrong = [one for one in findings if "numpy" not in (ROOT / one.path).read_text(encoding="utf-8", errors="ignore")]
    assert [one for one in wrong if one.code != "EMB000"] == []
