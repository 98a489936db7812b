"""Rounding, and the signs, neighbours and exponents of floating-point numbers.

Shape: operands are broadcast. Complex tensors are refused with a `DTypeError`, except by `round` and `nan_to_num`.
"""

from __future__ import annotations

from emberharmony.core.dispatch import op
from emberharmony.core.types import Operand, Tensor, TensorLike


@op
def floor(x: TensorLike) -> Tensor:
    """Returns the largest integer not above each element; integers stay what they are.

    Example:
        >>> ops.floor([1.5, -1.5]).tolist()
        [1.0, -2.0]
    """
    ...


@op
def ceil(x: TensorLike) -> Tensor:
    """Returns the smallest integer not below each element; integers stay what they are.

    Example:
        >>> ops.ceil([1.5, -1.5]).tolist()
        [2.0, -1.0]
    """
    ...


@op
def trunc(x: TensorLike) -> Tensor:
    """Returns each element rounded towards zero; integers stay what they are.

    Example:
        >>> ops.trunc([1.5, -1.5]).tolist()
        [1.0, -1.0]
    """
    ...


@op
def round(x: TensorLike, decimals: int = 0) -> Tensor:
    """Returns each element rounded to so many decimals, halves to the even neighbour; integers stay what they are.

    The real and the imaginary part of a complex number are rounded each.

    Example:
        >>> ops.round([0.5, 1.5, 2.4]).tolist()
        [0.0, 2.0, 2.0]
    """
    ...


@op
def nan_to_num(x: TensorLike, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """Returns `x` with NaN and infinities replaced, by default by 0 and the largest finite numbers of the dtype.

    Example:
        >>> ops.nan_to_num([float("nan"), 1.0]).tolist()
        [0.0, 1.0]
    """
    ...


@op
def copysign(x1: Operand, x2: Operand) -> Tensor:
    """Returns the magnitude of `x1` with the sign of `x2`, always floating.

    Example:
        >>> ops.copysign([1.0, 2.0], [-0.0, 3.0]).tolist()
        [-1.0, 2.0]
    """
    ...


@op
def signbit(x: TensorLike) -> Tensor:
    """Returns whether the sign is negative, of -0.0 too.

    Example:
        >>> ops.signbit([-1.0, 2.0]).tolist()
        [True, False]
    """
    ...


@op
def nextafter(x1: Operand, x2: Operand) -> Tensor:
    """Returns the next number after `x1` towards `x2` that the dtype holds, `x2` itself if they are equal.

    Dtype: integers take the default float.

    Example:
        >>> ops.nextafter([1.0, 2.0], [2.0, 2.0]).tolist()
        [1.0000001192092896, 2.0]
    """
    ...


@op
def ldexp(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Returns `x1 * 2**x2` without overflow on the way.

    Dtype: that of `x1`, the default float for integers.

    Raises: DTypeError unless `x2` is of integers.

    Example:
        >>> ops.ldexp([0.75, 3.0], [2, -1]).tolist()
        [3.0, 1.5]
    """
    ...
