"""Functions compiled by `jax.jit`."""

import jax

from emberharmony.backend.shared import compilation


class Compiled(compilation.Compiled):
    """A function that JAX compiles."""

    compiler = compilation.Compiler(jax.Array, jax.jit)
