"""`emberharmony conformance`: every op's sample rows, run and reported."""

import fnmatch
import json
from collections.abc import Sequence
from dataclasses import asdict

import click
from rich.console import Console
from rich.progress import Progress

from emberharmony import ops
from emberharmony.backend.discovery import backend_names, is_installed
from emberharmony.testing.conformance import Outcome, run_sample
from emberharmony.testing.samples import all_samples


@click.command()
@click.option("--backend", "name", default="all", show_default=True, help="A backend's name, or all.")
@click.option("--op", "pattern", default="*", show_default=True, help="Only ops whose name matches this pattern.")
@click.option(
    "--json", "file", type=click.Path(dir_okay=False, writable=True), help="Write every outcome to this file."
)
def conformance(name: str, pattern: str, file: str | None) -> None:
    """Check every op of a backend against its float64 oracle; exit with 1 if any fails."""
    console = Console()
    names = [n for n in backend_names() if is_installed(n)] if name == "all" else [name]
    rows = [row for op, row in sorted(all_samples().items()) if fnmatch.fnmatch(op, pattern)]
    if not rows:
        raise click.UsageError(f"no op matches {pattern!r}")
    outcomes: list[Outcome] = []
    before = ops.get_backend()
    try:
        with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
            bar = progress.add_task("checking", total=len(rows) * len(names))
            for backend in names:
                for row in rows:
                    outcomes += run_sample(row, backend)
                    progress.advance(bar)
    finally:
        ops.set_backend(before)
    if file:
        with open(file, "w", encoding="utf-8") as stream:
            json.dump([asdict(outcome) for outcome in outcomes], stream, indent=1)
    _report(console, names, outcomes)


def _report(console: Console, names: Sequence[str], outcomes: Sequence[Outcome]) -> None:
    failed = [outcome for outcome in outcomes if outcome.failure]
    for outcome in failed:
        console.print(
            f"FAIL {outcome.backend} {outcome.op} {outcome.dtype} {outcome.label}: {outcome.failure}", markup=False
        )
    for name in names:
        mine = [outcome for outcome in outcomes if outcome.backend == name]
        bad = sum(1 for outcome in mine if outcome.failure)
        console.print(f"{name}: {len({o.op for o in mine})} ops, {len(mine)} calls, {bad} failures")
    if failed:
        raise SystemExit(1)
