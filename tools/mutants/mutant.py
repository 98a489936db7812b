"""The description of a planted fault."""

import dataclasses
import hashlib
import json
import shlex
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


@dataclasses.dataclass(frozen=True, kw_only=True)
class Mutant:
    """A small fault that a user would see, and the tests that should notice it.

    Args:
        name: a short name, which no other mutant has.
        module: the path of the file that it changes, from the root of the repository.
        function: the function or class within which it applies: `function`, `Class.method`, `outer.inner`; an empty
            string means the whole module.
        original: the source of an expression, or of one or more statements in sequence.
        replacement: the source that replaces it; `pass` deletes a statement.
        tests: arguments of pytest, one string for each run: paths or node ids, and options such as `-k`.
        why: what a user would see.
        nth: which one is meant, from 1, if the original occurs more than once.
    """

    name: str
    module: str
    function: str
    original: str
    replacement: str
    tests: tuple[str, ...]
    why: str
    nth: int | None = None

    def test_paths(self) -> list[str]:
        """Returns the test files, folders and node ids that `tests` names."""
        return [word for entry in self.tests for word in shlex.split(entry) if word.startswith("tests/")]

    def key(self, root: Path = ROOT) -> str:
        """Returns a hash of the mutant, its module and its test files, which changes when the result may change."""
        files = sorted({self.module, *(path.partition("::")[0] for path in self.test_paths())})
        digest = hashlib.sha256(json.dumps(dataclasses.asdict(self), sort_keys=True).encode())
        for path in files:
            target = root / path
            for file in sorted(target.rglob("*.py")) if target.is_dir() else [target]:
                digest.update(file.read_bytes())
        return digest.hexdigest()[:20]
