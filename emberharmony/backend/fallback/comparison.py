"""Default bodies of comparisons and logic."""

import math
from typing import Any

from emberharmony.backend.fallback.tools import body, common, widest


def _truth(backend: Any, x: Any) -> Any:
    """Returns whether elements, or a number, are not 0."""
    return bool(x) if not hasattr(x, "dtype") else x if backend.kind_of(x) == "bool" else backend.bound.not_equal(x, 0)


@body
def not_equal(backend: Any, x1: Any, x2: Any) -> Any:
    """Negates."""
    return backend.bound.logical_not(backend.bound.equal(x1, x2))


@body
def greater(backend: Any, x1: Any, x2: Any) -> Any:
    """Exchanges the operands."""
    return backend.bound.less(x2, x1)


@body
def less_equal(backend: Any, x1: Any, x2: Any) -> Any:
    """Tests both, because NaN is neither."""
    return backend.bound.logical_or(backend.bound.less(x1, x2), backend.bound.equal(x1, x2))


@body
def greater_equal(backend: Any, x1: Any, x2: Any) -> Any:
    """Exchanges the operands."""
    return backend.bound.less_equal(x2, x1)


@body
def logical_not(backend: Any, x: Any) -> Any:
    """Compares with 0."""
    return backend.bound.equal(x, 0)


@body
def logical_and(backend: Any, x1: Any, x2: Any) -> Any:
    """Combines bits."""
    return backend.bound.bitwise_and(_truth(backend, x1), _truth(backend, x2))


@body
def logical_or(backend: Any, x1: Any, x2: Any) -> Any:
    """Combines bits."""
    return backend.bound.bitwise_or(_truth(backend, x1), _truth(backend, x2))


@body
def logical_xor(backend: Any, x1: Any, x2: Any) -> Any:
    """Combines bits."""
    return backend.bound.bitwise_xor(_truth(backend, x1), _truth(backend, x2))


def _nowhere(backend: Any, x: Any) -> Any:
    return backend.bound.zeros_like(x, backend.dtypes["bool"])


@body
def isnan(backend: Any, x: Any) -> Any:
    """Compares with itself."""
    if backend.kind_of(x) not in ("float", "complex"):
        return _nowhere(backend, x)
    return backend.bound.not_equal(x, x)


@body
def isinf(backend: Any, x: Any) -> Any:
    """Compares the magnitude with infinity."""
    kind = backend.kind_of(x)
    if kind not in ("float", "complex"):
        return _nowhere(backend, x)
    ops = backend.bound
    if kind == "complex":
        return ops.logical_or(ops.isinf(ops.real(x)), ops.isinf(ops.imag(x)))
    return ops.equal(ops.absolute(x), math.inf)


@body
def isfinite(backend: Any, x: Any) -> Any:
    """Tests for NaN and infinity."""
    return backend.bound.logical_not(backend.bound.logical_or(backend.bound.isnan(x), backend.bound.isinf(x)))


@body
def isclose(backend: Any, x1: Any, x2: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Any:
    """Compares the distance with the tolerance."""
    ops = backend.bound
    a, b = common(backend, x1, x2, inexact=False)
    if backend.kind_of(a) not in ("float", "complex"):
        a, b = (
            widest(
                backend,
                ops.cast(x, backend.dtypes["float32"])
                if backend.kind_of(x) == "bool"
                else ops.cast(x, backend.dtypes["float64" if "float64" in backend.dtypes.natives else "float32"]),
            )
            for x in (a, b)
        )
    near = ops.less_equal(ops.absolute(ops.subtract(a, b)), ops.add(ops.multiply(ops.absolute(b), rtol), atol))
    near = ops.logical_or(ops.logical_and(near, ops.isfinite(b)), ops.equal(a, b))
    return ops.logical_or(near, ops.logical_and(ops.isnan(a), ops.isnan(b))) if equal_nan else near


@body
def allclose(backend: Any, x1: Any, x2: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Any:
    """Tests all elements."""
    return backend.bound.all(backend.bound.isclose(x1, x2, rtol, atol, equal_nan))


@body
def array_equal(backend: Any, x1: Any, x2: Any, equal_nan: bool = False) -> Any:
    """Compares the shapes, then the elements."""
    ops = backend.bound
    a, b = common(backend, x1, x2, inexact=False)
    if tuple(a.shape) != tuple(b.shape):
        return backend.convert(False)
    same = ops.equal(a, b)
    return ops.all(ops.logical_or(same, ops.logical_and(ops.isnan(a), ops.isnan(b))) if equal_nan else same)
