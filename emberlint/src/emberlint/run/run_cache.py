"""Caches whole runs, so that a repeated run over unchanged files reads none of them and imports no rule."""

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from os import stat_result
from pathlib import Path
from typing import Any

from emberlint.config.settings import Settings
from emberlint.findings import Finding, Report, decode_finding, encode_finding
from emberlint.run.file_cache import FOLDER, circumstances_digest, digest, read_json, write_json
from emberlint.source.discover import discover

# File systems record times in milliseconds or, some of them, in seconds, so a file younger than one tick may change
# again without a new time. Such a run is not cached here; the cache by content serves the next run.
TICK, COARSE_TICK = 50_000_000, 2_000_000_000

Times = list[int]
Entries = dict[str, list[str]]  # the lines of the report on each file, without its path


class RunCache:
    """The findings of an earlier run with equal options and settings, and with files of equal sizes and times."""

    def __init__(self, settings: Settings, words: Iterable[str], files: Mapping[str, Path]) -> None:
        current_time = time.time_ns()
        self._root = settings.root
        try:
            times_by_path = {path: size_and_times(file.stat()) for path, file in _all_files(settings, files).items()}
        except OSError:  # a file is gone or unreadable; the check of that file reports it
            times_by_path, self._is_settled = {}, False
        else:
            self._is_settled = all(is_settled(stat, current_time) for stat in times_by_path.values())
        run_signature = digest("\n".join([*files, *_stat_lines(times_by_path)]))
        self._file = settings.root / FOLDER / f"{circumstances_digest(settings, [*words, run_signature])}.run"

    def recall_findings(self) -> list[Finding] | None:
        """Returns the findings of the cached run, or None without one, or if a file beyond the checked ones differs."""
        encoded_findings = self._stored_data(2)
        return (
            None
            if encoded_findings is None
            else [decode_finding(encoded_finding) for encoded_finding in encoded_findings]
        )

    def entries(self) -> Entries | None:
        """Returns the lines of the cached run's report by path, which is faster than decoding the findings."""
        lines_by_path: Entries | None = self._stored_data(1)
        return lines_by_path

    def _stored_data(self, number: int) -> Any:
        """Returns the data on a line of the run's cache file, or None if there is none or a file has changed."""
        cached_run = read_json(self._file) if self._is_settled else None
        is_unchanged = isinstance(cached_run, dict) and self._are_files_unchanged(
            cached_run["beyond"], cached_run["absent"]
        )
        return read_json(self._file, number) if is_unchanged else None

    def _are_files_unchanged(self, times_beyond: Mapping[str, Times], absent_paths: Mapping[str, list[str]]) -> bool:
        try:
            times_by_path = {path: size_and_times((self._root / path).stat()) for path in times_beyond}
            return times_by_path == times_beyond and all(
                set(os.listdir(self._root / folder)).isdisjoint(names) for folder, names in absent_paths.items()
            )
        except OSError:
            return False

    def store_report(self, report: Report) -> None:
        """Stores the findings of a run."""
        if not self._is_settled:
            return
        current_time = time.time_ns()
        try:
            times_by_path = {path: size_and_times((self._root / path).stat()) for path in report.beyond}
        except OSError:
            return
        if all(is_settled(file_times, current_time) for file_times in times_by_path.values()):
            run_facts = {"beyond": times_by_path, "absent": self._missing_names(report.absent)}
            findings = [encode_finding(finding) for finding in report.findings]
            write_json(self._file, run_facts, _entries_by_path(report.findings), findings)

    def _missing_names(self, absent_paths: Iterable[str]) -> dict[str, list[str]]:
        """Returns the names that folders lack, by folder, without which no absent path can come into being."""
        is_folder = cache(lambda folder: os.path.isdir(self._root / folder))
        names_by_folder: dict[str, dict[str, None]] = {}
        for path in absent_paths:
            folder, _, name = path.rpartition("/")
            while folder and not is_folder(folder):
                folder, _, name = folder.rpartition("/")
            names_by_folder.setdefault(folder, {})[name] = None
        return {folder: [*names] for folder, names in names_by_folder.items()}


def _entries_by_path(findings: Iterable[Finding]) -> Entries:
    entries_by_path: Entries = {}
    for finding in findings:
        entries_by_path.setdefault(finding.path, []).append(finding.entry)
    return entries_by_path


def size_and_times(stat: stat_result) -> Times:
    """Returns the size and the times of a file, which tell whether it changed."""
    return [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns]


def _all_files(settings: Settings, files: Mapping[str, Path]) -> Mapping[str, Path]:
    """Returns the files to check and those that contracts and the parity rules examine."""
    project_folders = (settings.root / folder for folder in settings.project_folders)
    return {**discover([folder for folder in project_folders if folder.is_dir()], settings), **files}


def _stat_lines(stats: Mapping[str, Times]) -> Iterator[str]:
    for path, stat in sorted(stats.items()):
        yield " ".join([path, *map(str, stat)])


def is_settled(stat: Times, current_time: int) -> bool:
    """Returns whether a file that changes after the time `now`, in nanoseconds, will have other times."""
    _, modification_time, change_time = stat
    tick_length = TICK if modification_time % 1_000_000_000 else COARSE_TICK
    return max(modification_time, change_time) + tick_length < current_time
