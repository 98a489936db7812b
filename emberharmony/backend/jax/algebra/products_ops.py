"""Products of tensors, on JAX: in full precision unless the user chooses another, and half precision in float32."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from emberharmony.backend.jax.dtypes import promotion, widen
from emberharmony.backend.shared.algebra.products import check_factors, check_subscripts
from emberharmony.backend.shared.solver import check_equal_lengths
from emberharmony.core.dispatch import fast


def chosen_precision() -> Any:
    """Returns the precision of products: the highest, unless `ops.precision` or JAX's own setting chooses another.

    On an accelerator JAX would round the factors of float32 to fewer bits by default.
    """
    return lax.Precision.HIGHEST if jax.config.jax_default_matmul_precision is None else None


def _matmul_in_precision(a: Any, b: Any) -> Any:
    return jnp.matmul(a, b, precision=chosen_precision())


@fast(
    _matmul_in_precision,
    "(dtype := {0}.aval.dtype) is {1}.aval.dtype and (dtype is native_float32 or dtype is native_float64)",
)
def _matmul(x1: jax.Array, x2: jax.Array) -> jax.Array:
    check_factors(x1.shape, x2.shape)
    a, b = promotion.common(x1, x2)
    return _matmul_in_precision(widen(a), widen(b)).astype(a.dtype)


class JAXProductsOps:
    """Holds the ops of `ops/algebra/products.py`.

    XLA chooses the order of the products of `einsum`, and adds in a wide dtype; the bodies multiply step by step.
    """

    matmul = staticmethod(_matmul)

    @staticmethod
    def vecdot(x1: jax.Array, x2: jax.Array, axis: int = -1) -> jax.Array:
        check_equal_lengths(x1, x2, axis)
        a, b = promotion.common(x1, x2)
        return jnp.vecdot(widen(a), widen(b), axis=axis, precision=chosen_precision()).astype(a.dtype)

    @staticmethod
    def einsum(subscripts: str, *operands: jax.Array) -> jax.Array:
        check_subscripts(subscripts, *(x.shape for x in operands))
        tensors = promotion.common(*operands)
        return jnp.einsum(subscripts, *map(widen, tensors), precision=chosen_precision()).astype(tensors[0].dtype)
