"""Normalisation: scaling `x` to mean 0 and variance 1, by its own statistics or given ones.

Dtype: integers become the default float.
"""

from __future__ import annotations

from emberharmony.backend.promote import normalized
from emberharmony.backend.shared.normalization import EPSILON
from emberharmony.core.dispatch import op
from emberharmony.core.numeric.promotion import as_inexact
from emberharmony.core.types import Axis, Tensor, TensorLike, Varying
from emberharmony.ops.dtype import dtype, option
from emberharmony.ops.math import add, multiply, rsqrt, square, subtract
from emberharmony.ops.reduction import mean
from emberharmony.ops.shape import reshape
from emberharmony.ops.tensor import cast


@op
def layer_normalization(
    x: TensorLike,
    gamma: TensorLike | None = None,
    beta: TensorLike | None = None,
    axis: Axis = -1,
    epsilon: Varying | None = None,
    *,
    rms_scaling: bool = False,
) -> Tensor:
    """Returns `x` scaled to mean 0 and variance 1 over axes, times `gamma` plus `beta`.

    Args:
        gamma: broadcast to `x`; a tensor that has the lengths of the axes `axis` alone belongs to these axes.
        beta: like `gamma`.
        epsilon: added to the variance, with its axes kept at length 1; None is 1e-7.
        rms_scaling: whether to divide `x` by its standard deviation without subtracting the mean, and to ignore `beta`.
            Keras has this option but advises against it; `rms_normalization` divides by the root mean square.

    Source: Ba, Kiros and Hinton, Layer normalization, 2016.
    """
    wide = widened(x)
    centred = subtract(wide, mean(wide, axis, True))
    limit = EPSILON if epsilon is None else option("epsilon", epsilon, wide)
    factor = rsqrt(add(mean(square(centred), axis, True), limit))
    result = _like(multiply(wide if rms_scaling else centred, factor), x)
    result = result if gamma is None else multiply(result, _along(gamma, axis, x))
    return result if beta is None or rms_scaling else add(result, _along(beta, axis, x))


@op
def rms_normalization(
    x: TensorLike, scale: TensorLike | None = None, axis: Axis = -1, epsilon: Varying | None = None
) -> Tensor:
    """Returns `x` divided by its root mean square over axes, times `scale`.

    Args:
        epsilon: added to the mean square; None is 1e-7.

    Source: Zhang and Sennrich, Root mean square layer normalization, 2019.
    """
    wide = widened(x)
    limit = EPSILON if epsilon is None else option("epsilon", epsilon, wide)
    result = _like(multiply(wide, rsqrt(add(mean(square(wide), axis, True), limit))), x)
    return result if scale is None else multiply(result, scale)


@op
def batch_normalization(
    x: TensorLike,
    mean: TensorLike,
    variance: TensorLike,
    axis: int,
    offset: TensorLike | None = None,
    scale: TensorLike | None = None,
    epsilon: Varying = 1e-3,
) -> Tensor:
    """Returns `(x - mean) / sqrt(variance + epsilon) * scale + offset`, with statistics for each index of an axis.

    Example:
        >>> ops.batch_normalization([[3.0, 5.0]], [1.0, 1.0], [4.0, 16.0], -1, epsilon=0.0).tolist()
        [[1.0, 1.0]]

    Source: Ioffe and Szegedy, Batch normalization, 2015.
    """
    shape = [1] * x.ndim
    shape[axis] = x.shape[axis]
    factor = rsqrt(add(reshape(variance, shape), option("epsilon", epsilon, variance)))
    factor = factor if scale is None else multiply(factor, reshape(scale, shape))
    result = multiply(subtract(inexact(x), reshape(mean, shape)), factor)
    return result if offset is None else add(result, reshape(offset, shape))


def inexact(x: Tensor) -> Tensor:
    """Returns integers in the default float, because their sums and products would wrap; other dtypes are unchanged."""
    kind = dtype(x)
    return x if kind.is_floating or kind.is_complex else cast(x, as_inexact(kind))


def widened(x: Tensor) -> Tensor:
    """Returns half precision as float32, because its squares overflow, and integers in the default float."""
    kind = dtype(x)
    if kind.is_floating:
        return cast(x, "float32") if kind.bits == 16 else x
    return x if kind.is_complex else cast(x, as_inexact(kind))


def _along(weight: Tensor, axis: Axis, x: Tensor) -> Tensor:
    """Returns a weight that has the lengths of the axes `axis` of `x` alone, with the other axes added."""
    rank = len(x.shape)
    places = sorted(normalized(axis, rank))
    if len(weight.shape) == rank or tuple(weight.shape) != tuple(x.shape[place] for place in places):
        return weight
    return reshape(weight, [x.shape[place] if place in places else 1 for place in range(rank)])


def _like(result: Tensor, x: Tensor) -> Tensor:
    """Returns a result cast to the dtype of `x` if that is half precision; otherwise unchanged."""
    kind = dtype(x)
    return cast(result, kind) if kind.is_floating and kind.bits == 16 else result
