"""Reductions, products and sorting, over a namespace of the standard."""

import math
from collections.abc import Callable
from typing import Any

from emberharmony.backend.arrayapi.library import Definitions, Library, as_program, requires_function
from emberharmony.backend.promote import nonnegative_axes, nonnegative_axis, require_nonempty, shape_after_reduction
from emberharmony.backend.shared.algebra.products import check_factors
from emberharmony.core.options import require_scalar
from emberharmony.core.tracing import Substitute

Function = Callable[..., Any]
_COMPLEX = ("complex",)


def bind(library: Library) -> dict[str, Function]:
    """Returns the ops that the namespace has functions for."""
    return _Reductions(library).bound_definitions()


class _Reductions(Definitions):
    """The reductions, products and sorting ops, bound to one namespace of the standard.

    A function of the standard is one call of the library; the bodies need several.
    """

    def __init__(self, library: Library) -> None:
        super().__init__(library)
        self._promotion = library.promotion

    def _sum_dtype(self, x: Any, dtype: Any) -> Any:
        """Returns the dtype of the sum of a tensor: a given one, or the default for its kind."""
        if dtype is not None:
            return dtype
        dtype_kind = self._library.kind(x)
        if dtype_kind in ("float", "complex"):
            return x.dtype
        return self._library.dtypes["uint64" if dtype_kind == "unsigned" else "int64"]

    def _axes(self, x: Any, axis: Any) -> Any:
        return nonnegative_axes(axis, len(x.shape))

    def _booleans_as_integers(self, x: Any) -> Any:
        """Returns booleans as small integers, which the standard adds up and orders; other tensors unchanged."""
        library = self._library
        is_accepted = library.takes_all or library.kind(x) != "bool"
        return x if is_accepted else library.astype(x, library.dtypes["uint8"])

    @as_program("axes", "keepdims", "dtype")
    def _add_up(self, x: Any, axes: tuple[int, ...], keepdims: bool, dtype: Any) -> Any:
        library = self._library
        if library.promotion.kinds[dtype] == "bool":
            return self._any_along(x, axes, keepdims)
        widened_x = library.widen_for_sum(library.cast(x, dtype), math.prod(x.shape[a] for a in axes))
        return library.cast(self._xp.sum(widened_x, axis=axes, keepdims=keepdims, dtype=widened_x.dtype), dtype)

    @as_program("axes", "keepdims", "dtype")
    def _multiply_up(self, x: Any, axes: tuple[int, ...], keepdims: bool, dtype: Any) -> Any:
        library = self._library
        if library.promotion.kinds[dtype] == "bool":
            return self._all_true(x, axes, keepdims)
        widened_x = library.widen_for_product(library.cast(x, dtype))
        # Skip axes of length 1: libraries multiply by 1 first, which makes a part of an infinite complex number NaN.
        longer_axes = tuple(a for a in axes if x.shape[a] != 1)
        if longer_axes == axes:
            return library.cast(self._xp.prod(widened_x, axis=axes, keepdims=keepdims, dtype=widened_x.dtype), dtype)
        product = widened_x
        if longer_axes:
            product = self._xp.prod(widened_x, axis=longer_axes, keepdims=True, dtype=widened_x.dtype)
        return library.cast(product if keepdims else self._xp.squeeze(product, axis=axes), dtype)

    def sum(self, x: Any, axis: Any = None, keepdims: bool = False, dtype: Any = None) -> Any:
        return self._add_up(x, self._axes(x, axis), bool(keepdims), self._sum_dtype(x, dtype))

    def prod(self, x: Any, axis: Any = None, keepdims: bool = False, dtype: Any = None) -> Any:
        return self._multiply_up(x, self._axes(x, axis), bool(keepdims), self._sum_dtype(x, dtype))

    def _reduce_to_extreme(self, name: str, x: Any, axis: Any, keepdims: bool, initial: Any) -> Any:
        self._promotion.refuse(x, _COMPLEX)
        axes, native_reduction = self._axes(x, axis), getattr(self._xp, name)
        if initial is None:
            if 0 in x.shape:
                require_nonempty(x.shape, axes)
            extremes = native_reduction(self._booleans_as_integers(x), axis=axes, keepdims=keepdims)
            return extremes if self._library.takes_all else self._library.astype(extremes, x.dtype)
        if isinstance(initial, Substitute):
            # The error makes dispatch trace the op; Dask would read a traced tensor's values and lose the gradient.
            raise TypeError(f"expected a number or a native tensor, got {type(initial).__name__}")
        initial_tensor = self._library.cast(self._promotion.common(x, require_scalar("initial", initial))[1], x.dtype)
        if all(x.shape[a] for a in axes):
            extremes = native_reduction(self._booleans_as_integers(x), axis=axes, keepdims=keepdims)
            extreme_of_two = getattr(self._xp, f"{name}imum")
            return self._library.astype(extreme_of_two(extremes, self._booleans_as_integers(initial_tensor)), x.dtype)
        reduced_shape = shape_after_reduction(x.shape, axes, keepdims)
        return self._xp.broadcast_to(initial_tensor, tuple(reduced_shape))

    def max(self, x: Any, axis: Any = None, keepdims: bool = False, initial: Any = None) -> Any:
        return self._reduce_to_extreme("max", x, axis, keepdims, initial)

    def min(self, x: Any, axis: Any = None, keepdims: bool = False, initial: Any = None) -> Any:
        return self._reduce_to_extreme("min", x, axis, keepdims, initial)

    @as_program("axes", "keepdims")
    def _any_along(self, x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
        # Cast to bool here, because `jax.numpy.any` (JAX 0.10) takes a complex number for its real part.
        return self._xp.any(self._library.cast(x, self._library.dtypes["bool"]), axis=axes, keepdims=keepdims)

    @as_program("axes", "keepdims")
    def _all_true(self, x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
        return self._xp.all(self._library.cast(x, self._library.dtypes["bool"]), axis=axes, keepdims=keepdims)

    def any(self, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        return self._any_along(x, self._axes(x, axis), bool(keepdims))

    def all(self, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        return self._all_true(x, self._axes(x, axis), bool(keepdims))

    def _index_of_extreme(self, name: str, x: Any, axis: int | None, keepdims: bool) -> Any:
        self._promotion.refuse(x, _COMPLEX)
        require_nonempty(x.shape, axis)
        axis = None if axis is None else nonnegative_axis(axis, len(x.shape))
        extreme_index = getattr(self._xp, name)(self._booleans_as_integers(x), axis=axis, keepdims=keepdims)
        return self._library.astype(extreme_index, self._library.dtypes["int64"])

    def argmax(self, x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
        return self._index_of_extreme("argmax", x, axis, keepdims)

    def argmin(self, x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
        return self._index_of_extreme("argmin", x, axis, keepdims)

    def _accumulate_along(self, native: Function, x: Any, axis: int | None, dtype: Any) -> Any:
        if axis is None:
            x, axis = self._xp.reshape(x, (-1,)), 0
        return self._accumulate(x, native, nonnegative_axis(axis, len(x.shape)), self._sum_dtype(x, dtype))

    @as_program("native", "axis", "dtype")
    def _accumulate(self, x: Any, native: Function, axis: int, dtype: Any) -> Any:
        library = self._library
        x = library.cast(x, dtype)
        widened_x = library.astype(x, library.dtypes["int64"]) if library.kind(x) == "bool" else library.widen_fully(x)
        return library.cast(native(widened_x, axis=axis, dtype=widened_x.dtype), dtype)

    @requires_function("cumulative_sum")
    def cumsum(self, x: Any, axis: int | None = None, dtype: Any = None) -> Any:
        return self._accumulate_along(self._xp.cumulative_sum, x, axis, dtype)

    @requires_function("cumulative_prod")
    def cumprod(self, x: Any, axis: int | None = None, dtype: Any = None) -> Any:
        return self._accumulate_along(self._xp.cumulative_prod, x, axis, dtype)

    def argsort(self, x: Any, axis: int | None = -1, descending: bool = False, stable: bool = True) -> Any:
        xp = self._xp
        self._promotion.refuse(x, _COMPLEX)
        if axis is None:
            x, axis = xp.reshape(x, (-1,)), 0
        axis = nonnegative_axis(axis, max(len(x.shape), 1))
        if not math.prod(x.shape) or not x.shape:
            return xp.zeros(tuple(x.shape), dtype=self._library.dtypes["int64"])
        return self._sorting_order(x, axis, bool(descending))

    @as_program("axis", "descending")
    def _sorting_order(self, x: Any, axis: int, descending: bool) -> Any:
        xp, library = self._xp, self._library
        x = self._booleans_as_integers(x)
        if descending:
            # The standard leaves the place of NaN open; in the order of the negated numbers it is last.
            x = xp.negative(x) if library.kind(x) == "float" else xp.bitwise_invert(x)
        return library.astype(xp.argsort(x, axis=axis, stable=True), self._library.dtypes["int64"])

    def matmul(self, x1: Any, x2: Any) -> Any:
        library = self._library
        check_factors(tuple(x1.shape), tuple(x2.shape))
        a, b = self._promotion.common(x1, x2)
        if library.kind(a) == "bool":
            small_dtype = library.dtypes["int32"]
            return library.cast(
                self._xp.matmul(library.astype(a, small_dtype), library.astype(b, small_dtype)), a.dtype
            )
        return library.astype(self._xp.matmul(library.widen(a), library.widen(b)), a.dtype)
