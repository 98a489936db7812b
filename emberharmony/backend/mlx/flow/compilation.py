"""Functions compiled by `mx.compile`."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import mlx.core as mx

from emberharmony.backend.mlx.tracing import COMPILING
from emberharmony.backend.shared import compilation
from emberharmony.core.deferred import Deferred
from emberharmony.core.errors import has_message
from emberharmony.core.trees.tree import tree_map

if TYPE_CHECKING:
    import threading
else:
    threading = Deferred("threading")


def _compile_trace(trace: Callable[[list[Any]], list[Any]]) -> Callable[[list[Any]], list[Any]]:
    """Returns a function of lists of arrays compiled by MLX, whose ops know that they are traced."""

    def run_traced(arrays: list[Any]) -> list[Any]:
        was_traced, COMPILING.traced = COMPILING.traced, True
        try:
            return trace(arrays)
        finally:
            COMPILING.traced = was_traced

    compiled_trace: Callable[[list[Any]], list[Any]] = mx.compile(run_traced)
    return compiled_trace


class MLXFunction(compilation.LibraryFunction):
    """A function that `mx.compile` compiles at its first call with arguments of a kind."""

    compiler = compilation.Compiler(mx.array, _compile_trace)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the result of the function, compiled where MLX can compile it."""
        # If a thread other than the main one ran a compiled function, MLX 0.32 may abort the process at exit.
        if threading.current_thread() is not threading.main_thread():
            return self._fn(*args, **kwargs)
        try:
            return super().__call__(*args, **kwargs)
        except ValueError as error:
            if not has_message(error, (ValueError,), "uncaptured inputs"):
                raise
        # MLX 0.32 cannot trace a function that closes over an array with which it is called.
        args, kwargs = tree_map(
            lambda leaf: mx.contiguous(leaf) if isinstance(leaf, mx.array) else leaf, (args, kwargs)
        )
        return super().__call__(*args, **kwargs)
