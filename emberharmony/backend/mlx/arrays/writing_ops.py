"""Writing by any key, and along an axis, on MLX."""

import math
from typing import TYPE_CHECKING, Any

import mlx.core as mx

from emberharmony.backend.mlx.arrays.indices import LARGE, assign_at, wrapped_indices_or_length, write_rows
from emberharmony.backend.mlx.dtypes import promotion
from emberharmony.backend.shared.arrays.indexing import is_basic_key
from emberharmony.core import op_globals
from emberharmony.core.deferred import Deferred
from emberharmony.core.state.checked_mode import checking

if TYPE_CHECKING:
    from emberharmony.backend.shared.arrays import writing as shared_writing
else:
    shared_writing = Deferred("emberharmony.backend.shared.arrays.writing")

_FEW = 16
"""Up to one index for so many elements, computing with the indices takes less time than copying the elements."""
_REDUCTIONS = {"set": None, "add": "add", "multiply": "mul", "min": "min", "max": "max"}


class MLXWritingOps:
    """Holds the ops of `ops/arrays/writing.py`.

    MLX writes by one kernel; the bodies find the place of each element, in 2 to 18 times the time, for few elements.
    """

    bound: Any
    composed: Any

    def set_item(self, x: mx.array, key: Any, value: Any, mode: str = "set") -> mx.array:
        if isinstance(key, mx.array):
            written_x = _write_by_tensor(self, x, key, value, mode)
            return self.composed("set_item")(x, key, value, mode) if written_x is None else written_x
        # MLX 0.32 assigns to a key of None alone as if it had no new axis.
        if not is_basic_key(key, x.shape) or key is None or (key.__class__ is tuple and any(k is None for k in key)):
            composed_result: mx.array = self.composed("set_item")(x, key, value, mode)
            return composed_result
        old_value, new_value = shared_writing.old_and_new_values(self, promotion, x, key, value, mode)
        if not old_value.size:
            return mx.array(x)
        return assign_at(
            x, key, new_value if mode == "set" else shared_writing.combine_values(self, mode, old_value, new_value)
        )

    def put_along_axis(
        self, x: mx.array, indices: Any, values: Any, axis: int | None = -1, mode: str = "set"
    ) -> mx.array:
        written_x = _write_along(self, x, indices, values, axis, mode) if axis is not None else None
        return self.composed("put_along_axis")(x, indices, values, axis, mode) if written_x is None else written_x


def _are_unread(x: mx.array, indices: Any) -> bool:
    """Returns whether indices are a tensor that stays unread."""
    if not isinstance(indices, mx.array) or checking():
        return False
    return bool(mx.issubdtype(indices.dtype, mx.integer) and indices.size and x.size)


def _write_by_tensor(backend: Any, x: mx.array, key: mx.array, value: Any, mode: str) -> mx.array | None:
    """Returns `x` written at the indices of a tensor along the first axis; None if the composite must write it."""
    if mode not in shared_writing.MODES or not x.ndim or not key.ndim or not _are_unread(x, key):
        return None
    new_value = _value_to_write(backend, x, value, (*key.shape, *x.shape[1:]), mode)
    return (
        None
        if new_value is None
        else write_rows(x, wrapped_indices_or_length(key, x.shape[0]), new_value, _REDUCTIONS[mode], True)
    )


def _write_along(backend: Any, x: mx.array, indices: Any, values: Any, axis: int, mode: str) -> mx.array | None:
    """Returns `x` written along an axis at a tensor of indices; None if the composite must write it."""
    if (
        mode not in shared_writing.MODES
        or axis.__class__ is not int
        or not -x.ndim <= axis < x.ndim
        or not _are_unread(x, indices)
    ):
        return None
    axis %= x.ndim
    shape, full_shape = x.shape, indices.shape
    if full_shape[:axis] != shape[:axis] or full_shape[axis + 1 :] != shape[axis + 1 :]:
        return None
    new_value, length = _value_to_write(backend, x, values, full_shape, mode), shape[axis]
    if new_value is None:
        return None
    new_value = new_value if new_value.shape == full_shape else mx.broadcast_to(new_value, full_shape)
    positions = wrapped_indices_or_length(indices, length)
    if mode == "set" and op_globals.untransformed and (x.size < LARGE or x.size < _FEW * indices.size):
        pad_widths = [(0, 0)] * x.ndim
        pad_widths[axis] = (0, 1)
        return mx.put_along_axis(mx.pad(x, pad_widths), positions, new_value, axis)[
            (*(slice(None),) * axis, slice(length))
        ]
    # Written as a vector, `x` needs one more element in all, and not one for each position on the other axes.
    outer_length, inner_length = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    positions = positions.reshape(outer_length, -1, inner_length)
    slice_starts = mx.arange(0, x.size, length * inner_length, positions.dtype).reshape(-1, 1, 1)
    slice_starts = slice_starts if inner_length == 1 else slice_starts + mx.arange(inner_length, dtype=positions.dtype)
    flat_indices = mx.where(
        positions < length,
        (positions if inner_length == 1 else positions * inner_length) + slice_starts,
        mx.array(x.size, positions.dtype),
    )
    return write_rows(x.reshape(-1), flat_indices.reshape(-1), new_value.reshape(-1), _REDUCTIONS[mode], True).reshape(
        shape
    )


def _value_to_write(backend: Any, x: mx.array, value: Any, full_shape: tuple[int, ...], mode: str) -> mx.array | None:
    """Returns a value in the dtype of `x`, without superfluous leading axes of length 1; None if it does not fit.

    It is None if the value does not broadcast to `full_shape`.
    """
    new_value = shared_writing.value_like(backend, promotion, value, x)
    if new_value.shape != full_shape:
        if not shared_writing.broadcasts_into(new_value.shape, full_shape):
            return None
        new_value = new_value.reshape(new_value.shape[max(new_value.ndim - len(full_shape), 0) :])
    if mode in ("min", "max"):
        promotion.refuse(x, ("complex",))
    return new_value
