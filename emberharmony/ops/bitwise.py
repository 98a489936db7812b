"""Bitwise ops on integers and booleans; other dtypes raise `DTypeError`.

Shape: operands are broadcast. Dtype: operands are promoted.
"""

from __future__ import annotations

from emberharmony.core.dispatch import alias, op
from emberharmony.core.types import Operand, Tensor, TensorLike


@op
def bitwise_and(x1: Operand, x2: Operand) -> Tensor:
    """Returns the bits set in both.

    Example:
        >>> ops.bitwise_and([6], 3).tolist()
        [2]
    """
    ...


@op
def bitwise_or(x1: Operand, x2: Operand) -> Tensor:
    """Returns the bits set in either.

    Example:
        >>> ops.bitwise_or([6], 3).tolist()
        [7]
    """
    ...


@op
def bitwise_xor(x1: Operand, x2: Operand) -> Tensor:
    """Returns the bits set in exactly one.

    Example:
        >>> ops.bitwise_xor([6], 3).tolist()
        [5]
    """
    ...


@op
def bitwise_not(x: TensorLike) -> Tensor:
    """Returns all bits inverted.

    Example:
        >>> ops.bitwise_not([0, 5]).tolist()
        [-1, -6]
    """
    ...


bitwise_invert = alias("bitwise_invert", bitwise_not)


@op
def bitwise_left_shift(x1: Operand, x2: Operand) -> Tensor:
    """Returns `x1` shifted left by `x2` bits; 0 from the width of the dtype on.

    A negative count gives 0.

    Example:
        >>> ops.bitwise_left_shift([1, 2], 3).tolist()
        [8, 16]
    """
    ...


left_shift = alias("left_shift", bitwise_left_shift)


@op
def bitwise_right_shift(x1: Operand, x2: Operand) -> Tensor:
    """Returns `x1` shifted right by `x2` bits, keeping the sign; 0 or -1 from the width of the dtype on.

    A negative count counts as the width.

    Example:
        >>> ops.bitwise_right_shift([8, 16], 3).tolist()
        [1, 2]
    """
    ...


right_shift = alias("right_shift", bitwise_right_shift)
