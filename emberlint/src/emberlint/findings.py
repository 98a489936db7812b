"""What a rule has to say: a finding, how to repair it, and how both are written down."""

from enum import StrEnum
from typing import Any, NamedTuple

from emberlint.config.tiers import Tier

Encoded = list[Any]


class Safety(StrEnum):
    """What a fix may change."""

    SAFE = "safe"  # same value, same evaluation order
    UNSAFE = "unsafe"  # the value's type, dtype or place may differ
    GUIDED = "guided"  # not applied: advice to a person


class Fix(NamedTuple):
    """How to repair a finding: what to do, and where it is short enough to show, the new expression."""

    safety: Safety
    title: str
    replacement: str = ""


class Finding(NamedTuple):
    """One thing a rule has to say about one place; lines and columns count from 1, the end is exclusive."""

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
    rank: int = 0  # higher comes first where findings are ranked: a cast inside a loop
    fingerprint: str = ""  # of the source text found, given by the engine; lines may move, this does not


class Report(NamedTuple):
    """The findings, in order, and the files that were checked."""

    findings: list[Finding]
    paths: tuple[str, ...]


def encode_finding(finding: Finding) -> Encoded:
    """Return a finding as a list of scalars, fit for JSON."""
    return [*finding]


def decode_finding(data: Encoded) -> Finding:
    """Return the finding that was written down."""
    finding = Finding(*data)
    fix = None if finding.fix is None else Fix(Safety(finding.fix[0]), *finding.fix[1:])
    return finding._replace(tier=Tier(finding.tier), fix=fix)
