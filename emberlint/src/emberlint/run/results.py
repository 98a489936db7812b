"""The result of one file, and its encoding for the cache and for other processes."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from emberlint.findings import Encoded, Finding, decode_finding, encode_finding
from emberlint.run.suppress import Directive
from emberlint.source.imports import Import


class FileResult(NamedTuple):
    """The result of a file's check: findings, comments, imports, the summary for other files, and the facts used.

    Attributes:
        findings: the findings before suppression.
        directives: the suppression comments.
        imports: the imports, for the contracts.
        summary: what its names are, or None.
        used: what the check has used of other files, with digests.
        near: the files of the project that it imports.
    """

    findings: tuple[Finding, ...]
    directives: tuple[Directive, ...]
    imports: tuple[Import, ...]
    summary: Any = None
    used: Mapping[str, str] = {}
    near: tuple[str, ...] = ()


def encode_result(result: FileResult) -> Encoded:
    """Returns the result of a file as lists and scalars, fit for JSON."""
    findings, directives, imports, summary, used_facts, near_paths = result
    return [
        [encode_finding(finding) for finding in findings],
        [*directives],
        [*imports],
        summary,
        {**used_facts},
        [*near_paths],
    ]


def decode_result(data: Encoded) -> FileResult:
    """Returns the result of a file from the lists that `encode_result` made."""
    findings, directives, imports, summary, used_facts, near_paths = data
    return FileResult(
        tuple(decode_finding(finding) for finding in findings),
        tuple(
            Directive(verb, tuple(codes), tuple(unknown), *line_fields)
            for verb, codes, unknown, *line_fields in directives
        ),
        tuple(Import(*import_) for import_ in imports),
        summary,
        used_facts,
        tuple(near_paths),
    )
