"""Histograms: the bins of elements, and the counts of integers and of elements in bins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import op
from emberharmony.core.options import refuse_sparse
from emberharmony.core.types import Tensor, TensorLike
from emberharmony.ops.arrays.shape import ravel
from emberharmony.ops.device import get_device, to_device
from emberharmony.ops.dtype import to_inexact
from emberharmony.ops.reductions.sorting import searchsorted
from emberharmony.ops.tensor import convert_to_tensor, to_numpy

if TYPE_CHECKING:
    from emberharmony.backend.shared import bodies as shared_bodies
    from emberharmony.backend.shared.reductions import histograms as shared_histograms
else:
    shared_bodies = Deferred("emberharmony.backend.shared.bodies")
    shared_histograms = Deferred("emberharmony.backend.shared.reductions.histograms")


@op
def digitize(x: TensorLike, bins: TensorLike, right: bool = False) -> Tensor:
    """Returns the index of the bin of each element (int64): 0 below the first edge, len(bins) above the last one.

    Args:
        x: a tensor of any shape, which is the shape of the result; booleans, integers or floats.
        bins: a vector of the edges of the bins, in ascending order.
        right: whether an element on an edge belongs to the bin below it; by default it belongs to the bin above.

    See also: `searchsorted`, for any vector; `histogram`, the counts.

    Example:
        >>> ops.digitize([0.5, 1.0, 9.0], [0.0, 1.0, 2.0]).tolist()
        [1, 2, 3]
    """
    return searchsorted(bins, x, "left" if right else "right")


@op(reads="data")
def bincount(x: TensorLike, weights: TensorLike | None = None, minlength: int = 0, sparse: bool = False) -> Tensor:
    """Returns how often each integer from 0 occurs in a vector, or the sum of its weights.

    Shape: (max(x) + 1,), but at least (minlength,). Dtype: int64, or that of the weights. Forces evaluation on MLX.

    Args:
        x: a vector of integers from 0.
        weights: a number for each element of `x`, which is added in place of 1; integers become the default float. None
            counts.
        minlength: the least length of the result; further counts are 0.

    Raises:
        ArgumentError: if an integer is negative, or `sparse` is True.
        DTypeError: if `x` does not hold integers.
        ShapeError: if `x` is not a vector, or the weights do not have its shape.

    See also: `histogram`, of floats; `segment_sum`, for slices.

    Example:
        >>> ops.bincount([0, 2, 2]).tolist()
        [1, 0, 2]
    """
    refuse_sparse("sparse", sparse)
    if weights is None:
        return convert_to_tensor(shared_histograms.count_integers(to_numpy(x), None, minlength), device=get_device(x))
    shared_histograms.check_weights(weights, x)
    weights = to_inexact(weights)
    bin_counts = shared_histograms.count_integers(to_numpy(x), to_numpy(weights), minlength)
    return to_device(shared_bodies.tensor_like_from_host(bin_counts, weights), get_device(x))


@op(reads="data")
def histogram(x: TensorLike, bins: int = 10, range: tuple[float, float] | None = None) -> tuple[Tensor, Tensor]:
    """Returns the counts (int64) of elements in bins of equal width, and the edges of the bins.

    The last bin includes its upper edge. Forces evaluation on MLX.

    Args:
        x: a tensor of any shape, which is flattened; booleans, integers or floats.
        bins: the number of bins, at least 1.
        range: the lower and upper edge of all bins; by default the smallest and largest element of `x`.

    Raises:
        ArgumentError: if there are no bins or the range is empty.

    See also: `bincount`, of integers; `digitize`, the bin of each element.

    Example:
        >>> [part.tolist() for part in ops.histogram([0.0, 1.0, 1.0], 2)]
        [[1, 2], [0.0, 0.5, 1.0]]
    """
    x = to_inexact(x)
    bin_counts, edges = shared_histograms.histogram(to_numpy(ravel(x)), bins, range)
    device = get_device(x)
    return convert_to_tensor(bin_counts, device=device), to_device(
        shared_bodies.tensor_like_from_host(edges, x), device
    )
