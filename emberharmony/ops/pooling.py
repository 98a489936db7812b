"""Pooling: the maximum or the mean of the elements in windows over spatial axes.

The layout, `strides` and `padding` are those of `ops/convolution.py`. Padding does not count: it does not change a
maximum or a mean.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import op
from emberharmony.core.types import Tensor, TensorLike
from emberharmony.ops.creation import ones
from emberharmony.ops.device import get_device
from emberharmony.ops.dtype import dtype, iinfo
from emberharmony.ops.indexing import get_item
from emberharmony.ops.math import add, divide, maximum
from emberharmony.ops.reduction import max, mean
from emberharmony.ops.shape import moveaxis, pad, repeat, reshape, stack
from emberharmony.ops.tensor import cast

if TYPE_CHECKING:
    from emberharmony.backend.shared import convolution as shared_convolution
else:
    shared_convolution = Deferred("emberharmony.backend.shared.convolution")


@op
def max_pool(
    inputs: TensorLike,
    pool_size: int | Sequence[int],
    strides: int | Sequence[int] | None = None,
    padding: Literal["valid", "same"] = "valid",
    data_format: Literal["channels_last", "channels_first"] | None = None,
) -> Tensor:
    """Returns the largest element of each window; windows are adjacent unless `strides` is given.

    Example:
        >>> ops.max_pool([[[1.0], [3.0], [2.0], [0.0]]], 2).tolist()
        [[[3.0], [2.0]]]
    """
    kind = dtype(inputs)
    lowest: float = -math.inf if kind.is_floating else iinfo(kind).min if kind.is_integer else 0
    return _pooled(inputs, pool_size, strides, padding, data_format, maximum, lowest)


@op
def average_pool(
    inputs: TensorLike,
    pool_size: int | Sequence[int],
    strides: int | Sequence[int] | None = None,
    padding: Literal["valid", "same"] = "valid",
    data_format: Literal["channels_last", "channels_first"] | None = None,
) -> Tensor:
    """Returns the mean of each window; windows are adjacent unless `strides` is given.

    Dtype: integers become the default float; half precision is summed in float32.

    Example:
        >>> ops.average_pool([[[1.0], [3.0], [2.0], [0.0]]], 2).tolist()
        [[[2.0], [1.0]]]
    """
    kind = dtype(divide(inputs, 1.0))
    wide = cast(inputs, "float32" if kind.bits == 16 else kind)
    total = _pooled(wide, pool_size, strides, padding, data_format, add, 0)
    count: Tensor | float = math.prod(shared_convolution.each(pool_size, inputs.ndim - 2, "pool_size"))
    if padding == "same":
        # Windows at the edges hold fewer elements, so count the elements of each window.
        last = shared_convolution.channels_last(data_format)
        shape = (1, *inputs.shape[1:-1], 1) if last else (1, 1, *inputs.shape[2:])
        count = _pooled(ones(shape, dtype(wide), get_device(wide)), pool_size, strides, padding, data_format, add, 0)
    return cast(divide(total, count), kind)


@op
def adaptive_average_pool(
    inputs: TensorLike,
    output_size: int | Sequence[int],
    data_format: Literal["channels_last", "channels_first"] | None = None,
) -> Tensor:
    """Returns the means of `output_size` windows along each spatial axis; their width follows from the length.

    Window i reaches from `floor(i * length / n)` to `ceil((i + 1) * length / n)`.

    Example:
        >>> ops.adaptive_average_pool([[[1.0], [3.0], [2.0], [0.0]]], 2).tolist()
        [[[2.0], [1.0]]]
    """
    return _adapted(inputs, output_size, data_format, mean)


@op
def adaptive_max_pool(
    inputs: TensorLike,
    output_size: int | Sequence[int],
    data_format: Literal["channels_last", "channels_first"] | None = None,
) -> Tensor:
    """Returns the largest elements of the windows of `adaptive_average_pool`.

    Example:
        >>> ops.adaptive_max_pool([[[1.0], [3.0], [2.0], [0.0]]], 2).tolist()
        [[[3.0], [2.0]]]
    """
    return _adapted(inputs, output_size, data_format, max)


def _pooled(
    inputs: Tensor,
    pool_size: int | Sequence[int],
    strides: int | Sequence[int] | None,
    padding: Literal["valid", "same"],
    data_format: Literal["channels_last", "channels_first"] | None,
    join: Callable[[Tensor, Tensor], Tensor],
    identity: float,
) -> Tensor:
    """Returns the elements of each window combined by `join`, one axis after the other."""
    n, last = shared_convolution.spatial(inputs.ndim), shared_convolution.channels_last(data_format)
    x = inputs if last else moveaxis(inputs, 1, -1)
    plan = shared_convolution.pool_windows(x.shape[1:-1], pool_size, strides, padding)
    if plan.padded:
        x = pad(x, plan.around(), constant_values=identity)
    for axis in range(n):
        before = (slice(None),) * (axis + 1)
        x = functools.reduce(join, [get_item(x, (*before, part)) for part in plan.along(axis)])
    return x if last else moveaxis(x, -1, 1)


def _adapted(
    inputs: Tensor,
    output_size: int | Sequence[int],
    data_format: Literal["channels_last", "channels_first"] | None,
    reduce: Callable[..., Tensor],
) -> Tensor:
    n, x = shared_convolution.spatial(inputs.ndim), inputs
    first = 1 if shared_convolution.channels_last(data_format) else 2
    for axis, count in enumerate(shared_convolution.each(output_size, n, "output_size"), first):
        length = x.shape[axis]
        if length % count == 0:
            x = reduce(reshape(x, (*x.shape[:axis], count, length // count, *x.shape[axis + 1 :])), axis + 1)
            continue
        firsts = shared_convolution.first_windows(length, count)
        reaches = [slice(i * length // count, -(-(i + 1) * length // count)) for i in firsts]
        before = (slice(None),) * axis
        x = stack([reduce(get_item(x, (*before, reach)), axis) for reach in reaches], axis)
        if len(firsts) < count:
            x = repeat(x, [b - a for a, b in pairwise((*firsts, count))], axis)
    return x
