"""The results of trials, which a file keeps between runs."""

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

NOTICED, SURVIVED, INVALID = "noticed", "survived", "breaks the import"


@dataclasses.dataclass(frozen=True)
class Result:
    """What the tests said of a mutant."""

    key: str
    outcome: str
    by: str
    seconds: float


class Results:
    """The results by the name of the mutant, and the test runs that passed on the tree without a fault.

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
        self.passed: dict[str, dict[str, Any]] = saved.get("passed", {})

    def has(self, name: str, key: str) -> bool:
        """Returns whether the mutant was tried, and nothing that decides the result has changed since."""
        return name in self.mutants and self.mutants[name].key == key

    def seconds(self, entry: str, tree: str) -> float | None:
        """Returns how long the tests took without a fault, or None if they have not passed on this tree."""
        found = self.passed.get(entry)
        return float(found["seconds"]) if found is not None and found["tree"] == tree else None

    def add(self, name: str, result: Result) -> None:
        """Keeps a result."""
        self.mutants[name] = result
        self._save()

    def add_passed(self, entry: str, tree: str, seconds: float) -> None:
        """Keeps that the tests passed without a fault."""
        self.passed[entry] = {"tree": tree, "seconds": seconds}
        self._save()

    def _save(self) -> None:
        self.path.parent.mkdir(exist_ok=True)
        content = {
            "mutants": {name: dataclasses.asdict(result) for name, result in sorted(self.mutants.items())},
            "passed": dict(sorted(self.passed.items())),
        }
        temporary = self.path.with_suffix(f".{os.getpid()}")
        temporary.write_text(json.dumps(content, indent=1), encoding="utf-8")
        temporary.replace(self.path)
