"""Complex numbers and their parts, on JAX."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from emberharmony.backend.jax.dtypes import compile_by_jit, is_complex, promotion, widen
from emberharmony.backend.shared.arrays.shape import check_complex_pairs


def mirror_below_cut(native: Any) -> Any:
    """Returns a complex function corrected for an imaginary part of -0, whose sign JAX 0.10 ignores at branch cuts."""

    def call_mirrored(x: jax.Array) -> jax.Array:
        if not is_complex(x):
            return native(x)
        is_below = jnp.signbit(x.imag)
        upper_result = native(jnp.where(is_below, jnp.conj(x), x))
        return jnp.where(is_below, jnp.conj(upper_result), upper_result)

    return call_mirrored


@compile_by_jit()
def _complex_of_pairs(x: jax.Array) -> jax.Array:
    return lax.complex(x[..., 0], x[..., 1])


class JAXComplexNumbersOps:
    """Holds the ops of `ops/elementwise/complex_numbers.py`.

    The body of `conj` takes 4.4 times as long, for few elements; that of `view_as_complex` reads the values, so no
    compiled program has it.
    """

    @staticmethod
    def view_as_complex(x: jax.Array) -> jax.Array:
        promotion.refuse(x, ("complex",))
        check_complex_pairs(x.shape)
        return _complex_of_pairs(widen(promotion.floats(x)))
