"""Functions that are compiled by the backend that is active when they are called."""

import functools
from typing import Any

from emberharmony.core import selection
from emberharmony.transforms.trees import Function, require_callable


def compiled(op: str, fn: Function) -> Function:
    """Returns a function that the active backend compiles when it is called; each backend compiles it only once."""
    require_callable(op, fn)
    # A compiled function may need these modules, which cannot be imported while the function is traced.
    from emberharmony.transforms import batching, derivatives  # noqa: F401

    made: dict[str, Function] = {}

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        bound = selection.active()
        variant = f"{bound.backend.prefix}{bound.variant}"
        native = made.get(variant)
        if native is None:
            # torch.compile cannot trace how an `autocast` block is found, so PyTorch runs the function as it is there.
            compiles = not bound.variant or bound.backend.compiles_variants
            native = made[variant] = bound.backend.compiled(fn) if compiles else fn
        return native(*args, **kwargs)

    return call
