"""Find what ties array code to NumPy and its like.

    python utils/detect_numpy_usage.py PATH [--exclude NAME ...] [--numpy-only | ...]

The engine and the rules are those of emberlint, so are its settings and its suppressions. The exit status is 0 where
nothing is found, 1 where something is, 2 for a wrong call.
"""

import argparse
import os
import sys
from collections import Counter
from pathlib import Path

# The linter stands apart from the rest of the package and runs from a checkout without installation.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "emberlint" / "src"))

from emberlint.commands import options
from emberlint.config.errors import UsageError
from emberlint.config.settings import Settings
from emberlint.findings import Finding
from emberlint.reporters.text import details, line
from emberlint.run.engine import check
from emberlint.run.pool import default_jobs
from emberlint.run.registry import GROUPS
from emberlint.source.discover import relative

SWITCHES = {
    "numpy": "imports and uses of NumPy and other array libraries, their types, dtypes, random streams and devices",
    "precision": "casts that take a tensor to a Python number",
    "conversion": "conversions between tensors and the arrays of one library",
    "operators": "operators, comparisons, truth, loops and writes on tensors",
}


def main(arguments: list[str] | None = None) -> int:
    """Check what the arguments name and return the exit status."""
    asked = _parser().parse_args(arguments)
    try:
        settings = options.settings_for([asked.path])
        settings = settings.with_(exclude=(*settings.exclude, *_patterns(asked.exclude, settings)))
        codes = options.codes_for(settings, (), (), [asked.group] if asked.group else SWITCHES)
        report = check(options.files_for([asked.path], settings), settings, codes, default_jobs())
    except UsageError as error:
        print(f"detect_numpy_usage: {error}", file=sys.stderr)
        return 2
    _print(options.at_hand(report.findings, settings), len(report.paths), asked.verbose)
    return 1 if report.findings else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="detect_numpy_usage", description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("path", metavar="PATH", type=Path, help="file or folder")
    parser.add_argument(
        "--exclude", nargs="+", action="extend", default=[], help="folders, files or patterns to leave out"
    )
    only = parser.add_mutually_exclusive_group()
    for group, what in SWITCHES.items():
        only.add_argument(f"--{group}-only", dest="group", action="store_const", const=group, help=f"only {what}")
    parser.add_argument("-v", "--verbose", action="store_true", help="add the evidence, and what to do")
    return parser


def _patterns(words: list[str], settings: Settings) -> list[str]:
    """Return the patterns of the settings that mean what was named: a place from here, or a name anywhere."""
    return [relative(Path(word), settings.root) if Path(word).exists() else f"**/{word}" for word in words]


def _print(findings: list[Finding], files: int, verbose: bool) -> None:
    for finding in findings:
        print(line(finding))
        for text in details(finding) if verbose else ():
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
    except BrokenPipeError:  # whoever read has read enough; the interpreter is not to flush once more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    sys.exit(status)
