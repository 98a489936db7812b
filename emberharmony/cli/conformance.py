"""`emberharmony conformance`: the checks of every op's sample row, run and reported."""

import importlib
import json
import os
import sys

import click
from rich.console import Console

from emberharmony.backend.discovery import backend_names, is_installed, load
from emberharmony.core.state.files import replace_text

_FILE = click.Path(dir_okay=False)


@click.command()
@click.option("--backend", "name", default="all", show_default=True, metavar="NAME|all", help="The backend to check.")
@click.option("--op", "pattern", default="*", show_default=True, help="Only ops whose name matches this pattern.")
@click.option("--quick", is_flag=True, help="Leave out the inputs that hypothesis makes.")
@click.option("--json", "json_file", type=_FILE, help="Write the report to this file as JSON.")
@click.option("--html", "html_file", type=_FILE, help="Write the report to this file as a page of HTML.")
def conformance(name: str, pattern: str, quick: bool, json_file: str | None, html_file: str | None) -> None:
    """Check every op of a backend: values against a float64 oracle, dtypes, shapes, promotion, errors, gradients.

    The exit status is 1 if anything fails, 2 for a backend or pattern that is not known, 130 after Ctrl-C, which
    writes nothing.
    """
    console = Console(soft_wrap=True)
    names = [n for n in backend_names() if is_installed(n)] if name == "all" else [name]
    # The tensors are small: threads that wait for each other would take most of the time.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    for backend in names:
        load(backend)
    try:
        # Loaded when asked for: the other commands need none of it.
        checking = importlib.import_module("emberharmony.cli.conformance_run")
        rows = checking.matching(pattern)
    except ImportError as error:
        raise click.ClickException(f'{error}: pip install "emberharmony[conformance]"') from error
    for file in filter(None, (json_file, html_file)):
        if not os.access(os.path.dirname(os.path.abspath(file)), os.W_OK):
            raise click.UsageError(f"cannot write {file}: its folder is missing or read-only")
    try:
        outcomes = list(checking.outcomes_of(console, rows, names, quick))
    except KeyboardInterrupt:
        click.echo("Stopped; nothing was written.", err=True)
        sys.exit(130)
    report = checking.summarize(rows, names, outcomes, quick)
    if json_file:
        replace_text(json_file, json.dumps(report, indent=1) + "\n")
    if html_file:
        replace_text(html_file, checking.as_html(report))
    checking.show(console, report)
    if any(entry["failures"] for entry in report["ops"]):
        sys.exit(1)
