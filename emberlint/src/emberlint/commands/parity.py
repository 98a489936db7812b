"""The command that shows which backend has which op, and moves implementations into backend folders."""

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from emberlint.config.configuration import find_root, load_settings
from emberlint.config.errors import UsageError, suggestion
from emberlint.migrate.transaction import MigrationError
from emberlint.parity import report
from emberlint.parity.layout import Layout, find_layout
from emberlint.parity.matrix import Matrix, build_matrix
from emberlint.source.project import Project


def open_project(path: Path) -> tuple[Project, Layout]:
    """Returns the project at `path` and its layout; a layout in the settings takes precedence over the folders found.

    Raises:
        UsageError: if there is no frontend next to a backend.
    """
    settings = load_settings(find_root([path]))
    if not (settings.parity.frontend and settings.parity.backend):
        settings = settings.with_changes(root=path.resolve())
    project = Project(settings)
    layout = find_layout(project)
    if layout is None:
        raise UsageError(
            f"{path}: found no folder 'ops' beside a folder 'backend' with backends in it; name both in "
            "[tool.emberlint.parity], as frontend and backend"
        )
    return project, layout


def _require_known(words: Sequence[str], known: Sequence[str], what: str) -> None:
    for word in words:
        if word not in known:
            raise UsageError(f"unknown {what} {word!r}{suggestion(word, known)}; known: {', '.join(known)}")


def _render_matrix(op_matrix: Matrix, form: str, verbose: bool) -> str:
    if form == "json":
        return report.report_json(op_matrix)
    if form == "md":
        return report.report_markdown(op_matrix)
    return report.report_html(op_matrix) if form == "html" else report.report_text(op_matrix, verbose)


def _analyze_project(path: Path, backends: Sequence[str], categories: Sequence[str]) -> Matrix:
    project, layout = open_project(path)
    _require_known(backends, layout.names, "backend")
    op_matrix = build_matrix(project, layout, backends)
    _require_known(categories, op_matrix.categories, "category")
    return op_matrix.select(categories)


def _migrate_backends(path: Path, backends: Sequence[str], wanted: Sequence[str], dry_run: bool, verbose: bool) -> None:
    # Import LibCST only for a migration.
    from emberlint.migrate.plan import plan_moves

    _, layout = open_project(path)
    _require_known(backends, layout.names, "backend")
    backend_names = backends or layout.names
    if not dry_run:
        # plan all first, so that a clash in any backend stops the run before anything is written
        for backend in backend_names:
            plan_moves(*open_project(path), backend, wanted)
    for backend in backend_names:
        project, layout = open_project(path)
        move_plan = plan_moves(project, layout, backend, wanted)
        if not move_plan.changes:
            click.echo(f"{backend}: nothing to move")
            continue
        for line in move_plan.moved:
            click.echo(f"{backend}: {'would move' if dry_run else 'moved'} {line}")
        for line in move_plan.notes if verbose or not dry_run else ():
            click.echo(f"note: {line}")
        for line in move_plan.warnings:
            click.echo(f"warning: {line}", err=True)
        if dry_run or verbose:
            click.echo(move_plan.diff(), nl=False)
        if not dry_run:
            move_plan.apply()


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("path", type=click.Path(exists=True, file_okay=False, path_type=Path), default=".")
@click.option("--backend", "backends", multiple=True, help="Only this backend; may be repeated.")
@click.option("--category", "categories", multiple=True, help="Only this category; may be repeated.")
@click.option("--format", "form", type=click.Choice(["text", "md", "json", "html"]), default="text")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Write the report to a file.")
@click.option("--check", is_flag=True, help="Exit with 1 if any op is missing, misplaced or has another signature.")
@click.option("--migrate", is_flag=True, help="Move implementations from ops/<backend>/ to backend/<backend>/.")
@click.option("--operation", "operations", multiple=True, help="Move only this operation and what it needs.")
@click.option("--dry-run", is_flag=True, help="Show what --migrate would change, and change nothing.")
@click.option("--verbose", is_flag=True, help="Show every op; with --migrate, every change.")
def main(
    path: Path,
    backends: tuple[str, ...],
    categories: tuple[str, ...],
    form: str,
    output: Path | None,
    check: bool,
    migrate: bool,
    operations: tuple[str, ...],
    dry_run: bool,
    verbose: bool,
) -> None:
    """Show which backend has which op of the package below PATH, from its source alone; --migrate moves them."""
    try:
        if migrate:
            _migrate_backends(path, backends, operations, dry_run, verbose)
            return
        if operations or dry_run:
            raise UsageError("--operation and --dry-run need --migrate")
        op_matrix = _analyze_project(path, backends, categories)
    except UsageError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
    except MigrationError as error:
        click.echo(f"nothing was changed:\n{error}", err=True)
        sys.exit(1)
    matrix_text = _render_matrix(op_matrix, form, verbose)
    if output is None:
        click.echo(matrix_text, nl=False)
    else:
        try:
            output.write_text(matrix_text, encoding="utf-8")
        except OSError as error:
            click.echo(f"error: {output} cannot be written: {error.strerror}", err=True)
            sys.exit(2)
    if check and any(op_matrix.gaps()):
        sys.exit(1)
