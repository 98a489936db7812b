"""Functions compiled by whichever backend is active when they are called."""

import functools
import importlib
from typing import Any

from emberharmony.core import selection
from emberharmony.transforms.trees import Function, require_callable

_TRACED = ("emberharmony.transforms.batching", "emberharmony.transforms.derivatives")
"""What a compiled function may call, and cannot import while it is traced."""


def compiled(op: str, fn: Function) -> Function:
    """Returns `fn` as the active backend compiles it, each backend once."""
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
