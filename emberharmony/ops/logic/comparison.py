"""Comparisons and logic, element by element; the results are booleans.

Shape: operands are broadcast. Dtype: operands are promoted before they are compared. Python numbers are weak, and an
integer outside the range of the dtype raises `RangeError`. Complex operands have no order, so `less`, `less_equal`,
`greater` and `greater_equal` raise `DTypeError` for them.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import op
from emberharmony.core.types import Operand, Tensor, TensorLike
from emberharmony.ops.dtype import dtype
from emberharmony.ops.logic.bitwise import bitwise_and, bitwise_or, bitwise_xor
from emberharmony.ops.tensor import convert_to_tensor

if TYPE_CHECKING:
    from emberharmony.backend.shared import bodies
    from emberharmony.ops import math
    from emberharmony.ops.elementwise import complex_numbers
    from emberharmony.ops.reductions import reduction
else:
    bodies = Deferred("emberharmony.backend.shared.bodies")
    # These modules import this one.
    complex_numbers, math = Deferred("emberharmony.ops.elementwise.complex_numbers"), Deferred("emberharmony.ops.math")
    reduction = Deferred("emberharmony.ops.reductions.reduction")


@op(elementwise=True, takes="all", gives="bool")
def equal(x1: Operand, x2: Operand) -> Tensor:
    """Returns `x1 == x2`; NaN is not equal to anything.

    See also: `isclose`, within a tolerance; `array_equal`, of whole tensors; `not_equal`, the opposite.

    Example:
        >>> ops.equal([1, 2], [1, 3]).tolist()
        [True, False]
    """
    ...


@op(elementwise=True, takes="all", gives="bool")
def not_equal(x1: Operand, x2: Operand) -> Tensor:
    """Returns `x1 != x2`; NaN is unequal to everything.

    See also: `equal`, the opposite.

    Example:
        >>> ops.not_equal([1, 2], [1, 3]).tolist()
        [False, True]
    """
    return logical_not(equal(x1, x2))


@op(elementwise=True, takes="real", gives="bool")
def less(x1: Operand, x2: Operand) -> Tensor:
    """Returns `x1 < x2`.

    See also: `less_equal`, or equal; `greater`, the other order.

    Example:
        >>> ops.less([1, 2], 2).tolist()
        [True, False]
    """
    ...


@op(elementwise=True, takes="real", gives="bool")
def less_equal(x1: Operand, x2: Operand) -> Tensor:
    """Returns `x1 <= x2`.

    See also: `less`, strictly; `greater_equal`, the other order.

    Example:
        >>> ops.less_equal([1, 3], 2).tolist()
        [True, False]
    """
    # NaN is neither less than a number nor equal to it, so `not (x1 > x2)` would be wrong for it.
    return logical_or(less(x1, x2), equal(x1, x2))


@op(elementwise=True, takes="real", gives="bool")
def greater(x1: Operand, x2: Operand) -> Tensor:
    """Returns `x1 > x2`.

    See also: `greater_equal`, or equal; `less`, the other order.

    Example:
        >>> ops.greater([1, 3], 2).tolist()
        [False, True]
    """
    return less(x2, x1)


@op(elementwise=True, takes="real", gives="bool")
def greater_equal(x1: Operand, x2: Operand) -> Tensor:
    """Returns `x1 >= x2`.

    See also: `greater`, strictly; `less_equal`, the other order.

    Example:
        >>> ops.greater_equal([1, 2], 2).tolist()
        [False, True]
    """
    return less_equal(x2, x1)


@op(elementwise=True, takes="all", gives="bool")
def logical_and(x1: Operand, x2: Operand) -> Tensor:
    """Returns whether both elements are non-zero.

    See also: `bitwise_and`, of integers; `all`, over axes.

    Example:
        >>> ops.logical_and([True, False], True).tolist()
        [True, False]
    """
    return bitwise_and(_is_nonzero(x1), _is_nonzero(x2))


@op(elementwise=True, takes="all", gives="bool")
def logical_or(x1: Operand, x2: Operand) -> Tensor:
    """Returns whether at least one of the two elements is non-zero.

    See also: `bitwise_or`, of integers; `any`, over axes.

    Example:
        >>> ops.logical_or([True, False], False).tolist()
        [True, False]
    """
    return bitwise_or(_is_nonzero(x1), _is_nonzero(x2))


@op(elementwise=True, takes="all", gives="bool")
def logical_xor(x1: Operand, x2: Operand) -> Tensor:
    """Returns whether exactly one of the two elements is non-zero.

    See also: `bitwise_xor`, of integers.

    Example:
        >>> ops.logical_xor([True, False], True).tolist()
        [False, True]
    """
    return bitwise_xor(_is_nonzero(x1), _is_nonzero(x2))


@op(elementwise=True, takes="all", gives="bool")
def logical_not(x: TensorLike) -> Tensor:
    """Returns whether each element is zero.

    See also: `bitwise_not`, of integers.

    Example:
        >>> ops.logical_not([True, False]).tolist()
        [False, True]
    """
    return equal(x, 0)


@op(elementwise=True, takes="all", gives="bool")
def isnan(x: TensorLike) -> Tensor:
    """Returns whether each element is NaN.

    See also: `isfinite`, neither NaN nor infinite; `nan_to_num`, to replace them.

    Example:
        >>> ops.isnan([1.0, float('nan')]).tolist()
        [False, True]
    """
    return not_equal(x, x)


@op(elementwise=True, takes="all", gives="bool")
def isinf(x: TensorLike) -> Tensor:
    """Returns whether each element is infinite.

    See also: `isposinf`, one sign; `isneginf`, the other sign; `isfinite`, neither.

    Example:
        >>> ops.isinf([1.0, float('inf')]).tolist()
        [False, True]
    """
    x_dtype = dtype(x)
    if x_dtype.is_complex:
        return logical_or(isinf(complex_numbers.real(x)), isinf(complex_numbers.imag(x)))
    # No integer is infinite, but one may be beyond the range of the default float.
    return logical_or(equal(x, inf), equal(x, -inf)) if x_dtype.is_floating else not_equal(x, x)


@op(elementwise=True, takes="all", gives="bool")
def isfinite(x: TensorLike) -> Tensor:
    """Returns whether each element is neither NaN nor infinite.

    See also: `isnan`, NaN alone; `isinf`, infinities alone.

    Example:
        >>> ops.isfinite([1.0, float('inf')]).tolist()
        [True, False]
    """
    return logical_not(logical_or(isnan(x), isinf(x)))


@op(elementwise=True, takes="real", gives="bool")
def isposinf(x: TensorLike) -> Tensor:
    """Returns whether each element is positive infinity.

    See also: `isneginf`, the other sign; `isinf`, both.

    Example:
        >>> ops.isposinf([1.0, float('inf')]).tolist()
        [False, True]
    """
    return equal(x, float("inf"))


@op(elementwise=True, takes="real", gives="bool")
def isneginf(x: TensorLike) -> Tensor:
    """Returns whether each element is negative infinity.

    See also: `isposinf`, the other sign; `isinf`, both.

    Example:
        >>> ops.isneginf([1.0, float('-inf')]).tolist()
        [False, True]
    """
    return equal(x, float("-inf"))


@op(elementwise=True, gradient="zero")
def isclose(x1: Operand, x2: Operand, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Returns whether `abs(x1 - x2) <= atol + rtol * abs(x2)`; equal infinities are close.

    Args:
        x1: a tensor or number of any dtype, which broadcasts against `x2`.
        x2: a tensor or number of any dtype, which broadcasts against `x1`; `rtol` is relative to its magnitude.
        rtol: the allowed difference as a share of the magnitude of `x2`.
        atol: the allowed difference near 0, in the unit of the operands, which is added to the other.
        equal_nan: whether NaN is close to NaN; else it is close to nothing.

    See also: `allclose`, of whole tensors; `equal`, exactly.

    Example:
        >>> ops.isclose([1.0, 2.0], [1.0, 2.1]).tolist()
        [True, False]
    """
    a, b = bodies.cast_to_common(x1, x2)
    a_dtype = dtype(a)
    if not a_dtype.is_floating and not a_dtype.is_complex:
        a, b = bodies.cast_to_widest(a), bodies.cast_to_widest(b)  # the difference of two integers may wrap
    tolerance = math.add(math.multiply(math.absolute(b), rtol), atol)
    is_near = logical_and(less_equal(math.absolute(math.subtract(a, b)), tolerance), isfinite(b))
    is_near = logical_or(is_near, equal(a, b))
    return logical_or(is_near, logical_and(isnan(a), isnan(b))) if equal_nan else is_near


