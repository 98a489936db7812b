"""Models that an option of a command names, as `model.py:Net` or `package.module:net`."""

import importlib
import os
import runpy
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from emberharmony.core.errors import brief, suggest


def model_of(text: str) -> Any:
    """Returns the model that a text names: a module of `nn`, or what a class or function without arguments returns.

    The file is run, and may import others of its folder.

    Raises:
        click.UsageError: if there is none.
    """
    place, colon, name = text.rpartition(":")
    if not colon or not place or not name:
        raise click.UsageError(f"--model takes FILE.py:NAME or MODULE:NAME, not {text!r}")
    if place.endswith(".py"):
        if not os.path.isfile(place):
            raise click.UsageError(f"--model: there is no file {place}")
        with importing_from(os.path.dirname(os.path.abspath(place))):
            names = runpy.run_path(place, run_name=os.path.basename(place).removesuffix(".py"))
            return _model_named(names, name, place)
    with importing_from(os.getcwd()):
        try:
            names = vars(importlib.import_module(place))
        except ModuleNotFoundError as error:
            raise click.UsageError(f"--model: {error}; a file is given as FILE.py:NAME") from error
        return _model_named(names, name, place)


def _model_named(names: dict[str, Any], name: str, place: str) -> Any:
    if name not in names:
        raise click.UsageError(f"--model: {place} has no {name}{suggest(name, names)}")
    model = names[name]
    if callable(model) and (isinstance(model, type) or not hasattr(model, "convert_state_dict")):
        try:
            model = model()
        except TypeError as error:
            raise click.UsageError(f"--model: {name}() failed: {error}; name a model or a function of none") from error
    if not hasattr(model, "convert_state_dict"):
        raise click.UsageError(f"--model: {name} gives {brief(model)}, expected a module of emberharmony.nn")
    return model


@contextmanager
def importing_from(folder: str) -> Iterator[None]:
    """Lets imports in the block look into a folder first."""
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        if folder in sys.path:
            sys.path.remove(folder)
