"""Elementwise ops over a namespace of the array API standard, with casts for dtypes that the standard leaves out.

All are functions of tensors of one dtype, see `Promotion.complete_op`.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from emberharmony.backend.arrayapi.library import Definitions, Library, as_program
from emberharmony.backend.promote import direct
from emberharmony.core.registry import OPS, OpSpec

F = TypeVar("F", bound=Callable[..., Any])
Function = Callable[..., Any]
_FLOATING = ("float", "complex")
_PLAIN = (
    *("exp", "exp2", "log", "log2", "log10", "sqrt", "reciprocal", "sin", "cos", "tan", "sinh", "cosh", "tanh"),
    *("arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh", "arctan2", "hypot", "logaddexp", "logaddexp2"),
    *("subtract", "divide", "mod", "fmod", "negative", "copysign", "nextafter", "maximum", "minimum"),
    *("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not"),
    *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"),
)
"""The ops for which the standard's function may be called, and three that NumPy and its namesakes have.

What other functions of the name of an op do is not specified: NumPy's `deg2rad` refuses complex numbers.
"""


def mark_for_floats(definition: F) -> F:
    """Marks a definition that equals the namespace's function for floats, so that dispatch may call that directly."""
    definition.for_floats = True  # type: ignore[attr-defined]
    return definition


def _extend_to_all_dtypes(library: Library, native: Function, spec: OpSpec) -> Function:
    """Returns a native function extended to tensors of all dtypes that the op takes."""
    operand_kinds, result_kind = spec.facts.takes, spec.facts.gives
    is_unary = spec.declared.__code__.co_argcount == 1
    if library.takes_all:
        return native if is_unary and spec.facts.refuses and result_kind != "float" else direct(native)
    if result_kind == "float":
        return direct(native) if is_unary else native
    if operand_kinds == "real numeric":
        return _safe_division(library, native)
    return _extend_to_booleans(library, native) if operand_kinds == "real" else native


def _safe_division(library: Library, native: Function) -> Function:
    """Returns a division, or remainder, that is 0 where an integer is divided by 0, which the standard leaves open."""

    def divide(a: Any, b: Any) -> Any:
        if library.kind(a) not in ("signed", "unsigned"):
            return native(a, b)
        zero = library.number(0, b)
        is_by_zero = library.xp.equal(b, zero)
        return library.xp.where(is_by_zero, zero, native(a, library.xp.where(is_by_zero, library.number(1, b), b)))

    return divide


def _extend_to_booleans(library: Library, native: Function) -> Function:
    """Returns a native function extended to booleans, for functions that depend on the order of elements."""

    def compare(a: Any, b: Any) -> Any:
        if library.kind(a) != "bool":
            return native(a, b)
        small_dtype = library.dtypes["uint8"]
        return library.astype(native(library.astype(a, small_dtype), library.astype(b, small_dtype)), a.dtype)

    return compare


def bind(library: Library) -> dict[str, Function]:
    """Returns the ops that the namespace has functions for, as functions of tensors of one dtype."""
    native_by_op = {op: native_function for op in _PLAIN if (native_function := library.function(op)) is not None}
    definition_by_op = {
        op: _extend_to_all_dtypes(library, native_function, OPS[op]) for op, native_function in native_by_op.items()
    }
    definition_by_open_op = _ForAllDtypes(library).bound_definitions()
    if library.takes_all:
        definition_by_open_op = {op: direct(library.function(op)) for op in definition_by_open_op}
    return definition_by_op | definition_by_open_op | _Elementwise(library).bound_definitions()


class _Bound(Definitions):
    """Definitions of which dispatch calls the namespace's function itself for floats, where they say so."""

    def bound_definitions(self) -> dict[str, Function]:
        """Returns by name the definitions of the ops that the namespace has functions for."""
        definition_by_op = super().bound_definitions()
        float_ops = [op for op, definition in definition_by_op.items() if hasattr(definition, "for_floats")]
        direct_by_op = {
            op: direct(self._library.function(op), definition_by_op[op], when=self._library.floating)
            for op in float_ops
        }
        return definition_by_op | direct_by_op


