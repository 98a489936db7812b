"""One JSON document: `{"version": 1, "findings": [...]}`."""

import json
from collections.abc import Iterator, Sequence

from emberlint.findings import Finding
from emberlint.reporters.records import record

VERSION = 1


def report(findings: Sequence[Finding]) -> Iterator[str]:
    """Yields the document."""
    yield json.dumps({"version": VERSION, "findings": [record(one) for one in findings]}, indent=2)
