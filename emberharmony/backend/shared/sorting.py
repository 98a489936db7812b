"""Checks of the arguments of sorts and searches."""

from collections.abc import Sequence

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


def top(shape: Sequence[int], k: int) -> None:
    """Checks that the last axis of a shape has k elements.

    Raises: ShapeError.
    """
    if not shape or not 0 <= k <= shape[-1]:
        raise ShapeError(f"a tensor of shape {tuple(shape)} has no {k} largest elements along its last axis")
