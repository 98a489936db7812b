"""Lines for people and editors: `path:line:column: CODE name: message`."""

from collections.abc import Iterator, Sequence

from emberlint.findings import Finding


def report(findings: Sequence[Finding]) -> Iterator[str]:
    """Yields a line of text for each finding."""
    for finding in findings:
        yield report_line(finding)


def summary_line(findings: int, files: int) -> str:
    """Returns the line that sums up a check: the number of findings and of files."""
    findings_text = f"{findings or 'no'} finding{'' if findings == 1 else 's'}"
    return f"{findings_text} in {files} file{'' if files == 1 else 's'}"


def report_line(finding: Finding) -> str:
    """Returns the line of text of a finding: its path and its entry."""
    return f"{finding.path}:{finding.entry}"


def detail_lines(finding: Finding) -> Iterator[str]:
    """Yields the lines that `--verbose` adds to a finding: the evidence and the advice."""
    if finding.reason:
        yield f"    because {finding.reason} (tier {finding.tier.name})"
    if finding.fix is not None:
        yield f"    {finding.fix.safety.value} fix: {finding.fix.title}"
