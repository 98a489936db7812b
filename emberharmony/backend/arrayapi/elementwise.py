"""Ops on single elements, over a namespace of the standard: it leaves out dtypes that the ops take, so cast these.

All are functions of tensors of one dtype, see `Promotion.whole`.
"""

from collections.abc import Callable
from typing import Any

from emberharmony.backend.arrayapi.library import Library
from emberharmony.backend.promote import direct
from emberharmony.core.registry import OPS, Facts

Function = Callable[..., Any]

_FLOATING = ("float", "complex")
_UNARY = {
    **{name: name for name in ("exp", "log", "log2", "log10", "sin", "cos", "tan", "sinh", "cosh", "tanh", "sqrt")},
    **{f"arc{name}": f"a{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{name: name for name in ("reciprocal", "exp2")},
}
"""Float functions of one tensor: the name of the op, and that in the namespace."""
_OTHERS = {
    **{name: name for name in ("divide", "hypot", "logaddexp", "logaddexp2", "copysign", "nextafter", "subtract")},
    **{name: name for name in ("floor_divide", "fmod", "bitwise_and", "bitwise_or", "bitwise_xor", "equal")},
    **{name: name for name in ("not_equal", "less", "less_equal", "greater", "greater_equal", "maximum", "minimum")},
    "arctan2": "atan2",
    "mod": "remainder",
    "negative": "negative",
    "bitwise_not": "bitwise_invert",
}
"""Other functions: the name of the op, and that in the namespace."""
_LOGICAL = ("logical_and", "logical_or", "logical_xor")


def _for_all(library: Library, native: Function, facts: Facts) -> Function:
    """Returns a function of tensors of one dtype, for all dtypes that the op takes."""
    if facts.takes == "real numeric":
        return _dividing(library, native)
    return _ordering(library, native) if facts.takes == "real" and facts.gives != "float" else native


def _dividing(library: Library, native: Function) -> Function:
    """Returns a division, which is 0 where an integer is divided by 0: the standard leaves that open."""

    def divide(a: Any, b: Any) -> Any:
        if library.kind(a) not in ("signed", "unsigned"):
            return native(a, b)
        zero = library.number(0, b)
        by_zero = library.xp.equal(b, zero)
        return library.xp.where(by_zero, zero, native(a, library.xp.where(by_zero, library.number(1, b), b)))

    return divide


def _ordering(library: Library, native: Function) -> Function:
    """Returns a function that depends on the order of the elements; the standard does not order booleans."""

    def compare(a: Any, b: Any) -> Any:
        if library.kind(a) != "bool":
            return native(a, b)
        small = library.dtypes["uint8"]
        return library.astype(native(library.astype(a, small), library.astype(b, small)), a.dtype)

    return compare


def bind(library: Library) -> dict[str, Function]:
    """Returns the ops that the namespace has functions for, as functions of tensors of one dtype."""
    found: dict[str, Function] = {}
    for op, name in _UNARY.items():
        native = library.function(name)
        if native is not None:
            found[op] = direct(native)
    for op, name in _OTHERS.items():
        native = library.function(name)
        if native is not None:
            found[op] = _for_all(library, native, OPS[op].facts)
    for op in _LOGICAL:
        native = library.function(op)
        if native is not None:
            found[op] = _logical(library, native)
    own = _Elementwise(library)
    needs = {
        "power": "pow",
        "add": "add",
        "multiply": "multiply",
        "absolute": "abs",
        "expm1": "expm1",
        "log1p": "log1p",
    }
    needs |= {name: name for name in ("sign", "square", "isnan", "isinf", "isfinite", "logical_not", "conj")}
    needs |= {name: name for name in ("floor", "ceil", "trunc", "real", "imag", "signbit")}
    needs |= {name: name for name in ("bitwise_left_shift", "bitwise_right_shift")}
    for op, name in needs.items():
        if library.function(name) is not None:
            found[op] = getattr(own, op)
    return found


def _logical(library: Library, native: Function) -> Function:
    def op(x1: Any, x2: Any) -> Any:
        truth = library.dtypes["bool"]
        return native(library.cast(x1, truth), library.cast(x2, truth))

    return op


class _Elementwise:
    """The ops that need more than a cast."""

    def __init__(self, library: Library) -> None:
        self._library, self._xp = library, library.xp

    def add(self, a: Any, b: Any) -> Any:
        return self._xp.logical_or(a, b) if self._library.kind(a) == "bool" else self._xp.add(a, b)

    def multiply(self, a: Any, b: Any) -> Any:
        return self._xp.logical_and(a, b) if self._library.kind(a) == "bool" else self._xp.multiply(a, b)

    def power(self, a: Any, b: Any) -> Any:
        xp, library = self._xp, self._library
        power = library.function("pow")
        if library.kind(a) != "signed":
            return power(a, b)
        # The standard leaves negative powers of integers open: 1 and -1 have some, those of others truncate to 0.
        zero, one = library.number(0, a), library.number(1, a)
        negative, even = xp.less(b, zero), xp.equal(xp.bitwise_and(b, one), zero)
        sign = xp.where(even, one, a)
        size_one = xp.logical_or(xp.equal(a, one), xp.equal(a, library.number(-1, a)))
        usual = power(a, xp.where(negative, zero, b))
        return xp.where(negative, xp.where(size_one, sign, zero), usual)

    def absolute(self, x: Any) -> Any:
        return x if self._library.kind(x) == "bool" else self._xp.abs(x)

    def sign(self, x: Any) -> Any:
        return x if self._library.kind(x) == "bool" else self._xp.sign(x)

    def square(self, x: Any) -> Any:
        return x if self._library.kind(x) == "bool" else self._xp.square(x)

    def _tested(self, x: Any, native: Function, otherwise: bool) -> Any:
        if self._library.kind(x) in _FLOATING:
            return native(x)
        return self._xp.full(tuple(x.shape), otherwise, dtype=self._library.dtypes["bool"])

    def isnan(self, x: Any) -> Any:
        return self._tested(x, self._xp.isnan, False)

    def isinf(self, x: Any) -> Any:
        return self._tested(x, self._xp.isinf, False)

    def isfinite(self, x: Any) -> Any:
        return self._tested(x, self._xp.isfinite, True)

    def logical_not(self, x: Any) -> Any:
        return self._xp.logical_not(self._library.cast(x, self._library.dtypes["bool"]))

    def _shifted(self, a: Any, b: Any, native: Function, left: bool) -> Any:
        xp, library = self._xp, self._library
        # The standard leaves shifts by less than 0, or by the width or more, open.
        width = library.bits(a.dtype)
        far = xp.logical_or(xp.less(b, library.number(0, b)), xp.greater(b, library.number(width - 1, b)))
        zero = library.number(0, a)
        found = native(a, xp.where(far, zero, b))
        if left or library.kind(a) == "unsigned":
            return xp.where(far, zero, found)
        return xp.where(far, xp.where(xp.less(a, zero), library.number(-1, a), zero), found)

    def bitwise_left_shift(self, x: Any, y: Any) -> Any:
        return self._shifted(x, y, self._library.function("bitwise_left_shift"), True)

    def bitwise_right_shift(self, x: Any, y: Any) -> Any:
        return self._shifted(x, y, self._library.function("bitwise_right_shift"), False)

    def _kept(self, x: Any, native: Function) -> Any:
        return native(x) if self._library.kind(x) in _FLOATING else x

    def floor(self, x: Any) -> Any:
        return self._kept(x, self._xp.floor)

    def ceil(self, x: Any) -> Any:
        return self._kept(x, self._xp.ceil)

    def trunc(self, x: Any) -> Any:
        return self._kept(x, self._xp.trunc)

    def signbit(self, x: Any) -> Any:
        kind = self._library.kind(x)
        if kind == "float":
            return self._xp.signbit(x)
        if kind == "signed":
            return self._xp.less(x, self._library.number(0, x))
        return self._xp.zeros(tuple(x.shape), dtype=self._library.dtypes["bool"])

    def real(self, x: Any) -> Any:
        return self._xp.real(x) if self._library.kind(x) == "complex" else x

    def imag(self, x: Any) -> Any:
        return self._xp.imag(x) if self._library.kind(x) == "complex" else self._xp.zeros_like(x)

    def conj(self, x: Any) -> Any:
        return self._library.function("conj")(x) if self._library.kind(x) == "complex" else x

    def expm1(self, x: Any) -> Any:
        xp = self._xp
        near = xp.expm1(x)
        if self._library.kind(x) != "complex":
            return near
        # NumPy 2.4's complex expm1, on which other libraries rest, gives NaN for some infinities.
        zero = self._library.number(0, x)
        return xp.add(xp.where(xp.isfinite(x), near, xp.subtract(xp.exp(x), self._library.number(1, x))), zero)

    def log1p(self, x: Any) -> Any:
        xp = self._xp
        if self._library.kind(x) != "complex":
            return xp.log1p(x)
        # log(1 + x) loses the digits of a small x.
        far = xp.log1p(x)
        small = xp.less(xp.abs(x), self._library.number(0.5, xp.real(x)))
        real, imag = xp.real(x), xp.imag(x)
        two, one = self._library.number(2, real), self._library.number(1, real)
        size = xp.divide(xp.log1p(xp.add(xp.multiply(real, xp.add(real, two)), xp.multiply(imag, imag))), two)
        angle = self._library.function("atan2")(imag, xp.add(real, one))
        turned = xp.multiply(self._library.astype(angle, x.dtype), self._library.number(1j, x))
        near = xp.add(self._library.astype(size, x.dtype), turned)
        return xp.where(small, near, far)
