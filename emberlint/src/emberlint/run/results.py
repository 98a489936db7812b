"""The result of one file, and its encoding for the cache and for other processes."""

from typing import NamedTuple

from emberlint.findings import Encoded, Finding, decode_finding, encode_finding
from emberlint.run.suppress import Directive
from emberlint.source.imports import Import


class FileResult(NamedTuple):
    """The findings of a file before suppression, its suppression comments, and its imports."""

    findings: tuple[Finding, ...]
    directives: tuple[Directive, ...]
    imports: tuple[Import, ...]


def encode(result: FileResult) -> Encoded:
    """Returns a result as lists and scalars."""
    return [[encode_finding(one) for one in result.findings], [*result.directives], [*result.imports]]


def decode(data: Encoded) -> FileResult:
    """Returns the result that `encode` encoded."""
    findings, directives, found = data
    return FileResult(
        tuple(decode_finding(one) for one in findings),
        tuple(Directive(verb, tuple(codes), tuple(unknown), *rest) for verb, codes, unknown, *rest in directives),
        tuple(Import(*one) for one in found),
    )
