"""Remembers what each file gave, by the hash of its content, so that a second run reads and hashes only."""

import json
import os
import sys
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any

from emberharmony.lint.settings import Settings

FOLDER = ".emberlint_cache"
KEPT = 8  # settings and versions remembered beside each other


def digest(content: bytes) -> str:
    """Return the hash of a file's content."""
    return blake2b(content, digest_size=16).hexdigest()


def _version() -> str:
    """A word that changes when the linter does."""
    folder = Path(__file__).parent
    stats = ((path.name, path.stat()) for path in sorted(folder.rglob("*")) if path.suffix in (".py", ".csv"))
    parts = [f"{name} {stat.st_size} {stat.st_mtime_ns}" for name, stat in stats]
    return digest("\n".join([sys.version, *parts]).encode())


class Cache:
    """The results of earlier runs under the same settings, the same rules and the same linter."""

    def __init__(self, settings: Settings, codes: Iterable[str], enabled: bool = True) -> None:
        self.folder = settings.root / FOLDER
        self.enabled = enabled
        self._entries: dict[str, list[Any]] = {}
        self._changed = False
        if enabled:
            key = digest("\n".join([_version(), repr(settings), *sorted(codes)]).encode())
            self._file = self.folder / f"{key}.json"
            # A missing or torn cache is no cache.
            with suppress(OSError, ValueError):
                self._entries = json.loads(self._file.read_text(encoding="utf-8"))

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
        """Write what is new, at once or not at all; a folder that cannot be written to means no cache."""
        if not (self.enabled and self._changed):
            return
        with suppress(OSError):
            self.folder.mkdir(exist_ok=True)
            (self.folder / ".gitignore").write_text("*\n", encoding="utf-8")
            handle, name = tempfile.mkstemp(dir=self.folder, suffix=".tmp")
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                json.dump(self._entries, stream, separators=(",", ":"))
            Path(name).replace(self._file)
            kept = sorted(self.folder.glob("*.json"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
            for old in kept[KEPT:]:
                old.unlink()
