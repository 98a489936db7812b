"""Checks of the arguments of sorting and searching ops."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from emberharmony.backend.host import host_indices
from emberharmony.backend.shared.indexing import checked
from emberharmony.core.errors import (
    ArgumentError,
    ShapeError,
)


def side_of(side: str) -> str:
    """Returns the `side` of a search, checked.

    Raises:
        ArgumentError: if it is neither "left" nor "right".
    """
    if side not in ("left", "right"):
        raise ArgumentError(f"side is 'left' or 'right', not {side!r}")
    return side


def sorter_of(sorter: Any, length: int) -> np.ndarray:
    """Returns the indices that sort a vector of this length, checked.

    Raises:
        ArgumentTypeError: if they are not integers.
        IndexOutOfBoundsError: if one is out of bounds.
        ShapeError: if they are not a vector of this length.
    """
    places = host_indices(sorter)
    if places.shape != (length,):
        raise ShapeError(f"expected sorter to be a vector of {length} indices, got shape {places.shape}")
    return checked(places, length)


def top(shape: Sequence[int], k: int) -> None:
    """Checks that the last axis of a shape has at least k elements.

    Raises:
        ShapeError: if `x` has no axes, or `k` is negative or larger than the length of the last one.
    """
    if not shape or not 0 <= k <= shape[-1]:
        raise ShapeError(f"k must be from 0 to the length of the last axis, got k={k} for shape {tuple(shape)}")
