"""Conversion of indices, and writing at indices, on JAX."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from emberharmony.backend.host import host_indices
from emberharmony.backend.jax.derivatives import with_differential
from emberharmony.backend.jax.dtypes import DTYPES, compile_by_jit, kind_of
from emberharmony.backend.jax.tracing import array_if_on_host, to_host_array
from emberharmony.backend.shared.arrays.indexing import check_index_vectors, index_columns, nonnegative_indices
from emberharmony.core.errors import ArgumentTypeError

At = tuple[Any, ...]
"""The indices of the first axes of a tensor, one array for each."""


def require_integers(indices: jax.Array) -> jax.Array:
    """Returns a tensor of indices unchanged, after a check that they are integers.

    Raises:
        ArgumentTypeError: if the indices are not integers.
    """
    if kind_of(indices) not in ("signed", "unsigned"):
        raise ArgumentTypeError(f"expected integer indices, got {DTYPES.neutral[indices.dtype]}; cast them (ops.cast)")
    return indices


def read_if_on_host(indices: Any) -> Any:
    """Returns indices; a tensor in the memory of the host becomes an array, which can be checked."""
    if isinstance(indices, jax.Array):
        host_array = array_if_on_host(require_integers(indices))
        return indices if host_array is None else host_array
    return indices


def indices_for(indices: Any, length: int) -> Any:
    """Returns indices from 0 up; those with values in the memory of the host are checked.

    Raises:
        ArgumentTypeError: if the indices are not integers.
        IndexOutOfBoundsError: if a checked index is out of bounds.
    """
    indices = read_if_on_host(indices)
    if isinstance(indices, jax.Array):
        positions = indices.astype(np.int64)
        return jnp.where(positions < 0, positions + length, positions)
    return nonnegative_indices(host_indices(indices), length)


@compile_by_jit()
def _element_at(x: jax.Array, place: int) -> jax.Array:
    return jax.lax.dynamic_index_in_dim(x, place, 0, keepdims=False)


@compile_by_jit("length")
def _row_range(x: jax.Array, start: int, length: int) -> jax.Array:
    return jax.lax.dynamic_slice_in_dim(x, start, length, 0)


def index_first_axis(x: jax.Array, key: Any) -> jax.Array:
    """Returns `x[key]` for an integer or a slice, by a compiled program that takes the position as an argument.

    On the CPU it takes 7 us, where JAX 0.10 takes 40 to 60, which finds out the form of the key each time.
    """
    if key.__class__ is int:
        return _element_at(x, key)
    if key.__class__ is not slice or key.step not in (None, 1):
        return x[key]
    start, stop, _ = key.indices(x.shape[0])
    return _row_range(x, start, max(stop - start, 0))


def masked_axis_count(part: Any) -> int | None:
    """Returns how many axes an index masks: the rank of a boolean tensor, -1 for another tensor, None for no tensor."""
    if not isinstance(part, jax.Array):
        return None
    return int(part.ndim) if part.dtype.kind == "b" else -1


def key_from_parts(parts: Iterable[tuple[Any, int, bool]], shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Returns the key for a JAX array of a shape, made of the parts that `shared.indexing.parts_of` yields."""
    native_key: list[Any] = []
    for key_part, axis, mask in parts:
        if mask and isinstance(key_part, jax.Array):
            # The shape of what a mask selects depends on its values.
            native_key.append(to_host_array(key_part))
        else:
            native_key.append(indices_for(key_part, shape[axis]) if isinstance(key_part, jax.Array) else key_part)
    return tuple(native_key)


def indices_per_axis(indices: Any, shape: tuple[int, ...]) -> At:
    """Returns indices of shape (..., k) as the indices of the first k axes.

    Raises:
        EmberError: if they do not fit the shape, or one that has a value is out of bounds.
    """
    indices = read_if_on_host(indices)
    if not isinstance(indices, jax.Array):
        return index_columns(indices, shape)
    check_index_vectors(indices.shape, shape)
    return tuple(indices_for(indices[..., axis], shape[axis]) for axis in range(indices.shape[-1]))


@compile_by_jit()
def _write_rows(x: jax.Array, places: At, updates: jax.Array) -> jax.Array:
    return x.at[places].set(_updates_with_last_values(x, places, updates), mode="drop")


