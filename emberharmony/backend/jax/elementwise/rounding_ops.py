"""Rounding, `copysign`, `nextafter`, `ldexp` and `nan_to_num`, on JAX."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from emberharmony.backend.jax.derivatives import elementwise_function
from emberharmony.backend.jax.dtypes import compile_by_jit, is_complex, is_float, promotion
from emberharmony.backend.shared.elementwise.rounding import Decimals, holds_tensor, replacement_numbers

_REACH = {"float16": 15, "bfloat16": 100, "float32": 100, "float64": 1000}
"""An exponent e for which the dtype can represent 2**e and 2**-e; three such steps exceed its range of exponents."""
_BITS = {2: np.int16, 4: np.int32, 8: np.int64}


def _nextafter(x1: jax.Array, x2: jax.Array) -> jax.Array:
    # The bits of floats of one sign, viewed as integers, have the order of the magnitudes.
    bits_dtype = _BITS[x1.dtype.itemsize]
    is_outward = (x2 > x1) == (x1 > 0)
    next_bits = lax.bitcast_convert_type(x1, bits_dtype) + jnp.where(is_outward, 1, -1).astype(bits_dtype)
    next_x = lax.bitcast_convert_type(next_bits, x1.dtype)
    smallest_subnormal = lax.bitcast_convert_type(jnp.ones((), bits_dtype), x1.dtype)
    neighbour = jnp.where(x1 == 0, jnp.where(x2 > 0, smallest_subnormal, -smallest_subnormal), next_x)
    return jnp.where(x1 == x2, x2, jnp.where(jnp.isnan(x1) | jnp.isnan(x2), jnp.nan, neighbour))


# Between powers of two the size of the step is constant, so the derivative by x1 is 1. Where the operands are equal,
# the result is x2, and the derivative by x1 is 0.
_next = elementwise_function(
    lambda x1, x2: _nextafter(*jnp.broadcast_arrays(x1, x2)),
    lambda x1, x2, y: (x1 != x2).astype(y.dtype),
    lambda x1, x2, y: jnp.zeros_like(y),
)


@compile_by_jit("decimals")
def _round_by_scale(x: jax.Array, decimals: int, bound: float) -> jax.Array:
    # XLA would multiply by the reciprocal of a number: 0.3 would become 0.30000000000000004, and 1e-300 would become 0.
    power_of_ten = lax.optimization_barrier(jnp.full(x.shape, 10.0 ** abs(decimals), x.dtype))
    if decimals < 0:
        return jnp.round(x / power_of_ten) * power_of_ten
    is_small = jnp.abs(x) < bound
    return jnp.where(is_small, jnp.round(x * power_of_ten) / power_of_ten, lax.stop_gradient(x))


@compile_by_jit()
def _ldexp(x: jax.Array, exponent: jax.Array) -> jax.Array:
    largest_step = _REACH[x.dtype.name]
    # 2 ** exponent alone may overflow where the product does not, so multiply in three steps.
    if exponent.dtype == np.uint64:
        exponent = jnp.minimum(exponent, 3 * largest_step)
    remaining_shift = jnp.clip(exponent.astype(np.int64), -3 * largest_step, 3 * largest_step)
    for _ in range(3):
        exponent_step = jnp.clip(remaining_shift, -largest_step, largest_step)
        # Make a power of two from its bits in float64, because `jnp.exp2` is not exact in half precision.
        scale_factor = lax.bitcast_convert_type((exponent_step + 1023) << 52, np.float64)
        x, remaining_shift = x * scale_factor.astype(x.dtype), remaining_shift - exponent_step
    return x


@compile_by_jit("nan", "posinf", "neginf")
def _replace_nonfinite(x: jax.Array, nan: float, posinf: float | None, neginf: float | None) -> jax.Array:
    if is_complex(x):
        return lax.complex(*(_replace_nonfinite(component, nan, posinf, neginf) for component in (x.real, x.imag)))
    dtype_limits = jnp.finfo(x.dtype)
    positive_replacement, negative_replacement = (
        (dtype_limits.max if posinf is None else posinf),
        (dtype_limits.min if neginf is None else neginf),
    )
    x = jnp.where(jnp.isnan(x), jnp.asarray(nan, x.dtype), x)
    x = jnp.where(jnp.isposinf(x), jnp.asarray(positive_replacement, x.dtype), x)
    return jnp.where(jnp.isneginf(x), jnp.asarray(negative_replacement, x.dtype), x)


# JAX 0.10 has the derivative 1 for copysign at 0, that of the absolute value from the right.
_copysign = elementwise_function(
    jnp.copysign,
    lambda x1, x2, y: jnp.sign(x1) * jnp.copysign(jnp.ones_like(y), x2),
    lambda x1, x2, y: jnp.zeros_like(y),
)


class JAXRoundingOps(Decimals):
    """Holds the ops of `ops/elementwise/rounding.py`.

    Each is one program of XLA; the bodies take 3 to 175 times as long, for few elements, or compute on the host.
    """

    composed: Callable[[str], Callable[..., jax.Array]]

    copysign = staticmethod(jax.jit(_copysign))
    nextafter = staticmethod(jax.jit(_next))

    _round_to_integers = staticmethod(jnp.round)

    @staticmethod
    def _round_scaled(x: jax.Array, decimals: int, bound: float) -> jax.Array:
        return _round_by_scale(x, decimals, bound)

    def nan_to_num(self, x: jax.Array, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> jax.Array:
        if holds_tensor(nan, posinf, neginf):
            return self.composed("nan_to_num")(x, nan, posinf, neginf)
        nan, posinf, neginf = replacement_numbers(nan, posinf, neginf)
        return _replace_nonfinite(x, nan, posinf, neginf) if is_float(x) or is_complex(x) else x

    @staticmethod
    def ldexp(x1: jax.Array, x2: jax.Array) -> jax.Array:
        promotion.refuse(x2, ("float", "complex"))
        x = promotion.floats(x1)
        promotion.refuse(x, ("complex",))
        return _ldexp(x, x2)
