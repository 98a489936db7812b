"""The files around a document: what its check sees of its project, kept while neither they nor its imports change."""

import time
from collections.abc import Iterable
from pathlib import Path

from emberlint.config.settings import Settings
from emberlint.run.file_cache import FileCache
from emberlint.run.files import Files
from emberlint.run.library import Library
from emberlint.run.run_cache import Times, is_settled, times
from emberlint.source.modules import Modules


class Surroundings:
    """The summaries of the files that a document imports, read from the disk.

    Args:
        path: The path of the document, relative to the root of its project.
        text: Its text, of which only the imports count.
        settings: The settings of the project.
        cache: The results of earlier checks.
    """

    def __init__(self, path: str, text: str, settings: Settings, cache: FileCache) -> None:
        start = time.time_ns()
        self._path = path
        self._modules = Modules(settings, [path])
        self._imports = self._imported(text)
        run = Files({path: text}, settings, frozenset(), cache, Library(self._modules))
        self.shelf = run.shelf(path)
        self._known = _all_times(settings.root / one for one in (*run.beyond, *self._modules.folders))
        self._is_settled = self._known is not None and all(is_settled(one, start) for one in self._known.values())

    def hold(self, text: str) -> bool:
        """Returns whether the check of another text of the document may see the same."""
        return (
            self._is_settled and self._imported(text) == self._imports and _all_times(self._known or ()) == self._known
        )

    def _imported(self, text: str) -> tuple[list[str], list[str]]:
        find = self._modules.imported
        return find(self._path, text), find(self._path, text, at_once=True)


def _all_times(files: Iterable[Path]) -> dict[Path, Times] | None:
    """Returns the times of files and folders, or None if one is gone."""
    try:
        return {file: times(file.stat()) for file in files}
    except OSError:
        return None
