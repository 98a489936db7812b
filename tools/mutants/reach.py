"""Knows which tests call which functions of the package, and which branches they take, from a run of each test file."""

import hashlib
import json
import tempfile
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from mutants.copies import Copy
from mutants.mutant import ROOT

FOLDER = ROOT / ".mutants" / "reached"
LEFT_OUT = ("tests/emberlint/", "tests/typing/", "tests/tools/")
"""Tests of other packages and of types."""

EVERYWHERE = ("tests/ops", "tests/conformance", "tests/test_errors.py")
"""Tests that call all parts of the package; other folders of tests mirror those of the package."""

TOGETHER = 6
"""So many test files run in one process."""

LONGEST = 1800.0


class Case(NamedTuple):
    """A test that calls a function.

    Attributes:
        test: its node id.
        seconds: how long it takes.
        calls: which functions of the package it calls; equal for tests of one file that call the same.
        breadth: how many functions of the package it calls.
    """

    test: str
    seconds: float
    calls: int
    breadth: int


class Reach:
    """The tests that call each function.

    Args:
        folder: where the records are kept, one for each test file.
    """

    def __init__(self, folder: Path = FOLDER) -> None:
        self.folder = folder
        self._cases: dict[str, list[Case]] | None = None

    def cases(self, module: str, function: str) -> list[Case]:
        """Returns the tests that call a function, or one that is defined in it."""
        if self._cases is None:
            self._cases = self._read_cases()
        return self._cases.get(f"{module}:{function}", [])

    def update_records(self, say: Callable[[str], None], paths: Sequence[str] = ("emberharmony",)) -> None:
        """Runs the test files that are new or have changed since their record was written.

        They run as `make tests` runs them: all cases would take several times as long, and add hardly a function.

        Args:
            say: receives a line for each part.
            paths: files and folders of the package, of which the tests that mirror them run.
        """
        test_prefixes = _test_prefixes(paths)
        stale_files = [
            name for name in _test_files() if name.startswith(test_prefixes) and not self._is_up_to_date(name)
        ]
        if not stale_files:
            return
        say(f"{len(stale_files)} test files are run once, to see which functions their tests call")
        self.folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="mutants-") as folder, Copy(Path(folder) / "0", "quick") as copy:
            for start in range(0, len(stale_files), TOGETHER):
                file_batch = stale_files[start : start + TOGETHER]
                answer = copy.send_request({"arguments": file_batch, "reached": str(self.folder)}, LONGEST)
                for name in file_batch:
                    self._keep_hashes(name, copy.folder)
                say(f"{start + len(file_batch):4}/{len(stale_files)} {answer['seconds']:6.1f} s  to {file_batch[-1]}")
        self._cases = None

    def taken_branches(self) -> dict[str, set[tuple[int, int]]]:
        """Returns by module the branches that tests have taken, as pairs of lines; of modules that are as they were."""
        branches_by_module: dict[str, set[tuple[int, int]]] = defaultdict(set)
        for name in _test_files():
            if self._is_up_to_date(name):
                record = json.loads(self._record_path(name).read_text(encoding="utf-8"))
                for module, (hashed, pairs) in record["branches"].items():
                    if (ROOT / module).exists() and hashed == _file_hash(module):
                        branches_by_module[module].update((first, last) for first, last in pairs)
        return branches_by_module

    def _is_up_to_date(self, name: str) -> bool:
        path = self._record_path(name)
        return path.exists() and json.loads(path.read_text(encoding="utf-8")).get("hash") == _file_hash(name)

    def _keep_hashes(self, name: str, root: Path) -> None:
        """Adds the hashes of the files that ran to the record of a test file, which is empty if no test of it ran."""
        path = self._record_path(name)
        empty_record: dict[str, Any] = {"functions": [], "sets": [], "tests": [], "branches": {}}
        content = json.loads(path.read_text(encoding="utf-8")) if path.exists() else empty_record
        branches = {module: (_file_hash(module, root), pairs) for module, pairs in content["branches"].items()}
        content["branches"] = branches
        path.write_text(json.dumps({"hash": _file_hash(name, root), **content}), encoding="utf-8")

    def _record_path(self, name: str) -> Path:
        return self.folder / f"{name.replace('/', '+')}.json"

    def _read_cases(self) -> dict[str, list[Case]]:
        cases: dict[str, list[Case]] = defaultdict(list)
        number_by_set: dict[tuple[str, int], int] = {}
        for name in _test_files():
            if not self._record_path(name).exists():
                continue
            record = json.loads(self._record_path(name).read_text(encoding="utf-8"))
            for test, seconds, place in record["tests"]:
                called_functions = [record["functions"][number] for number in record["sets"][place]]
                case = Case(
                    test, seconds, number_by_set.setdefault((name, place), len(number_by_set)), len(called_functions)
                )
                for function in called_functions:
                    cases[function].append(case)
        return cases


def _test_files() -> Sequence[str]:
    names = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py"))
    return [name for name in names if not name.startswith(LEFT_OUT)]


def _test_prefixes(paths: Sequence[str]) -> tuple[str, ...]:
    """Returns the beginnings of the names of the test files that mirror files and folders of the package."""
    parts = [PurePosixPath(path).with_suffix("").parts[1:2] for path in paths]
    return ("tests/",) if () in parts else (*EVERYWHERE, *(f"tests/{part}" for (part,) in dict.fromkeys(parts)))


def _file_hash(name: str, root: Path | None = None) -> str:
    return hashlib.sha256(((root or ROOT) / name).read_bytes()).hexdigest()[:20]
