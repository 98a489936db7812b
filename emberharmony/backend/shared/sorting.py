"""Checks of the arguments of sorts and searches."""

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
    """Returns the `side` of a search.

    Raises: ArgumentError for one that is neither "left" nor "right".
    """
    if side not in ("left", "right"):
        raise ArgumentError(f"side is 'left' or 'right', not {side!r}")
    return side


def sorter_of(sorter: Any, length: int) -> np.ndarray:
    """Returns the indices that sort a vector of a length.

    Raises: ShapeError if they are no vector of this length; IndexOutOfBoundsError; ArgumentTypeError.
    """
    places = host_indices(sorter)
    if places.shape != (length,):
        raise ShapeError(f"a vector of {length} elements is sorted by as many indices, not by shape {places.shape}")
    return checked(places, length)


def top(shape: Sequence[int], k: int) -> None:
    """Checks that the last axis of a shape has k elements.

    Raises: ShapeError.
    """
    if not shape or not 0 <= k <= shape[-1]:
        raise ShapeError(f"a tensor of shape {tuple(shape)} has no {k} largest elements along its last axis")
