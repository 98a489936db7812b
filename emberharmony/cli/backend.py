"""`emberharmony backend show|set|unset|list`."""

import json

import click

from emberharmony.backend import available_backends, get_backend
from emberharmony.backend.discovery import backend_names, install_line, load
from emberharmony.core import selection
from emberharmony.core.errors import SettingsError
from emberharmony.core.state import settings


class _Group(click.Group):
    """The group of commands, whose error for the name of a backend shows the right command."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Returns a command; raises `click.UsageError` if it is the name of a backend."""
        if cmd_name in backend_names():
            raise click.UsageError(f"write: emberharmony backend set {cmd_name}", ctx)
        return super().get_command(ctx, cmd_name)


@click.group(cls=_Group)
def backend() -> None:
    """Show or choose the backend."""


@backend.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(as_json: bool) -> None:
    """Show the active backend and where the choice came from."""
    name, source = get_backend(), selection.backend_source()
    click.echo(json.dumps({"backend": name, "source": source}) if as_json else f"{name} (from {source})")


@backend.command("set")
@click.argument("name")
def set_(name: str) -> None:
    """Save the backend NAME in the settings file, for this user's later programs."""
    load(name)
    click.echo(f"{_write_setting(name)}: {name}")


@backend.command()
def unset() -> None:
    """Remove the backend from the settings file, so that the choice is automatic again."""
    if not settings.exists():
        click.echo(f"{settings.path()}: there is no such file, so nothing is set")
        return
    click.echo(f"{_write_setting(None)}: unset")


def _write_setting(name: str | None) -> str:
    """Writes the backend to the settings file, or removes it, and returns the path of the file.

    Raises:
        click.ClickException: if the file cannot be changed.
    """
    try:
        return settings.write("backend", name)
    except SettingsError as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise click.ClickException(f"cannot write {settings.path()}: {error}") from error


@backend.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_(as_json: bool) -> None:
    """List the known backends, each with its version or the command that installs it."""
    facts_by_backend = available_backends()
    rows = [
        {
            "name": name,
            "version": facts_by_backend[name]["version"] if name in facts_by_backend else None,
            "installed": name in facts_by_backend,
        }
        for name in backend_names()
    ]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    for row in rows:
        state_text = (
            row["version"] or "installed" if row["installed"] else f"not installed: {install_line(str(row['name']))}"
        )
        click.echo(f"{row['name']:8} {state_text}")
