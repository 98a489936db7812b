"""Argument checks of sorting and searching ops, and the op `unique` of each backend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from emberharmony.backend.host import host_indices
from emberharmony.backend.shared.arrays.indexing import nonnegative_indices
from emberharmony.core.axes import as_index
from emberharmony.core.deferred import Deferred
from emberharmony.core.errors import (
    ArgumentError,
    ShapeError,
)

if TYPE_CHECKING:
    import numpy as np
else:
    np = Deferred("numpy")


def checked_side(side: str) -> str:
    """Returns the option `side` of `searchsorted`, checked to be "left" or "right".

    Raises:
        ArgumentError: if it is neither "left" nor "right".
    """
    if side not in ("left", "right"):
        raise ArgumentError(f"side is 'left' or 'right', not {side!r}")
    return side


def checked_sorter(sorter: Any, length: int) -> np.ndarray:
    """Returns the option `sorter` of `searchsorted` as indices from 0, checked to fit a vector of this length.

    Raises:
        ArgumentTypeError: if they are not integers.
        IndexOutOfBoundsError: if one is out of bounds.
        ShapeError: if they are not a vector of this length.
    """
    sorting_indices = host_indices(sorter)
    if sorting_indices.shape != (length,):
        raise ShapeError(f"expected sorter to be a vector of {length} indices, got shape {sorting_indices.shape}")
    return nonnegative_indices(sorting_indices, length)


def check_top_k(shape: Sequence[int], k: int) -> None:
    """Checks that the last axis of a shape has at least k elements.

    Raises:
        ShapeError: if `x` has no axes, or `k` is negative or larger than the length of the last one.
    """
    if not shape or not 0 <= as_index(k) <= shape[-1]:
        raise ShapeError(f"k must be from 0 to the length of the last axis, got k={k} for shape {tuple(shape)}")


class WithUnique:
    """Adds the op `unique` to a backend whose library finds the unique elements of a flattened tensor.

    It sorts once by the library's own sort; the body takes 7 to 25 times as long, for few elements.
    """

    composed: Callable[[str], Callable[..., Any]]
    _unique: Callable[[Any], Any]
    """Returns the sorted unique elements of the flattened tensor, with at most one NaN."""

    def unique(
        self,
        x: Any,
        sorted: bool = True,
        return_index: bool = False,
        return_inverse: bool = False,
        return_counts: bool = False,
        axis: int | None = None,
        size: int | None = None,
        fill_value: float | None = None,
    ) -> Any:
        """Returns the unique elements: by the library if no option asks for more, else by the composite."""
        if return_index or return_inverse or return_counts or axis is not None or size is not None:
            options = sorted, return_index, return_inverse, return_counts, axis, size, fill_value
            return self.composed("unique")(x, *options)
        return self._unique(x)
