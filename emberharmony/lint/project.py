"""What rules see that look beyond one file."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from emberharmony.lint.settings import Settings


@dataclass(frozen=True, slots=True)
class Import:
    """One imported module, absolute, and where the import stands."""

    target: str
    line: int
    column: int
    end_line: int
    end_column: int
    typing_only: bool = False


@dataclass
class Project:
    """The Python files below the root. `checked` are the paths asked for; findings elsewhere are dropped."""

    root: Path
    settings: Settings
    checked: frozenset[str]
    texts: Mapping[str, str] = field(default_factory=dict)  # content that is not (yet) on disk: stdin, examples
    imports: dict[str, tuple[Import, ...]] = field(default_factory=dict)  # by path, from the engine's cache
    _trees: dict[str, ast.Module] = field(default_factory=dict)

    def files(self, under: str = "") -> Iterator[str]:
        """Yield the paths, relative and sorted, of the Python files in a folder of the project."""
        prefix = under.rstrip("/") + "/" if under else ""
        found = {path for path in self.texts if path.startswith(prefix)}
        base = self.root / under
        if base.is_dir():
            found.update(path.relative_to(self.root).as_posix() for path in base.rglob("*.py"))
        yield from sorted(found)

    def text(self, path: str) -> str:
        """Return the content of a file; UTF-8, as the language has it by default."""
        return self.texts[path] if path in self.texts else (self.root / path).read_text(encoding="utf-8")

    def tree(self, path: str) -> ast.Module:
        """Return the parsed file; SyntaxError where it does not parse."""
        if path not in self._trees:
            self._trees[path] = ast.parse(self.text(path))
        return self._trees[path]
