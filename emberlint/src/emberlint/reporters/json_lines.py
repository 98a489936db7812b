"""One JSON record per line, for streams."""

import json
from collections.abc import Iterator, Sequence

from emberlint.findings import Finding
from emberlint.reporters.records import record


def report(findings: Sequence[Finding]) -> Iterator[str]:
    """Yields a line of JSON for each finding."""
    for finding in findings:
        yield json.dumps(record(finding))
