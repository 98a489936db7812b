"""Rules of `ops/creation.py`."""

import math
from typing import Any

from emberharmony.ops.complex_numbers import conj
from emberharmony.ops.creation import arange, diag, linspace, tril, triu
from emberharmony.ops.dtype import dtype as dtype_of
from emberharmony.ops.elementary import log
from emberharmony.ops.math import add, divide, maximum, multiply, power, subtract
from emberharmony.ops.reduction import sum as sum_
from emberharmony.ops.shape import expand_dims, flip, moveaxis
from emberharmony.rules.scatter_back import unpicked

T = Any


def _diag(g: T, y: T, x: T, k: int = 0) -> T:
    return diag(g, k) if len(x.shape) == 1 else unpicked(g, x, lambda places: diag(places, k))


def _vander(g: T, y: T, x: T, N: int | None = None, increasing: bool = False) -> T:
    powers = arange(y.shape[-1])
    if not increasing:
        g = flip(g, -1)
    # The column of power 0 has derivative 0, but 0 * x ** -1 would be NaN at x = 0.
    lowered = power(expand_dims(x, -1), maximum(subtract(powers, 1), 0))
    return sum_(multiply(multiply(g, lowered), powers), axis=-1)


def _part(g: T, num: int, endpoint: bool, axis: int, from_start: bool) -> T:
    weight = linspace(0.0, 1.0, num, endpoint, dtype=dtype_of(g))
    return sum_(multiply(moveaxis(g, axis, -1), subtract(1.0, weight) if from_start else weight), axis=-1)


def _linspace(
    g: T,
    y: T,
    start: T,
    stop: T,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    device: Any = None,
) -> list[T]:
    if retstep:
        g, step = g
        share = divide(step, num - endpoint)
        return [
            subtract(_part(g, num, endpoint, axis, True), share),
            add(_part(g, num, endpoint, axis, False), share),
        ]
    return [_part(g, num, endpoint, axis, True), _part(g, num, endpoint, axis, False)]


def _logspace(
    g: T,
    y: T,
    start: T,
    stop: T,
    num: int = 50,
    endpoint: bool = True,
    base: T = 10,
    dtype: Any = None,
    axis: int = 0,
    device: Any = None,
) -> list[T]:
    exponents: Any = linspace(start, stop, num, endpoint, axis=axis)
    logarithm = log(base) if hasattr(base, "shape") else math.log(base) if base > 0 else math.nan
    weight = multiply(multiply(g, y), logarithm)
    # `base` may have leading axes that `exponents` lacks, so count the axis from the end.
    along = axis - len(exponents.shape) if axis >= 0 else axis
    by_base = multiply(multiply(g, exponents), power(base, subtract(exponents, 1.0)))
    return [
        _part(weight, num, endpoint, along, True),
        _part(weight, num, endpoint, along, False),
        None,
        None,
        by_base,
    ]


def _geomspace(
    g: T,
    y: T,
    start: T,
    stop: T,
    num: int = 50,
    endpoint: bool = True,
    dtype: Any = None,
    axis: int = 0,
    device: Any = None,
) -> list[T]:
    weight = multiply(g, conj(y))
    return [
        divide(_part(weight, num, endpoint, axis, True), conj(start) if hasattr(start, "shape") else start),
        divide(_part(weight, num, endpoint, axis, False), conj(stop) if hasattr(stop, "shape") else stop),
    ]


RULES: dict[str, Any] = {
    "tril": (lambda g, y, x, k=0: tril(g, k),),
    "triu": (lambda g, y, x, k=0: triu(g, k),),
    "diag": (_diag,),
    "vander": (_vander,),
    "linspace": _linspace,
    "geomspace": _geomspace,
    "logspace": _logspace,
    "full": (None, lambda g, y, shape, value, *_: g),
    "full_like": (None, lambda g, y, x, value, *_: g),
}
