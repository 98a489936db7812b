"""Segments of slices: reducing the slices of each segment, encoding classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from emberharmony.backend.host import host_indices
from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import op
from emberharmony.core.dtypes import default_float
from emberharmony.core.types import DTypeLike, Tensor, TensorLike
from emberharmony.ops.arrays.creation import full
from emberharmony.ops.arrays.indexing import one_hot, scatter_update
from emberharmony.ops.device import get_device
from emberharmony.ops.dtype import dtype as dtype_of
from emberharmony.ops.reductions.reduction import any
from emberharmony.ops.tensor import cast, ndim, on_host

if TYPE_CHECKING:
    from emberharmony.backend.shared.reductions import segments as shared_segments
else:
    shared_segments = Deferred("emberharmony.backend.shared.reductions.segments")


@op(reads="data")
def segment_sum(
    data: TensorLike, segment_ids: Tensor | Sequence[int], num_segments: int | None = None, sorted: bool = False
) -> Tensor:
    """Returns the sum of the slices of each segment; 0 for a segment without slices.

    Shape: data (n, …) and segment_ids (n,) to (num_segments, …). Dtype: that of `data`, which is not widened; half
    precision is summed in float32.

    Raises:
        IndexOutOfBoundsError: if an id is out of range; for ids in tensors, MLX skips their slices instead.
        ShapeError: if the shapes do not fit.

    See also: `segment_max`, the largest; `segment_prod`, the product; `scatter`, at any places.

    Example:
        >>> ops.segment_sum([1, 2, 3], [0, 2, 0]).tolist()
        [4, 0, 2]
    """
    return _combine_segments(data, segment_ids, num_segments, "add")


@op(reads="data")
def segment_prod(
    data: TensorLike, segment_ids: Tensor | Sequence[int], num_segments: int | None = None, sorted: bool = False
) -> Tensor:
    """Returns the product of the slices of each segment; 1 for a segment without slices. See `segment_sum`.

    See also: `segment_sum`, the sum.
    """
    return _combine_segments(data, segment_ids, num_segments, "mul")


@op(reads="data")
def segment_max(
    data: TensorLike, segment_ids: Tensor | Sequence[int], num_segments: int | None = None, sorted: bool = False
) -> Tensor:
    """Returns the maximum of the slices of each segment; for a segment without slices the lowest value of the dtype.

    The lowest value is minus infinity for floats. NaN propagates. Otherwise it is like `segment_sum`.

    See also: `segment_min`, the smallest; `segment_sum`, the sum.

    Example:
        >>> ops.segment_max([1, 2, 3], [0, 1, 0]).tolist()
        [3, 2]
    """
    return _combine_segments(data, segment_ids, num_segments, "max")


@op(reads="data")
def segment_min(
    data: TensorLike, segment_ids: Tensor | Sequence[int], num_segments: int | None = None, sorted: bool = False
) -> Tensor:
    """Returns the minimum of the slices of each segment; for a segment without slices the highest value of the dtype.

    The highest value is infinity for floats. NaN propagates. Otherwise it is like `segment_sum`.

    See also: `segment_max`, the largest; `segment_sum`, the sum.
    """
    return _combine_segments(data, segment_ids, num_segments, "min")


@op
def multi_hot(
    inputs: TensorLike, num_classes: int, axis: int = -1, dtype: DTypeLike | None = None, sparse: bool = False
) -> Tensor:
    """Returns 1 at the index of each class of a sample and 0 elsewhere; classes out of range are ignored.

    Shape: (n,) to (num_classes,). From (batch, n, …) the second axis is removed, and an axis of length `num_classes` is
    inserted. Dtype: the default float unless `dtype` is given.

    Args:
        inputs: integers (n,), or (batch, n, …): the index of each class of a sample.
        num_classes: the number of classes: the length of the new axis.
        axis: the place of the new axis in the result; by default the last.
        dtype: the dtype of the result; None is the default float.

    Raises:
        ArgumentError: if `num_classes` is negative, or `sparse` is True.

    See also: `one_hot`, for one class.

    Example:
        >>> ops.multi_hot([[0, 2], [1, 1]], 3).tolist()
        [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    """
    is_class = any(one_hot(inputs, num_classes, axis, "bool", sparse), 1 if ndim(inputs) > 1 else 0)
    return cast(is_class, default_float() if dtype is None else dtype)


def _combine_segments(
    data: Tensor, segment_ids: Any, num_segments: int | None, reduction: Literal["add", "mul", "max", "min"]
) -> Tensor:
    """Returns slices combined into a tensor of neutral elements."""
    ids, dtype = host_indices(on_host(segment_ids)), dtype_of(data)
    shared_segments.check_segments(ids.shape, tuple(data.shape))
    neutral_element, segment_count = (
        shared_segments.neutral_element(dtype, reduction),
        shared_segments.count_segments(ids, num_segments),
    )
    # Half precision is combined in float32, to keep its digits.
    wide_data = cast(data, "float32") if dtype.is_floating and dtype.bits == 16 else data
    initial_rows = full((segment_count, *data.shape[1:]), neutral_element, dtype_of(wide_data), get_device(data))
    return cast(
        scatter_update(initial_rows, ids.reshape(-1, 1), wide_data, reduction) if segment_count else initial_rows, dtype
    )
