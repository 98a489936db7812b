"""Sorting, searching and set ops, on JAX."""

import jax
import jax.numpy as jnp
import numpy as np

from emberharmony.backend.jax.dtypes import compile_by_jit, is_float, of_host, promotion, widen
from emberharmony.backend.jax.standard_ops import JAXStandardOps
from emberharmony.backend.jax.tracing import Tracer, to_host_array
from emberharmony.backend.promote import tensor_and_axis
from emberharmony.backend.shared.reductions.sorting import WithUnique, check_top_k, checked_side, checked_sorter
from emberharmony.core.errors import ShapeError

_COMPLEX = ("complex",)
_PAIRS = 2**16
"""From this number of pairs on, `isin` sorts the second set and searches it."""


def _reverse_order(x: jax.Array) -> jax.Array:
    """Returns values whose ascending order is the descending order of `x`, NaN still last; it is its own inverse."""
    return -x if is_float(x) else ~x


@compile_by_jit("axis", "descending")
def _sort(x: jax.Array, axis: int, descending: bool) -> jax.Array:
    return (
        _reverse_order(jnp.sort(_reverse_order(x), axis, stable=True)) if descending else jnp.sort(x, axis, stable=True)
    )


@compile_by_jit("side")
def _insertion_points(sorted_values: jax.Array, values: jax.Array, side: str) -> jax.Array:
    return jnp.searchsorted(sorted_values, values, side=side).astype(np.int64)


class JAXSortingOps(WithUnique):
    """Holds the ops of `ops/reductions/sorting.py`.

    The bodies compare each pair of elements, or compute on the host; they take up to 7.8 times as long, for few
    elements.
    """

    @staticmethod
    def sort(x: jax.Array, axis: int | None = -1, descending: bool = False, stable: bool = True) -> jax.Array:
        promotion.refuse(x, _COMPLEX)
        x, axis = tensor_and_axis(x, axis, least=1)
        return _sort(x, axis, bool(descending)) if x.ndim else x

    @staticmethod
    def top_k(x: jax.Array, k: int, sorted: bool = True) -> tuple[jax.Array, jax.Array]:
        promotion.refuse(x, _COMPLEX)
        check_top_k(x.shape, k)
        top_indices = JAXStandardOps.argsort(x, -1, True)[..., :k]
        return jnp.take_along_axis(x, top_indices, -1, mode="clip"), top_indices

    @staticmethod
    def searchsorted(
        sorted_sequence: jax.Array, values: jax.Array, side: str = "left", sorter: jax.Array | None = None
    ) -> jax.Array:
        if sorted_sequence.ndim != 1:
            raise ShapeError(f"expected a sorted sequence of shape (n,), got shape {sorted_sequence.shape}")
        a, b = promotion.common(sorted_sequence, values)
        promotion.refuse(a, _COMPLEX)
        if sorter is not None:
            a = a[checked_sorter(to_host_array(sorter), a.size)]
        insertion_points: jax.Array = _insertion_points(a, b, checked_side(side))
        return insertion_points

    @staticmethod
    def _unique(x: jax.Array) -> jax.Array:
        # The shape of the result depends on the values, so find the unique ones on the host.
        host_values = to_host_array(widen(x))
        if not isinstance(x, Tracer):
            return of_host(np.unique(host_values), x.dtype)
        return x.reshape(-1)[np.unique(host_values, return_index=True)[1]]

    @staticmethod
    def isin(x1: jax.Array, x2: jax.Array, assume_unique: bool = False, *, invert: bool = False) -> jax.Array:
        a, b = promotion.common(x1, x2)
        # JAX compares all pairs by default, which for sets of 100,000 takes minutes.
        has_many_pairs = a.size * b.size > _PAIRS and not jnp.iscomplexobj(a)
        return jnp.isin(a, b, invert=bool(invert), method="binary_search" if has_many_pairs else "compare_all")
