"""Normalisation: scaling `x` to mean 0 and variance 1, by its own statistics or given ones.

Dtype: integers become the default float.
"""

from __future__ import annotations

from emberharmony.core.dispatch import op
from emberharmony.core.numeric.promotion import as_inexact
from emberharmony.core.types import Axis, Tensor, TensorLike
from emberharmony.ops.dtype import dtype
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
    epsilon: float = 1e-3,
) -> Tensor:
    """Returns `x` scaled to mean 0 and variance 1 over axes, times `gamma` plus `beta`.

    Source: Ba, Kiros and Hinton, Layer normalization, 2016.
    """
    wide = widened(x)
    centred = subtract(wide, mean(wide, axis, True))
    result = _like(multiply(centred, rsqrt(add(mean(square(centred), axis, True), epsilon))), x)
    result = result if gamma is None else multiply(result, gamma)
    return result if beta is None else add(result, beta)


@op
def rms_normalization(x: TensorLike, scale: TensorLike | None = None, axis: Axis = -1, epsilon: float = 1e-6) -> Tensor:
    """Returns `x` divided by its root mean square over axes, times `scale`.

    Source: Zhang and Sennrich, Root mean square layer normalization, 2019.
    """
    wide = widened(x)
    result = _like(multiply(wide, rsqrt(add(mean(square(wide), axis, True), epsilon))), x)
    return result if scale is None else multiply(result, scale)


@op
def batch_normalization(
    x: TensorLike,
    mean: TensorLike,
    variance: TensorLike,
    axis: int,
    offset: TensorLike | None = None,
    scale: TensorLike | None = None,
    epsilon: float = 1e-3,
) -> Tensor:
    """Returns `(x - mean) / sqrt(variance + epsilon) * scale + offset`, with statistics for each index of an axis.

    Example:
        >>> ops.batch_normalization([[3.0, 5.0]], [1.0, 1.0], [4.0, 16.0], -1, epsilon=0.0).tolist()
        [[1.0, 1.0]]

    Source: Ioffe and Szegedy, Batch normalization, 2015.
    """
    shape = [1] * x.ndim
    shape[axis] = x.shape[axis]
    factor = rsqrt(add(reshape(variance, shape), epsilon))
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


def _like(result: Tensor, x: Tensor) -> Tensor:
    """Returns a result cast to the dtype of `x` if that is half precision; otherwise unchanged."""
    kind = dtype(x)
    return cast(result, kind) if kind.is_floating and kind.bits == 16 else result
