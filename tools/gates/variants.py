"""The gate `variants`: the source that dispatch generates for each op of a backend, and the function it calls."""

from functools import partial
from typing import Any

from emberharmony.core.op_code.op_source import compiled_source, fast_of, source_arguments
from emberharmony.core.registry import OPS
from emberharmony.core.selection import current
from gates.record import stable_text


def describe_variant(name: str) -> dict[str, Any]:
    """Returns the conditions, the source and the native function of an op on the active backend."""
    spec, backend = OPS[name], current()
    try:
        op_variant = source_arguments(spec, backend)
        native_name = qualified_name(fast_of(spec, backend).native)
    except Exception as error:  # noqa: BLE001  (an op that the backend lacks is recorded as such)
        return {"error": ["error", type(error).__name__, stable_text(error)[:300]]}
    return {"conditions": list(map(str, op_variant[1:])), "native": native_name, "source": compiled_source(*op_variant)}


def qualified_name(function: Any) -> str:
    """Returns the name of a function, with those in a partial one, the same in each process."""
    if isinstance(function, partial):
        return f"partial({', '.join(qualified_name(each) for each in (function.func, *function.args))})"
    inner_function = getattr(function, "__func__", None)
    if inner_function is not None:
        return qualified_name(inner_function)
    if not callable(function):
        return stable_text(repr(function))
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", None) or type(function).__qualname__
    return f"{type(function).__name__}:{getattr(function, '__module__', '')}.{name}"
