"""The command `emberlint`; without a subcommand it runs `check`."""

import sys
from importlib import import_module
from pathlib import Path
from typing import cast

import click

from emberlint import __version__
from emberlint.commands import COMMANDS
from emberlint.config.errors import UsageError, suggestion


class CheckByDefault(click.Group):
    """A group of commands that runs `check` if the first word is not a command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Inserts `check` if the arguments name no command."""
        first_argument = args[0] if args else ""
        if first_argument not in (*COMMANDS, "--help", "-h", "--version"):
            hint = "" if first_argument.startswith("-") else suggestion(first_argument, COMMANDS)
            if hint and not Path(first_argument).exists():
                ctx.fail(f"no command, file or folder {first_argument!r}{hint}")
            args = ["check", *args]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Returns the names of the commands, in the order of `--help`."""
        return [*COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Returns a command, or None if there is none of that name; imports the module of this command only."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"emberlint.commands.{COMMANDS[cmd_name]}")
        return cast(click.Command, getattr(module, cmd_name))

    def invoke(self, ctx: click.Context) -> object:
        """Runs the command; exits with 2 for a wrong configuration, with 130 for an interrupt."""
        try:
            return super().invoke(ctx)
        except UsageError as error:
            click.echo(f"emberlint: {error}", err=True)
            ctx.exit(2)
        except KeyboardInterrupt:
            click.echo("emberlint: interrupted", err=True)
            ctx.exit(130)


def _print_version(ctx: click.Context, _: click.Parameter, is_asked: bool) -> None:
    if is_asked and not ctx.resilient_parsing:
        click.echo(f"emberlint {__version__}")
        ctx.exit()


@click.group(
    cls=CheckByDefault,
    context_settings={"help_option_names": ["-h", "--help"]},
    subcommand_metavar="[COMMAND] [PATHS]...",
    epilog="The exit status is 0 without findings, 1 with findings, 2 for a wrong call or configuration.",
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Show the version."
)
def main() -> None:
    """Find code that ties array programs to one framework, and tell tensors from numbers.

    Without a command it checks: `emberlint library/` is `emberlint check library/`, and takes the options that
    `emberlint check --help` lists. Without a path it checks the current folder.
    """


if __name__ == "__main__":
    sys.exit(main())
