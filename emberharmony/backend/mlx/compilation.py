"""Functions compiled by `mx.compile`."""

import threading
from typing import Any

import mlx.core as mx

from emberharmony.backend.shared import compilation


class Compiled(compilation.Compiled):
    """A function that MLX compiles."""

    compiler = compilation.Compiler(mx.array, mx.compile)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the result of the function."""
        # If a thread other than the main one ran a compiled function, MLX 0.32 may abort the process at exit.
        if threading.current_thread() is not threading.main_thread():
            return self._fn(*args, **kwargs)
        return super().__call__(*args, **kwargs)
