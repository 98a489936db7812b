"""Changes of shape, on JAX."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from emberharmony.backend.jax.device_ops import check_memory
from emberharmony.backend.jax.dtypes import promotion
from emberharmony.backend.jax.tracing import to_host_array
from emberharmony.backend.promote import nonnegative_axes
from emberharmony.backend.shared.arrays.shape import (
    as_shape,
    axes_and_places,
    broadcast_shapes,
    check_copy,
    check_pad,
    counts_per_slice,
    expanded_shape,
    pad_indices,
    pad_pairs,
    part_bounds,
    require_matrices,
    squeezed_shape,
    total_repetitions,
    unstack_axis,
)
from emberharmony.core.axes import as_length
from emberharmony.core.errors import ShapeError


class JAXShapeOps:
    """Holds the ops of `ops/arrays/shape.py`.

    Each is one program of XLA; the bodies take up to 7.7 times as long, for few elements.
    """

    composed: Callable[[str], Callable[..., jax.Array]]

    @staticmethod
    def reshape(x: jax.Array, shape: Any, copy: bool | None = None) -> jax.Array:
        # Checked by JAX but for these, because the check in `backend/arrayapi` takes a third of the time of the call.
        # Arrays are immutable, so it makes no difference whether they share memory.
        check_copy(copy)
        for n in shape if isinstance(shape, (tuple, list)) else (shape,):
            if n.__class__ is bool:
                as_length(n)  # raises
            if n.__class__ is int and n < -1:
                raise ShapeError(f"shape {shape} has a negative length")
        return jnp.reshape(x, shape)

    @staticmethod
    def matrix_transpose(x: jax.Array) -> jax.Array:
        return jnp.swapaxes(require_matrices(x), -1, -2)

    @staticmethod
    def swapaxes(x: jax.Array, axis1: int, axis2: int) -> jax.Array:
        return jnp.swapaxes(x, *(nonnegative_axes(axis, x.ndim)[0] for axis in (axis1, axis2)))

    @staticmethod
    def moveaxis(x: jax.Array, source: Any, destination: Any) -> jax.Array:
        sources, destinations = axes_and_places(source, destination, x.ndim)
        return jnp.moveaxis(x, sources, destinations)

    @staticmethod
    def expand_dims(x: jax.Array, axis: Any = 0) -> jax.Array:
        return jnp.reshape(x, expanded_shape(x.shape, axis))

    @staticmethod
    def squeeze(x: jax.Array, axis: Any = None) -> jax.Array:
        axes = [a for a, n in enumerate(x.shape) if n == 1] if axis is None else nonnegative_axes(axis, x.ndim)
        return jnp.reshape(x, squeezed_shape(x.shape, axes))

    @staticmethod
    def broadcast_to(x: jax.Array, shape: Any) -> jax.Array:
        lengths = as_shape(shape)
        check_memory(lengths, x.dtype.itemsize)
        return jnp.broadcast_to(x, lengths)

    @staticmethod
    def broadcast_arrays(*arrays: jax.Array) -> tuple[jax.Array, ...]:
        shape = broadcast_shapes(*(x.shape for x in arrays))
        return tuple(jnp.broadcast_to(x, shape) for x in arrays)

    @staticmethod
    def split(x: jax.Array, indices_or_sections: Any, axis: int = 0) -> list[jax.Array]:
        (axis,) = nonnegative_axes(axis, x.ndim)
        leading_slices = (slice(None),) * axis
        return [x[(*leading_slices, slice(a, b))] for a, b in part_bounds(x.shape[axis], indices_or_sections)]

    @staticmethod
    def unstack(x: jax.Array, num: int | None = None, axis: int = 0) -> tuple[jax.Array, ...]:
        axis = unstack_axis(num, axis, x.shape)
        return tuple(jnp.unstack(x, axis=axis))

    @staticmethod
    def repeat(x: jax.Array, repeats: Any, axis: int | None = None) -> jax.Array:
        if axis is None:
            x, axis = x.reshape(-1), 0
        (axis,) = nonnegative_axes(axis, x.ndim)
        length = x.shape[axis]
        repeat_counts = counts_per_slice(to_host_array(repeats) if isinstance(repeats, jax.Array) else repeats, length)
        check_memory((*x.shape[:axis], total_repetitions(repeat_counts), *x.shape[axis + 1 :]), x.dtype.itemsize)
        return jnp.take(x, np.repeat(np.arange(length), repeat_counts), axis, mode="clip")

    def pad(self, x: jax.Array, pad_width: Any, mode: str = "constant", constant_values: Any = None) -> jax.Array:
        if check_pad(mode, constant_values):
            return self.composed("pad")(x, pad_width, mode, constant_values)
        pad_widths = pad_pairs(pad_width, x.ndim)
        check_memory(
            [before + n + after for n, (before, after) in zip(x.shape, pad_widths, strict=True)], x.dtype.itemsize
        )
        if mode == "constant":
            fill_tensor = promotion.fill_tensor(0 if constant_values is None else constant_values, x.dtype)
            return jax.lax.pad(x, fill_tensor, [(before, after, 0) for before, after in pad_widths])
        for axis, (before, after) in enumerate(pad_widths):
            if before or after:
                x = jnp.take(x, pad_indices(x.shape[axis], before, after, mode), axis, mode="clip")
        return x
