"""Default bodies of arithmetic, bits and parts of complex numbers."""

import math
from typing import Any

import numpy as np

from emberharmony.backend.fallback.tools import body, common, floats, on_host, placed, promotion_of, reading, width
from emberharmony.backend.shared.shape import check_parts

_INEXACT = ("bool", "float", "complex")


@body
def positive(backend: Any, x: Any) -> Any:
    """Returns the tensor."""
    return x


@body
def square(backend: Any, x: Any) -> Any:
    """Multiplies by itself."""
    return backend.bound.multiply(x, x)


@body
def reciprocal(backend: Any, x: Any) -> Any:
    """Divides 1."""
    return backend.bound.divide(1.0, x)


@body
def rsqrt(backend: Any, x: Any) -> Any:
    """Divides 1 by the square root."""
    return backend.bound.divide(1.0, backend.bound.sqrt(x))


@body
def sign(backend: Any, x: Any) -> Any:
    """Compares with 0; a complex number is divided by its modulus."""
    ops, kind = backend.bound, backend.kind_of(x)
    if kind == "bool":
        return x
    zero = ops.equal(x, 0)
    if kind == "complex":
        return ops.where(zero, 0, ops.divide(x, ops.cast(ops.where(zero, 1, ops.absolute(x)), x.dtype)))
    result = ops.where(ops.greater(x, 0), 1, ops.where(zero, 0, x))
    return result if kind == "unsigned" else ops.where(ops.less(x, 0), -1, result)


@body
def divide_no_nan(backend: Any, x1: Any, x2: Any) -> Any:
    """Divides by 1 where it would divide by 0."""
    ops = backend.bound
    a, b = common(backend, x1, x2)
    zero = ops.equal(b, 0)
    return ops.where(zero, 0, ops.divide(a, ops.where(zero, 1, b)))


@body
def fmod(backend: Any, x1: Any, x2: Any) -> Any:
    """Divides magnitudes; the remainder has the sign of the dividend."""
    ops = backend.bound
    a, b = common(backend, x1, x2, inexact=False, refused=("bool", "complex"))
    kind = backend.kind_of(a)
    if kind == "unsigned":
        return ops.mod(a, b)
    if kind == "signed":
        # The magnitude of the smallest integer does not fit the dtype, so correct the sign of the remainder instead.
        rest = ops.mod(a, b)
        off = ops.logical_and(ops.not_equal(rest, 0), ops.not_equal(ops.less(a, 0), ops.less(b, 0)))
        return ops.where(off, ops.subtract(rest, b), rest)
    size, by = ops.absolute(a), ops.absolute(b)
    # mod(x, inf) is x, but some libraries compute x - inf * 0.
    rest = ops.where(ops.logical_and(ops.isinf(b), ops.isfinite(a)), size, ops.mod(size, by))
    return ops.copysign(rest, a)


@body
def hypot(backend: Any, x1: Any, x2: Any) -> Any:
    """Divides by the larger magnitude, so that no square overflows."""
    ops = backend.bound
    a, b = (ops.absolute(x) for x in common(backend, x1, x2, refused=("complex",)))
    large, small = ops.maximum(a, b), ops.minimum(a, b)
    ratio = ops.divide(small, ops.where(ops.equal(large, 0), 1, large))
    result = ops.multiply(large, ops.sqrt(ops.add(ops.multiply(ratio, ratio), 1)))
    return ops.where(ops.logical_or(ops.isinf(a), ops.isinf(b)), math.inf, result)


@body
def heaviside(backend: Any, x1: Any, x2: Any) -> Any:
    """Compares with 0."""
    ops = backend.bound
    a, b = common(backend, x1, x2, refused=("complex",))
    step = ops.where(ops.less(a, 0), 0, ops.where(ops.equal(a, 0), b, 1))
    return ops.where(ops.isnan(a), a, step)


@body
def gcd(backend: Any, x1: Any, x2: Any) -> Any:
    """Computes Euclid's remainders, as many as the largest integers of the dtype need."""
    ops = backend.bound
    a, b = (
        x if backend.kind_of(x) == "unsigned" else ops.absolute(x)
        for x in common(backend, x1, x2, inexact=False, refused=_INEXACT)
    )
    # Lamé: the Fibonacci numbers need the most steps, 1.44 for each bit.
    for _ in range(math.ceil(1.45 * 8 * width(backend, a.dtype)) + 2):
        none = ops.equal(b, 0)
        a, b = ops.where(none, a, b), ops.where(none, 0, ops.mod(a, ops.where(none, 1, b)))
    return ops.absolute(a) if backend.kind_of(a) == "signed" else a


@body
def bitwise_not(backend: Any, x: Any) -> Any:
    """Exchanges each bit by exclusive or with ones."""
    kind = backend.kind_of(x)
    promotion_of(backend).refuse(x, ("float", "complex"))
    ones = True if kind == "bool" else -1 if kind == "signed" else 2 ** (8 * width(backend, x.dtype)) - 1
    return backend.bound.bitwise_xor(x, ones)


@body
def conj(backend: Any, x: Any) -> Any:
    """Multiplies the imaginary part by -1."""
    if backend.kind_of(x) != "complex":
        return x
    ops = backend.bound
    return ops.view_as_complex(ops.stack([ops.real(x), ops.negative(ops.imag(x))], -1))


@reading
def view_as_complex(backend: Any, x: Any) -> Any:
    """Makes the complex numbers on the host: a sum with 1j times infinity would be NaN."""
    x = floats(backend, x, ("complex",))
    check_parts(x.shape)
    host = on_host(backend, x)
    wide = "complex128" if backend.dtypes.neutral[x.dtype] == "float64" else "complex64"
    pairs = np.ascontiguousarray(host.astype(np.float64 if wide == "complex128" else np.float32))
    return placed(backend, pairs.view(wide)[..., 0], backend.dtypes[wide])
