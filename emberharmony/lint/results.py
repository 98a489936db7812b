"""What one file gave, and how it is written down for the cache and carried between processes."""

from dataclasses import replace
from typing import Any, NamedTuple

from emberharmony.lint.imports import Import
from emberharmony.lint.model import Finding, Fix, Safety
from emberharmony.lint.suppress import Directive
from emberharmony.lint.tiers import Tier

Encoded = list[Any]


class FileResult(NamedTuple):
    """The findings before suppression, the suppression comments, and the imports of a file."""

    findings: tuple[Finding, ...]
    directives: tuple[Directive, ...]
    imports: tuple[Import, ...]


def encode(result: FileResult) -> Encoded:
    """Return a result as lists and scalars."""
    return [[encode_finding(one) for one in result.findings], [*result.directives], [*result.imports]]


def decode(data: Encoded) -> FileResult:
    """Return the result that `encode` wrote."""
    findings, directives, found = data
    return FileResult(
        tuple(decode_finding(one) for one in findings),
        tuple(Directive(verb, tuple(codes), tuple(unknown), *rest) for verb, codes, unknown, *rest in directives),
        tuple(Import(*one) for one in found),
    )


def encode_finding(finding: Finding) -> Encoded:
    """Return a finding as a list of scalars."""
    fix = finding.fix
    start = [finding.code, finding.name, finding.path, finding.line, finding.column, finding.end_line]
    end = [finding.end_column, finding.message, finding.tier.value, finding.reason]
    repair = None if fix is None else [fix.safety.value, fix.title, fix.replacement]
    return [*start, *end, repair, finding.rank, finding.fingerprint]


def decode_finding(data: Encoded) -> Finding:
    """Return the finding that `encode_finding` wrote."""
    finding = Finding(*data)
    fix = data[10]
    repair = None if fix is None else Fix(Safety(fix[0]), fix[1], fix[2])
    return replace(finding, tier=Tier(data[8]), fix=repair)
