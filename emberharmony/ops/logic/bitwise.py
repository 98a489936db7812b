"""Bitwise ops on integers and booleans; other dtypes raise `DTypeError`.

Shape: operands are broadcast. Dtype: operands are promoted.
"""

from __future__ import annotations

from emberharmony.core.dispatch import alias, op
from emberharmony.core.types import Operand, Tensor, TensorLike
from emberharmony.ops.dtype import dtype


@op(elementwise=True, takes="integer or boolean")
def bitwise_and(x: Operand, y: Operand) -> Tensor:
    """Returns the bits that are set in both operands.

    See also: `bitwise_or`, either; `bitwise_xor`, one of both; `logical_and`, of booleans.

    Example:
        >>> ops.bitwise_and([6], 3).tolist()
        [2]
    """
    ...


@op(elementwise=True, takes="integer or boolean")
def bitwise_or(x: Operand, y: Operand) -> Tensor:
    """Returns the bits that are set in at least one operand.

    See also: `bitwise_and`, both; `bitwise_xor`, one of both; `logical_or`, of booleans.

    Example:
        >>> ops.bitwise_or([6], 3).tolist()
        [7]
    """
    ...


@op(elementwise=True, takes="integer or boolean")
def bitwise_xor(x: Operand, y: Operand) -> Tensor:
    """Returns the bits that are set in exactly one operand.

    See also: `bitwise_and`, both; `bitwise_or`, either.

    Example:
        >>> ops.bitwise_xor([6], 3).tolist()
        [5]
    """
    ...


@op(elementwise=True, takes="integer or boolean")
def bitwise_not(x: TensorLike) -> Tensor:
    """Returns each element with all bits inverted.

    See also: `logical_not`, of booleans.

    Example:
        >>> ops.bitwise_not([0, 5]).tolist()
        [-1, -6]
    """
    x_dtype = dtype(x)
    all_bits = True if x_dtype.kind == "bool" else -1 if x_dtype.kind == "signed" else 2**x_dtype.bits - 1
    return bitwise_xor(x, all_bits)


bitwise_invert = alias("bitwise_invert", bitwise_not)


@op(elementwise=True, takes="integer")
def bitwise_left_shift(x: Operand, y: Operand) -> Tensor:
    """Returns `x` shifted left by `y` bits.

    A count that is negative, or at least the width of the dtype, gives 0.

    See also: `bitwise_right_shift`, the other way.

    Example:
        >>> ops.bitwise_left_shift([1, 2], 3).tolist()
        [8, 16]
    """
    ...


left_shift = alias("left_shift", bitwise_left_shift)


@op(elementwise=True, takes="integer")
def bitwise_right_shift(x: Operand, y: Operand) -> Tensor:
    """Returns `x` shifted right by `y` bits; the sign is kept.

    A count that is negative, or at least the width of the dtype, gives 0, or -1 for negative numbers.

    See also: `bitwise_left_shift`, the other way.

    Example:
        >>> ops.bitwise_right_shift([8, 16], 3).tolist()
        [1, 2]
    """
    ...


right_shift = alias("right_shift", bitwise_right_shift)