class _ForAllDtypes(_Bound):
    """The ops whose functions the standard leaves open for booleans or integers."""

    def add(self, a: Any, b: Any) -> Any:
        return self._xp.logical_or(a, b) if self._library.kind(a) == "bool" else self._xp.add(a, b)

    def multiply(self, a: Any, b: Any) -> Any:
        return self._xp.logical_and(a, b) if self._library.kind(a) == "bool" else self._xp.multiply(a, b)

    @mark_for_floats
    def absolute(self, x: Any) -> Any:
        return x if self._library.kind(x) == "bool" else self._xp.abs(x)

    @mark_for_floats
    def sign(self, x: Any) -> Any:
        return x if self._library.kind(x) == "bool" else self._xp.sign(x)

    @mark_for_floats
    def square(self, x: Any) -> Any:
        return x if self._library.kind(x) == "bool" else self._xp.square(x)

    def _test_floats(self, x: Any, native: Function, otherwise: bool) -> Any:
        if self._library.kind(x) in _FLOATING:
            return native(x)
        return self._xp.full(tuple(x.shape), otherwise, dtype=self._library.dtypes["bool"])

    @mark_for_floats
    def isnan(self, x: Any) -> Any:
        return self._test_floats(x, self._xp.isnan, False)

    @mark_for_floats
    def isinf(self, x: Any) -> Any:
        return self._test_floats(x, self._xp.isinf, False)

    @mark_for_floats
    def isfinite(self, x: Any) -> Any:
        return self._test_floats(x, self._xp.isfinite, True)

    def _call_on_booleans(self, native: Function, *operands: Any) -> Any:
        return native(*(self._library.cast(x, self._library.dtypes["bool"]) for x in operands))

    def logical_and(self, x1: Any, x2: Any) -> Any:
        return self._call_on_booleans(self._xp.logical_and, x1, x2)

    def logical_or(self, x1: Any, x2: Any) -> Any:
        return self._call_on_booleans(self._xp.logical_or, x1, x2)

    def logical_xor(self, x1: Any, x2: Any) -> Any:
        return self._call_on_booleans(self._xp.logical_xor, x1, x2)

    def logical_not(self, x: Any) -> Any:
        return self._call_on_booleans(self._xp.logical_not, x)


