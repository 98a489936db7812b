"""Remembers what each file gave, by the hash of its content, so that a second run reads and hashes only."""

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
KEPT = 8  # settings and versions remembered beside each other


def digest(content: bytes | str) -> str:
    """Return the hash of a file's content, or of words; names of files need not be Unicode."""
    data = content.encode(errors="surrogatepass") if isinstance(content, str) else content
    return blake2b(data, digest_size=16).hexdigest()


def circumstances(settings: Settings, words: Iterable[str]) -> str:
    """Return a hash of all that findings depend on beside the files: the linter, the settings, the rules asked for."""
    return digest("\n".join([sys.version, *_sources(str(Path(__file__).parent.parent)), repr(settings), *words]))


def _sources(folder: str) -> Iterator[str]:
    """A word for each file of the linter, which changes when the file does."""
    for entry in sorted(os.scandir(folder), key=lambda one: one.name):
        if entry.name.endswith((".py", ".csv")):
            stat = entry.stat()
            yield f"{entry.name} {stat.st_size} {stat.st_mtime_ns}"
        elif entry.is_dir() and entry.name != "__pycache__":
            yield from _sources(entry.path)


def read_json(file: Path) -> Any:
    """Return what was kept in a file, or None: a missing or torn cache is no cache."""
    with suppress(OSError, ValueError):
        return json.loads(file.read_text(encoding="utf-8"))
    return None


def write_json(file: Path, data: object) -> None:
    """Keep data in a file, at once or not at all; a folder that cannot be written to means no cache."""
    with suppress(OSError):
        folder = file.parent
        folder.mkdir(exist_ok=True)
        (folder / ".gitignore").write_text("*\n", encoding="utf-8")
        temporary = file.with_suffix(f".{os.getpid()}.tmp")
        try:
            temporary.write_text(json.dumps(data, separators=(",", ":")), encoding="utf-8")
            temporary.replace(file)
        finally:
            temporary.unlink(missing_ok=True)  # there only where something stopped it
        kept = sorted(folder.glob(f"*{file.suffix}"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
        for old in kept[KEPT:]:
            old.unlink()


class FileCache:
    """The results of earlier runs under the same settings, the same rules and the same linter."""

    def __init__(self, settings: Settings, codes: Iterable[str], enabled: bool = True) -> None:
        self.enabled = enabled
        self._entries: dict[str, list[Any]] = {}
        self._changed = False
        if enabled:
            self._file = settings.root / FOLDER / f"{circumstances(settings, sorted(codes))}.json"
            self._entries = read_json(self._file) or {}

    def get(self, path: str, key: str) -> list[Any] | None:
        """Return what was kept for a path while its content had this hash, or None."""
        entry = self._entries.get(path)
        result: list[Any] | None = entry[1] if entry is not None and entry[0] == key else None
        return result

    def put(self, path: str, key: str, data: list[Any]) -> None:
        """Keep a result."""
        self._entries[path] = [key, data]
        self._changed = True

    def save(self) -> None:
        """Write what is new."""
        if self.enabled and self._changed:
            write_json(self._file, self._entries)
