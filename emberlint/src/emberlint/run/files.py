"""Checks the files of a run, and reuses what is cached and still true."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from emberlint.config.settings import Settings
from emberlint.run.check import unreadable_result
from emberlint.run.file_cache import FileCache, digest
from emberlint.run.library import Library, Shelf, absent_places, is_current
from emberlint.run.order import group_in_import_order
from emberlint.run.pool import Task, Work, check_groups
from emberlint.run.results import FileResult, decode_result
from emberlint.source.notebooks.notebook import Notebook
from emberlint.source.reading import read_notebook, read_text

SUMMARY = "summary of "  # the prefix of the cache key of a file of which only the summary was made


class Files:
    """The files of one run: those to check, and those that they import.

    Args:
        contents: The files to check, by path.
        settings: The settings of the project.
        codes: The codes of the rules to run.
        cache: The results of earlier runs.
        library: The summaries; a command that checks several times passes the same one.
    """

    def __init__(
        self,
        contents: Mapping[str, bytes | str],
        settings: Settings,
        codes: frozenset[str],
        cache: FileCache,
        library: Library,
    ) -> None:
        self.settings, self.codes, self.cache, self.library = settings, codes, cache, library
        self.contents = dict(contents)
        self.checked = frozenset(contents)
        self.keys: dict[str, str] = {}
        self.entries: dict[str, FileResult] = {}
        self.results: dict[str, FileResult] = {}
        self.near: dict[str, tuple[str, ...]] = {}
        self.at_once: dict[str, list[str]] = {}
        self.hidden: dict[str, frozenset[str]] = {}
        self._before: Files | None = None
        self._is_same = True  # whether all results so far are those of the earlier run

    def take_over_results(self, before: "Files") -> None:
        """Takes over what an earlier run with the same library has read, and the results that are still true.

        None of the files that it read besides those to check has changed since, and none was added.
        """
        self._before = before
        self.contents = {**before.contents, **self.contents}
        self.keys, self.entries = {**before.keys}, {**before.entries}
        self.near, self.at_once = {**before.near}, {**before.at_once}
        for path in before.checked | self.checked:
            self.library.forget(path)
            for facts_by_path in (self.keys, self.entries, self.near, self.at_once):
                facts_by_path.pop(path, None)
        for path in before.checked - self.checked:
            self.contents.pop(path, None)

    @property
    def paths_beyond(self) -> tuple[str, ...]:
        """The paths of the files that were read besides those to check."""
        return tuple(sorted(path for path in self.contents if path not in self.checked))

    @property
    def absent_paths(self) -> tuple[str, ...]:
        """The paths without a file at which a new file would change a result."""
        result_by_path = {**self.entries, **self.results}
        return tuple(
            sorted(
                {
                    missing_file
                    for path in result_by_path
                    for missing_file in absent_places(result_by_path[path].used, path, self.library.modules)
                }
            )
        )

    def check(self, jobs: int) -> dict[str, FileResult]:
        """Returns the results of the files to check, in their order."""
        for path in self.contents:
            self._recall_result(path)
        if len(self.entries) == len(self.checked) and self._are_results_current():
            return {path: self.entries[path] for path in self.contents if path in self.checked}
        self._check_groups(self._groups_in_order([*self.contents]), jobs)
        return {path: self.results[path] for path in self.paths_to_check()}

    def shelf(self, path: str) -> Shelf:
        """Checks the files that a file imports, and returns the shelf through which its check sees them."""
        groups = self._groups_in_order([path])
        groups[-1] = groups[-1][: groups[-1].index(path)]  # the last group is that of the file itself
        self._check_groups(groups)
        return self._shelf(path)

    def _groups_in_order(self, paths: Iterable[str]) -> list[list[str]]:
        """Returns files and their imports in groups in the order of their checks, and notes hidden files."""
        groups = group_in_import_order(paths, self._imported_files, self._files_imported_at_load)
        self.library.record_imports(self.near)
        for group in groups:
            if len(group) > 1:
                self.hidden.update({path: frozenset(group[index:]) for index, path in enumerate(group)})
        return groups

    def _check_groups(self, groups: Sequence[Sequence[str]], jobs: int = 1) -> None:
        content_size = sum(len(self.contents[path]) for path in self.contents if path not in self.entries)
        check_groups(
            Work(groups, self.near, self._tasks_of, self._store_result, content_size), self.library, self.settings, jobs
        )

    def paths_to_check(self) -> Iterable[str]:
        """Yields the files to check, in the order in which they were given."""
        return (path for path in self.contents if path in self.checked)

    def _recall_result(self, path: str) -> None:
        """Looks up the cached result of a file with the same content."""
        self.keys[path] = digest(self.contents[path])
        encoded_result = self.cache.get(self._cache_key(path), self.keys[path])
        if encoded_result is None and path not in self.checked:
            encoded_result = self.cache.get(path, self.keys[path])  # cached by a run that checked the file
        if encoded_result is not None:
            self.entries[path] = decode_result(encoded_result)
            self.near[path] = self.entries[path].near
            self.library.put(path, self.entries[path].summary)

    def _cache_key(self, path: str) -> str:
        return path if path in self.checked else SUMMARY + path

    def _are_results_current(self) -> bool:
        """Returns whether every cached result, also of the files read besides, is still true."""
        pending_paths = [*self.entries]
        while pending_paths:
            path = pending_paths.pop()
            for near_file in self.entries[path].near:
                if near_file not in self.contents and not self.library.is_known(near_file):
                    if not self._read_imported_file(near_file) or near_file not in self.entries:
                        return False
                    pending_paths.append(near_file)
        return all(is_current(entry.used, path, self.library) for path, entry in self.entries.items())

    def _read_imported_file(self, path: str) -> bool:
        """Reads a file that is not to be checked; returns whether that is possible."""
        if path not in self.contents:
            try:
                self.contents[path] = (Path(self.settings.root) / path).read_bytes()
            except OSError:
                return False
            self._recall_result(path)
        return True

    def _imported_files(self, path: str) -> tuple[str, ...]:
        """Returns the files of the project that a file imports and that can be read."""
        if path not in self.near:
            self.near[path] = tuple(self.library.modules.imported_files(path, self._text(path)))
        readable_paths = [
            near_path
            for near_path in self.near[path]
            if not self._is_settled(near_path) and self._read_imported_file(near_path)
        ]
        return tuple(readable_paths)

    def _files_imported_at_load(self, path: str) -> list[str]:
        """Returns the files of the project that a file imports when it is loaded."""
        if path not in self.at_once:
            self.at_once[path] = self.library.modules.imported_files(path, self._text(path), at_once=True)
        return self.at_once[path]

    def _text(self, path: str) -> str:
        content = self.contents[path]
        try:
            return content if isinstance(content, str) else read_text(content)
        except (SyntaxError, UnicodeDecodeError):
            return ""

    def _is_settled(self, path: str) -> bool:
        """Returns whether the summary of a file is known from an earlier check of the same command."""
        return path not in self.contents and self.library.is_known(path)

    def _tasks_of(self, paths: Iterable[str]) -> list[Task]:
        """Returns the tasks of some files; those whose cached result is still true need none."""
        tasks = []
        for path in paths:
            earlier_result = self._earlier_result(path)
            cached_result = self.entries.get(path) if earlier_result is None else None
            if cached_result is not None and self._is_current(path, cached_result):
                earlier_result = cached_result
            self._is_same = self._is_same and earlier_result is not None and cached_result is None
            if earlier_result is not None:
                self.results[path] = earlier_result
                if self.library.get(path) is not earlier_result.summary:  # from a run with other import circles
                    self.library.put(path, earlier_result.summary)
                continue
            codes_to_check = self.codes if path in self.checked else frozenset[str]()
            hidden_paths = self.hidden.get(path, frozenset())
            tasks.append(Task(path, self.contents[path], self.near[path], hidden_paths, codes_to_check))
        return tasks

    def _earlier_result(self, path: str) -> FileResult | None:
        """Returns the result of the earlier run if the file saw the same others in it, and the same of them."""
        earlier_run = self._before
        earlier_result = None if earlier_run is None or path in self.checked else earlier_run.results.get(path)
        if earlier_run is None or earlier_result is None or earlier_run.hidden.get(path) != self.hidden.get(path):
            return None
        return earlier_result if self._is_same or self._is_current(path, earlier_result) else None

    def _is_current(self, path: str, result: FileResult) -> bool:
        return is_current(result.used, path, self.library, self._shelf(path))

    def _shelf(self, path: str) -> Shelf:
        return Shelf(self.library, path, self.near[path], self.hidden.get(path, frozenset()))

    def _store_result(self, path: str, result: FileResult) -> None:
        self.cache.put(self._cache_key(path), self.keys[path], [*result])
        self.results[path] = result
        self.library.put(path, result.summary)


class Contents(NamedTuple):
    """The contents of files by path: bytes, or the Python source of a notebook; `broken` cannot be read."""

    sources: dict[str, bytes | str]
    notebooks: dict[str, Notebook]
    broken: dict[str, FileResult]


def read_contents(files: Mapping[str, Path]) -> Contents:
    """Returns the contents of files, and the results of those that cannot be read."""
    contents = Contents({}, {}, {})
    for path, file in files.items():
        try:
            content = file.read_bytes()
            notebook = read_notebook(path, content)
        except (OSError, SyntaxError, UnicodeDecodeError) as error:
            contents.broken[path] = unreadable_result(path, error)
            continue
        contents.sources[path] = content
        if notebook is not None:
            contents.sources[path] = notebook.text
            contents.notebooks[path] = notebook
    return contents
