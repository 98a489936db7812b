"""Annotations of GitHub's checks: `::error file=…,line=…::message`."""

from collections.abc import Iterator, Sequence

from emberlint.findings import Finding


def report(findings: Sequence[Finding]) -> Iterator[str]:
    """Yields a workflow command of GitHub for each finding, which annotates the line."""
    for finding in findings:
        file_lines, columns_text = finding.file_lines, f",col={finding.column},endColumn={finding.end_column}"
        columns_text = "" if finding.cell else columns_text
        properties_text = (
            f"file={_escape_property(finding.path)},line={file_lines[0]},endLine={file_lines[-1]}{columns_text}"
        )
        yield f"::error {properties_text},title={finding.code} {finding.name}::{_escape_message(finding.message)}"


def _escape_message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape_message(text).replace(":", "%3A").replace(",", "%2C")
