"""Default bodies of elementary and special functions: shared series, computed with the backend's own arithmetic."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from emberharmony.backend.fallback.tools import body, common, floats, placed, widest
from emberharmony.backend.shared import elementary, special_integrals
from emberharmony.backend.shared.special_binding import function as special_function
from emberharmony.backend.shared.special_derivatives import DERIVATIVES
from emberharmony.core.options import constant

_NAMES = {"abs": "absolute"}


class _Arithmetic:
    """The namespace that shared functions compute with: the ops of a backend, and the operators of its tensors."""

    picks = False

    def __init__(self, backend: Any, digits: Any) -> None:
        self._backend, self.digits = backend, digits

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend.bound, _NAMES.get(name, name))

    @staticmethod
    def picked(mask: Any, function: Callable[..., Any], *arguments: Any) -> Any:
        """Returns the function of all elements."""
        return function(*arguments)

    def where(self, mask: Any, x1: Any, x2: Any) -> Any:
        """Returns elements of two tensors or numbers; two numbers take the widest float."""
        if not hasattr(x1, "dtype") and not hasattr(x2, "dtype"):
            x1 = self._number(x1)
        return self._backend.bound.where(mask, x1, x2)

    def _number(self, value: Any) -> Any:
        return widest(self._backend, placed(self._backend, np.asarray(value), self._backend.dtypes["float32"]))

    def entries(self, table: tuple[float, ...], index: Any) -> Any:
        """Returns the entries of a table at whole numbers."""
        ops = self._backend.bound
        values = placed(self._backend, np.asarray(table, np.float64), index.dtype)
        return ops.take(values, ops.cast(index, self._backend.dtypes["int64"]))

    def column(self, numbers: tuple[float, ...], x: Any) -> Any:
        """Returns numbers along an axis in front of those of `x`."""
        return placed(self._backend, np.asarray(numbers).reshape(-1, *(1,) * len(x.shape)), x.dtype)


def _special(name: str, function: Callable[..., Any]) -> None:
    fixed = {i: given for i, given in enumerate(DERIVATIVES.get(name, ())) if isinstance(given, str)}

    def computed(backend: Any, *arguments: Any) -> Any:
        for i, argument in fixed.items():
            constant(argument, arguments[i])
        tensors = common(backend, *arguments, refused=("complex",))
        ops, dtype = backend.bound, tensors[0].dtype
        double = backend.dtypes.neutral[dtype] == "float64"
        xp = _Arithmetic(backend, special_integrals.DOUBLE if double else special_integrals.SINGLE)
        wide = [widest(backend, x) for x in tensors]
        wide = list(ops.broadcast_arrays(*wide)) if len(wide) > 1 else wide
        return ops.cast(function(xp, *wide), dtype)

    computed.__name__ = computed.__qualname__ = name
    computed.__doc__ = function.__doc__
    body(computed)


for _name in ("erf", "erfc", "erfinv", "i0"):
    _special(_name, getattr(elementary, _name))
for _name in (
    *("gammaln", "digamma", "polygamma", "zeta", "beta", "betaln", "xlogy", "xlog1py", "erfcx", "ndtr", "log_ndtr"),
    *("ndtri", "i0e", "i1", "i1e", "gammainc", "gammaincc", "betainc"),
):
    _special(_name, special_function(_name))


def _complex(backend: Any, real: Any, imag: Any) -> Any:
    """Returns complex numbers of these parts."""
    return backend.bound.view_as_complex(backend.bound.stack([real, imag], -1))


def _scaled(backend: Any, x: Any, factor: float) -> Any:
    """Returns complex numbers, multiplied part by part: a product with a complex number makes NaN of infinities."""
    ops = backend.bound
    return _complex(backend, ops.multiply(ops.real(x), factor), ops.multiply(ops.imag(x), factor))


@body
def exp2(backend: Any, x: Any) -> Any:
    """Computes a power of 2; for a complex number an exponential, of parts that are scaled one by one."""
    ops, x = backend.bound, floats(backend, x)
    if backend.kind_of(x) != "complex":
        return ops.power(2.0, x)
    return ops.exp(_scaled(backend, x, math.log(2.0)))


@body
def expm1(backend: Any, x: Any) -> Any:
    """Computes 2 tanh(x / 2) / (1 - tanh(x / 2)) near 0."""
    ops = backend.bound
    x = floats(backend, x)
    half = ops.tanh(ops.divide(x, 2.0))
    near = ops.divide(ops.multiply(half, 2.0), ops.subtract(1.0, half))
    return ops.where(ops.less(ops.absolute(x), 0.5), near, ops.subtract(ops.exp(x), 1.0))


@body
def log1p(backend: Any, x: Any) -> Any:
    """Corrects the logarithm of the rounded sum; for a small complex number it computes modulus and angle."""
    ops = backend.bound
    x = floats(backend, x)
    if backend.kind_of(x) == "complex":
        # A complex sum would lose the sign of an imaginary part of -0.
        total = _complex(backend, ops.add(ops.real(x), 1.0), ops.imag(x))
        small = ops.less(ops.absolute(x), 0.5)
        real, imag = (ops.where(small, part, 0.0) for part in (ops.real(x), ops.imag(x)))
        square = ops.add(ops.multiply(real, ops.add(real, 2.0)), ops.multiply(imag, imag))
        near = _complex(backend, ops.divide(ops.log1p(square), 2.0), ops.arctan2(imag, ops.add(real, 1.0)))
        return ops.where(small, near, ops.log(total))
    total = ops.add(x, 1.0)
    off = ops.subtract(total, 1.0)
    usual = ops.logical_and(ops.not_equal(off, 0.0), ops.isfinite(total))
    scale = ops.divide(x, ops.where(usual, off, 1.0))
    found = ops.multiply(ops.log(ops.where(usual, total, 1.0)), scale)
    return ops.where(usual, found, ops.where(ops.isfinite(total), x, ops.log(total)))


def _logarithm(backend: Any, x: Any, base: float) -> Any:
    found = backend.bound.log(x)
    if backend.kind_of(found) == "complex":
        return _scaled(backend, found, 1.0 / math.log(base))
    return backend.bound.divide(found, math.log(base))


@body
def log2(backend: Any, x: Any) -> Any:
    """Divides the natural logarithm."""
    return _logarithm(backend, x, 2.0)


@body
def log10(backend: Any, x: Any) -> Any:
    """Divides the natural logarithm."""
    return _logarithm(backend, x, 10.0)


def _log_of_sum(backend: Any, x1: Any, x2: Any, scale: float) -> Any:
    ops = backend.bound
    a, b = common(backend, x1, x2, refused=("complex",))
    large = ops.maximum(a, b)
    # Equal infinities have the distance NaN, and the sum is the same infinity.
    distance = ops.where(ops.equal(a, b), 0.0, ops.negative(ops.absolute(ops.subtract(a, b))))
    return ops.add(large, ops.divide(ops.log1p(ops.exp(ops.multiply(distance, scale))), scale))


@body
def logaddexp(backend: Any, x1: Any, x2: Any) -> Any:
    """Adds the logarithm of the smaller exponential, relative to the larger one."""
    return _log_of_sum(backend, x1, x2, 1.0)


@body
def logaddexp2(backend: Any, x1: Any, x2: Any) -> Any:
    """Adds the logarithm of the smaller power, relative to the larger one."""
    return _log_of_sum(backend, x1, x2, math.log(2.0))


@body
def tan(backend: Any, x: Any) -> Any:
    """Divides the sine by the cosine; for a complex number z, tan(z) = -i tanh(iz), which does not overflow."""
    ops = backend.bound
    x = floats(backend, x)
    if backend.kind_of(x) != "complex":
        return ops.divide(ops.sin(x), ops.cos(x))
    turned = ops.tanh(_complex(backend, ops.negative(ops.imag(x)), ops.real(x)))
    return _complex(backend, ops.imag(turned), ops.negative(ops.real(turned)))
