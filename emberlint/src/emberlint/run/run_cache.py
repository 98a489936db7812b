"""Caches whole runs, so that a repeated run over unchanged files reads none of them and imports no rule."""

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from os import stat_result
from pathlib import Path

from emberlint.config.settings import Settings
from emberlint.findings import Finding, Report, decode_finding, encode_finding
from emberlint.run.file_cache import FOLDER, circumstances, digest, read_json, write_json
from emberlint.source.discover import discover

# File systems record times in milliseconds or, some of them, in seconds, so a file younger than one tick may change
# again without a new time. Such a run is not cached here; the cache by content serves the next run.
TICK, COARSE_TICK = 50_000_000, 2_000_000_000


class RunCache:
    """The findings of an earlier run with equal options and settings, and with files of equal sizes and times."""

    def __init__(self, settings: Settings, words: Iterable[str], files: Mapping[str, Path]) -> None:
        now = time.time_ns()
        self._root = settings.root
        try:
            stats = {path: file.stat() for path, file in _all_files(settings, files).items()}
        except OSError:  # a file is gone or unreadable; the check of that file reports it
            stats, self._is_settled = {}, False
        else:
            self._is_settled = all(_is_settled(one, now) for one in stats.values())
        signature = digest("\n".join([*files, *_signature(stats)]))
        self._file = settings.root / FOLDER / f"{circumstances(settings, [*words, signature])}.run"

    def recall(self) -> list[Finding] | None:
        """Returns the findings of that run, or None if it is not cached or a file beyond the checked ones differs."""
        kept = read_json(self._file) if self._is_settled else None
        if not isinstance(kept, dict) or not self._is_same(kept["beyond"], kept["absent"]):
            return None
        return [decode_finding(one) for one in kept["findings"]]

    def _is_same(self, beyond: Mapping[str, list[int]], absent: Iterable[str]) -> bool:
        try:
            now = {path: _times((self._root / path).stat()) for path in beyond}
        except OSError:
            return False
        root = str(self._root)
        return now == beyond and not any(os.path.exists(f"{root}/{path}") for path in absent)

    def keep(self, report: Report) -> None:
        """Stores the findings of a run."""
        if not self._is_settled:
            return
        now = time.time_ns()
        try:
            stats = {path: (self._root / path).stat() for path in report.beyond}
        except OSError:
            return
        if all(_is_settled(one, now) for one in stats.values()):
            beyond = {path: _times(one) for path, one in stats.items()}
            findings = [encode_finding(one) for one in report.findings]
            write_json(self._file, {"findings": findings, "beyond": beyond, "absent": report.absent})


def _times(stat: stat_result) -> list[int]:
    return [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns]


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
