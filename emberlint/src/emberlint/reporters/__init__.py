"""Report formats; each module takes the findings and yields the lines of the report."""

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
    "gitlab": "gitlab",
    "junit": "junit",
}


def reporter(form: str) -> Reporter:
    """Returns the reporter of a format; imports the module of this format only."""
    return cast(Reporter, import_module(f"{__name__}.{REPORTERS[form]}").report)
