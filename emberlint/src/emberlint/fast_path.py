"""Answers the most common call, a check of unchanged files, without importing the other modules.

Importing the command-line options takes longer than that check.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from emberlint.commands import COMMANDS
from emberlint.commands.request import files_for, nested_projects, rule_choice, settings_for, shown_paths
from emberlint.config.errors import UsageError
from emberlint.config.settings import Settings
from emberlint.reporters.text import summary_line
from emberlint.run.run_cache import Entries, RunCache

EXIT_ZERO = "--exit-zero"
VERBOSE = {"--verbose", "-v"}  # `--exit-zero` changes nothing if there are no findings
JOBS = re.compile(r"\0(?:-j\0?|--jobs[\0=])0*[1-9]\d*(?=\0)")  # nothing is left to do for any number of processes


def print_cached_report(words: Sequence[str]) -> int | None:
    """Prints the report on files that an earlier run has checked and returns the exit status; None for other calls."""
    if words and words[0] in COMMANDS and words[0] != "check":
        return None
    words = JOBS.sub("", "\0".join(["", *words, ""])).split("\0")[1:-1]
    paths = [word for word in words[words[:1] == ["check"] :] if word not in VERBOSE and word != EXIT_ZERO]
    if any(word.startswith("-") for word in paths):
        return None
    named_paths = [Path(word) for word in paths]
    try:
        settings = settings_for(named_paths)
        if settings.baseline or settings.output_format != "text":
            return None
        file_by_path = files_for(named_paths, settings)
        if nested_projects(file_by_path, settings):
            return None
        lines_by_path = RunCache(settings, rule_choice(settings, (), (), ()).words, file_by_path).entries()
    except UsageError:
        return None  # the full command will report the error
    if lines_by_path is None or (lines_by_path and not VERBOSE.isdisjoint(words)):
        return None
    report_text = "".join(_output_lines(lines_by_path, settings))
    try:
        report_text.encode(sys.stdout.encoding, sys.stdout.errors or "strict")
    except UnicodeEncodeError:
        return None  # the full command knows what to print for such characters
    sys.stdout.write(report_text)
    sys.stdout.flush()
    sys.stderr.write(f"{summary_line(sum(map(len, lines_by_path.values())), len(file_by_path))}\n")
    return int(bool(lines_by_path) and EXIT_ZERO not in words)


def _output_lines(entries_by_path: Entries, settings: Settings) -> Iterator[str]:
    shown_path_by_path = shown_paths(entries_by_path, settings)
    for path, entry_lines in entries_by_path.items():
        line_start = f"{shown_path_by_path[path]}:"
        yield line_start + f"\n{line_start}".join(entry_lines) + "\n"
