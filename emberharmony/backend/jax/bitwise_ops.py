"""Bitwise ops, on JAX."""

import jax
import jax.numpy as jnp

from emberharmony.backend.jax.dtypes import kind_of, program, promotion

_INEXACT = ("float", "complex")


@program()
def _left(x1: jax.Array, x2: jax.Array) -> jax.Array:
    width = x1.dtype.itemsize * 8
    outside = (x2 < 0) | (x2 >= width)
    return jnp.where(outside, 0, jnp.left_shift(x1, jnp.where(outside, 0, x2)))


@program()
def _right(x1: jax.Array, x2: jax.Array) -> jax.Array:
    width = x1.dtype.itemsize * 8
    outside = (x2 < 0) | (x2 >= width)
    beyond = jnp.where(x1 < 0, -1, 0).astype(x1.dtype) if kind_of(x1) == "signed" else jnp.zeros_like(x1)
    return jnp.where(outside, beyond, jnp.right_shift(x1, jnp.where(outside, 0, x2)))


class JAXBitwiseOps:
    """Holds the ops of `ops/bitwise.py`."""

    bitwise_and = staticmethod(promotion.binary(jnp.bitwise_and, kinds=_INEXACT))
    bitwise_or = staticmethod(promotion.binary(jnp.bitwise_or, kinds=_INEXACT))
    bitwise_xor = staticmethod(promotion.binary(jnp.bitwise_xor, kinds=_INEXACT))
    bitwise_left_shift = staticmethod(promotion.binary(_left, kinds=("bool", *_INEXACT), direct=False))
    bitwise_right_shift = staticmethod(promotion.binary(_right, kinds=("bool", *_INEXACT), direct=False))

    @staticmethod
    def bitwise_not(x: jax.Array) -> jax.Array:
        promotion.refuse(x, _INEXACT)
        return jnp.invert(x)
