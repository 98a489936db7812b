"""The root command; an `EmberError` ends it with a one-line message and exit status 2."""

import sys
from typing import Any

import click

from emberharmony.cli.backend import backend
from emberharmony.cli.capture import capture
from emberharmony.cli.compare import compare
from emberharmony.cli.conformance import conformance
from emberharmony.cli.demo import demo
from emberharmony.cli.doctor import doctor
from emberharmony.cli.fuzz import fuzz
from emberharmony.cli.info import info
from emberharmony.cli.launch import launch
from emberharmony.cli.op import op
from emberharmony.cli.profile import profile
from emberharmony.cli.weights import weights
from emberharmony.core.errors import EmberError
from emberharmony.version import __version__


class _Group(click.Group):
    """A group of commands that prints an `EmberError` as a message, without a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command; exits with status 2 after an `EmberError`, and with 130 after Ctrl-C."""
        try:
            return super().invoke(ctx)
        except EmberError as error:
            click.echo(f"Error: {error}", err=True)
            sys.exit(2)
        except KeyboardInterrupt:
            click.echo("Interrupted.", err=True)
            sys.exit(130)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="emberharmony")
def command() -> None:
    """One namespace of array functions over NumPy, PyTorch and MLX."""


for part in (info, doctor, backend, op, profile, demo, compare, capture, conformance, fuzz, weights, launch):
    command.add_command(part)
