"""The classes of a finding and its fix, and their encoding for the cache."""

from enum import StrEnum
from typing import Any, NamedTuple

from emberlint.config.tiers import Tier

Encoded = list[Any]
_TIERS = {one.value: one for one in Tier}


class Safety(StrEnum):
    """The safety of a fix: whether it keeps the value, may change dtype or device, or is only advice."""

    SAFE = "safe"  # same value, same evaluation order
    UNSAFE = "unsafe"  # the value's type, dtype or place may differ
    GUIDED = "guided"  # not applied: advice for a person


_SAFETIES = {one.value: one for one in Safety}


class Fix(NamedTuple):
    """The fix of a finding: its safety, its title, and the new expression if it is short enough to show."""

    safety: Safety
    title: str
    replacement: str = ""


class Finding(NamedTuple):
    """A finding of a rule at a place in a file; lines and columns count from 1, the end is exclusive."""

    code: str
    name: str
    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    message: str
    tier: Tier = Tier.A
    reason: str = ""
    fix: Fix | None = None
    rank: int = 0  # for ranking findings, higher first: a cast inside a loop ranks higher
    fingerprint: str = ""  # hash of the source text found, set by the engine; it stays the same when lines move
    cell: int = 0  # in a notebook the number of the cell, whose lines `line` and `end_line` count
    file_line: int = 0  # in a notebook the line of the file

    @property
    def entry(self) -> str:
        """The line of the report without the path: the place in the file, the rule and the message."""
        cell_text = f"cell {self.cell}:" if self.cell else ""
        return f"{cell_text}{self.line}:{self.column}: {self.code} {self.name}: {self.message}"

    @property
    def file_lines(self) -> range:
        """The range of lines of the file that the finding covers."""
        first_line = self.file_line or self.line
        return range(first_line, first_line + self.end_line - self.line + 1)


class Report(NamedTuple):
    """The result of a check: the findings in order, and the checked files.

    `beyond` are the files that were read besides, because the checked ones import them; `absent` are the places where a
    new file could change the findings.
    """

    findings: list[Finding]
    paths: tuple[str, ...]
    beyond: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()


def encode_finding(finding: Finding) -> Encoded:
    """Returns a finding as a list of scalars, fit for JSON."""
    return [*finding]


def decode_finding(data: Encoded) -> Finding:
    """Returns the finding that `encode_finding` encoded."""
    # Tables and `_make` are several times faster than calls of the classes, of which a run decodes ten thousands.
    tier, reason, fix = data[8:11]
    decoded_fix = None if fix is None else Fix._make((_SAFETIES[fix[0]], *fix[1:]))
    return Finding._make((*data[:8], _TIERS[tier], reason, decoded_fix, *data[11:]))
