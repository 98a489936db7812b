"""Activations whose derivatives at 0 JAX would take from those of the absolute value and the maximum, on JAX."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from emberharmony.backend.jax.derivatives import elementwise_function, with_differential
from emberharmony.backend.jax.dtypes import float32_version, is_float
from emberharmony.backend.jax.elementwise.elementary_ops import log1p_of_real, op_of_real

_relu: Any = jax.jit(
    with_differential(
        lambda x: jnp.maximum(x, 0), lambda primals, outputs, tangents: (jnp.where(primals[0] > 0, tangents[0], 0),)
    )
)


def _exp_of_minus_abs(x: jax.Array) -> jax.Array:
    return jnp.exp(-jnp.abs(x))


_sigmoid: Any = elementwise_function(
    lambda x: jnp.where(x < 0, _exp_of_minus_abs(x), 1) / (1 + _exp_of_minus_abs(x)),
    lambda x, y: y * _sigmoid(jnp.negative(x)),
)
_softplus: Any = elementwise_function(
    lambda x: jnp.maximum(x, 0) + log1p_of_real(_exp_of_minus_abs(x)), lambda x, y: _sigmoid(x)
)
_log_sigmoid: Any = elementwise_function(
    lambda x: jnp.minimum(x, 0) - log1p_of_real(_exp_of_minus_abs(x)), lambda x, y: _sigmoid(jnp.negative(x))
)


class JAXActivationOps:
    """Holds the ops of `ops/neural/activation.py`.

    Each is one program of XLA, with the derivative at 0 that the bodies have and JAX's functions lack. The body of
    `log_sigmoid` takes 8 times as long, for few elements.
    """

    composed: Callable[[str], Callable[..., jax.Array]]

    sigmoid = staticmethod(op_of_real(_sigmoid))
    softplus = staticmethod(op_of_real(_softplus))
    log_sigmoid = staticmethod(jax.jit(float32_version(_log_sigmoid)))

    def relu(self, x: jax.Array) -> jax.Array:
        return _relu(x) if is_float(x) else self.composed("relu")(x)