class _Elementwise(_Bound):
    """The elementwise ops over the standard that need more than a cast of their operands.

    A function of the standard is one call of the library; the bodies need several.
    """

    def __init__(self, library: Library) -> None:
        super().__init__(library)
        self._conj = library.function("conj")

    def power(self, a: Any, b: Any) -> Any:
        xp, library = self._xp, self._library
        native_power = library.function("power")
        if library.kind(a) != "signed":
            return native_power(a, b)
        # The standard leaves negative powers of integers open. Here those of 1 and -1 are exact, and others are 0.
        zero, one = library.number(0, a), library.number(1, a)
        is_negative, is_even = xp.less(b, zero), xp.equal(xp.bitwise_and(b, one), zero)
        unit_power = xp.where(is_even, one, a)
        is_unit = xp.logical_or(xp.equal(a, one), xp.equal(a, library.number(-1, a)))
        nonnegative_power = native_power(a, xp.where(is_negative, zero, b))
        return xp.where(is_negative, xp.where(is_unit, unit_power, zero), nonnegative_power)

    def floor_divide(self, a: Any, b: Any) -> Any:
        xp = self._xp
        quotient = _safe_division(self._library, xp.floor_divide)(a, b)
        if self._library.kind(a) not in _FLOATING:
            return quotient
        # Where an operand is infinite, the standard allows the results of Python, so divide and round down instead.
        is_infinite = xp.logical_or(xp.isinf(a), xp.isinf(b))
        return xp.where(is_infinite, xp.floor(xp.divide(a, b)), quotient)

    def _shift_bits(self, a: Any, b: Any, native: Function, left: bool) -> Any:
        xp, library = self._xp, self._library
        # The standard leaves shifts by negative counts, or by the width of the dtype or more, open.
        bit_width = library.bits(a.dtype)
        is_outside = xp.logical_or(xp.less(b, library.number(0, b)), xp.greater(b, library.number(bit_width - 1, b)))
        zero = library.number(0, a)
        shifted_a = native(a, xp.where(is_outside, zero, b))
        if left or library.kind(a) == "unsigned":
            return xp.where(is_outside, zero, shifted_a)
        return xp.where(is_outside, xp.where(xp.less(a, zero), library.number(-1, a), zero), shifted_a)

    @as_program()
    def bitwise_left_shift(self, x: Any, y: Any) -> Any:
        return self._shift_bits(x, y, self._library.function("bitwise_left_shift"), True)

    @as_program()
    def bitwise_right_shift(self, x: Any, y: Any) -> Any:
        return self._shift_bits(x, y, self._library.function("bitwise_right_shift"), False)

    def _round_floats(self, x: Any, native: Function) -> Any:
        return native(x) if self._library.kind(x) in _FLOATING else x

    @mark_for_floats
    def floor(self, x: Any) -> Any:
        return self._round_floats(x, self._xp.floor)

    @mark_for_floats
    def ceil(self, x: Any) -> Any:
        return self._round_floats(x, self._xp.ceil)

    @mark_for_floats
    def trunc(self, x: Any) -> Any:
        return self._round_floats(x, self._xp.trunc)

    @mark_for_floats
    def signbit(self, x: Any) -> Any:
        dtype_kind = self._library.kind(x)
        if dtype_kind == "float":
            return self._xp.signbit(x)
        if dtype_kind == "signed":
            return self._xp.less(x, self._library.number(0, x))
        return self._xp.zeros(tuple(x.shape), dtype=self._library.dtypes["bool"])

    def real(self, x: Any) -> Any:
        return self._xp.real(x) if self._library.kind(x) == "complex" else x

    def imag(self, x: Any) -> Any:
        return self._xp.imag(x) if self._library.kind(x) == "complex" else self._xp.zeros_like(x)

    def conj(self, x: Any) -> Any:
        return self._conj(x) if self._library.kind(x) == "complex" else x

    @mark_for_floats
    def expm1(self, x: Any) -> Any:
        xp = self._xp
        expm1_of_x = xp.expm1(x)
        if self._library.kind(x) != "complex":
            return expm1_of_x
        # NumPy 2.4's complex expm1, on which other libraries rest, gives NaN for some infinities.
        zero = self._library.number(0, x)
        return xp.add(xp.where(xp.isfinite(x), expm1_of_x, xp.subtract(xp.exp(x), self._library.number(1, x))), zero)

    @mark_for_floats
    def log1p(self, x: Any) -> Any:
        xp = self._xp
        if self._library.kind(x) != "complex":
            return xp.log1p(x)
        # The library's complex log1p may compute log(1 + x), which loses the digits of a small x.
        log1p_of_x = xp.log1p(x)
        is_small = xp.less(xp.abs(x), self._library.number(0.5, xp.real(x)))
        real, imag = xp.real(x), xp.imag(x)
        number_2, number_1 = self._library.number(2, real), self._library.number(1, real)
        log_magnitude = xp.divide(
            xp.log1p(xp.add(xp.multiply(real, xp.add(real, number_2)), xp.multiply(imag, imag))), number_2
        )
        angle = self._library.function("arctan2")(imag, xp.add(real, number_1))
        imaginary_part = xp.multiply(self._library.astype(angle, x.dtype), self._library.number(1j, x))
        value_near_0 = xp.add(self._library.astype(log_magnitude, x.dtype), imaginary_part)
        return xp.where(is_small, value_near_0, log1p_of_x)
