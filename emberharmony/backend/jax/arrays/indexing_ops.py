"""Reading and writing by index, on JAX, which clips or drops the indices that it cannot check."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from emberharmony.backend.host import host_indices
from emberharmony.backend.jax.arrays.indices import (
    ON_ROWS,
    index_first_axis,
    indices_for,
    indices_per_axis,
    key_from_parts,
    masked_axis_count,
    read_if_on_host,
    require_integers,
)
from emberharmony.backend.jax.device_ops import check_memory
from emberharmony.backend.jax.dtypes import DTYPES, cast, of_host, promotion
from emberharmony.backend.jax.tracing import Tracer, to_host_array
from emberharmony.backend.promote import nonnegative_axes
from emberharmony.backend.shared.arrays.indexing import (
    block_slices,
    checked_reduction,
    class_count,
    is_basic_key,
    key_parts_of,
    require_elements,
    unravel,
)
from emberharmony.backend.shared.arrays.shape import FURTHEST, as_shape, clip_offset, require_matrices
from emberharmony.core.dispatch import fast
from emberharmony.core.dtypes import default_float
from emberharmony.core.errors import ShapeError
from emberharmony.core.options import refuse_sparse


class JAXIndexingOps:
    """Holds the ops of `ops/arrays/indexing.py`.

    The bodies compute on the host or gather, each step in a program of XLA: they take up to 9.6 times as long, for few
    elements.
    """

    @staticmethod
    @fast(jnp.where, promotion.same.format("{1}", "{2}"), promotion.weak.format("{1}", "{2}"))
    def where(condition: jax.Array, x1: Any = None, x2: Any = None) -> jax.Array:
        return jnp.where(condition, *promotion.common(x1, x2))

    @staticmethod
    def take(x: jax.Array, indices: Any, axis: int | None = None) -> jax.Array:
        if axis is None:
            x, axis = x.reshape(-1), 0
        (axis,) = nonnegative_axes(axis, x.ndim)
        positions = indices_for(indices, x.shape[axis])
        require_elements(x.shape[axis], positions.size)
        if not x.size:  # JAX 0.10 returns another shape for several axes of no indices
            return jnp.zeros((*x.shape[:axis], *positions.shape, *x.shape[axis + 1 :]), x.dtype)
        return jnp.take(x, positions, axis, mode="clip")

    @staticmethod
    def take_along_axis(x: jax.Array, indices: Any, axis: int | None = -1) -> jax.Array:
        if axis is None:
            x, axis = x.reshape(-1), 0
        (axis,) = nonnegative_axes(axis, x.ndim)
        positions = indices_for(indices, x.shape[axis])
        require_elements(x.shape[axis], positions.size)
        return jnp.take_along_axis(x, positions, axis, mode="clip")

    @staticmethod
    def get_item(x: jax.Array, key: Any) -> jax.Array:
        if is_basic_key(key, x.shape):
            return x[key] if key.__class__ is tuple or isinstance(x, Tracer) else index_first_axis(x, key)
        key_parts = list(key_parts_of(key, x.shape, masked_axis_count))
        native_key = key_from_parts(key_parts, x.shape)
        are_scalars = [isinstance(key_part, bool) or (mask and not key_part.ndim) for key_part, _, mask in key_parts]
        if any(are_scalars):
            # JAX 0.10 selects wrong elements by a mask without axes beside None, so index a new axis instead.
            new_axes = [
                axis
                for (part, axis, _), is_scalar in zip(key_parts, are_scalars, strict=True)
                if is_scalar or part is None
            ]
            x = jnp.expand_dims(x, [axis + i for i, axis in enumerate(new_axes)])
            native_key = tuple(
                np.zeros(int(part), np.int64) if is_scalar else slice(None) if part is None else part
                for part, is_scalar in zip(native_key, are_scalars, strict=True)
            )
        return x[native_key]

    @staticmethod
    def nonzero(x: jax.Array) -> tuple[jax.Array, ...]:
        if x.ndim == 0:
            raise ShapeError("expected a tensor with at least one axis, got a scalar; reshape it to (1,)")
        # The number of indices, hence the shape, is known only when the values are read.
        return tuple(of_host(axis_indices) for axis_indices in np.nonzero(to_host_array(x) != 0))

    @staticmethod
    def slice(inputs: jax.Array, start_indices: Sequence[int], shape: Sequence[int]) -> jax.Array:
        return inputs[block_slices(inputs.shape, start_indices, shape)]

    @staticmethod
    def slice_update(inputs: jax.Array, start_indices: Sequence[int], updates: jax.Array) -> jax.Array:
        return inputs.at[block_slices(inputs.shape, start_indices, updates.shape)].set(cast(updates, inputs.dtype))

    @staticmethod
    def scatter_update(inputs: jax.Array, indices: Any, updates: jax.Array, reduction: str | None = None) -> jax.Array:
        positions = indices_per_axis(indices, inputs.shape)
        if checked_reduction(reduction, ON_ROWS) in ("max", "min"):
            promotion.refuse(inputs, ("complex",))
        return ON_ROWS[reduction](inputs, positions, cast(updates, inputs.dtype))

    @staticmethod
    def diagonal(x: jax.Array, offset: int = 0, axis1: int = 0, axis2: int = 1) -> jax.Array:
        return jnp.diagonal(require_matrices(x), clip_offset(offset, FURTHEST, FURTHEST), axis1, axis2)

    @staticmethod
    def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[jax.Array, jax.Array]:
        row_count, column_count = as_shape((n, n if m is None else m))
        rows, cols = np.tril_indices(row_count, clip_offset(k, row_count, column_count), column_count)
        return of_host(rows), of_host(cols)

    @staticmethod
    def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[jax.Array, jax.Array]:
        row_count, column_count = as_shape((n, n if m is None else m))
        rows, cols = np.triu_indices(row_count, clip_offset(k, row_count, column_count), column_count)
        return of_host(rows), of_host(cols)

    @staticmethod
    def unravel_index(indices: Any, shape: Sequence[int]) -> tuple[jax.Array, ...]:
        indices = read_if_on_host(indices)
        if not isinstance(indices, jax.Array):
            return tuple(of_host(column) for column in unravel(host_indices(indices), shape))
        # Indices without values stay unchecked.
        shape, remaining_indices = as_shape(shape), require_integers(indices).astype(np.int64)
        columns: list[jax.Array] = []
        for length in reversed(shape):
            columns.append(remaining_indices % max(length, 1))
            remaining_indices = remaining_indices // max(length, 1)
        return tuple(reversed(columns))

    @staticmethod
    def one_hot(x: jax.Array, num_classes: int, axis: int = -1, dtype: Any = None, sparse: bool = False) -> jax.Array:
        refuse_sparse("sparse", sparse)
        native_dtype = DTYPES[default_float()] if dtype is None else dtype
        check_memory((*x.shape, class_count(num_classes, x)), native_dtype.itemsize)
        is_class = jnp.expand_dims(x, -1) == np.arange(num_classes, dtype=np.int64)
        return jnp.moveaxis(is_class, -1, axis).astype(native_dtype)
