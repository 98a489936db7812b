"""Sorting, searching and sets.

Sorts are stable and put NaN last. Indices are int64.
"""

from __future__ import annotations

from typing import Literal

from emberharmony.core.dispatch import op
from emberharmony.core.types import Tensor, TensorLike


@op
def sort(x: TensorLike, axis: int | None = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Returns the elements in order along an axis; with None of the flattened `x`.

    Example:
        >>> ops.sort([3, 1, 2]).tolist()
        [1, 2, 3]
    """
    ...


@op
def argsort(x: TensorLike, axis: int | None = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Returns the indices that would sort along an axis; equal elements keep their order in both directions.

    Example:
        >>> ops.argsort([3, 1, 2]).tolist()
        [1, 2, 0]
    """
    ...


@op
def top_k(x: TensorLike, k: int, sorted: bool = True) -> tuple[Tensor, Tensor]:
    """Returns the k largest elements along the last axis, in descending order, and their indices.

    Raises: ShapeError if the axis is shorter than k.

    Example:
        >>> [part.tolist() for part in ops.top_k([1, 3, 2], 2)]
        [[3, 2], [1, 2]]
    """
    ...


@op
def searchsorted(sorted_sequence: TensorLike, values: TensorLike, side: Literal["left", "right"] = "left") -> Tensor:
    """Returns where values belong in a sorted vector: before its equal elements, or with "right" after.

    Raises: ArgumentError for another side.

    Example:
        >>> ops.searchsorted([1, 3, 5], [3, 4]).tolist()
        [1, 2]
    """
    ...


@op
def unique(x: TensorLike) -> Tensor:
    """Returns the sorted unique elements of the flattened `x`, NaN once; forces evaluation on MLX.

    Example:
        >>> ops.unique([3, 1, 3]).tolist()
        [1, 3]
    """
    ...


@op
def isin(x1: TensorLike, x2: TensorLike, invert: bool = False) -> Tensor:
    """Returns whether each element of `x1` is one of `x2`.

    Example:
        >>> ops.isin([1, 2, 3], [2, 4]).tolist()
        [False, True, False]
    """
    ...
