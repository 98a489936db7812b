"""HTML for notebooks: objects with many parts are shown as a table."""

from collections.abc import Sequence
from html import escape

_LEFT, _RIGHT = ' style="text-align: left"', ' style="text-align: right"'


def html_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1, notes: str = "") -> str:
    """Returns a title, a table and notes as HTML; all texts are escaped.

    Args:
        title: stands above the table; may have several lines.
        header: the names of the columns.
        rows: the cells, as many in each row as there are columns.
        left: how many columns, from the first, have text and are aligned to the left; the others have numbers.
        notes: stands below the table, each line as a paragraph.
    """
    alignments = [_LEFT if i < left else _RIGHT for i in range(len(header))]
    elements = ["<div>", *(f"<p>{escape(line)}</p>" for line in title.splitlines())]
    if rows:
        row_texts = (_table_row("td", row, alignments) for row in rows)
        elements.append(
            f"<table><thead>{_table_row('th', header, alignments)}</thead><tbody>{''.join(row_texts)}</tbody></table>"
        )
    return "".join([*elements, *(f"<p>{escape(line)}</p>" for line in notes.splitlines()), "</div>"])


def _table_row(tag: str, cells: Sequence[str], sides: Sequence[str]) -> str:
    return (
        f"<tr>{''.join(f'<{tag}{side}>{escape(cell)}</{tag}>' for cell, side in zip(cells, sides, strict=True))}</tr>"
    )
