"""Functions that are compiled by the backend that is active when they are called."""

import functools
from collections.abc import Callable
from typing import Any, cast

from emberharmony.core import selection
from emberharmony.core.deferred import import_now
from emberharmony.core.errors import ArgumentError, brief, suggest
from emberharmony.core.results import CompiledFunction
from emberharmony.transforms.trees import Function, require_callable

ENGINES = ("torch", "jax", "numba")
"""The libraries that may run the programs of functions that are compiled on NumPy."""

AUTO = "auto"
"""Stands for the engine that is the fastest for a program, or for none."""


def compile_where_called(op: str, fn: Function, engine: str | None = None) -> CompiledFunction:
    """Returns a function that the active backend compiles when it is called; each backend compiles it only once.

    Args:
        op: the name of the op that was called.
        fn: the function.
        engine: see `ops.compile`.

    Raises:
        ArgumentError: if there is no such engine; from the returned function, if the active backend takes no engine.
        ArgumentTypeError: if `fn` cannot be called.
    """
    require_callable(op, fn)
    engine_names = (*ENGINES, AUTO)
    if engine is not None and engine not in engine_names:
        hint = suggest(engine, engine_names)
        raise ArgumentError(f"{op}() has no engine {brief(engine)}{hint} (known: {', '.join(engine_names)}, or None)")
    import_now("emberharmony.transforms")  # which a compiled function may need, and cannot import while it is traced
    function_by_variant: dict[str, Function] = {}

    def set_engine(name: str | None) -> None:
        compiled_function.engine = name

    last_call: tuple[Any, Any] = None, None

    @functools.wraps(fn)
    def call_compiled(*args: Any, **kwargs: Any) -> Any:
        nonlocal last_call
        last_ops, backend_function = last_call
        active_ops = selection.active()
        if active_ops is not last_ops:
            backend_variant = (
                f"{active_ops.backend.prefix}{active_ops.variant}" if active_ops.variant else active_ops.backend.prefix
            )
            backend_function = function_by_variant.get(backend_variant)
            if backend_function is None:
                backend_function = function_by_variant[backend_variant] = _compiled_function(
                    op, active_ops.backend, fn, engine, set_engine
                )
            last_call = active_ops, backend_function
        return backend_function(*args, **kwargs)

    compiled_function = cast("CompiledFunction", call_compiled)
    compiled_function.engine = None
    return compiled_function


def _compiled_function(
    op: str, backend: Any, fn: Function, engine: str | None, set_engine: Callable[[str | None], None]
) -> Function:
    """Returns a function that a backend has compiled.

    Args:
        op: the name of the op that was called.
        backend: the backend.
        fn: the function.
        engine: see `ops.compile`.
        set_engine: is called with the engine of each program that is recorded, None for none.

    Raises:
        ArgumentError: if the backend takes no engine.
    """
    if engine is None or (engine == AUTO and not backend.takes_engine):
        compiled_function: Function = backend.compile_function(fn)
        return compiled_function
    if not backend.takes_engine:
        raise ArgumentError(
            f"{op}(engine={engine!r}) on backend {backend.name!r}: an engine runs what is compiled on NumPy; "
            f"leave engine out, say engine={AUTO!r}, which means nothing here, or use the backend 'numpy'"
        )
    engine_function: Function = backend.compile_function(fn, engine, set_engine)
    return engine_function
