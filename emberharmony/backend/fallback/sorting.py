"""Default bodies of sorting and searching."""

from typing import Any

from emberharmony.backend.fallback.tools import along, body, common, flat, on_host, promotion_of
from emberharmony.backend.promote import single
from emberharmony.backend.shared.sorting import side_of, sorter_of, top
from emberharmony.core.errors import ShapeError

_COMPLEX = ("complex",)


@body
def sort(backend: Any, x: Any, axis: int | None = -1, descending: bool = False, stable: bool = True) -> Any:
    """Takes the elements in the order of `argsort`."""
    promotion_of(backend).refuse(x, _COMPLEX)
    x, axis = along(backend, x, axis)
    axis = single(axis, max(len(x.shape), 1))
    if not x.shape:
        return x
    ops = backend.bound
    return ops.take_along_axis(x, ops.argsort(x, axis, descending, stable), axis)


@body
def top_k(backend: Any, x: Any, k: int, sorted: bool = True) -> tuple[Any, Any]:
    """Takes the first elements in descending order."""
    promotion_of(backend).refuse(x, _COMPLEX)
    top(tuple(x.shape), k)
    ops = backend.bound
    order = ops.get_item(ops.argsort(x, -1, True), (Ellipsis, slice(0, k)))
    return ops.take_along_axis(x, order, -1), order


@body
def searchsorted(backend: Any, sorted_sequence: Any, values: Any, side: str = "left", sorter: Any = None) -> Any:
    """Halves the interval of each value, as often as the sequence needs."""
    if len(sorted_sequence.shape) != 1:
        raise ShapeError(f"a sorted sequence is a vector, this one has shape {tuple(sorted_sequence.shape)}")
    ops = backend.bound
    a, b = common(backend, sorted_sequence, values, inexact=False, refused=_COMPLEX)
    (length,) = a.shape
    left = side_of(side) == "left"
    if sorter is not None:
        a = ops.take(a, sorter_of(on_host(backend, sorter), length), 0)
    low = ops.zeros(tuple(b.shape), backend.dtypes["int64"])
    high = ops.full(tuple(b.shape), length, backend.dtypes["int64"])
    for _ in range(int(length).bit_length()):
        middle = ops.floor_divide(ops.add(low, high), 2)
        found = ops.take(a, ops.minimum(middle, length - 1), 0)
        above = _less(backend, found, b) if left else ops.logical_not(_less(backend, b, found))
        above = ops.logical_and(above, ops.less(low, high))
        low, high = ops.where(above, ops.add(middle, 1), low), ops.where(above, high, middle)
    return low


def _less(backend: Any, a: Any, b: Any) -> Any:
    """Returns whether elements are sorted before others; NaN is last."""
    ops = backend.bound
    if backend.kind_of(a) != "float":
        return ops.less(a, b)
    return ops.logical_or(ops.less(a, b), ops.logical_and(ops.isnan(b), ops.logical_not(ops.isnan(a))))


@body
def isin(backend: Any, x1: Any, x2: Any, assume_unique: bool = False, *, invert: bool = False) -> Any:
    """Compares with the nearest element of the sorted second tensor; complex numbers are compared with all."""
    ops = backend.bound
    a, b = common(backend, x1, x2, inexact=False)
    b = flat(backend, b)
    (length,) = b.shape
    if not length:
        return ops.full(tuple(a.shape), invert, backend.dtypes["bool"])
    if backend.kind_of(a) == "complex":
        found = ops.any(ops.equal(ops.expand_dims(a, -1), b), -1)
    else:
        b = ops.sort(b)
        found = ops.equal(ops.take(b, ops.minimum(ops.searchsorted(b, a), length - 1), 0), a)
    return ops.logical_not(found) if invert else found
