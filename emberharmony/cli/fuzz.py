"""`emberharmony fuzz`: calls every op with odd arguments, in a process of its own, because a call may crash it."""

import fnmatch
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from emberharmony.backend.discovery import load, usual_backend_names
from emberharmony.cli.drawing import progress
from emberharmony.cli.extras import require_packages
from emberharmony.core.errors import suggest
from emberharmony.core.registry import OPS
from emberharmony.core.state.files import replace_text

_FILE = click.Path(dir_okay=False)


@click.command()
@click.option("--backend", "name", default="all", show_default=True, metavar="NAME|all", help="The backend to call.")
@click.option("--calls", default=1000, show_default=True, type=click.IntRange(1), help="Calls on each backend.")
@click.option("--seed", default=0, show_default=True, help="Seed of the arguments.")
@click.option("--op", "pattern", default="*", show_default=True, help="Only ops whose name matches this pattern.")
@click.option("--first", default=0, show_default=True, type=click.IntRange(0), help="The number of the first call.")
@click.option(
    "--timeout",
    default=10.0,
    show_default=True,
    type=click.FloatRange(0.1),
    help="The most seconds of computing that a call may take.",
)
@click.option("--json", "json_file", type=_FILE, help="Write the findings to this file as JSON.")
def fuzz(name: str, calls: int, seed: int, pattern: str, first: int, timeout: float, json_file: str | None) -> None:
    """Call every op of a backend with odd arguments, and report the calls that misbehave.

    A call misbehaves if it ends with a signal, does not end, raises an exception that is neither typed nor documented,
    or changes an argument. The arguments of a call depend only on the seed, the pattern and the number of the call. The
    exit status is 1 if anything is reported, 2 if the backend or the pattern is unknown, and 130 after Ctrl-C.
    """
    backend_names = usual_backend_names() if name == "all" else [name]
    for backend in backend_names:
        load(backend)
    require_packages("fuzz", "conformance", "hypothesis", "scipy")
    from emberharmony.testing.fuzz import runner  # here, because it needs hypothesis and SciPy

    if json_file and not os.access(os.path.dirname(os.path.abspath(json_file)), os.W_OK):
        raise click.UsageError(f"cannot write {json_file}: its folder is missing or read-only")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    op_names = _ops_matching(pattern)
    tallies = [runner.Tally(backend) for backend in backend_names]
    was_stopped = False
    with progress(calls * len(backend_names)) as advance:
        try:
            for tally in tallies:
                advance(0, description=tally.backend)
                runner.run_calls(tally, calls, seed, op_names, timeout, first, advance)
        except KeyboardInterrupt:
            was_stopped = True
    _print_tallies(tallies)
    if json_file:
        report = {"seed": seed, "pattern": pattern, "first": first, "backends": [tally.as_json() for tally in tallies]}
        replace_text(json_file, json.dumps(report, indent=1) + "\n")
    if was_stopped:
        click.echo("Stopped before all calls were made.", err=True)
        sys.exit(130)
    if any(tally.findings for tally in tallies):
        sys.exit(1)


def _ops_matching(pattern: str) -> list[str]:
    """Returns the names of the ops that match a pattern.

    Raises:
        click.UsageError: if no op matches; the message suggests the nearest name.
    """
    op_names = [op for op in sorted(OPS) if fnmatch.fnmatchcase(op, pattern)]
    if not op_names:
        raise click.UsageError(f"no op matches {pattern!r}{suggest(pattern.strip('*?'), OPS)}")
    return op_names


def _print_tallies(tallies: Sequence[Any]) -> None:
    """Prints the findings, a program that shows the first finding of each kind for each op, and the totals."""
    for tally in tallies:
        shown_kinds_and_ops: set[tuple[str, str]] = set()
        for finding in tally.findings:
            note_text = "" if finding.alone in (True, None) else " (not when it is called alone)"
            location = f"{finding.backend} {finding.op}, call {finding.number}"
            first_line = finding.detail.partition("\n")[0]
            click.echo(f"FAIL {location}: {first_line}{note_text}")
            if (finding.op, finding.kind) not in shown_kinds_and_ops:
                shown_kinds_and_ops.add((finding.op, finding.kind))
                click.echo(f"\n{finding.snippet}")
        for op in tally.skipped:
            click.echo(f"{tally.backend} {op} was left out after several crashes or hangs")
    for tally in tallies:
        counts_text = ", ".join(f"{count} {kind}" for kind, count in sorted(tally.counts.items()))
        totals_line = f"{tally.backend} {load(tally.backend).version}: {len(tally.findings)} findings ({counts_text})"
        click.echo(totals_line)
