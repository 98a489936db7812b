"""Ways to write findings down; each takes the findings and yields the lines of the report."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from emberharmony.lint.model import Finding
from emberharmony.lint.reporters import github, json_lines, json_report, sarif, text

Reporter = Callable[[Sequence[Finding]], Iterator[str]]

REPORTERS: Mapping[str, Reporter] = {
    "text": text.report,
    "json": json_report.report,
    "jsonl": json_lines.report,
    "sarif": sarif.report,
    "github": github.report,
}
