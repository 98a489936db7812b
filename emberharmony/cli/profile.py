"""`emberharmony profile SCRIPT`: runs a program, and shows which ops, modules and lines take its time."""

import os
import runpy
import sys
import traceback
from typing import Any

import click

from emberharmony.cli.drawing import table

_FILE = click.Path(dir_okay=False, writable=True)


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--by", default="op", show_default=True, type=click.Choice(["op", "module", "line"]), help="The rows.")
@click.option("--top", default=25, show_default=True, type=click.IntRange(1), help="So many rows are shown.")
@click.option("--backward", is_flag=True, help="Let the tape compute gradients, so that the backward pass has rows.")
@click.option("--memory", is_flag=True, help="Also measure the peak memory of each call, which takes time on NumPy.")
@click.option("--json", "json_file", type=_FILE, help="Write all tables to this file as JSON.")
@click.option("--chrome", "chrome_file", type=_FILE, help="Write a trace for chrome://tracing and ui.perfetto.dev.")
@click.option("--speedscope", "speedscope_file", type=_FILE, help="Write a file for speedscope.app.")
@click.argument("script", type=click.Path(exists=True, dir_okay=False))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def profile(
    by: str,
    top: int,
    backward: bool,
    memory: bool,
    json_file: str | None,
    chrome_file: str | None,
    speedscope_file: str | None,
    script: str,
    arguments: tuple[str, ...],
) -> None:
    """Run a program, and show which ops take its time.

    Options stand before the script; what follows it are arguments of the program. After Ctrl-C, or an error of the
    program, the report shows what ran until then; the exit status is that of the program. The calls of threads that the
    program starts are not seen.
    """
    from emberharmony import ops  # here, so that `emberharmony --help` loads no library

    for file in (json_file, chrome_file, speedscope_file):
        if file and not os.access(os.path.dirname(os.path.abspath(file)), os.W_OK):
            raise click.UsageError(f"cannot write {file}: its folder is missing or read-only")
    with ops.profile(backward, memory) as profiling:
        exit_status = _run_script(script, arguments)
    script_name = os.path.basename(script)
    if json_file:
        profiling.save_report(json_file)
    if chrome_file:
        profiling.save_chrome_trace(chrome_file, script_name)
    if speedscope_file:
        profiling.save_speedscope(speedscope_file, script_name)
    for file in filter(None, (json_file, chrome_file, speedscope_file)):
        click.echo(f"written: {file}", err=True)
    _print_profile(profiling, by, top)
    sys.exit(exit_status)


def _run_script(script: str, arguments: tuple[str, ...]) -> Any:
    """Runs a program as Python does, and returns its exit status."""
    argv_before, path_before = sys.argv, list(sys.path)
    sys.argv = [script, *arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        return end.code
    except KeyboardInterrupt:
        click.echo("Interrupted: the report shows what ran until then.", err=True)
        return 130
    except Exception:  # noqa: BLE001  (any error of the program is shown as Python shows it)
        traceback.print_exc()
        return 1
    finally:
        sys.argv, sys.path[:] = argv_before, path_before
    return 0


def _print_profile(profiling: Any, by: str, top: int) -> None:
    """Prints the table of a profile, the number of rows that are left out, and the notes."""
    header, rows = profiling.cells(by)
    if not rows:
        click.echo("The program called no op.")
        return
    working_folder = os.getcwd() + os.sep
    click.echo(table(header, [[row[0].removeprefix(working_folder), *row[1:]] for row in rows[:top]]))
    if len(rows) > top:
        click.echo(f"{len(rows) - top} more rows: --top {len(rows)}")
    click.echo(profiling.summary())
    for note in profiling.notes:
        click.echo(note)
