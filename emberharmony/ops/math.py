"""Elementwise mathematics."""

from __future__ import annotations

from emberharmony.core.dispatch import op
from emberharmony.core.types import Operand, Tensor, TensorLike


@op
def sin(x: TensorLike) -> Tensor:
    """Returns the sine of each element, an angle in radians.

    Dtype: integers and booleans take the default float.

    Example:
        >>> ops.sin([0.0]).tolist()
        [0.0]
    """
    ...


@op
def add(x1: Operand, x2: Operand) -> Tensor:
    """Returns `x1 + x2`, element by element; booleans are added as `or`.

    Shape: broadcast. Dtype: promoted.

    Raises: ShapeError if the shapes do not broadcast; RangeError for a Python integer out of range.

    Example:
        >>> ops.add([1, 2], [[10], [20]]).tolist()
        [[11, 12], [21, 22]]
    """
    ...
