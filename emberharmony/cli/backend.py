"""`emberharmony backend show|set|list`."""

import json

import click

from emberharmony.backend import available_backends, get_backend
from emberharmony.backend.discovery import backend_names, install_line, load
from emberharmony.core import selection, settings
from emberharmony.core.errors import SettingsError


@click.group()
def backend() -> None:
    """Show or choose the backend."""


@backend.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(as_json: bool) -> None:
    """Show the active backend and where the choice came from."""
    name, source = get_backend(), selection.source()
    click.echo(json.dumps({"backend": name, "source": source}) if as_json else f"{name} (from {source})")


@backend.command("set")
@click.argument("name", required=False)
@click.option("--unset", is_flag=True, help="Remove the setting, so that the choice is automatic again.")
def set_(name: str | None, unset: bool) -> None:
    """Write the backend NAME to the settings file, for this user's later programs."""
    if (name is None) != unset:
        raise click.UsageError("give either a NAME or --unset")
    if name is not None:
        load(name)
    try:
        file = settings.write("backend", name)
    except SettingsError as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise click.ClickException(f"cannot write {settings.path()}: {error}") from error
    click.echo(f"{file}: {'unset' if name is None else name}")


@backend.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_(as_json: bool) -> None:
    """List the backends there are, with version or install line."""
    found = available_backends()
    rows = [
        {"name": name, "version": found[name]["version"] if name in found else None, "installed": name in found}
        for name in backend_names()
    ]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    for row in rows:
        state = (
            row["version"] or "installed" if row["installed"] else f"not installed: {install_line(str(row['name']))}"
        )
        click.echo(f"{row['name']:8} {state}")
