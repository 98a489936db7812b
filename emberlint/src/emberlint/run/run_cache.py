"""Caches whole runs, so that a repeated run over unchanged files reads none of them and imports no rule."""

import time
from collections.abc import Iterable, Iterator, Mapping
from os import stat_result
from pathlib import Path

from emberlint.config.settings import Settings
from emberlint.findings import Finding, decode_finding, encode_finding
from emberlint.run.file_cache import FOLDER, circumstances, digest, read_json, write_json
from emberlint.source.discover import discover

# File systems record times in milliseconds or, some of them, in seconds, so a file younger than one tick may change
# again without a new time. Such a run is not cached here; the cache by content serves the next run.
TICK, COARSE_TICK = 50_000_000, 2_000_000_000


class RunCache:
    """The findings of an earlier run with equal options and settings, and with files of equal sizes and times."""

    def __init__(self, settings: Settings, words: Iterable[str], files: Mapping[str, Path]) -> None:
        now = time.time_ns()
        try:
            stats = {path: file.stat() for path, file in _all_files(settings, files).items()}
        except OSError:  # a file is gone or unreadable; the check of that file reports it
            stats, self._is_settled = {}, False
        else:
            self._is_settled = all(_is_settled(one, now) for one in stats.values())
        signature = digest("\n".join([*files, *_signature(stats)]))
        self._file = settings.root / FOLDER / f"{circumstances(settings, [*words, signature])}.run"

    def recall(self) -> list[Finding] | None:
        """Returns the findings of that run, or None if it is not cached."""
        kept = read_json(self._file) if self._is_settled else None
        return None if kept is None else [decode_finding(one) for one in kept]

    def keep(self, findings: Iterable[Finding]) -> None:
        """Stores the findings of a run."""
        if self._is_settled:
            write_json(self._file, [encode_finding(one) for one in findings])


def _all_files(settings: Settings, files: Mapping[str, Path]) -> Mapping[str, Path]:
    """Returns the files to check and those that contracts and the parity rules examine."""
    folders = (settings.root / folder for folder in settings.project_folders)
    return {**discover([one for one in folders if one.is_dir()], settings), **files}


def _signature(stats: Mapping[str, stat_result]) -> Iterator[str]:
    for path, stat in sorted(stats.items()):
        yield f"{path} {stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns}"


def _is_settled(stat: stat_result, now: int) -> bool:
    tick = TICK if stat.st_mtime_ns % 1_000_000_000 else COARSE_TICK
    return max(stat.st_mtime_ns, stat.st_ctime_ns) + tick < now
