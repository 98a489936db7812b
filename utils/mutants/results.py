"""The results of trials, which a file keeps between runs."""

import dataclasses
import json
import os
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
        fresh: start without what the file has.
    """

    def __init__(self, path: Path, fresh: bool = False) -> None:
        self.path = path
        saved: dict[str, Any] = {}
        if path.exists() and not fresh:
            saved = json.loads(path.read_text(encoding="utf-8"))
        self.mutants = {name: Result(**fields) for name, fields in saved.get("mutants", {}).items()}

    def has(self, name: str, key: str) -> bool:
        """Returns whether the mutant was tried, and nothing that decides the result has changed since."""
        return name in self.mutants and self.mutants[name].key == key

    def add(self, name: str, result: Result) -> None:
        """Keeps a result."""
        self.mutants[name] = result
        self._save()

    def _save(self) -> None:
        self.path.parent.mkdir(exist_ok=True)
        content = {"mutants": {name: dataclasses.asdict(result) for name, result in sorted(self.mutants.items())}}
        temporary = self.path.with_suffix(f".{os.getpid()}")
        temporary.write_text(json.dumps(content, indent=1), encoding="utf-8")
        temporary.replace(self.path)
