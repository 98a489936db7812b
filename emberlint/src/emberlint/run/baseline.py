"""The baseline: a list of accepted findings, identified by content, that may only shrink."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from emberlint.config.errors import UsageError
from emberlint.findings import Finding

VERSION = 1


class Entry(NamedTuple):
    """The key of accepted findings: the path, the rule's code and the fingerprint of the text."""

    path: str
    code: str
    fingerprint: str


def read_entries(file: Path) -> Counter[Entry]:
    """Returns the entries of a baseline file, with the number of findings that each accepts.

    Raises:
        UsageError: if the file cannot be read or is not a baseline.
    """
    try:
        json_data = json.loads(file.read_text(encoding="utf-8"))
        if json_data["version"] != VERSION:
            raise UsageError(
                f"{file}: expected a baseline of version {VERSION}, got {json_data['version']}; "
                "delete the file and write it again with --baseline-update"
            )
        return Counter(
            {
                Entry(entry["path"], entry["code"], entry["fingerprint"]): entry["count"]
                for entry in json_data["entries"]
            }
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(f"{file}: cannot be read as a baseline: {error}") from error


def write_entries(file: Path, entries: Counter[Entry]) -> None:
    """Writes the entries to a baseline file, one per line, so that its diffs are readable."""
    entry_lines = [
        json.dumps({**entry._asdict(), "count": count}) for entry, count in sorted(entries.items()) if count > 0
    ]
    entries_json = ",\n    ".join(entry_lines)
    entries_text = f"[\n    {entries_json}\n  ]" if entry_lines else "[]"
    try:
        file.write_text(f'{{\n  "version": {VERSION},\n  "entries": {entries_text}\n}}\n', encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{file}: cannot be written: {error.strerror}") from error


def count_entries(findings: Iterable[Finding]) -> Counter[Entry]:
    """Returns the entries that accept some findings, with their numbers."""
    return Counter(entry_of(finding) for finding in findings if finding.fingerprint)


def entry_of(finding: Finding) -> Entry:
    """Returns the entry that accepts a finding."""
    return Entry(finding.path, finding.code, finding.fingerprint)


def apply_baseline(findings: Sequence[Finding], accepted: Counter[Entry]) -> tuple[list[Finding], Counter[Entry]]:
    """Returns the findings that are not accepted, and the entries that no longer accept anything."""
    remaining_by_entry = Counter(accepted)
    new_findings: list[Finding] = []
    for finding in findings:
        entry = entry_of(finding)
        if finding.fingerprint and remaining_by_entry[entry] > 0:
            remaining_by_entry[entry] -= 1
        else:
            new_findings.append(finding)
    return new_findings, +remaining_by_entry


def stale_findings(
    file: Path, shown_path: str, entries: Counter[Entry], checked_paths: frozenset[str]
) -> list[Finding]:
    """Returns an EMB905 for each entry of a checked file that no longer accepts anything."""
    from emberlint.run.registry import all_rules  # not at the top: it imports every rule

    baseline_lines = file.read_text(encoding="utf-8").splitlines()
    entry_findings: list[Finding] = []
    for entry in sorted(entries):
        if entry.path in checked_paths:
            entry_line = next(
                (number for number, text in enumerate(baseline_lines, 1) if _is_line_of_entry(text, entry)), 1
            )
            entry_span = (entry_line, 1, entry_line, len(baseline_lines[entry_line - 1]) + 1)
            entry_findings.append(
                all_rules()["EMB905"].finding_at(shown_path, entry_span, what=entry.code, where=entry.path)
            )
    return entry_findings


def _is_line_of_entry(line: str, entry: Entry) -> bool:
    return entry.fingerprint in line and json.dumps(entry.path) in line


def shrink_baseline(file: Path, findings: Sequence[Finding], checked_paths: frozenset[str]) -> None:
    """Drops unneeded entries from a baseline file; if there is no file, writes one that accepts all findings."""
    current_entries = count_entries(findings)
    if file.exists():
        old_entries = read_entries(file)
        count_by_kept_entry = Counter(
            {entry: count for entry, count in old_entries.items() if entry.path not in checked_paths}
        )
        current_entries = (old_entries & current_entries) + count_by_kept_entry
    write_entries(file, current_entries)
