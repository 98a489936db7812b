"""A finding of the doctor, and the documented differences to which it can refer."""

from dataclasses import dataclass, field

OK, DIFFERS, BROKEN = "OK", "differs", "broken"

ROWS = {
    "precision": "accelerators.md#the-precision-of-products",
    "remaining": "semantics.md#differences-that-remain",
    "speed": "performance.md",
    "settings": "install.md#environment-variables",
    "versions": "stability.md#supported-versions",
    "doctor": "accelerators.md#what-the-doctor-checks",
}
"""The places in the documentation that describe differences."""


@dataclass(frozen=True)
class Finding:
    """A finding of the doctor: the subject and the check, the verdict, and a program that shows it.

    Args:
        subject: the backend, or "machine" or "settings".
        check: the name of the check.
        verdict: "OK", "differs" (a documented difference) or "broken".
        detail: what was found.
        row: for a difference, the place in the documentation that describes it.
        repro: for a fault, a program of three lines.
        figures: numbers by name, with their unit in the name.
    """

    subject: str
    check: str
    verdict: str
    detail: str = ""
    row: str = ""
    repro: str = ""
    figures: dict[str, float] = field(default_factory=dict)
