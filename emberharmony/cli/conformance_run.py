"""Runs the checks of `emberharmony conformance` and reports them; needs hypothesis and SciPy."""

import contextlib
import fnmatch
import warnings
from collections.abc import Iterator, Sequence

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from emberharmony import ops
from emberharmony.core.errors import suggest
from emberharmony.testing.conformance import Outcome, run_sample
from emberharmony.testing.report import KINDS, Report, totals
from emberharmony.testing.report import as_html as as_html
from emberharmony.testing.report import summarize as summarize
from emberharmony.testing.sample import Sample
from emberharmony.testing.samples import all_samples, without_row


def matching(pattern: str) -> list[Sample]:
    """Returns the sample rows of the ops whose names match a pattern.

    Raises:
        click.UsageError: if no op matches; the message suggests the nearest name.
        click.ClickException: if an op that matches has no row.
    """
    samples = all_samples()
    missing = [words for op, words in without_row().items() if fnmatch.fnmatchcase(op, pattern)]
    if missing:
        raise click.ClickException("\n".join(missing))
    rows = [samples[op] for op in sorted(samples) if fnmatch.fnmatchcase(op, pattern)]
    if not rows:
        raise click.UsageError(f"no op matches {pattern!r}{suggest(pattern.strip('*?'), samples)}")
    return rows


def outcomes_of(console: Console, rows: Sequence[Sample], names: Sequence[str], quick: bool) -> Iterator[Outcome]:
    """Yields all outcomes, and restores the active backend at the end.

    If the console is a terminal, a progress bar is shown.
    """
    columns = (TextColumn("{task.description:32}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with _former_backend(), warnings.catch_warnings():
        # NumPy warns about infinities and divisions by zero, which the inputs cause on purpose.
        warnings.simplefilter("ignore", RuntimeWarning)
        with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
            bar = progress.add_task("", total=len(rows) * len(names))
            for name in names:
                for row in rows:
                    progress.update(bar, description=f"{name} {row.op}")
                    yield from run_sample(row, name, quick)
                    progress.advance(bar)


@contextlib.contextmanager
def _former_backend() -> Iterator[None]:
    before = ops.get_backend()
    try:
        yield
    finally:
        ops.set_backend(before)


def show(console: Console, report: Report) -> None:
    """Prints the failures, a program that shows the first failure of each op, the unsupported ops, and the totals."""
    for entry in report["ops"]:
        for failure in entry["failures"]:
            place = f"{entry['backend']} {entry['op']}, {failure['check']}, {failure['dtype']}, {failure['label']}"
            console.print(f"FAIL {place}: {failure['failure']}", markup=False, highlight=False)
        if entry["failures"]:
            console.print(f"\n{entry['failures'][0]['snippet']}", markup=False, highlight=False)
    for entry in report["ops"]:
        if entry["status"] == "unsupported":
            line = f"unsupported {entry['backend']} {entry['op']}: {entry['reason']}"
            console.print(line, markup=False, highlight=False)
    for name, version in report["backends"].items():
        count = totals(report, name)
        kinds = ", ".join(f"{count[kind]} {kind}" for kind in KINDS)
        line = f"{name} {version}: {count['ops']} ops ({kinds}), {count['calls']} calls, {count['failures']} failures"
        console.print(line, highlight=False)
