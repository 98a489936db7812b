"""Ops on single elements, over a namespace of the standard: it leaves out dtypes that the ops take, so cast these."""

from collections.abc import Callable
from typing import Any

from emberharmony.backend.arrayapi.library import Library

Function = Callable[..., Any]

_BOOL, _COMPLEX, _UNORDERED = ("bool",), ("complex",), ("bool", "complex")
_FLOATING = ("float", "complex")
_UNARY = {
    **{name: name for name in ("exp", "log", "log2", "log10", "sin", "cos", "tan", "sinh", "cosh", "tanh", "sqrt")},
    **{f"arc{name}": f"a{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{name: name for name in ("reciprocal", "exp2", "expm1", "log1p")},
}
"""Float functions of one tensor: the name of the op, and that in the namespace."""
_BINARY: dict[str, tuple[str, dict[str, Any]]] = {
    "divide": ("divide", {"inexact": True}),
    "hypot": ("hypot", {"inexact": True, "refused": _COMPLEX}),
    "logaddexp": ("logaddexp", {"inexact": True, "refused": _COMPLEX}),
    "logaddexp2": ("logaddexp2", {"inexact": True, "refused": _COMPLEX}),
    "arctan2": ("atan2", {"inexact": True, "refused": _COMPLEX}),
    "copysign": ("copysign", {"inexact": True, "refused": _COMPLEX}),
    "nextafter": ("nextafter", {"inexact": True, "refused": _COMPLEX}),
    "subtract": ("subtract", {"refused": _BOOL}),
    "floor_divide": ("floor_divide", {"refused": _UNORDERED, "divides": True}),
    "mod": ("remainder", {"refused": _UNORDERED, "divides": True}),
    "fmod": ("fmod", {"refused": _UNORDERED, "divides": True}),
    "bitwise_and": ("bitwise_and", {"refused": _FLOATING}),
    "bitwise_or": ("bitwise_or", {"refused": _FLOATING}),
    "bitwise_xor": ("bitwise_xor", {"refused": _FLOATING}),
    "equal": ("equal", {}),
    "not_equal": ("not_equal", {}),
    "less": ("less", {"refused": _COMPLEX, "number": True}),
    "less_equal": ("less_equal", {"refused": _COMPLEX, "number": True}),
    "greater": ("greater", {"refused": _COMPLEX, "number": True}),
    "greater_equal": ("greater_equal", {"refused": _COMPLEX, "number": True}),
    "maximum": ("maximum", {"refused": _COMPLEX, "number": True}),
    "minimum": ("minimum", {"refused": _COMPLEX, "number": True}),
}
"""Binary ops: the name in the namespace, and the options of `_binary`."""
_LOGICAL = ("logical_and", "logical_or", "logical_xor")


def _binary(
    library: Library,
    native: Function,
    *,
    inexact: bool = False,
    refused: tuple[str, ...] = (),
    number: bool = False,
    divides: bool = False,
) -> Function:
    """Returns a binary op.

    Args:
        library: the namespace.
        native: its function.
        inexact: whether integers are cast to the default float.
        refused: the kinds of dtypes for which the op raises a `DTypeError`.
        number: whether booleans are compared as integers, because the standard does not order them.
        divides: whether it divides, where the standard leaves open what integers divided by 0 are: here 0.
    """
    promotion = library.promotion

    def op(x1: Any, x2: Any) -> Any:
        a, b = promotion.common(x1, x2, inexact=inexact)
        if refused:
            promotion.refuse(a, refused)
        if number and library.kind(a) == "bool":
            small = library.dtypes["uint8"]
            found = native(library.astype(a, small), library.astype(b, small))
            return library.astype(found, a.dtype)
        if divides and library.kind(a) in ("signed", "unsigned"):
            zero = library.number(0, b)
            by_zero = library.xp.equal(b, zero)
            found = native(a, library.xp.where(by_zero, library.number(1, b), b))
            return library.xp.where(by_zero, zero, found)
        return native(a, b)

    return op


def _unary(library: Library, native: Function) -> Function:
    floats = library.promotion.floats

    def op(x: Any) -> Any:
        return native(floats(x))

    return op


def bind(library: Library) -> dict[str, Function]:
    """Returns the ops that the namespace has functions for."""
    found: dict[str, Function] = {}
    for op, name in _UNARY.items():
        native = library.function(name)
        if native is not None:
            found[op] = library.promotion.unary(native) if op not in ("expm1", "log1p") else _unary(library, native)
    for op, (name, options) in _BINARY.items():
        native = library.function(name)
        if native is not None:
            found[op] = _binary(library, native, **options)
    for op in _LOGICAL:
        native = library.function(op)
        if native is not None:
            found[op] = _logical(library, native)
    own = _Elementwise(library)
    needs = {"power": "pow", "add": "add", "multiply": "multiply", "absolute": "abs", "bitwise_not": "bitwise_invert"}
    needs |= {
        name: name for name in ("negative", "sign", "square", "isnan", "isinf", "isfinite", "logical_not", "conj")
    }
    needs |= {name: name for name in ("floor", "ceil", "trunc", "real", "imag", "signbit")}
    needs |= {name: name for name in ("bitwise_left_shift", "bitwise_right_shift")}
    for op, name in needs.items():
        if library.function(name) is not None:
            found[op] = getattr(own, op)
    if "expm1" in found:
        found["expm1"] = own.expm1
    if "log1p" in found:
        found["log1p"] = own.log1p
    return found


def _logical(library: Library, native: Function) -> Function:
    def op(x1: Any, x2: Any) -> Any:
        truth = library.dtypes["bool"]
        return native(*(library.cast(x, truth) for x in library.promotion.common(x1, x2)))

    return op


class _Elementwise:
    """The ops that need more than a cast."""

    def __init__(self, library: Library) -> None:
        self._library, self._xp, self._promotion = library, library.xp, library.promotion

    def add(self, x1: Any, x2: Any) -> Any:
        a, b = self._promotion.common(x1, x2)
        return self._xp.logical_or(a, b) if self._library.kind(a) == "bool" else self._xp.add(a, b)

    def multiply(self, x1: Any, x2: Any) -> Any:
        a, b = self._promotion.common(x1, x2)
        return self._xp.logical_and(a, b) if self._library.kind(a) == "bool" else self._xp.multiply(a, b)

    def power(self, x1: Any, x2: Any) -> Any:
        xp, library = self._xp, self._library
        a, b = self._promotion.common(x1, x2)
        self._promotion.refuse(a, _BOOL)
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

    def negative(self, x: Any) -> Any:
        self._promotion.refuse(x, _BOOL)
        return self._xp.negative(x)

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

    def bitwise_not(self, x: Any) -> Any:
        self._promotion.refuse(x, _FLOATING)
        return self._xp.bitwise_invert(x)

    def _shifted(self, x: Any, y: Any, native: Function, left: bool) -> Any:
        xp, library = self._xp, self._library
        a, b = self._promotion.common(x, y)
        self._promotion.refuse(a, ("bool", *_FLOATING))
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
        if self._library.kind(x) in ("bool", "signed", "unsigned"):
            return x
        self._promotion.refuse(x, _COMPLEX)
        return native(x)

    def floor(self, x: Any) -> Any:
        return self._kept(x, self._xp.floor)

    def ceil(self, x: Any) -> Any:
        return self._kept(x, self._xp.ceil)

    def trunc(self, x: Any) -> Any:
        return self._kept(x, self._xp.trunc)

    def signbit(self, x: Any) -> Any:
        kind = self._library.kind(x)
        self._promotion.refuse(x, _COMPLEX)
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
        xp, x = self._xp, self._promotion.floats(x)
        near = xp.expm1(x)
        if self._library.kind(x) != "complex":
            return near
        # NumPy 2.4's complex expm1, on which other libraries rest, gives NaN for some infinities.
        zero = self._library.number(0, x)
        return xp.add(xp.where(xp.isfinite(x), near, xp.subtract(xp.exp(x), self._library.number(1, x))), zero)

    def log1p(self, x: Any) -> Any:
        xp, x = self._xp, self._promotion.floats(x)
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
