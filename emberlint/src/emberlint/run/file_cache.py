"""Caches the result of each file by the hash of its content, so that a second run only reads and hashes files."""

import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any

from emberlint.config.settings import Settings

FOLDER = ".emberlint_cache"
KEPT = 8  # cache files to keep, one for each combination of settings, rules and version


def digest(content: bytes | str) -> str:
    """Returns the hash of a file's content, or of a text; the text may hold file names that are not valid Unicode."""
    content_bytes = content.encode(errors="surrogatepass") if isinstance(content, str) else content
    return blake2b(content_bytes, digest_size=16).hexdigest()


def circumstances_digest(settings: Settings, words: Iterable[str]) -> str:
    """Returns a hash of Python, the linter, the settings and the rules, on which findings depend besides the file."""
    return digest(
        "\n".join([sys.version, *_linter_file_lines(str(Path(__file__).parent.parent)), repr(settings), *words])
    )


def _linter_file_lines(folder: str) -> Iterator[str]:
    """Yields a line for each file of the linter, which changes when the file does."""
    for entry in sorted(os.scandir(folder), key=lambda one: one.name):
        if entry.name.endswith((".py", ".csv")):
            file_status = entry.stat()
            yield f"{entry.name} {file_status.st_size} {file_status.st_mtime_ns}"
        elif entry.is_dir() and entry.name != "__pycache__":
            yield from _linter_file_lines(entry.path)


def read_json(file: Path, line: int = 0) -> Any:
    """Returns the data on a line of a cache file, counted from 0, or None if it is missing or damaged."""
    with suppress(OSError, ValueError), file.open("rb") as stream:
        for _ in range(line):
            stream.readline()
        return json.loads(stream.readline())
    return None


def write_json(file: Path, *lines: object) -> None:
    """Writes a cache file, each argument as a line of JSON, completely or not at all.

    It does nothing if the folder cannot be written to.
    """
    with suppress(OSError):
        cache_folder = file.parent
        cache_folder.mkdir(exist_ok=True)
        (cache_folder / ".gitignore").write_text("*\n", encoding="utf-8")
        temporary_file = file.with_suffix(f".{os.getpid()}.tmp")
        try:
            json_text = "\n".join(json.dumps(line, separators=(",", ":")) for line in lines)
            temporary_file.write_text(json_text, encoding="utf-8")
            temporary_file.replace(file)
        finally:
            temporary_file.unlink(missing_ok=True)  # removes the temporary file of an interrupted write
        cache_files = sorted(
            cache_folder.glob(f"*{file.suffix}"), key=lambda path: path.stat().st_mtime_ns, reverse=True
        )
        for old_file in cache_files[KEPT:]:
            old_file.unlink()


class FileCache:
    """The results of earlier runs with the same settings, the same rules and the same linter."""

    def __init__(self, settings: Settings, codes: Iterable[str], enabled: bool = True) -> None:
        self.enabled = enabled
        self._entries: dict[str, list[Any]] = {}
        self._changed = False
        if enabled:
            self._file = settings.root / FOLDER / f"{circumstances_digest(settings, sorted(codes))}.json"
            self._entries = read_json(self._file) or {}

    def get(self, path: str, key: str) -> list[Any] | None:
        """Returns the result stored for a path with this content hash, or None."""
        key_and_result = self._entries.get(path)
        cached_result: list[Any] | None = (
            key_and_result[1] if key_and_result is not None and key_and_result[0] == key else None
        )
        return cached_result

    def put(self, path: str, key: str, data: list[Any]) -> None:
        """Stores a result for a path with this content hash."""
        self._entries[path] = [key, data]
        self._changed = True

    def save(self) -> None:
        """Writes the cache if a result is new."""
        if self.enabled and self._changed:
            write_json(self._file, self._entries)
