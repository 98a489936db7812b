"""`emberharmony compare`: runs a program on two backends and names the op that is wrong, and the side."""

import json
import os
import runpy
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import click

from emberharmony.cli.models import prepend_import_path
from emberharmony.cli.submission import check_writable, device_option, report_option, write_report
from emberharmony.core.errors import ArgumentError, suggest

_FILE = click.Path(dir_okay=False)


@click.command()
@click.argument("programs", nargs=-1, required=True, metavar="FILE:FUNCTION | A.py:MODEL B.py:MODEL | A.log B.log")
@click.option("--backends", default="torch,mlx", show_default=True, help="The two sides; with --save only the first.")
@click.option(
    "--inputs", type=click.Path(exists=True, dir_okay=False), help="An npz file; its arrays are the arguments."
)
@click.option("--all", "every", is_flag=True, help="Compare all calls, and do not end at the first wrong op.")
@click.option("--gradients", is_flag=True, help="Compare the gradients of the sum of the results too.")
@click.option("--tolerance", type=float, help="How many times its tolerance an op may be off; default 8.")
@click.option("--thorough", is_flag=True, help="Judge calls too whose differences the noise of their inputs explains.")
@device_option
@click.option(
    "--match",
    multiple=True,
    metavar="NAME=NAME",
    help="Of two models, a module of the first and the one of the second that corresponds (repeatable).",
)
@click.option(
    "--original",
    type=click.Choice(("first", "second", "neither")),
    default="first",
    show_default=True,
    help="Of two models, the one that is taken for right where nothing tells which side is wrong.",
)
@click.option("--save", type=_FILE, help="Run on the first backend alone, and write its calls to this file.")
@click.option("--html", "html_file", type=_FILE, help="Write the report to this file as an HTML page.")
@click.option("--repro", "repro_file", type=_FILE, help="Write a program that makes the wrong call alone.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@report_option
def compare(
    programs: tuple[str, ...],
    backends: str,
    inputs: str | None,
    every: bool,
    gradients: bool,
    tolerance: float | None,
    thorough: bool,
    device: str | None,
    match: tuple[str, ...],
    original: str,
    save: str | None,
    html_file: str | None,
    repro_file: str | None,
    as_json: bool,
    report_file: str | None,
) -> None:
    """Run a program on two backends, and name the op that is wrong and the side on which it is wrong.

    FUNCTION is a function or a model, and `FILE:NAME()` is what a class or function without arguments returns. The
    arrays of the npz file are the arguments: by the names of the parameters, or else in their order.

    Two models of any libraries, such as `a.py:model b.py:Net()`, are compared module by module, and the first module
    that is wrong is named.

    Two files of --save, perhaps from two machines, are compared in the same way. The exit status is 0 if the two
    sides agree, and 1 if an op is wrong or the program does something else on one side.
    """
    from emberharmony.testing.differences import compare as comparing  # here, because it takes time to import

    check_writable(save, html_file, repro_file, report_file)
    if report_file and (save or len(programs) != 1):
        raise click.UsageError("--report is for a comparison on this machine, of one program on two backends")
    start_time = time.perf_counter()
    backend_names = backends.split(",")
    options: dict[str, Any] = {"stop": "all" if every else "first", "tolerance": tolerance}
    if len(programs) == 2 and save is None and all(".py:" in program for program in programs):
        report = _compare_models(programs, inputs, match, {"original": original, "gradients": gradients, **options})
    elif len(programs) == 2 and save is None:
        try:
            report = comparing.compare_logs(programs[0], programs[1], thorough=thorough, **options)
        except OSError as error:
            raise click.UsageError(str(error)) from error
    elif len(programs) == 1:
        fn = _load_program(programs[0])
        input_values = [] if inputs is None else comparing.inputs_of(inputs, fn)
        if save is not None:
            comparing.record(fn, *input_values, path=save, backend=backend_names[0], gradients=gradients, device=device)
            click.echo(f"wrote the calls on {backend_names[0]} to {save}")
            return
        report = comparing.compare_backends(
            fn, *input_values, backends=backend_names, gradients=gradients, device=device, thorough=thorough, **options
        )
    else:
        raise click.UsageError("give FILE:FUNCTION, two models as FILE:NAME, or two files that --save wrote")
    if not report.rows and report.ok:
        raise click.UsageError("; ".join(["the program calls no op that could be compared", *report.notes]))
    click.echo(report.to_json() if as_json else report.table())
    _write_files(report, html_file, repro_file)
    if report_file:
        report_content = json.loads(report.to_json())
        report_items = {name: report_content[name] for name in ("ok", "summary", "sides", "divergences", "notes")}
        result_record = {"program": os.path.basename(programs[0]), "calls": len(report.rows), **report_items}
        write_report(report_file, "compare", backend_names, device, time.perf_counter() - start_time, result_record)
    if not report.ok:
        sys.exit(1)


def _write_files(report: Any, html_file: str | None, repro_file: str | None) -> None:
    """Writes the page of a report, and the program that makes the wrong call alone, if one is wrong."""
    if html_file:
        report.html(html_file)
    if repro_file and report.first is not None and report.first.is_wrong:
        try:
            report.repro(repro_file)
        except ArgumentError as error:  # a failure to write the program must not hide the report
            click.echo(f"wrote no {repro_file}: {error}", err=True)


def _module_pair(text: str) -> tuple[str, str]:
    first_module, equals_sign, second_module = text.partition("=")
    if not equals_sign:
        raise click.UsageError(f"--match takes NAME=NAME, not {text!r}")
    return first_module, second_module


def _load_program(text: str) -> Callable[..., Any]:
    """Returns the function or model that FILE:NAME names; for FILE:NAME() what calling it returns.

    Raises:
        click.UsageError: if there is no such file or name.
    """
    path, _, name = text.rpartition(":")
    has_call_suffix = name.endswith("()")
    name = name.removesuffix("()")
    if not path.endswith(".py") or not name:
        raise click.UsageError(f"expected FILE.py:FUNCTION, not {text!r}")
    if not os.path.isfile(path):
        raise click.UsageError(f"there is no file {path}")
    with prepend_import_path(os.path.dirname(os.path.abspath(path))):
        value_by_name = runpy.run_path(path, run_name=os.path.basename(path).removesuffix(".py"))
    if name not in value_by_name:
        raise click.UsageError(f"{path} has no {name}{suggest(name, value_by_name)}")
    program: Callable[..., Any] = value_by_name[name]() if has_call_suffix else value_by_name[name]
    if not callable(program):
        raise click.UsageError(f"{name} in {path} is a {type(program).__name__}, not a function or a model")
    return program


def _compare_models(programs: Sequence[str], inputs: str | None, match: Sequence[str], options: dict[str, Any]) -> Any:
    """Returns the report of the comparison of two models; `options` are passed to `compare_models`."""
    from emberharmony.testing.differences.compare import inputs_of  # here, because it takes time to import
    from emberharmony.testing.models.search import compare_models

    models = [_load_program(program) for program in programs]
    input_values = [] if inputs is None else inputs_of(inputs, models[0])
    return compare_models(*models, *input_values, match=dict(_module_pair(text) for text in match), **options)
