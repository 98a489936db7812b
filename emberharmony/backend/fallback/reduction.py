"""Default bodies of reductions and cumulative ops."""

import math
from collections.abc import Callable
from typing import Any

from emberharmony.backend.fallback.tools import along, body, flat, floats, is_half, promotion_of, widest
from emberharmony.backend.promote import nonempty, normalized, single
from emberharmony.core.options import without_axes

_COMPLEX = ("complex",)


def _count(x: Any, axis: Any) -> int:
    return math.prod(x.shape[a] for a in normalized(axis, len(x.shape)))


@body
def mean(backend: Any, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Divides the sum."""
    ops, x = backend.bound, floats(backend, x)
    wide = ops.cast(x, backend.dtypes["float32"]) if is_half(backend, x) else x
    return ops.cast(ops.divide(ops.sum(wide, axis, keepdims), _count(x, axis)), x.dtype)


def _var(backend: Any, x: Any, axis: Any, keepdims: bool, correction: Any) -> Any:
    ops = backend.bound
    wide = widest(backend, x)
    off = ops.subtract(wide, ops.mean(wide, axis, True))
    if backend.kind_of(off) == "complex":
        power = ops.add(ops.square(ops.real(off)), ops.square(ops.imag(off)))
    else:
        power = ops.multiply(off, off)
    total, count = ops.sum(power, axis, keepdims), _count(x, axis)
    correction = without_axes("correction", correction)
    if isinstance(correction, (int, float)):
        return ops.divide(total, count - correction if count > correction else math.nan)
    freedom = ops.subtract(float(count), ops.cast(correction, total.dtype))
    return ops.divide(total, ops.where(ops.greater(freedom, 0.0), freedom, math.nan))


@body
def var(backend: Any, x: Any, axis: Any = None, keepdims: bool = False, correction: Any = 0) -> Any:
    """Averages the squared distances from the mean, in the widest float."""
    ops, x = backend.bound, floats(backend, x)
    return ops.cast(_var(backend, x, axis, keepdims, correction), ops.real(x).dtype)


@body
def std(backend: Any, x: Any, axis: Any = None, keepdims: bool = False, correction: Any = 0) -> Any:
    """Takes the square root of the variance, in the widest float."""
    ops, x = backend.bound, floats(backend, x)
    return ops.cast(ops.sqrt(_var(backend, x, axis, keepdims, correction)), ops.real(x).dtype)


@body
def any_(backend: Any, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Takes the maximum of the truth values."""
    ops = backend.bound
    truth = ops.cast(ops.not_equal(x, 0), backend.dtypes["int32"])
    return ops.not_equal(ops.max(truth, axis, keepdims, 0), 0)


@body
def all_(backend: Any, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Takes the minimum of the truth values."""
    ops = backend.bound
    truth = ops.cast(ops.not_equal(x, 0), backend.dtypes["int32"])
    return ops.not_equal(ops.min(truth, axis, keepdims, 1), 0)


def _first(backend: Any, reduction: str, x: Any, axis: int | None, keepdims: bool) -> Any:
    """Returns the first place of the extreme element along an axis; NaN is extreme."""
    ops, ndim = backend.bound, len(x.shape)
    promotion_of(backend).refuse(x, _COMPLEX)
    nonempty(x.shape, axis)
    if axis is None:
        found = _first(backend, reduction, flat(backend, x), 0, False) if ndim != 1 else None
        if found is not None:
            return ops.reshape(found, (1,) * ndim) if keepdims else found
        axis = 0
    axis = single(axis, ndim)
    best = getattr(ops, reduction)(x, axis, True)
    hits = ops.logical_or(ops.equal(x, best), ops.isnan(x))
    places = ops.reshape(ops.arange(x.shape[axis]), (*(1,) * axis, -1, *(1,) * (ndim - axis - 1)))
    return ops.min(ops.where(hits, places, x.shape[axis]), axis, keepdims)


@body
def argmax(backend: Any, x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    """Takes the first place that has the maximum."""
    return _first(backend, "max", x, axis, keepdims)


@body
def argmin(backend: Any, x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    """Takes the first place that has the minimum."""
    return _first(backend, "min", x, axis, keepdims)


def accumulated(backend: Any, x: Any, axis: int, combine: Callable[[Any, Any], Any]) -> Any:
    """Returns the results of an associative op of all elements up to each one, in steps that double."""
    ops, length, step = backend.bound, x.shape[axis], 1
    head: tuple[slice, ...] = (slice(None),) * axis
    while step < length:
        first = ops.get_item(x, (*head, slice(0, step)))
        later, earlier = ops.get_item(x, (*head, slice(step, None))), ops.get_item(x, (*head, slice(0, length - step)))
        x = ops.concatenate([first, combine(earlier, later)], axis)
        step *= 2
    return x


def _summable(backend: Any, x: Any, dtype: Any) -> tuple[Any, Any, Any]:
    """Returns a tensor, the dtype of its sum or product, and the tensor in the dtype that it is computed in."""
    ops, kind = backend.bound, backend.kind_of(x)
    if dtype is not None:
        x, wanted = ops.cast(x, dtype), dtype
    else:
        wanted = (
            backend.dtypes["uint64" if kind == "unsigned" else "int64"] if kind not in ("float", "complex") else x.dtype
        )
    if backend.kinds[wanted] in ("float", "complex"):
        return x, wanted, widest(backend, ops.cast(x, wanted))
    return x, wanted, ops.cast(x, wanted)


def _cumulative(name: str, combine: str) -> None:
    def cumulative(backend: Any, x: Any, axis: int | None = None, dtype: Any = None) -> Any:
        x, axis = along(backend, x, axis)
        axis = single(axis, len(x.shape))
        _, wanted, wide = _summable(backend, x, dtype)
        return backend.bound.cast(accumulated(backend, wide, axis, getattr(backend.bound, combine)), wanted)

    cumulative.__name__ = name
    cumulative.__doc__ = "Combines neighbours, in steps that double."
    body(cumulative)


_cumulative("cumsum", "add")
_cumulative("cumprod", "multiply")


def _running(name: str, combine: str) -> None:
    def running(backend: Any, x: Any, axis: int | None = None) -> Any:
        promotion_of(backend).refuse(x, _COMPLEX)
        x, axis = along(backend, x, axis)
        return accumulated(backend, x, single(axis, len(x.shape)), getattr(backend.bound, combine))

    running.__name__ = name
    running.__doc__ = "Combines neighbours, in steps that double."
    body(running)


_running("cummax", "maximum")
_running("cummin", "minimum")


@body
def logsumexp(backend: Any, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Shifts by the maximum, so that no exponential overflows."""
    ops, x = backend.bound, floats(backend, x, _COMPLEX)
    wide = ops.cast(x, backend.dtypes["float32"]) if is_half(backend, x) else x
    axes = normalized(axis, len(x.shape))
    top = ops.max(wide, axes, True, -math.inf)
    # Do not shift by infinities: inf - inf is NaN.
    shift = ops.where(ops.isfinite(top), top, 0.0)
    total = ops.add(ops.log(ops.sum(ops.exp(ops.subtract(wide, shift)), axes, True)), shift)
    return ops.cast(total if keepdims else ops.squeeze(total, axes), x.dtype)
