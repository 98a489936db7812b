"""Conversion, creation, shapes and indexing, over a namespace of the standard."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from emberharmony.backend.arrayapi.library import Definitions, Library, requires_function
from emberharmony.backend.host import host_indices
from emberharmony.backend.promote import nonnegative_axes
from emberharmony.backend.shared.arrays.indexing import is_basic_key, nonnegative_indices, require_elements
from emberharmony.backend.shared.arrays.shape import as_shape, axis_order, cast_for_join, check_copy
from emberharmony.core.axes import broadcast_shape
from emberharmony.core.errors import ArgumentTypeError, ShapeError

Function = Callable[..., Any]


def bind(library: Library, tensor_type: type) -> dict[str, Any]:
    """Returns by name the ops of this file that the namespace has functions for, as attributes of a class."""
    tensor_definitions = _Tensors(library, tensor_type)
    definition_by_op: dict[str, Any] = {
        op: staticmethod(definition) for op, definition in tensor_definitions.bound_definitions().items()
    }

    def get_item(self: Any, x: Any, key: Any) -> Any:
        return tensor_definitions.slice_of(self, x, key)

    library_definitions = {
        "cast": staticmethod(library.cast),
        "to_numpy": staticmethod(library.to_host),
        "get_item": get_item,
    }
    return definition_by_op | library_definitions


class _Tensors(Definitions):
    """The conversions, shapes and indexing ops, bound to one namespace of the standard.

    A function of the standard is one call of the library; the bodies need several.
    """

    def __init__(self, library: Library, tensor_type: type) -> None:
        super().__init__(library)
        self._tensor_type: Any = tensor_type
        self._promotion = library.promotion

    @requires_function("convert_to_tensor")
    def copy(self, x: Any) -> Any:
        return self._xp.asarray(x, copy=True)

    def reshape(self, x: Any, shape: Any, copy: bool | None = None) -> Any:
        lengths = _complete_shape(shape, x.shape)
        check_copy(copy)
        return self._xp.reshape(x, lengths) if copy is None else self._xp.reshape(x, lengths, copy=copy)

    def transpose(self, x: Any, axes: Any = None) -> Any:
        ndim = len(x.shape)
        new_axes = tuple(range(ndim))[::-1] if axes is None else axis_order(axes, ndim)
        return self._library.function("transpose")(x, new_axes)

    def broadcast_to(self, x: Any, shape: Any) -> Any:
        return self._xp.broadcast_to(x, as_shape(shape))

    def concatenate(self, xs: list[Any], axis: int | None = 0) -> Any:
        tensors = cast_for_join(xs, self._promotion)
        if axis is not None:
            if not tensors[0].shape:
                raise ShapeError("expected tensors with at least one axis, got scalars; use ops.stack")
            (axis,) = nonnegative_axes(axis, len(tensors[0].shape))
        return self._library.function("concatenate")(tensors, axis=axis)

    def where(self, condition: Any, x1: Any, x2: Any) -> Any:
        is_true = self._library.cast(condition, self._library.dtypes["bool"])
        return self._xp.where(is_true, *self._promotion.common(x1, x2))

    def _nonnegative_places(self, indices: Any, length: int) -> Any:
        """Returns a tensor of indices from 0 up; indices on the host are checked, those in a tensor stay unread.

        Raises:
            EmberError: if they are not integers, or an index on the host is out of bounds.
        """
        xp, int64_dtype = self._xp, self._library.dtypes["int64"]
        if not isinstance(indices, self._tensor_type):
            return self._library.from_host(nonnegative_indices(host_indices(indices), length))
        dtype_kind = self._library.kind(indices)
        if dtype_kind not in ("signed", "unsigned"):
            raise ArgumentTypeError(f"indices are integers, not {self._library.dtypes.neutral[indices.dtype]}")
        positions = self._library.astype(indices, int64_dtype)
        return xp.where(xp.less(positions, self._library.number(0, positions)), xp.add(positions, length), positions)

    def take(self, x: Any, indices: Any, axis: int | None = None) -> Any:
        xp = self._xp
        if axis is None:
            x, axis = xp.reshape(x, (-1,)), 0
        (axis,) = nonnegative_axes(axis, len(x.shape))
        positions = self._nonnegative_places(indices, x.shape[axis])
        index_shape = tuple(positions.shape)
        index_count = math.prod(index_shape)
        require_elements(x.shape[axis], index_count)
        result_shape = (*x.shape[:axis], *index_shape, *x.shape[axis + 1 :])
        if not index_count:
            return xp.zeros(result_shape, dtype=x.dtype)
        return xp.reshape(xp.take(x, xp.reshape(positions, (-1,)), axis=axis), result_shape)

    def take_along_axis(self, x: Any, indices: Any, axis: int | None = -1) -> Any:
        xp = self._xp
        if axis is None:
            x, axis = xp.reshape(x, (-1,)), 0
        (axis,) = nonnegative_axes(axis, len(x.shape))
        positions = self._nonnegative_places(indices, x.shape[axis])
        if len(positions.shape) != len(x.shape):
            raise ShapeError(f"indices of shape {tuple(positions.shape)} need as many axes as shape {tuple(x.shape)}")
        require_elements(x.shape[axis], math.prod(positions.shape))
        batch_shape = list(broadcast_shape([_shape_without(x.shape, axis), _shape_without(positions.shape, axis)]))
        broadcast_x = xp.broadcast_to(x, (*batch_shape[:axis], x.shape[axis], *batch_shape[axis:]))
        positions = xp.broadcast_to(positions, (*batch_shape[:axis], positions.shape[axis], *batch_shape[axis:]))
        if not math.prod(positions.shape):
            return xp.zeros(tuple(positions.shape), dtype=x.dtype)
        return xp.take_along_axis(broadcast_x, positions, axis=axis)

    def slice_of(self, backend: Any, x: Any, key: Any) -> Any:
        """Returns the slice of a tensor that a plain key selects; other keys go to the op's body."""
        if not is_basic_key(key, x.shape):
            return backend.composed("get_item")(x, key)
        key_parts = key if key.__class__ is tuple else (key,)
        exact_key, axis = [], 0
        for key_part in key_parts:
            if key_part.__class__ is slice:
                start, stop, step = key_part.indices(x.shape[axis])
                key_part = slice(start, max(start, stop), step)
            elif key_part.__class__ is int:
                key_part %= x.shape[axis]
            axis += key_part is not None
            exact_key.append(key_part)
        return x[(*exact_key, ...)]


def _complete_shape(shape: Any, old: Sequence[int]) -> tuple[int, ...]:
    """Returns a shape as a tuple, with its -1 replaced by the length that fits.

    Args:
        shape: the shape.
        old: that of the tensor which is reshaped; a library that computes later may not know all lengths.

    Raises:
        ShapeError: if another length is negative, or the shapes do not have the same number of elements.
    """
    new_shape = shape if isinstance(shape, (tuple, list)) else (shape,)
    as_shape([n if n != -1 else 0 for n in new_shape])
    if sum(n == -1 for n in new_shape) > 1:
        raise ShapeError(f"shape {tuple(new_shape)} leaves more than one length open")
    lengths = tuple(int(n) for n in new_shape)
    if all(isinstance(n, int) for n in old):
        element_count, given_size = math.prod(old), math.prod(n for n in lengths if n != -1)
        if (element_count != given_size) if -1 not in lengths else (not given_size or element_count % given_size):
            raise ShapeError(f"a tensor of shape {tuple(old)} cannot be reshaped to {lengths}")
    return lengths


def _shape_without(shape: Sequence[int], axis: int) -> tuple[int, ...]:
    return (*shape[:axis], *shape[axis + 1 :])
