"""The files around a document that its check sees; they are kept until a file or the imports change.

A file of SciPy imports up to 412 others, directly or through them. While neither they nor the imports of the document
change, a check only asks for their times; another document follows what was known before, and only files whose circles
of imports differ are checked again. A first document takes the summaries from the cache of the command.
"""

import time
from collections.abc import Iterable
from pathlib import Path

from emberlint.config.settings import Settings
from emberlint.run.file_cache import FileCache
from emberlint.run.files import Files
from emberlint.run.library import Library
from emberlint.run.run_cache import Times, is_settled, size_and_times
from emberlint.source.modules import Modules


class Surroundings:
    """The summaries of the files that a document imports, read from the disk.

    Args:
        path: The path of the document, relative to the root of its project.
        text: Its text, of which only the imports count.
        settings: The settings of the project.
        cache: The results of earlier checks.
        before: Those of the same project that were known before; unchanged files are not read again.
    """

    def __init__(
        self, path: str, text: str, settings: Settings, cache: FileCache, before: "Surroundings | None" = None
    ) -> None:
        start_time = time.time_ns()
        if before is not None and not before._can_serve(path):
            before = None
        self._path = path
        library = Library(Modules(settings, [path])) if before is None else before._run.library
        self._modules: Modules = library.modules
        self._imports = self._imports_of(text)
        self._run: Files = Files({path: text}, settings, frozenset(), cache, library)
        if before is not None:
            self._run.take_over_results(before._run)
        self.shelf = self._run.shelf(path)
        own_path = settings.root / path  # the document's own file may change at any time
        summary_by_file = (
            {}
            if before is None
            else {file: summary for file, summary in before._times_by_path.items() if file != own_path}
        )
        read_paths = (settings.root / path for path in (*self._run.paths_beyond, *self._modules.folders))
        file_times = _all_times(path for path in read_paths if path not in summary_by_file)
        self._times_by_path: dict[Path, Times] = {**summary_by_file, **(file_times or {})}
        self._is_settled = file_times is not None and all(is_settled(time, start_time) for time in file_times.values())

    def is_valid_for(self, text: str) -> bool:
        """Returns whether the summaries are still valid for another text of the document."""
        return self._is_settled and self._imports_of(text) == self._imports and self._are_unchanged()

    def _are_unchanged(self) -> bool:
        return _all_times(self._times_by_path) == self._times_by_path

    def _can_serve(self, path: str) -> bool:
        """Returns whether another document can follow: no file has changed, and it is on the disk or the same one."""
        is_known = path == self._path or self._modules.exists(path)
        return is_known and self._is_settled and self._are_unchanged()

    def _imports_of(self, text: str) -> tuple[list[str], list[str]]:
        find_imported_files = self._modules.imported_files
        return find_imported_files(self._path, text), find_imported_files(self._path, text, at_once=True)


def _all_times(files: Iterable[Path]) -> dict[Path, Times] | None:
    """Returns the times of files and folders, or None if one is gone."""
    try:
        return {file: size_and_times(file.stat()) for file in files}
    except OSError:
        return None
