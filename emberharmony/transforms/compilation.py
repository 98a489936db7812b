"""Functions that are compiled by the backend that is active when they are called."""

import functools
from typing import Any

from emberharmony.core import selection
from emberharmony.core.deferred import import_now
from emberharmony.transforms.trees import Function, require_callable


def compile_where_called(op: str, fn: Function) -> Function:
    """Returns a function that the active backend compiles when it is called; each backend compiles it only once."""
    require_callable(op, fn)
    import_now("emberharmony.transforms")  # which a compiled function may need, and cannot import while it is traced
    made: dict[str, Function] = {}

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        bound = selection.active()
        variant = f"{bound.backend.prefix}{bound.variant}" if bound.variant else bound.backend.prefix
        native = made.get(variant)
        if native is None:
            native = made[variant] = bound.backend.compile_function(fn)
        return native(*args, **kwargs)

    return call
