"""Functions compiled by `jax.jit`."""

from typing import Any

import jax

from emberharmony.backend.shared import compilation
from emberharmony.core.errors import TracedTensorError


class JAXFunction(compilation.LibraryFunction):
    """A function that `jax.jit` compiles at its first call with arguments of a kind."""

    compiler = compilation.Compiler(jax.Array, jax.jit)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the result of the compiled function.

        Raises:
            TracedTensorError: if it uses a tensor of an earlier call, which it has kept.
        """
        try:
            return super().__call__(*args, **kwargs)
        except jax.errors.UnexpectedTracerError as error:
            reason = str(error).partition("\n")[0]
            raise TracedTensorError(f"the compiled function has kept a tensor of an earlier call: {reason}") from error
