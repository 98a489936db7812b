"""The report of a port: the uses that were ported, those that remain by kind and place, and changed tests."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import TypeVar

from emberlint.port.rewrite import Ported, UseReport
from emberlint.port.step import ANNOTATION
from emberlint.port.trial import Run, Trial

Key = TypeVar("Key", str, int)
STYLE = """body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem }
table { border-collapse: collapse; margin-bottom: 1.5rem } th, td { border: 1px solid #8886; padding: .2rem .6rem }
th, td { text-align: left; vertical-align: top } code { font-size: 90% }
@media (prefers-color-scheme: dark) { body { background: #111; color: #ddd } }"""


def report_lines(files: Mapping[str, Ported], tried: Trial | None = None) -> Iterator[str]:
    """Yields the lines of the report of a port as text."""
    for path, file in files.items():
        yield from (
            f"{path}:{line}: {native_name}: {reason}" for line, native_name, reason in _remaining_places(file.remaining)
        )
        use_counts_by_cell = _count_uses({path: file}, lambda use: use.cell)
        yield from (
            f"{path}:cell {cell}: {ported_count} ported, {remaining_count} remain"
            for cell, ported_count, remaining_count in use_counts_by_cell
            if cell
        )
    yield from (
        f"{use_kind}: {ported_count} ported, {remaining_count} remain"
        for use_kind, ported_count, remaining_count in _count_uses(files, lambda use: use.kind)
    )
    yield _summary_text(files)
    if tried is not None:
        yield f"before: {_counts_text(tried.before)}"
        yield from (f"after, on {backend}: {_counts_text(run)}" for backend, run in tried.after.items())
        yield from (f"{backend}: not installed, so nothing ran on it" for backend in tried.absent)
        yield from (
            f"{outcome.backend}: {outcome.test}: {outcome.before} before, {outcome.after} after"
            for outcome in tried.changed_outcomes
        )
        if not tried.changed_outcomes:
            yield "the port changed no outcome"


def report_json(files: Mapping[str, Ported], tried: Trial | None = None) -> str:
    """Returns the report of a port as JSON."""
    json_document: dict[str, object] = {
        "version": 1,
        "files": [
            {
                "path": path,
                "changed": file.before != file.after,
                "ported": [_fields_of_use(use, "native", "kind", "line") for use in file.ported],
                "remaining": [
                    _fields_of_use(use, "native", "kind", "line", "reason", "advice") for use in file.remaining
                ],
            }
            for path, file in files.items()
        ],
    }
    if tried is not None:
        json_document["check-run"] = {
            "command": tried.command,
            "before": tried.before._asdict(),
            "after": {backend: run._asdict() for backend, run in tried.after.items()},
            "absent": tried.absent,
            "parted": [outcome._asdict() for outcome in tried.changed_outcomes],
        }
    return json.dumps(json_document, indent=2)


def report_html(files: Mapping[str, Ported], tried: Trial | None = None) -> str:
    """Returns the report of a port as one HTML page without references to other files."""
    remaining_rows = [(path, *row) for path, file in files.items() for row in _remaining_places(file.remaining)]
    kind_rows = [
        (use_kind, str(ported_count), str(remaining_count))
        for use_kind, ported_count, remaining_count in _count_uses(files, lambda use: use.kind)
    ]
    tables_html = [f"<p>{escape(_summary_text(files))}</p>", _html_table(("kind", "ported", "remain"), kind_rows)]
    if tried is not None:
        outcome_rows = [("before", "", _counts_text(tried.before))]
        outcome_rows += [("after", backend, _counts_text(run)) for backend, run in tried.after.items()]
        outcome_rows += [("after", backend, "not installed") for backend in tried.absent]
        tables_html += [
            f"<h2>Tests</h2><p><code>{escape(tried.command)}</code></p>",
            _html_table(("", "backend", "tests"), outcome_rows),
        ]
        if tried.changed_outcomes:
            tables_html += [
                "<h2>Tests that part</h2>",
                _html_table(("backend", "test", "before", "after"), tried.changed_outcomes),
            ]
    tables_html += ["<h2>What remains</h2>", _html_table(("file", "line", "use", "reason"), remaining_rows)]
    head_html = f'<meta charset="utf-8"><title>emberlint port</title><style>{STYLE}</style>'
    body_html = "\n".join(["<h1>emberlint port</h1>", *tables_html])
    return f'<!doctype html>\n<html lang="en"><head>{head_html}</head>\n<body>\n{body_html}\n</body></html>'


def _html_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    row_lines = [f"<tr>{''.join(f'<th>{escape(head)}</th>' for head in heads)}</tr>"]
    row_lines += [f"<tr>{''.join(f'<td>{escape(cell_text)}</td>' for cell_text in row)}</tr>" for row in rows]
    return "<table>\n" + "\n".join(row_lines) + "\n</table>"


def _remaining_places(uses: Iterable[UseReport]) -> Iterator[tuple[str, str, str]]:
    """Yields the place, the name and the reason of each use that remains, of annotations with one type only once."""
    uses_by_key: dict[tuple[object, ...], list[UseReport]] = {}
    for index, use in enumerate(uses):
        group_key = use.native, use.reason, use.cell
        uses_by_key.setdefault(group_key if use.kind == ANNOTATION else (*group_key, index), []).append(use)
    for similar_uses in uses_by_key.values():
        use, count = similar_uses[0], len(similar_uses)
        line_numbers = sorted({use.line for use in similar_uses})
        lines_text = f"line{'s' if len(line_numbers) > 1 else ''} {', '.join(map(str, line_numbers))}"
        count_text = f", in {count} annotations: {lines_text}" if count > 1 else ""
        yield f"{_cell_text(use)}{use.line}", use.native, _reason_text(use.reason, use.advice) + count_text


def _reason_text(reason: str, advice: str) -> str:
    return f"{reason} ({advice})" if advice else reason


def _counts_text(run: Run) -> str:
    """Returns the number of tests by outcome as text, or the exit status of a command that reports no tests."""
    count_by_outcome = Counter(run.outcomes.values())
    return ", ".join(f"{count} {kind}" for kind, count in count_by_outcome.most_common()) or f"exit status {run.status}"


def _cell_text(use: UseReport) -> str:
    return f"cell {use.cell}:" if use.cell else ""


def _fields_of_use(use: UseReport, *names: str) -> dict[str, str | int]:
    return {name: getattr(use, name) for name in (*names, *(["cell"] if use.cell else []))}


def _count_uses(files: Mapping[str, Ported], key: Callable[[UseReport], Key]) -> list[tuple[Key, int, int]]:
    """Returns, for each key of uses, the number of ported and of remaining uses."""
    keys_and_states = [
        (key(use), list_index)
        for file in files.values()
        for list_index, similar_uses in enumerate((file.ported, file.remaining))
        for use in similar_uses
    ]
    count_by_use = Counter(keys_and_states)
    return [
        (key, count_by_use[key, 0], count_by_use[key, 1]) for key in sorted({use_key for use_key, _ in keys_and_states})
    ]


def _summary_text(files: Mapping[str, Ported]) -> str:
    ported_count = sum(len(file.ported) for file in files.values())
    use_count = ported_count + sum(len(file.remaining) for file in files.values())
    share_text = f" ({ported_count / use_count:.0%})" if use_count else ""
    changed_count = sum(file.before != file.after for file in files.values())
    return f"{ported_count} of {use_count} native uses ported{share_text}; {changed_count} of {len(files)} files change"
