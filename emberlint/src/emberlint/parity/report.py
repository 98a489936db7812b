"""Formats the matrix of ops and backends as text, Markdown, JSON or HTML."""

import json
from collections import Counter
from collections.abc import Iterator
from html import escape

from emberlint.parity.matrix import BackendCell, Matrix, OpRow, Status

MARKS = {
    Status.OK: "ok",
    Status.OVERRIDE: "override",
    Status.COMPOSITE: "composite",
    Status.MISSING: "MISSING",
    Status.DIFFERS: "DIFFERS",
    Status.UNSUPPORTED: "unsupported",
    Status.MISPLACED: "IN OPS FOLDER",
}
_STYLE = """body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem}
table{border-collapse:collapse}th,td{border:1px solid #ccc;padding:.2rem .6rem;text-align:left}
.gap{background:#fbd5d5}.unsupported{background:#fdf1c7}.override{background:#dcefdc}"""


def report_text(matrix: Matrix, verbose: bool = False) -> str:
    """Returns the gaps and the coverage of the matrix as text for a terminal; with `verbose`, every cell."""
    report_lines = []
    if verbose:
        name_width = max((len(row.name) for row in matrix.rows), default=2)
        report_lines.append("  ".join(["op".ljust(name_width), *(name.ljust(13) for name in matrix.backends)]).rstrip())
        for row in matrix.rows:
            cell_texts = [MARKS[row.cells[name].status].ljust(13) for name in matrix.backends]
            report_lines.append("  ".join([row.name.ljust(name_width), *cell_texts]).rstrip())
        report_lines.append("")
    for name in matrix.backends:
        report_lines.append(f"{name}: {_backend_summary(matrix, name)}")
        report_lines.extend(f"  {line}" for line in _backend_notes(matrix, name))
    unexported_names = [row.name for row in matrix.rows if not row.exported]
    if unexported_names:
        report_lines.append(f"not exported by the frontend: {', '.join(unexported_names)}")
    return "\n".join(report_lines) + "\n"


def _backend_summary(matrix: Matrix, backend: str) -> str:
    count_by_status = Counter(row.cells[backend].status for row in matrix.rows)
    counts_text = ", ".join(f"{count_by_status[status]} {status}" for status in Status if count_by_status[status])
    return f"{_percent(matrix.coverage(backend))} of {len(matrix.rows)} ops ({counts_text or 'none'})"


def _percent(fraction: float) -> str:
    """Returns a share rounded down, so that 100 % means all."""
    return f"{int(fraction * 1000) / 10:g} %"


def _backend_notes(matrix: Matrix, backend: str) -> Iterator[str]:
    """Yields one line for each fault of a backend, and one with the reason for each unsupported op."""
    for row in matrix.rows:
        note_text = _cell_note(row, row.cells[backend])
        if note_text:
            yield f"{row.name}: {note_text}"


def _cell_note(row: OpRow, cell: BackendCell) -> str:
    if cell.status is Status.MISSING:
        return f"missing {cell.declared}".rstrip()
    if cell.status is Status.MISPLACED:
        return f"only in {cell.detail}; --migrate moves it"
    if cell.status is Status.DIFFERS:
        return f"{cell.detail}: declared {row.name}{cell.declared}, defined {row.name}{cell.defined}{_place_text(cell)}"
    if cell.status is Status.UNSUPPORTED:
        return f"unsupported: {cell.detail or 'no reason given'}"
    return ""


def _place_text(cell: BackendCell) -> str:
    return "" if cell.definition is None else f" at {cell.definition.place.path}:{cell.definition.place.line}"


def report_markdown(matrix: Matrix) -> str:
    """Returns the matrix in Markdown: a table per category, with the coverage above and notes below."""
    markdown_lines = ["# Ops and backends", "", "| backend | coverage | missing |", "| --- | --- | --- |"]
    for name in matrix.backends:
        missing_text = ", ".join(f"`{op}`" for op in matrix.missing_ops(name)) or "none"
        markdown_lines.append(f"| {name} | {_percent(matrix.coverage(name))} | {missing_text} |")
    for category in matrix.categories:
        markdown_lines += ["", f"## {category}", "", f"| op | {' | '.join(matrix.backends)} |"]
        markdown_lines.append("| --- " * (len(matrix.backends) + 1) + "|")
        for row in matrix.rows:
            if row.category == category:
                cell_marks = [MARKS[row.cells[name].status] for name in matrix.backends]
                markdown_lines.append(f"| `{row.name}` | {' | '.join(cell_marks)} |")
    for name in matrix.backends:
        note_lines = [f"- {line}" for line in _backend_notes(matrix, name)]
        if note_lines:
            markdown_lines += ["", f"## Notes: {name}", "", *note_lines]
    return "\n".join(markdown_lines) + "\n"


def report_json(matrix: Matrix) -> str:
    """Returns the whole matrix of ops and backends as JSON."""
    op_records = [
        {
            "name": row.name,
            "category": row.category,
            "kind": "composite" if row.composite else "primitive",
            "aliases": [] if row.declaration is None else list(row.declaration.aliases),
            "exported": row.exported,
            "backends": {name: _cell_as_json(row.cells[name]) for name in matrix.backends},
        }
        for row in matrix.rows
    ]
    coverage_by_backend = {
        name: {"coverage": round(matrix.coverage(name), 4), "missing": matrix.missing_ops(name)}
        for name in matrix.backends
    }
    return json.dumps({"version": 1, "backends": coverage_by_backend, "ops": op_records}, indent=2) + "\n"


def _cell_as_json(cell: BackendCell) -> dict[str, object]:
    cell_fields: dict[str, object] = {"status": cell.status.value}
    optional_fields = {"detail": cell.detail, "declared": cell.declared, "defined": cell.defined}
    cell_fields.update({key: value for key, value in optional_fields.items() if value})
    if cell.definition is not None:
        cell_fields.update(path=cell.definition.place.path, line=cell.definition.place.line)
    return cell_fields


def report_html(matrix: Matrix) -> str:
    """Returns the matrix as one HTML page without scripts or references to other files."""
    summary_rows = [
        f"<tr><th>{name}</th><td>{escape(_backend_summary(matrix, name))}</td></tr>" for name in matrix.backends
    ]
    html_parts = [f"<h1>Ops and backends</h1><table>{''.join(summary_rows)}</table>"]
    titles_html = "".join(f"<th>{escape(name)}</th>" for name in ("op", *matrix.backends))
    for category in matrix.categories:
        category_rows = "".join(_html_row(matrix, row) for row in matrix.rows if row.category == category)
        html_parts.append(f"<h2>{escape(category)}</h2><table><tr>{titles_html}</tr>{category_rows}</table>")
    head_html = f'<meta charset="utf-8"><title>Ops and backends</title><style>{_STYLE}</style>'
    return "\n".join(["<!doctype html>", f'<html lang="en">{head_html}', *html_parts, "</html>", ""])


def _html_row(matrix: Matrix, row: OpRow) -> str:
    cells_html = []
    for name in matrix.backends:
        cell = row.cells[name]
        row_class = "gap" if cell.status.is_gap else cell.status.value
        cells_html.append(f'<td class="{row_class}" title="{escape(_cell_note(row, cell))}">{MARKS[cell.status]}</td>')
    return f"<tr><td>{escape(row.name)}</td>{''.join(cells_html)}</tr>"
