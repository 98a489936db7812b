"""Default bodies of rounding, signs, neighbours and exponents."""

from typing import Any

import numpy as np

from emberharmony.backend.fallback.tools import (
    body,
    common,
    floats,
    on_host,
    placed,
    promotion_of,
    reading,
    widest,
    width,
)
from emberharmony.backend.shared.rounding import Decimals

_WHOLE = ("bool", "signed", "unsigned")


@body
def ceil(backend: Any, x: Any) -> Any:
    """Negates the floor of the negated number."""
    if backend.kind_of(x) in _WHOLE:
        return x
    return backend.bound.negative(backend.bound.floor(backend.bound.negative(x)))


@body
def trunc(backend: Any, x: Any) -> Any:
    """Takes the floor of the magnitude."""
    if backend.kind_of(x) in _WHOLE:
        return x
    return backend.bound.copysign(backend.bound.floor(backend.bound.absolute(x)), x)


@body
def signbit(backend: Any, x: Any) -> Any:
    """Compares with 0; the reciprocal of a zero tells its sign. The sign of NaN is lost."""
    ops = backend.bound
    if backend.kind_of(x) in ("bool", "unsigned"):
        return ops.zeros_like(x, backend.dtypes["bool"])
    if backend.kind_of(x) == "signed":
        return ops.less(x, 0)
    zero = ops.equal(x, 0)
    return ops.logical_or(ops.less(x, 0), ops.logical_and(zero, ops.less(ops.divide(1.0, x), 0)))


@body
def copysign(backend: Any, x1: Any, x2: Any) -> Any:
    """Negates the magnitude where the sign bit is set."""
    ops = backend.bound
    a, b = common(backend, x1, x2, refused=("complex",))
    size = ops.absolute(a)
    return ops.where(ops.signbit(b), ops.negative(size), size)


@reading
def nextafter(backend: Any, x1: Any, x2: Any) -> Any:
    """Counts on the host, in the bits."""
    a, b = common(backend, x1, x2, refused=("complex",))
    return placed(backend, np.asarray(np.nextafter(on_host(backend, a), on_host(backend, b))), a.dtype)


@body
def ldexp(backend: Any, x1: Any, x2: Any) -> Any:
    """Multiplies by powers of two, in steps that neither overflow nor lose digits before the last one."""
    ops = backend.bound
    promotion_of(backend).refuse(x2, ("float", "complex"))
    x = floats(backend, x1)
    wide = widest(backend, x)
    if backend.kind_of(x2) != "bool":
        least = 0 if backend.kind_of(x2) == "unsigned" else -128 if width(backend, x2.dtype) == 1 else -5000
        most = 127 if width(backend, x2.dtype) == 1 else 5000
        x2 = ops.minimum(ops.maximum(x2, least), most)
    rest = ops.cast(ops.cast(x2, backend.dtypes["int32"]), wide.dtype)
    for _ in range(12):
        step = ops.minimum(ops.maximum(rest, -500.0), 500.0)
        # A step that is not the last must not leave the range of normal numbers downwards, where digits are lost.
        wide, rest = ops.multiply(wide, ops.power(2.0, step)), ops.subtract(rest, step)
    return ops.cast(wide, x.dtype)


class _Rounding(Decimals):
    """The shared rounding to decimals, for one backend."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend

    def __getattr__(self, name: str) -> Any:
        backend = self._backend
        return getattr(backend, name) if name in ("dtypes", "kind_of", "dtype_of") else getattr(backend.bound, name)

    def _width(self, x: Any) -> int:
        return width(self._backend, x.dtype)

    def _nearest(self, x: Any) -> Any:
        ops = self._backend.bound
        below = ops.floor(x)
        part = ops.subtract(x, below)
        odd = ops.not_equal(ops.multiply(ops.floor(ops.divide(below, 2.0)), 2.0), below)
        up = ops.logical_or(ops.greater(part, 0.5), ops.logical_and(ops.equal(part, 0.5), odd))
        return ops.copysign(ops.where(up, ops.add(below, 1.0), below), x)

    def _scaled(self, x: Any, decimals: int, bound: float) -> Any:
        ops, scale = self._backend.bound, 10.0 ** abs(decimals)
        if decimals < 0:
            return ops.multiply(ops.round(ops.divide(x, scale)), scale)
        small = ops.less(ops.absolute(x), bound)
        rounded = ops.divide(ops.round(ops.multiply(ops.where(small, x, 0.0), scale)), scale)
        return ops.where(small, rounded, x)


@body
def round_(backend: Any, x: Any, decimals: int = 0) -> Any:
    """Rounds by the floor, and scales for decimals."""
    return rounded_by(backend, x, decimals)


def rounded_by(backend: Any, x: Any, decimals: int, nearest: Any = None) -> Any:
    """Returns a rounded tensor; `nearest` is the library's function that rounds to integers, if it has one."""
    rounding = _Rounding(backend)
    if nearest is not None:
        rounding._nearest = nearest  # type: ignore[method-assign]
    if backend.kind_of(x) == "complex" and decimals.__class__ is int and not decimals:
        ops = backend.bound
        return ops.view_as_complex(ops.stack([ops.round(ops.real(x)), ops.round(ops.imag(x))], -1))
    return rounding.round(x, decimals)
