"""`emberlint port`: rewrites native calls as calls of ops."""

from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from emberlint.commands import options
from emberlint.config.errors import UsageError
from emberlint.knowledge.methods import libraries_by_method
from emberlint.run.check import source_file
from emberlint.run.engine import shelf_for
from emberlint.run.library import Library
from emberlint.run.repair import Repaired, replace_text
from emberlint.source.discover import relative
from emberlint.source.modules import Modules
from emberlint.source.reading import read_notebook, read_text


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--diff", is_flag=True, help="Print the changes as a diff, and write nothing.")
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if a file would change.")
@click.option("--mark", is_flag=True, help="Write a comment above each statement that keeps a native use, with why.")
@click.option(
    "--format",
    "--output-format",
    "form",
    type=click.Choice(["text", "json", "html"]),
    default="text",
    help="Of the report.",
)
@click.option(
    "--default-float",
    type=click.Choice(["float32", "float64"]),
    default="float32",
    help="The dtype of Python floats: with float64, that of NumPy, call ops.set_default_float at the start.",
)
@click.option(
    "--check-run",
    metavar="COMMAND",
    help="Run the tests, as in 'pytest -q', on copies before and after; exit with 1 if an outcome changes.",
)
@click.option(
    "--backend",
    "backends",
    multiple=True,
    type=click.Choice(["numpy", "torch", "mlx", "jax"]),
    help="A backend for --check-run, numpy if none is named; may be repeated.",
)
@click.pass_context
def port(
    ctx: click.Context,
    paths: tuple[Path, ...],
    diff: bool,
    check: bool,
    mark: bool,
    form: str,
    default_float: str,
    check_run: str | None,
    backends: tuple[str, ...],
) -> None:
    """Replace native calls by equal ops, in place.

    --diff shows the changes and writes nothing. The rest is listed with reasons, and marked with
    comments if you say --mark.
    """
    try:
        find_own_methods = import_module("emberlint.port.own_methods").own_methods
        port_function = import_module("emberlint.port").port  # not at the top: it needs libcst, which a check does not
        report_module = import_module("emberlint.port.report")
        run_trial = import_module("emberlint.port.trial").run_trial
    except ModuleNotFoundError as error:
        raise UsageError(f"a port needs {error.name}: pip install emberlint") from error
    if backends and check_run is None:
        raise UsageError("--backend says where the tests of --check-run run: give that too")
    project_settings = options.settings_for(paths)
    # Backends and tests below a folder stay native; a file that is named is ported whatever its role.
    path_roles = [(relative(path, project_settings.root), "frontend") for path in paths if path.is_file()]
    settings = project_settings.with_changes(roles=(*path_roles, *project_settings.roles, ("**", "frontend")))
    file_by_path = options.files_for(paths, settings)
    own_names = find_own_methods(file_by_path.values(), libraries_by_method().keys())
    library = Library(Modules(settings))
    result_by_path: dict[str, Any] = {}
    changed_by_path: dict[str, tuple[str, Path, Repaired]] = {}

    def port_file(path: str, file: Path, modules: str = "", is_left: bool = False) -> None:
        shown_path = options.display_path(path, settings)
        try:
            content = file.read_bytes()
            notebook = read_notebook(path, content)
            text = read_text(content, newline="") if notebook is None else notebook.text
            import_shelf = shelf_for(path, text, settings, library)
            first_source = source_file(path, text, settings, import_shelf)
            parse_again = partial(source_file, path, settings=settings, shelf=import_shelf)
            port_result = port_function(
                first_source, parse_again, default_float, notebook, own_names, modules, mark, is_left
            )
            texts_before_and_after = Repaired(port_result.before, port_result.after)
            if notebook is not None:
                texts_before_and_after = Repaired(notebook.content, notebook.json_with_text(port_result.after))
        except (OSError, SyntaxError, ValueError, RecursionError) as error:
            click.echo(f"{shown_path}: skipped: {error}", err=True)
            return
        result_by_path[shown_path] = port_result
        changed_by_path.pop(path, None)
        if texts_before_and_after.before != texts_before_and_after.after:
            changed_by_path[path] = (shown_path, file, texts_before_and_after)

    for path, file in file_by_path.items():
        port_file(path, file)

    def paths_with_fact(fact: str) -> list[str]:
        return [
            path
            for path in file_by_path
            if getattr(result_by_path.get(options.display_path(path, settings)), fact, False)
        ]

    # Modules are ported in all files or in none: a model of one file may be trained in another.
    keeping_paths = paths_with_fact("keeps_modules")
    mixing_reason = (
        f"modules stay native in {keeping_paths[0]}, and modules of two libraries do not mix" if keeping_paths else ""
    )
    reason_by_path = dict.fromkeys(paths_with_fact("has_modules"), mixing_reason) if keeping_paths else {}
    for path, reason_text in reason_by_path.items():
        port_file(path, file_by_path[path], reason_text)
    # A ported dtype may reach a native call of another file, so its dtypes stay native then.
    paths_with_calls = {*paths_with_fact("keeps_calls")}
    for path in paths_with_fact("has_dtypes"):
        if paths_with_calls - {path}:
            port_file(path, file_by_path[path], reason_by_path.get(path, ""), is_left=True)
    # The tests run before anything is written, so that an interruption leaves the project as it is.
    text_by_path = {
        path: texts_before_and_after.after for path, (_, _, texts_before_and_after) in changed_by_path.items()
    }
    trial_result = (
        run_trial(check_run, settings.root, settings.src, text_by_path, backends or ("numpy",)) if check_run else None
    )
    for shown_path, file, texts_before_and_after in changed_by_path.values():
        if diff:
            click.echo("".join(texts_before_and_after.diff(shown_path)), nl=False)
        elif not check:
            replace_text(file, texts_before_and_after.after)
    format_report = {"json": report_module.report_json, "html": report_module.report_html}.get(form)
    click.echo(
        "\n".join(report_module.report_lines(result_by_path, trial_result))
        if format_report is None
        else format_report(result_by_path, trial_result),
        err=diff,
    )
    if (check and changed_by_path) or (trial_result is not None and trial_result.changed_outcomes):
        ctx.exit(1)
