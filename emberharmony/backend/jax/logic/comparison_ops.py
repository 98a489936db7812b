"""Comparisons of whole tensors, on JAX."""

import jax
import jax.numpy as jnp
import numpy as np

from emberharmony.backend.jax.dtypes import compile_by_jit, kind_of, promotion


@compile_by_jit("equal_nan")
def _compiled_isclose(a: jax.Array, b: jax.Array, rtol: jax.Array, atol: jax.Array, equal_nan: bool) -> jax.Array:
    return jnp.isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)


def _is_close(
    x1: jax.Array, x2: jax.Array, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> jax.Array:
    a, b = promotion.common(x1, x2)
    if kind_of(a) not in ("float", "complex"):
        a, b = a.astype(np.float64), b.astype(np.float64)
    return _compiled_isclose(a, b, rtol, atol, equal_nan)


class JAXComparisonOps:
    """Holds the ops of `ops/logic/comparison.py`.

    The body of `isclose` takes 6 times as long, for few elements, because each of its steps is a program of XLA.
    """

    isclose = staticmethod(_is_close)

    @staticmethod
    def allclose(
        x1: jax.Array, x2: jax.Array, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
    ) -> jax.Array:
        return jnp.all(_is_close(x1, x2, rtol, atol, equal_nan))
