"""Reductions, products and sorting, over a namespace of the standard."""

import math
from collections.abc import Callable
from typing import Any

from emberharmony.backend.arrayapi.library import Definitions, Library, needing, program
from emberharmony.backend.promote import nonempty, normalized, remaining, single
from emberharmony.backend.shared.products import check_factors
from emberharmony.core.options import without_axes

Function = Callable[..., Any]
_COMPLEX = ("complex",)


def bind(library: Library) -> dict[str, Function]:
    """Returns the ops that the namespace has functions for."""
    return _Reductions(library).bound()


class _Reductions(Definitions):
    """The ops, bound to one namespace.

    A function of the standard is one call of the library; the bodies need several.
    """

    def __init__(self, library: Library) -> None:
        super().__init__(library)
        self._promotion = library.promotion

    def _summable(self, x: Any, dtype: Any) -> Any:
        """Returns a tensor in the dtype of its sum."""
        library = self._library
        kind = library.kind(x)
        if dtype is None and kind not in ("float", "complex"):
            dtype = library.dtypes["uint64" if kind == "unsigned" else "int64"]
        return x if dtype is None else library.cast(x, dtype)

    def _axes(self, x: Any, axis: Any) -> Any:
        return normalized(axis, len(x.shape))

    def _truth(self, x: Any) -> Any:
        """Returns booleans as small integers, which the standard adds up and orders; other tensors unchanged."""
        library = self._library
        open_to = library.takes_all or library.kind(x) != "bool"
        return x if open_to else library.astype(x, library.dtypes["uint8"])

    @program("axes", "keepdims")
    def _added(self, x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
        if self._library.kind(x) == "bool":  # asked for by its dtype
            return self._some(x, axes=axes, keepdims=keepdims)
        wide = self._library.adding(x, math.prod(x.shape[a] for a in axes))
        return self._library.cast(self._xp.sum(wide, axis=axes, keepdims=keepdims, dtype=wide.dtype), x.dtype)

    @program("axes", "keepdims")
    def _multiplied(self, x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
        if self._library.kind(x) == "bool":
            return self._every(x, axes=axes, keepdims=keepdims)
        wide = self._library.double(x)
        return self._library.cast(self._xp.prod(wide, axis=axes, keepdims=keepdims, dtype=wide.dtype), x.dtype)

    def sum(self, x: Any, axis: Any = None, keepdims: bool = False, dtype: Any = None) -> Any:
        return self._added(self._summable(x, dtype), axes=self._axes(x, axis), keepdims=bool(keepdims))

    def prod(self, x: Any, axis: Any = None, keepdims: bool = False, dtype: Any = None) -> Any:
        return self._multiplied(self._summable(x, dtype), axes=self._axes(x, axis), keepdims=bool(keepdims))

    def _extreme(self, name: str, x: Any, axis: Any, keepdims: bool, initial: Any) -> Any:
        library, xp = self._library, self._xp
        self._promotion.refuse(x, _COMPLEX)
        axes = self._axes(x, axis)
        if initial is None:
            nonempty(x.shape, axes)
            return library.astype(getattr(xp, name)(self._truth(x), axis=axes, keepdims=keepdims), x.dtype)
        start = library.cast(self._promotion.common(x, without_axes("initial", initial))[1], x.dtype)
        if all(x.shape[a] for a in axes):
            found = getattr(xp, name)(self._truth(x), axis=axes, keepdims=keepdims)
            larger = getattr(xp, f"{name}imum")
            return library.astype(larger(found, self._truth(start)), x.dtype)
        kept = remaining(x.shape, axes, keepdims)
        return xp.broadcast_to(start, tuple(kept))

    def max(self, x: Any, axis: Any = None, keepdims: bool = False, initial: Any = None) -> Any:
        return self._extreme("max", x, axis, keepdims, initial)

    def min(self, x: Any, axis: Any = None, keepdims: bool = False, initial: Any = None) -> Any:
        return self._extreme("min", x, axis, keepdims, initial)

    @program("axes", "keepdims")
    def _some(self, x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
        # The cast is our own, since `jax.numpy.any` (JAX 0.10) takes a complex number for its real part.
        return self._xp.any(self._library.cast(x, self._library.dtypes["bool"]), axis=axes, keepdims=keepdims)

    @program("axes", "keepdims")
    def _every(self, x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
        return self._xp.all(self._library.cast(x, self._library.dtypes["bool"]), axis=axes, keepdims=keepdims)

    def any(self, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        return self._some(x, axes=self._axes(x, axis), keepdims=bool(keepdims))

    def all(self, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        return self._every(x, axes=self._axes(x, axis), keepdims=bool(keepdims))

    def _place(self, name: str, x: Any, axis: int | None, keepdims: bool) -> Any:
        self._promotion.refuse(x, _COMPLEX)
        nonempty(x.shape, axis)
        axis = None if axis is None else single(axis, len(x.shape))
        found = getattr(self._xp, name)(self._truth(x), axis=axis, keepdims=keepdims)
        return self._library.astype(found, self._library.dtypes["int64"])

    def argmax(self, x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
        return self._place("argmax", x, axis, keepdims)

    def argmin(self, x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
        return self._place("argmin", x, axis, keepdims)

    def _cumulative(self, native: Function, x: Any, axis: int | None, dtype: Any) -> Any:
        if axis is None:
            x, axis = self._xp.reshape(x, (-1,)), 0
        return self._running(self._summable(x, dtype), native=native, axis=single(axis, len(x.shape)))

    @program("native", "axis")
    def _running(self, x: Any, native: Function, axis: int) -> Any:
        library = self._library
        wide = library.astype(x, library.dtypes["int64"]) if library.kind(x) == "bool" else library.double(x)
        return library.cast(native(wide, axis=axis, dtype=wide.dtype), x.dtype)

    @needing("cumulative_sum")
    def cumsum(self, x: Any, axis: int | None = None, dtype: Any = None) -> Any:
        return self._cumulative(self._xp.cumulative_sum, x, axis, dtype)

    @needing("cumulative_prod")
    def cumprod(self, x: Any, axis: int | None = None, dtype: Any = None) -> Any:
        return self._cumulative(self._xp.cumulative_prod, x, axis, dtype)

    def argsort(self, x: Any, axis: int | None = -1, descending: bool = False, stable: bool = True) -> Any:
        xp, library = self._xp, self._library
        self._promotion.refuse(x, _COMPLEX)
        if axis is None:
            x, axis = xp.reshape(x, (-1,)), 0
        axis = single(axis, max(len(x.shape), 1))
        if not math.prod(x.shape) or not x.shape:
            return xp.zeros(tuple(x.shape), dtype=library.dtypes["int64"])
        return self._ordered(x, axis=axis, descending=bool(descending))

    @program("axis", "descending")
    def _ordered(self, x: Any, axis: int, descending: bool) -> Any:
        xp, library = self._xp, self._library
        x = self._truth(x)
        if descending:
            # The standard leaves the place of NaN open; the order of these numbers has it last.
            x = xp.negative(x) if library.kind(x) == "float" else xp.bitwise_invert(x)
        return library.astype(xp.argsort(x, axis=axis, stable=True), library.dtypes["int64"])

    def matmul(self, x1: Any, x2: Any) -> Any:
        library = self._library
        check_factors(tuple(x1.shape), tuple(x2.shape))
        a, b = self._promotion.common(x1, x2)
        if library.kind(a) == "bool":
            small = library.dtypes["int32"]
            return library.cast(self._xp.matmul(library.astype(a, small), library.astype(b, small)), a.dtype)
        return library.astype(self._xp.matmul(library.widened(a), library.widened(b)), a.dtype)
