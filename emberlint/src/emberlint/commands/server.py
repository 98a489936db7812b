"""`emberlint server`: checks and repairs in an editor, by the Language Server Protocol."""

from importlib import import_module

import click

from emberlint.config.errors import UsageError


@click.command()
def server() -> None:
    """Serve editors.

    It speaks the Language Server Protocol on standard input and output.
    """
    try:
        start_server = import_module("emberlint.server.protocol").create_server  # not at the top: it needs pygls
    except ModuleNotFoundError as error:
        raise UsageError(f"the server needs {error.name}: pip install 'emberlint[server]'") from error
    start_server().start_io()
