"""Bitwise ops, on JAX."""

import jax
import jax.numpy as jnp

from emberharmony.backend.jax.dtypes import kind_of, program
from emberharmony.backend.promote import direct


@program()
def _left(x: jax.Array, y: jax.Array) -> jax.Array:
    width = x.dtype.itemsize * 8
    outside = (y < 0) | (y >= width)
    return jnp.where(outside, 0, jnp.left_shift(x, jnp.where(outside, 0, y)))


@program()
def _right(x: jax.Array, y: jax.Array) -> jax.Array:
    width = x.dtype.itemsize * 8
    outside = (y < 0) | (y >= width)
    beyond = jnp.where(x < 0, -1, 0).astype(x.dtype) if kind_of(x) == "signed" else jnp.zeros_like(x)
    return jnp.where(outside, beyond, jnp.right_shift(x, jnp.where(outside, 0, y)))


class JAXBitwiseOps:
    """Holds the ops of `ops/bitwise.py`."""

    bitwise_and = direct(jnp.bitwise_and)
    bitwise_or = direct(jnp.bitwise_or)
    bitwise_xor = direct(jnp.bitwise_xor)
    bitwise_left_shift = staticmethod(_left)
    bitwise_right_shift = staticmethod(_right)
    bitwise_not = staticmethod(jnp.invert)
