"""`emberlint port`: rewrites native calls as calls of ops."""

from importlib import import_module
from pathlib import Path

import click

from emberlint.commands import options
from emberlint.config.errors import UsageError
from emberlint.run.check import source_file
from emberlint.run.repair import Repaired, replace_text
from emberlint.source.discover import NOTEBOOK
from emberlint.source.reading import read_text


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--diff", is_flag=True, help="Print the changes as a diff, and write nothing.")
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if a file would change.")
@click.option(
    "--format", "--output-format", "form", type=click.Choice(["text", "json"]), default="text", help="Of the report."
)
@click.pass_context
def port(ctx: click.Context, paths: tuple[Path, ...], diff: bool, check: bool, form: str) -> None:
    """Rewrite native calls as calls of ops where they are equal.

    The rest is marked with comments and listed.
    """
    try:
        ported = import_module("emberlint.port").port  # not at the top: it needs libcst, which a check does not
        report = import_module("emberlint.port.report")
    except ModuleNotFoundError as error:
        raise UsageError(f"a port needs {error.name}: pip install emberlint") from error
    found = options.settings_for(paths)
    settings = found.with_(roles=(*found.roles, ("**", "frontend")) if found.roles else (("**", "frontend"),))
    results = {}
    for path, file in options.files_for(paths, settings).items():
        shown = options.shown(path, settings)
        try:
            if path.endswith(NOTEBOOK):
                raise ValueError("a notebook; `emberlint fix` repairs notebooks, a port does not rewrite them")
            before = read_text(file.read_bytes(), newline="")
            first = source_file(path, before, settings)
            result = ported(first, lambda text, path=path: source_file(path, text, settings))
        except (OSError, SyntaxError, ValueError, RecursionError) as error:
            click.echo(f"{shown}: skipped: {error}", err=True)
            continue
        results[shown] = result
        if result.before == result.after:
            continue
        if diff:
            click.echo("".join(Repaired(result.before, result.after).diff(shown)), nl=False)
        elif not check:
            replace_text(file, result.after)
    click.echo(report.as_json(results) if form == "json" else "\n".join(report.text(results)), err=diff)
    if check and any(one.before != one.after for one in results.values()):
        ctx.exit(1)
