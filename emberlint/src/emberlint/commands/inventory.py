"""`emberlint inventory`: counts the work of adopting the namespace."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from emberlint.commands import options
from emberlint.config.settings import Settings
from emberlint.inventory import Inventory, NativeRow, take_inventory
from emberlint.run.check import source_file
from emberlint.source.notebooks.notebook import Notebook
from emberlint.source.reading import read_source
from emberlint.source.source_file import SourceFile


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="Format of the report.")
@click.option("--all", "everything", is_flag=True, help="Count tests, scripts and backends too.")
def inventory(paths: tuple[Path, ...], form: str, everything: bool) -> None:
    """Count native names and the ops for them."""
    settings = options.settings_for(paths)
    if everything:
        settings = settings.with_changes(roles=(("**", "frontend"),))
    notebook_by_path: dict[str, Notebook] = {}
    native_inventory = take_inventory(_frontend_files(paths, settings, notebook_by_path))
    for native_name, location in native_inventory.first.items():
        path, _, line = location.rpartition(":")
        if path in notebook_by_path:
            cell_place = notebook_by_path[path].place(int(line))
            native_inventory.first[native_name] = f"{path}:cell {cell_place.cell}:{cell_place.line}"
    click.echo(_inventory_json(native_inventory) if form == "json" else "\n".join(_inventory_text(native_inventory)))


def _frontend_files(paths: Sequence[Path], settings: Settings, notebooks: dict[str, Notebook]) -> Iterator[SourceFile]:
    """Yields the parsed files of the frontend, and collects the notebooks among them."""
    for path, file in options.files_for(paths, settings).items():
        if settings.role(path).kind != "frontend":
            continue
        try:
            text, notebook = read_source(path, file.read_bytes())
            if notebook is not None:
                notebooks[path] = notebook
            yield source_file(path, text, settings)
        except (SyntaxError, ValueError, RecursionError) as error:
            click.echo(f"{options.display_path(path, settings)}: skipped: {error}", err=True)


def _inventory_text(native_inventory: Inventory) -> Iterator[str]:
    for row in native_inventory.rows():
        op_text = "-" if row.op is None else row.op if row.op == "Tensor" else f"ops.{row.op}"
        yield f"{row.uses:6}  {row.native:40}  {op_text:32}  {_porting_text(row):18}  {row.first}"
    use_count = sum(native_inventory.counts.values())
    counts_text = ", ".join(f"{count} {kind}" for kind, count in native_inventory.totals().items())
    imports_text = ", ".join(f"{name} {count}" for name, count in native_inventory.imports.most_common()) or "none"
    head_text = f"{use_count} native uses of {len(native_inventory.counts)} names in {native_inventory.files} files"
    yield f"{head_text}: {counts_text}; imports: {imports_text}"


def _porting_text(row: NativeRow) -> str:
    if row.op is None:
        return ""
    if row.renames in (0, row.uses):
        return "rename" if row.renames else "other arguments"
    return f"rename ({row.renames} of {row.uses})"


def _inventory_json(native_inventory: Inventory) -> str:
    use_records = [
        {
            "native": row.native,
            "count": row.uses,
            "op": row.op,
            "rename": row.renames == row.uses,
            "first": row.first,
        }
        for row in native_inventory.rows()
    ]
    json_document = {
        "version": 1,
        "files": native_inventory.files,
        "imports": native_inventory.imports,
        "totals": native_inventory.totals(),
        "uses": use_records,
    }
    return json.dumps(json_document, indent=2)
