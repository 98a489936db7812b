"""Finds the files to check."""

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from emberlint.config.errors import UsageError
from emberlint.config.settings import Settings, matches, pattern_predicate

NOTEBOOK = ".ipynb"
SUFFIXES = (".py", ".pyi", NOTEBOOK)


def discover(paths: Iterable[Path], settings: Settings) -> dict[str, Path]:
    """Returns the Python files and the notebooks below `paths`, by their path relative to the project's root.

    Raises:
        UsageError: if a path does not exist or a folder cannot be read.
    """
    file_by_path: dict[str, Path] = {}
    for path in paths:
        if path.is_dir():
            file_by_path.update(_files_below(path, settings))
        elif path.exists():
            file_by_path[relative(path, settings.root)] = path
        else:
            raise UsageError(f"no such file or folder: {path}")
    return dict(sorted(file_by_path.items()))


def relative(path: Path, root: Path) -> str:
    """Returns a path relative to the root, with forward slashes."""
    return Path(os.path.relpath(path.absolute(), root.absolute())).as_posix()


def _files_below(folder: Path, settings: Settings) -> Iterator[tuple[str, Path]]:
    relative_folder = relative(folder, settings.root)
    # A folder that the user names is checked even if it is excluded: patterns that match the folder itself are dropped
    # for everything below it.
    is_outside = relative_folder == "." or relative_folder.split("/")[0] == ".."  # the root itself, or outside it
    exclude_patterns = tuple(
        pattern for pattern in settings.exclude if is_outside or not matches(relative_folder, pattern)
    )
    path_prefix = "" if relative_folder == "." else f"{relative_folder}/"
    return _walk_folder(
        str(folder), path_prefix, "" if is_outside else path_prefix, pattern_predicate(exclude_patterns)
    )


def _walk_folder(
    folder: str, root: str, judged: str, is_excluded: Callable[[str], object]
) -> Iterator[tuple[str, Path]]:
    """Yields the files of a folder by their path relative to the root.

    `known` is the prefix of those paths; `judged` is the prefix that the exclude patterns see.
    """
    try:
        folder_entries = [*os.scandir(folder)]
    except OSError as error:
        raise UsageError(f"cannot read the folder {folder}: {error}") from error
    for entry in folder_entries:
        entry_name = entry.name
        if entry.is_dir():
            if not entry.is_symlink() and not is_excluded(judged + entry_name):
                yield from _walk_folder(entry.path, f"{root}{entry_name}/", f"{judged}{entry_name}/", is_excluded)
        elif entry_name.endswith(SUFFIXES) and entry.is_file() and not is_excluded(judged + entry_name):
            yield root + entry_name, Path(entry.path)
