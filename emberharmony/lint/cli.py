"""The command `emberlint`; without a subcommand it checks."""

import sys

import click

from emberharmony.lint.commands.check import check
from emberharmony.lint.commands.explain import explain, rules
from emberharmony.lint.commands.fix import fix
from emberharmony.lint.commands.inventory import inventory
from emberharmony.lint.errors import UsageError

COMMANDS = (check, fix, explain, rules, inventory)


class CheckByDefault(click.Group):
    """A group whose first word may be left out."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `check` first where no command is named."""
        if not args or (args[0] not in self.commands and args[0] not in ("--help", "-h")):
            args = ["check", *args]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; a wrong configuration ends it with 2."""
        try:
            return super().invoke(ctx)
        except UsageError as error:
            click.echo(f"emberlint: {error}", err=True)
            ctx.exit(2)


@click.group(cls=CheckByDefault, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Find what ties array code to one framework. Without a command: check."""


for command in COMMANDS:
    main.add_command(command)

if __name__ == "__main__":
    sys.exit(main())
