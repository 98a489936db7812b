"""Fills, triangles, and changes of the order of elements, over a namespace of the standard."""

import math
from collections.abc import Callable
from typing import Any

from emberharmony.backend.arrayapi.library import Definitions, Library
from emberharmony.backend.promote import nonnegative_axes, nonnegative_axis
from emberharmony.backend.shared.arrays.shape import (
    as_shape,
    cast_for_join,
    clip_offset,
    require_matrices,
    shifts_and_axes,
)
from emberharmony.core.dtypes import default_float
from emberharmony.core.errors import ShapeError


def bind(library: Library) -> dict[str, Any]:
    """Returns by name the ops of this file that the namespace has functions for, as attributes of a class."""
    definition_by_op: dict[str, Any] = {
        name: staticmethod(definition) for name, definition in _Shapes(library).bound_definitions().items()
    }
    return definition_by_op | {
        name: _fill_op(library, name) for name in ("zeros", "ones") if library.function(name) is not None
    }


def _fill_op(library: Library, name: str) -> Callable[..., Any]:
    native_fill = getattr(library.xp, name)

    def fill(backend: Any, shape: Any, dtype: Any = None, device: Any = None) -> Any:
        lengths = as_shape(shape)
        native_dtype = library.dtypes[default_float()] if dtype is None else dtype
        library.check_memory(lengths, native_dtype)
        tensor = native_fill(lengths, dtype=native_dtype)
        return tensor if device is None else backend.bound.to_device(tensor, device)

    return fill


class _Shapes(Definitions):
    """The fills, triangles and changes of order, bound to one namespace of the standard.

    A function of the standard is one call of the library; the bodies need several.
    """

    def tril(self, x: Any, k: int = 0) -> Any:
        return self._xp.tril(require_matrices(x), k=clip_offset(k, *x.shape[-2:]))

    def triu(self, x: Any, k: int = 0) -> Any:
        return self._xp.triu(require_matrices(x), k=clip_offset(k, *x.shape[-2:]))

    def flip(self, x: Any, axis: Any = None) -> Any:
        axes = nonnegative_axes(axis, len(x.shape))
        return self._xp.flip(x, axis=axes) if axes else x

    def roll(self, x: Any, shift: Any, axis: Any = None) -> Any:
        if axis is None:
            flat_x = self._xp.reshape(x, (-1,))
            return self._xp.reshape(self.roll(flat_x, shift, 0), tuple(x.shape))
        axes_of_shifts = axis if isinstance(axis, (tuple, list)) else (axis,)
        axes = tuple(nonnegative_axis(a, len(x.shape)) for a in axes_of_shifts)
        shifts, axes = shifts_and_axes(shift, axes)
        shifts = tuple(n % max(x.shape[a], 1) for n, a in zip(shifts, axes, strict=True))
        return self._xp.roll(x, shifts, axis=axes) if axes else x

    def stack(self, x: list[Any], axis: int = 0) -> Any:
        tensors = cast_for_join(x, self._library.promotion)
        shapes = {tuple(tensor.shape) for tensor in tensors}
        if len(shapes) > 1:
            raise ShapeError(f"tensors of shapes {', '.join(map(str, sorted(shapes)))} do not stack")
        return self._xp.stack(tensors, axis=nonnegative_axis(axis, len(tensors[0].shape) + 1))

    def tile(self, x: Any, repeats: Any) -> Any:
        repeat_counts = as_shape(repeats)
        self._library.check_memory((math.prod(repeat_counts), *x.shape), x.dtype)
        return self._xp.tile(x, repeat_counts)

    def nonzero(self, x: Any) -> tuple[Any, ...]:
        if not x.shape:
            raise ShapeError("a tensor without axes has no indices")
        is_true = self._library.cast(x, self._library.dtypes["bool"])
        return tuple(
            self._library.astype(axis_indices, self._library.dtypes["int64"])
            for axis_indices in self._xp.nonzero(is_true)
        )
