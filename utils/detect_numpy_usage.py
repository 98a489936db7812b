"""Finds code that works with NumPy, or another array library, only.

    python utils/detect_numpy_usage.py PATH [--exclude NAME ...] [--numpy-only | ...]

It runs rules of emberlint, with the settings and the suppressions of emberlint. The exit status is 0 if it finds
nothing, 1 if it finds something, and 2 if the arguments are wrong.
"""

import argparse
import os
import sys
from collections import Counter
from pathlib import Path

# emberlint is a package of its own; this path lets it run from a checkout without being installed.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "emberlint" / "src"))

from emberlint.commands import options
from emberlint.config.errors import UsageError
from emberlint.config.settings import Settings
from emberlint.findings import Finding
from emberlint.reporters.text import detail_lines, report_line
from emberlint.run.engine import check
from emberlint.run.pool import default_jobs
from emberlint.run.registry import GROUPS
from emberlint.source.discover import relative

SWITCHES = {
    "numpy": "imports and uses of NumPy and other array libraries, their types, dtypes, random streams and devices",
    "precision": "casts of a tensor to a Python number",
    "conversion": "conversions between tensors and the arrays of one library",
    "operators": "operators, comparisons, truth tests, loops over tensors and assignments to their elements",
}


def main(arguments: list[str] | None = None) -> int:
    """Checks the path in the arguments and returns the exit status."""
    asked = _parser().parse_args(arguments)
    try:
        settings = options.settings_for([asked.path])
        settings = settings.with_changes(exclude=(*settings.exclude, *_patterns(asked.exclude, settings)))
        codes = options.codes_for(settings, (), (), [asked.group] if asked.group else SWITCHES)
        report = check(options.files_for([asked.path], settings), settings, codes, default_jobs())
    except UsageError as error:
        print(f"detect_numpy_usage: {error}", file=sys.stderr)
        return 2
    _print(options.findings_with_shown_paths(report.findings, settings), len(report.paths), asked.verbose)
    return 1 if report.findings else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="detect_numpy_usage", description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("path", metavar="PATH", type=Path, help="the file or folder to check")
    parser.add_argument(
        "--exclude", nargs="+", action="extend", default=[], help="folders, files or patterns to leave out"
    )
    only = parser.add_mutually_exclusive_group()
    for group, what in SWITCHES.items():
        only.add_argument(f"--{group}-only", dest="group", action="store_const", const=group, help=f"only {what}")
    parser.add_argument("-v", "--verbose", action="store_true", help="also print the evidence and what to do about it")
    return parser


def _patterns(words: list[str], settings: Settings) -> list[str]:
    """Returns glob patterns for the words of `--exclude`: a word is an existing path, or a name in any folder."""
    return [relative(Path(word), settings.root) if Path(word).exists() else f"**/{word}" for word in words]


def _print(findings: list[Finding], files: int, verbose: bool) -> None:
    for finding in findings:
        print(report_line(finding))
        for text in detail_lines(finding) if verbose else ():
            print(text)
    counts = Counter(group for one in findings for group in SWITCHES if one.code in GROUPS[group])
    counted = ", ".join(f"{group} {counts[group]}" for group in SWITCHES if counts[group])
    total = f"{len(findings) or 'no'} finding{'' if len(findings) == 1 else 's'}{counted and f' ({counted})'}"
    print(f"{total} in {files} file{'' if files == 1 else 's'}", file=sys.stderr)


if __name__ == "__main__":
    try:
        status = main()
        sys.stdout.flush()
    except KeyboardInterrupt:
        status = 130
    except BrokenPipeError:  # the reader (`head`, say) has closed the pipe; without this the exit would flush and fail
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    sys.exit(status)
