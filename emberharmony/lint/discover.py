"""Finds the files to check."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from emberharmony.lint.errors import UsageError
from emberharmony.lint.settings import Settings, matches

SUFFIXES = (".py", ".pyi")


def discover(paths: Iterable[Path], settings: Settings) -> dict[str, Path]:
    """Return the Python files below `paths`, by the path that they are known by; UsageError where there is none."""
    found: dict[str, Path] = {}
    for path in paths:
        if path.is_dir():
            found.update((relative(file, settings.root), file) for file in _walk(path, settings))
        elif path.exists():
            found[relative(path, settings.root)] = path
        else:
            raise UsageError(f"no such file or folder: {path}")
    return dict(sorted(found.items()))


def relative(path: Path, root: Path) -> str:
    """Return a path relative to the root, with forward slashes."""
    return Path(os.path.relpath(path.absolute(), root.absolute())).as_posix()


def _walk(folder: Path, settings: Settings) -> Iterator[Path]:
    base = relative(folder, settings.root)
    # What is asked for by name is not excluded: a pattern that covers the folder itself does not count below it.
    outside = base == "." or base.startswith("../")  # the root itself, or not below it
    patterns = [pattern for pattern in settings.exclude if outside or not matches(base, pattern)]
    for above, folders, files in os.walk(folder):
        place = Path(above)
        folders[:] = sorted(name for name in folders if not _excluded(place / name, folder, settings.root, patterns))
        for name in sorted(files):
            if name.endswith(SUFFIXES) and not _excluded(place / name, folder, settings.root, patterns):
                yield place / name


def _excluded(path: Path, folder: Path, root: Path, patterns: list[str]) -> bool:
    known = relative(path, root)
    name = relative(path, folder) if known.startswith("..") else known
    return any(matches(name, pattern) for pattern in patterns)
