"""Ways to write findings down; each takes the findings and yields the lines of the report."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import cast

from emberlint.findings import Finding

Reporter = Callable[[Sequence[Finding]], Iterator[str]]

REPORTERS: Mapping[str, str] = {
    "text": "text",
    "json": "json_report",
    "jsonl": "json_lines",
    "sarif": "sarif",
    "github": "github",
}


def reporter(form: str) -> Reporter:
    """Return the reporter of a form; the others are not imported."""
    return cast(Reporter, import_module(f"{__name__}.{REPORTERS[form]}").report)
