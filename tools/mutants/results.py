"""The results of trials, which a file keeps between runs."""

import dataclasses
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

NOTICED, SURVIVED = "noticed", "survived"
INVALID, RED, UNTRIED = "breaks the import", "fails without it too", "no test was run"
"""Outcomes that count as not noticed, because the mutant or its tests are wrong."""


@dataclasses.dataclass(frozen=True)
class Result:
    """What the tests said of a mutant."""

    key: str
    outcome: str
    by: str
    seconds: float


class Results:
    """The results by the name of the mutant.

    Args:
        path: the file, which is read if it exists and written after each change.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.mutants = {name: Result(**fields) for name, fields in self._load_results().items()}

    def has_result(self, name: str, key: str) -> bool:
        """Returns whether the mutant was tried, and nothing that decides the result has changed since."""
        earlier_result = self.mutants.get(name)
        # A test that fails without the fault may do so for other reasons.
        return earlier_result is not None and earlier_result.key == key and earlier_result.outcome not in (RED, UNTRIED)

    def forget_results(self, names: Iterable[str]) -> None:
        """Drops the results of mutants, so that they are tried again."""
        for name in names:
            self.mutants.pop(name, None)

    def add_result(self, name: str, result: Result) -> None:
        """Keeps a result."""
        self.mutants[name] = result
        # Another run may have added to the file meanwhile.
        content = {"mutants": self._load_results() | {name: dataclasses.asdict(result)}}
        self.path.parent.mkdir(exist_ok=True)
        temporary_file = self.path.with_suffix(f".{os.getpid()}")
        temporary_file.write_text(json.dumps(content, indent=1, sort_keys=True), encoding="utf-8")
        temporary_file.replace(self.path)

    def _load_results(self) -> dict[str, Any]:
        if not self.path.exists():
            return {}
        saved_results: dict[str, Any] = json.loads(self.path.read_text(encoding="utf-8"))["mutants"]
        return saved_results