@op(gradient="zero")
def allclose(x1: Operand, x2: Operand, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Returns whether all elements are close, as a 0-d boolean; see `isclose`.

    Args:
        x1: a tensor or number of any dtype, which broadcasts against `x2`.
        x2: a tensor or number of any dtype, which broadcasts against `x1`; `rtol` is relative to its magnitude.
        rtol: the allowed difference as a share of the magnitude of `x2`.
        atol: the allowed difference near 0, in the unit of the operands, which is added to the other.
        equal_nan: whether NaN is close to NaN; else it is close to nothing.

    See also: `isclose`, element by element; `array_equal`, exactly.

    Example:
        >>> bool(ops.allclose([1.0, 2.0], [1.0, 2.1]))
        False
    """
    return reduction.all(isclose(x1, x2, rtol, atol, equal_nan))


@op(gradient="zero")
def array_equal(x1: Operand, x2: Operand, equal_nan: bool = False) -> Tensor:
    """Returns whether both operands have the same shape and the same elements, as a 0-d boolean.

    Args:
        x1: a tensor or number of any shape and dtype.
        x2: a tensor or number; where its shape differs from that of `x1`, the result is False.
        equal_nan: whether NaN equals NaN; a complex number is NaN if one of its parts is.

    See also: `equal`, element by element; `allclose`, within a tolerance.

    Example:
        >>> bool(ops.array_equal([1, 2], [1, 2]))
        True
    """
    a, b = bodies.cast_to_common(x1, x2)
    if tuple(a.shape) != tuple(b.shape):
        return convert_to_tensor(False)
    is_equal = equal(a, b)
    return reduction.all(logical_or(is_equal, logical_and(isnan(a), isnan(b))) if equal_nan else is_equal)


def _is_nonzero(x: Tensor) -> Tensor:
    """Returns whether elements are not 0."""
    return x if dtype(x).kind == "bool" else not_equal(x, 0)
