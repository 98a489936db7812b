"""JUnit's XML, which continuous integration shows as tests: a failure for each finding."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from xml.sax.saxutils import escape, quoteattr

from emberlint.findings import Finding


def report(findings: Sequence[Finding]) -> Iterator[str]:
    """Yields the document: a suite for each file with findings; one test that passes if there are none."""
    finding_count = len(findings)
    yield '<?xml version="1.0" encoding="utf-8"?>'
    yield f'<testsuites name="emberlint" tests="{finding_count or 1}" failures="{finding_count}">'
    if not findings:
        yield '<testsuite name="emberlint" tests="1" failures="0"><testcase name="no findings" /></testsuite>'
    for path, grouped_findings in groupby(findings, key=lambda one: one.path):
        grouped_paths = [*grouped_findings]
        yield f'<testsuite name={_quoted_attribute(path)} tests="{len(grouped_paths)}" failures="{len(grouped_paths)}">'
        yield from map(_test_case, grouped_paths)
        yield "</testsuite>"
    yield "</testsuites>"


def _test_case(finding: Finding) -> str:
    location = f"{finding.path}:{finding.entry.partition(' ')[0].rstrip(':')}"
    test_name = f"{finding.code} {finding.name} ({finding.line}:{finding.column})"
    line, quoted_path = finding.file_lines[0], _quoted_attribute(finding.path)
    failure_xml = f"<failure message={_quoted_attribute(finding.message)}>{_escaped_text(location)}</failure>"
    opening_tag = f"<testcase name={_quoted_attribute(test_name)} classname={quoted_path} file={quoted_path}"
    return f'{opening_tag} line="{line}">{failure_xml}</testcase>'


def _printable(text: str) -> str:
    """Returns a text without the characters that XML does not allow."""
    return (
        "".join(character if character >= " " or character in "\t\n\r" else "?" for character in text)
        .encode(errors="replace")
        .decode()
    )


def _quoted_attribute(text: str) -> str:
    return quoteattr(_printable(text))


def _escaped_text(text: str) -> str:
    return escape(_printable(text))
