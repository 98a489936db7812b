"""The whole project, as the rules that need more than one file see it."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from emberlint.config.settings import Settings
from emberlint.source.discover import discover
from emberlint.source.imports import Import, imports
from emberlint.source.parsing import parse


@dataclass
class Project:
    """The Python files of a project. `texts` holds files that are not on disk: standard input, examples."""

    settings: Settings
    texts: Mapping[str, str] = field(default_factory=dict)
    known: Mapping[str, tuple[Import, ...]] = field(default_factory=dict)  # imports that the engine has already read

    def __post_init__(self) -> None:
        """Creates the empty caches of texts, trees and imports."""
        self._trees: dict[str, ast.Module] = {}
        self._read: dict[str, str] = dict(self.texts)
        self.parsed: dict[str, tuple[Import, ...]] = {}  # the imports that were parsed because they were not known

    def files(self, folder: str = "") -> Iterator[str]:
        """Yields the paths of the Python files in a folder, sorted and relative to the root."""
        folder_prefix = folder.rstrip("/") + "/" if folder else ""
        given_paths = {path for path in self.texts if path.startswith(folder_prefix)}
        base_folder = self.settings.root / folder
        if base_folder.is_dir():
            given_paths.update(path for path in discover([base_folder], self.settings) if path.endswith(".py"))
        yield from sorted(given_paths)

    def text(self, path: str) -> str:
        """Returns the content of a file."""
        if path not in self._read:
            self._read[path] = (self.settings.root / path).read_text(encoding="utf-8")
        return self._read[path]

    def tree(self, path: str) -> ast.Module | None:
        """Returns the parsed file, or None if it cannot be read or parsed; EMB000 reports such a file."""
        if path not in self._trees:
            try:
                self._trees[path] = parse(self.text(path))
            except (SyntaxError, ValueError, RecursionError, OSError):
                return None
        return self._trees[path]

    def imports(self, path: str) -> tuple[Import, ...]:
        """Returns the imports of a file."""
        if path in self.known:
            return self.known[path]
        if path not in self.parsed:
            tree = self.tree(path)
            module = self.settings.module(path)
            self.parsed[path] = () if tree is None else imports(tree, module, is_package=path.endswith("__init__.py"))
        return self.parsed[path]
