"""`emberharmony capture`: a model of PyTorch as a program in a folder."""

import sys
from typing import Any

import click

from emberharmony.cli.models import load_object
from emberharmony.core.errors import brief


@click.command()
@click.argument("function", metavar="FILE.py:FUNCTION")
@click.argument("folder", type=click.Path(file_okay=False))
@click.option("--train", is_flag=True, help="Capture the model in training; default: as FUNCTION returns it.")
@click.option("--dynamic", is_flag=True, help="Let the first axis of all tensors vary.")
@click.option("--backend", "backends", metavar="NAME", multiple=True, help="Compare on this backend; default: on all.")
def capture(function: str, folder: str, train: bool, dynamic: bool, backends: tuple[str, ...]) -> None:
    """Capture a model of PyTorch in FOLDER as a program, which `emberharmony.load_program` runs without PyTorch.

    FUNCTION takes no arguments and returns a module of PyTorch and example arguments: (module, args) or (module, args,
    kwargs), as `emberharmony.from_torch` takes them. Outputs and gradients are compared with those of PyTorch.

    The exit status is 1 if a backend gives something else; the program is written all the same.
    """
    # Imported here, because it loads the layers.
    from emberharmony.interop.torch.conversion import from_torch

    made_object: Any = load_object(function, "FILE.py:FUNCTION", lambda value: False)
    if not isinstance(made_object, tuple) or len(made_object) not in (2, 3):
        raise click.UsageError(
            f"FILE.py:FUNCTION: it gives {brief(made_object)}, expected (module, args) or (module, args, kwargs)"
        )
    captured_module = from_torch(*made_object, dynamic=dynamic or None, train=train or None)
    check_report = captured_module.check(list(backends) or None)
    click.echo(repr(check_report))
    captured_module.save(folder)
    click.echo(f"{folder}: {captured_module!r}")
    if not check_report.ok:
        sys.exit(1)
