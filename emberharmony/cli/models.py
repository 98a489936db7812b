"""Models that an option of a command names, as `model.py:Net` or `package.module:net`."""

import importlib
import os
import runpy
import sys
from collections.abc import Callable, Iterator
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
    model = load_object(text, "--model", lambda value: hasattr(value, "convert_state_dict"))
    if not hasattr(model, "convert_state_dict"):
        function_name = text.rpartition(":")[2]
        raise click.UsageError(f"--model: {function_name} gives {brief(model)}, expected a module of emberharmony.nn")
    return model


def load_object(text: str, what: str, is_made: Callable[[Any], bool]) -> Any:
    """Returns what a text names as `FILE.py:NAME` or `MODULE:NAME`, or what the class or function there returns.

    Args:
        text: the text.
        what: the option or argument, for messages.
        is_made: returns whether an object that can be called is not to be called.

    Raises:
        click.UsageError: if there is nothing of the name, or the call takes arguments.
    """
    module_text, colon, name = text.rpartition(":")
    if not colon or not module_text or not name:
        raise click.UsageError(f"{what} takes FILE.py:NAME or MODULE:NAME, not {text!r}")
    if module_text.endswith(".py"):
        if not os.path.isfile(module_text):
            raise click.UsageError(f"{what}: there is no file {module_text}")
        with prepend_import_path(os.path.dirname(os.path.abspath(module_text))):
            value_by_name = runpy.run_path(module_text, run_name=os.path.basename(module_text).removesuffix(".py"))
            return _find_object(value_by_name, name, module_text, what, is_made)
    with prepend_import_path(os.getcwd()):
        try:
            value_by_name = vars(importlib.import_module(module_text))
        except ModuleNotFoundError as error:
            raise click.UsageError(f"{what}: {error}; a file is given as FILE.py:NAME") from error
        return _find_object(value_by_name, name, module_text, what, is_made)


def _find_object(
    value_by_name: dict[str, Any], name: str, place: str, what: str, is_made: Callable[[Any], bool]
) -> Any:
    if name not in value_by_name:
        raise click.UsageError(f"{what}: {place} has no {name}{suggest(name, value_by_name)}")
    named_object = value_by_name[name]
    if callable(named_object) and (isinstance(named_object, type) or not is_made(named_object)):
        try:
            named_object = named_object()
        except TypeError as error:
            raise click.UsageError(f"{what}: {name}() failed: {error}; name a model or a function of none") from error
    return named_object


@contextmanager
def prepend_import_path(folder: str) -> Iterator[None]:
    """Puts a folder first on the import path while a `with` block runs."""
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        if folder in sys.path:
            sys.path.remove(folder)
