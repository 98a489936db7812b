"""Runs the checks of `emberharmony conformance` and reports them; needs hypothesis and SciPy."""

import contextlib
import fnmatch
import warnings
from collections.abc import Iterator, Sequence

import click

from emberharmony import ops
from emberharmony.backend.discovery import load
from emberharmony.backend.precision import State
from emberharmony.backend.shared.precision import STATES
from emberharmony.cli.drawing import progress
from emberharmony.core.errors import suggest
from emberharmony.core.types import BackendName
from emberharmony.testing.conformance import Outcome, run_sample
from emberharmony.testing.report import KINDS, Report, totals
from emberharmony.testing.report import as_html as as_html
from emberharmony.testing.report import condense as condense
from emberharmony.testing.report import summarize as summarize
from emberharmony.testing.sample import Sample
from emberharmony.testing.samples import all_samples, missing_row_messages

_KEPT = 8
"""The number of sample rows after which a backend drops its compiled programs; JAX's would take 5 GB and more."""


def samples_matching(pattern: str) -> list[Sample]:
    """Returns the sample rows of the ops whose names match a pattern.

    Raises:
        click.UsageError: if no op matches; the message suggests the nearest name.
        click.ClickException: if an op that matches has no row.
    """
    sample_by_op = all_samples()
    missing_row_texts = [words for op, words in missing_row_messages().items() if fnmatch.fnmatchcase(op, pattern)]
    if missing_row_texts:
        raise click.ClickException("\n".join(missing_row_texts))
    matching_rows = [sample_by_op[op] for op in sorted(sample_by_op) if fnmatch.fnmatchcase(op, pattern)]
    if not matching_rows:
        raise click.UsageError(f"no op matches {pattern!r}{suggest(pattern.strip('*?'), sample_by_op)}")
    return matching_rows


def outcomes_of(
    rows: Sequence[Sample],
    names: Sequence[str],
    quick: bool,
    most: int | None = None,
    precision: State | None = None,
    precision_by_backend: dict[str, dict[str, str]] | None = None,
) -> Iterator[Outcome]:
    """Yields the outcomes of all conformance calls on some backends, and restores the active backend at the end.

    If the output is a terminal, a progress bar is shown.

    Args:
        rows: the rows to check.
        names: the backends.
        quick: see `run_sample`.
        most: see `run_sample`.
        precision: how exactly float32 is multiplied; None for what each library does by default.
        precision_by_backend: gets how exactly each backend multiplied.
    """
    with _restore_backend_after(), warnings.catch_warnings():
        # NumPy warns about infinities and divisions by zero, which the inputs cause on purpose.
        warnings.simplefilter("ignore", RuntimeWarning)
        with progress(len(rows) * len(names)) as advance:
            for name in names:
                ops.set_backend(BackendName(name))
                with contextlib.nullcontext() if precision is None else ops.precision(precision):
                    if precision_by_backend is not None:
                        precision_by_backend[name] = ops.precision()
                    for i, row in enumerate(rows):
                        advance(0, description=f"{name} {row.op}")
                        yield from run_sample(row, name, quick, most)
                        if i % _KEPT == _KEPT - 1:
                            load(BackendName(name)).free_caches()
                        advance()


@contextlib.contextmanager
def _restore_backend_after() -> Iterator[None]:
    former_backend = ops.get_backend()
    try:
        yield
    finally:
        ops.set_backend(former_backend)


def print_report(report: Report) -> None:
    """Prints the failures, a program that shows the first failure of each op, the unsupported ops, and the totals."""
    for entry in report["ops"]:
        for failure in entry["failures"]:
            location = f"{entry['backend']} {entry['op']}, {failure['check']}, {failure['dtype']}, {failure['label']}"
            click.echo(f"FAIL {location}: {failure['failure']}")
        if entry["failures"]:
            click.echo(f"\n{entry['failures'][0]['snippet']}")
    for entry in report["ops"]:
        if entry["status"] == "unsupported":
            report_line = f"unsupported {entry['backend']} {entry['op']}: {entry['reason']}"
            click.echo(report_line)
    for name, version in report["backends"].items():
        totals_of_backend = totals(report, name)
        counts_text = ", ".join(f"{totals_of_backend[kind]} {kind}" for kind in KINDS)
        report_line = f"{name} {version}: {totals_of_backend['ops']} ops ({counts_text}), "
        report_line += f"{totals_of_backend['calls']} calls, {totals_of_backend['failures']} failures"
        report_line += "".join(
            f", {kind} in {state}" for kind, state in report["precision"][name].items() if state != STATES[0]
        )
        click.echo(report_line)