def _updates_with_last_values(x: jax.Array, row_places: At, updates: jax.Array) -> jax.Array:
    """Returns updates in which those of equal indices have the value of the last one, which is what NumPy writes."""
    lengths = x.shape[: len(row_places)]
    broadcast_places = jnp.broadcast_arrays(*row_places)
    flat_indices = jnp.zeros(broadcast_places[0].shape, np.int64)
    for axis_indices, length in zip(broadcast_places, lengths, strict=True):
        flat_indices = flat_indices * length + axis_indices
    flat_indices = flat_indices.reshape(-1)
    row_count = math.prod(lengths)
    if not flat_indices.size or not row_count:
        return updates
    update_numbers = jnp.arange(flat_indices.size)
    last_update_numbers = (
        jnp.zeros(row_count, update_numbers.dtype)
        .at[flat_indices]
        .max(update_numbers, mode="drop")[jnp.clip(flat_indices, 0, row_count - 1)]
    )
    broadcast_updates = jnp.broadcast_to(updates, (*broadcast_places[0].shape, *x.shape[len(row_places) :]))
    return broadcast_updates.reshape(flat_indices.size, *x.shape[len(row_places) :])[last_update_numbers].reshape(
        broadcast_updates.shape
    )


def _add_rows(rows: jax.Array, new: jax.Array, *places: jax.Array) -> jax.Array:
    if rows.dtype.kind == "b":
        return rows.at[places].max(new, mode="drop")
    return rows.at[places].add(new, mode="drop")


def _extreme_scatter(name: str) -> Callable[..., jax.Array]:
    """Returns the function of a scattered maximum or minimum, whose derivative equal rows and updates share."""

    def scatter_natively(rows: jax.Array, new: jax.Array, *places: jax.Array) -> jax.Array:
        return getattr(rows.at[places], name)(new, mode="drop")

    def push_tangents(primals: Any, outputs: Any, tangents: Any) -> Any:
        (rows, updates, *index_columns), (y,) = primals, outputs
        index = tuple(index_columns)
        was_extreme, becomes_extreme = (
            (rows == y).astype(y.dtype),
            (updates == y.at[index].get(mode="clip")).astype(y.dtype),
        )
        tie_count = jnp.maximum(was_extreme.at[index].add(becomes_extreme, mode="drop"), 1)
        return ((was_extreme * tangents[0]).at[index].add(becomes_extreme * tangents[1], mode="drop") / tie_count,)

    return jax.jit(_with_broadcast_places(with_differential(scatter_natively, push_tangents)))


def _with_broadcast_places(function: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
    """Returns a function of a tensor, indices and updates, over a function of rows, updates and index arrays."""

    def call_with_broadcast(x: jax.Array, places: At, updates: jax.Array) -> jax.Array:
        broadcast_places = jnp.broadcast_arrays(*places)
        return function(
            x, jnp.broadcast_to(updates, (*broadcast_places[0].shape, *x.shape[len(places) :])), *broadcast_places
        )

    return call_with_broadcast


def _scatter_product(rows: jax.Array, new: jax.Array, *places: jax.Array) -> jax.Array:
    return rows.at[places].mul(new, mode="drop")


def _product_slopes(rows: jax.Array, new: jax.Array, places: At) -> tuple[jax.Array, jax.Array]:
    """Returns the derivatives of scattered products by the rows and by the factors.

    That by a factor is the product of all other factors, in which zeros are counted, not divided by.
    """
    is_zero = new == 0
    factors = jnp.where(is_zero, 1, new)
    product = _multiply_rows(jnp.ones_like(rows), places, factors)
    zero_counts = jnp.zeros(rows.shape, np.int64).at[places].add(is_zero.astype(np.int64), mode="drop")
    has_no_other_zero = zero_counts.at[places].get(mode="clip") == is_zero
    slopes_of_updates = jnp.where(has_no_other_zero, product.at[places].get(mode="clip") / factors, 0)
    return jnp.where(zero_counts > 0, 0, product), rows.at[places].get(mode="clip") * slopes_of_updates


def _product_tangent(primals: Any, outputs: Any, tangents: Any) -> Any:
    rows, updates, *index_columns = primals
    row_slopes, slopes_of_updates = _product_slopes(rows, updates, tuple(index_columns))
    return ((tangents[0] * row_slopes).at[tuple(index_columns)].add(tangents[1] * slopes_of_updates, mode="drop"),)


_scatter_product_with_rule = jax.jit(_with_broadcast_places(with_differential(_scatter_product, _product_tangent)))


def _multiply_rows(x: jax.Array, places: At, updates: jax.Array) -> jax.Array:
    return (
        x.at[places].min(updates, mode="drop")
        if x.dtype.kind == "b"
        else _scatter_product_with_rule(x, places, updates)
    )


ON_ROWS: dict[Any, Callable[..., jax.Array]] = {
    None: _write_rows,
    "add": jax.jit(_with_broadcast_places(_add_rows)),
    "mul": _multiply_rows,
    "max": _extreme_scatter("max"),
    "min": _extreme_scatter("min"),
}
"""By the name of a reduction, the function that writes updates at indices."""
