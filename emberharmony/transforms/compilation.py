"""Functions that are compiled by the backend that is active when they are called."""

import functools
import importlib
from typing import Any

from emberharmony.core import selection
from emberharmony.transforms.trees import Function, require_callable

_TRACED = ("emberharmony.transforms.batching", "emberharmony.transforms.derivatives")
"""Modules that a compiled function may need, and that cannot be imported while the function is traced."""


def compiled(op: str, fn: Function) -> Function:
    """Returns a function that the active backend compiles when it is called; each backend compiles it only once."""
    require_callable(op, fn)
    for module in _TRACED:
        importlib.import_module(module)
    made: dict[str, Function] = {}

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        backend = selection.current()
        native = made.get(backend.prefix)
        if native is None:
            native = made[backend.prefix] = backend.compiled(fn)
        return native(*args, **kwargs)

    return call
