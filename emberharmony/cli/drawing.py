"""Progress bars and tables: drawn by rich if it is installed (the extra `cli`), plain text otherwise."""

import contextlib
import importlib.util
import sys
from collections.abc import Callable, Iterator, Sequence

_WIDTH = 160
"""The width, in characters, of a table that is not shown on a terminal."""

Advance = Callable[..., None]
"""A function `advance(steps=1, description=None)`, which advances a progress bar."""


@contextlib.contextmanager
def progress(total: int, description: str = "") -> Iterator[Advance]:
    """Shows a progress bar until the block ends, and gives the block the function that advances it.

    Nothing is shown if the output is not a terminal, or if rich is not installed.
    """
    if not (sys.stdout.isatty() and _has_rich()):
        yield _advance_hidden_bar
        return
    from rich import progress as bars  # imported here, because only terminals with rich need it

    bar_columns = (
        bars.TextColumn("{task.description:32}"),
        bars.BarColumn(),
        bars.MofNCompleteColumn(),
        bars.TimeElapsedColumn(),
    )
    with bars.Progress(*bar_columns, transient=True) as progress_bar:
        task_id = progress_bar.add_task(description, total=total)

        def advance(steps: int = 1, description: str | None = None) -> None:
            progress_bar.update(task_id, advance=steps, description=description)

        yield advance


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns a table as text: with lines if rich is installed, else in aligned columns."""
    if not _has_rich():
        return aligned_table(header, rows)
    from rich.console import Console
    from rich.table import Table

    rich_table = Table(*header)
    rich_table.columns[0].no_wrap = True
    console = Console() if sys.stdout.isatty() else Console(width=_WIDTH)
    for row in rows:
        rich_table.add_row(*row)
    with console.capture() as console_capture:
        console.print(rich_table)
    return console_capture.get().rstrip("\n")


def aligned_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns a table in aligned columns, one line for each row however wide it is, so that programs can read it."""
    column_widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    padded_rows = (
        [cell.ljust(width) for cell, width in zip(row, column_widths, strict=True)] for row in (header, *rows)
    )
    return "\n".join("  ".join(cells).rstrip() for cells in padded_rows)


def _has_rich() -> bool:
    return importlib.util.find_spec("rich") is not None


def _advance_hidden_bar(steps: int = 1, description: str | None = None) -> None:
    """Does nothing, because no bar is shown."""
