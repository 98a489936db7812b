"""Asks git which lines differ from a commit."""

import re
import subprocess
from pathlib import Path

from emberlint.config.errors import UsageError
from emberlint.findings import Finding

_HUNK = re.compile(r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@")
EVERY_LINE = range(1, 1 << 30)


def changed_lines(root: Path, ref: str) -> dict[str, list[range]]:
    """Returns the ranges of new lines for each file below the root that differs from `ref`; a new file counts whole.

    Raises:
        UsageError: if git is missing or `ref` is not a commit.
    """
    if ref.startswith("-"):
        raise UsageError(f"--diff-base: {ref!r} is not a commit")
    verify_arguments = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
    _run_git(root, *verify_arguments, what=f"{ref!r} is not a commit")
    ranges_by_path: dict[str, list[range]] = {}
    changed_path = ""
    diff_options = ("--unified=0", "--no-color", "--no-ext-diff", "--no-prefix", "--relative", "--no-renames")
    for line in _run_git(root, "-c", "core.quotepath=off", "diff", *diff_options, ref, "--").splitlines():
        if line.startswith("+++ "):
            changed_path = line[4:].rstrip("\t")
        elif match := _HUNK.match(line):
            first_line, line_count = int(match[1]), int(match[2] or 1)
            # A hunk that only removes lines has an empty range.
            ranges_by_path.setdefault(changed_path, []).append(range(first_line, first_line + line_count))
    for changed_path in _run_git(root, "ls-files", "--others", "--exclude-standard", "-z").split("\0"):
        if changed_path:
            ranges_by_path[changed_path] = [EVERY_LINE]
    return ranges_by_path


def is_changed(finding: Finding, changed: dict[str, list[range]]) -> bool:
    """Returns whether a finding overlaps a changed line."""
    finding_lines = finding.file_lines
    return any(
        finding_lines.start < line_range.stop and line_range.start < finding_lines.stop
        for line_range in changed.get(finding.path, ())
    )


def _run_git(root: Path, *arguments: str, what: str = "git failed") -> str:
    try:
        git_run = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, check=False)
    except FileNotFoundError as error:
        raise UsageError("--diff-base needs git") from error
    if git_run.returncode:
        error_line = git_run.stderr.decode(errors="replace").strip().partition("\n")[0]
        raise UsageError(f"--diff-base: {what} in {root}{error_line and f' ({error_line})'}")
    return git_run.stdout.decode(errors="replace")
