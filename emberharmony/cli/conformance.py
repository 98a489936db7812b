"""`emberharmony conformance`: checks every op against its sample row, and reports the results."""

import json
import os
import sys
import time

import click

from emberharmony.backend.discovery import load, usual_backend_names
from emberharmony.backend.precision import State
from emberharmony.backend.shared.precision import STATES
from emberharmony.cli.extras import require_packages
from emberharmony.cli.submission import check_writable, device_option, report_option, use_device, write_report
from emberharmony.core.state.files import replace_text

_FILE = click.Path(dir_okay=False)


@click.command()
@click.option("--backend", "name", default="all", show_default=True, metavar="NAME|all", help="The backend to check.")
@click.option("--op", "pattern", default="*", show_default=True, help="Only ops whose name matches this pattern.")
@click.option("--quick", is_flag=True, help="Leave out the inputs that hypothesis generates.")
@click.option(
    "--most", type=click.IntRange(1), metavar="N", help="Make at most N calls of an op for each check and dtype."
)
@click.option(
    "--precision",
    type=click.Choice(STATES),
    help="Multiply float32 in this precision; default: as each library does. Tolerances of products follow.",
)
@click.option("--json", "json_file", type=_FILE, help="Write the report to this file as JSON.")
@click.option("--html", "html_file", type=_FILE, help="Write the report to this file as a page of HTML.")
@device_option
@report_option
def conformance(
    name: str,
    pattern: str,
    quick: bool,
    most: int | None,
    precision: State | None,
    json_file: str | None,
    html_file: str | None,
    device: str | None,
    report_file: str | None,
) -> None:
    """Check every op of a backend: values against a float64 oracle, dtypes, shapes, promotion, errors, gradients.

    With --device only the backends that have the device are checked. The exit status is 1 if anything fails, 2 if the
    backend, the pattern or the device is unknown or lacks the precision, and 130 after Ctrl-C, in which
    case nothing is written.
    """
    backend_names = usual_backend_names() if name == "all" else [name]
    # The tensors are small, so several threads would spend most of the time on waiting for each other.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    for backend in backend_names:
        load(backend)
    require_packages("conformance", "conformance", "hypothesis", "scipy")
    from emberharmony.cli import conformance_run as checking  # here, because it needs hypothesis and SciPy

    sample_rows = checking.samples_matching(pattern)
    check_writable(json_file, html_file, report_file)
    start_time = time.perf_counter()
    precision_by_backend: dict[str, dict[str, str]] = {}
    with use_device(backend_names, device) as names_with_device:
        try:
            outcomes = list(
                checking.outcomes_of(sample_rows, names_with_device, quick, most, precision, precision_by_backend)
            )
        except KeyboardInterrupt:
            click.echo("Stopped; nothing was written.", err=True)
            sys.exit(130)
    report = checking.summarize(sample_rows, names_with_device, outcomes, quick) | {"precision": precision_by_backend}
    if json_file:
        replace_text(json_file, json.dumps(report, indent=1) + "\n")
    if html_file:
        replace_text(html_file, checking.as_html(report))
    checking.print_report(report)
    if report_file:
        seconds = time.perf_counter() - start_time
        write_report(report_file, "conformance", names_with_device, device, seconds, checking.condense(report))
    if any(entry["failures"] for entry in report["ops"]):
        sys.exit(1)
