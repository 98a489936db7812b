"""Groups of slices: reducing the slices of each segment, encoding classes."""

from __future__ import annotations

from collections.abc import Sequence

from emberharmony.core.dispatch import op
from emberharmony.core.dtypes import default_float
from emberharmony.core.types import DTypeLike, Tensor, TensorLike
from emberharmony.ops.indexing import one_hot
from emberharmony.ops.reduction import any
from emberharmony.ops.tensor import cast, ndim


@op
def segment_sum(
    data: TensorLike, segment_ids: Tensor | Sequence[int], num_segments: int | None = None, sorted: bool = False
) -> Tensor:
    """Returns the sum of the slices of each segment; 0 for a segment without any.

    Shape: data (n, …) and segment_ids (n,) give (num_segments, …). Dtype: that of `data`, which is not widened; half
    precision is summed in single.

    Args:
        segment_ids: which segment each slice belongs to, from 0 up.
        num_segments: by default one more than the greatest id, which forces evaluation on MLX.
        sorted: a promise that the ids ascend; nothing depends on it.

    Raises: IndexOutOfBoundsError for an id outside; slices of unread ids outside are passed over on MLX. ShapeError.

    Example:
        >>> ops.segment_sum([1, 2, 3], [0, 2, 0]).tolist()
        [4, 0, 2]
    """
    ...


@op
def segment_prod(
    data: TensorLike, segment_ids: Tensor | Sequence[int], num_segments: int | None = None, sorted: bool = False
) -> Tensor:
    """Returns the product of the slices of each segment, 1 for a segment without any; else like `segment_sum`."""
    ...


@op
def segment_max(
    data: TensorLike, segment_ids: Tensor | Sequence[int], num_segments: int | None = None, sorted: bool = False
) -> Tensor:
    """Returns the greatest of the slices of each segment; for one without any the lowest value of the dtype.

    The lowest value is minus infinity for floats. NaN is passed on. Else like `segment_sum`.

    Example:
        >>> ops.segment_max([1, 2, 3], [0, 1, 0]).tolist()
        [3, 2]
    """
    ...


@op
def segment_min(
    data: TensorLike, segment_ids: Tensor | Sequence[int], num_segments: int | None = None, sorted: bool = False
) -> Tensor:
    """Returns the least of the slices of each segment; for one without any the highest value of the dtype.

    The highest value is infinity for floats. NaN is passed on. Else like `segment_sum`.
    """
    ...


@op
def multi_hot(x: TensorLike, num_classes: int, axis: int = -1, dtype: DTypeLike | None = None) -> Tensor:
    """Returns 1 at each class that a sample has and 0 elsewhere; a class outside is passed over.

    Shape: (n,) becomes (num_classes,); of (batch, n, …) the second axis goes and one of `num_classes` is put in.
    Dtype: the default float unless `dtype` says otherwise.

    Example:
        >>> ops.multi_hot([[0, 2], [1, 1]], 3).tolist()
        [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    """
    hits = any(one_hot(x, num_classes, axis, "bool"), 1 if ndim(x) > 1 else 0)
    return cast(hits, default_float() if dtype is None else dtype)
