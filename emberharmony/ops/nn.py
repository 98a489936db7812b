"""Normalisations, attention and losses; this file is the namespace `ops.nn` too, with activations, convolutions, pools.

Dtype: integers take the default float.
"""

from __future__ import annotations

import math

from emberharmony.core.dispatch import op
from emberharmony.core.errors import ShapeError
from emberharmony.core.promotion import as_inexact
from emberharmony.core.types import Axis, Tensor, TensorLike
from emberharmony.ops.activation import celu as celu
from emberharmony.ops.activation import elu as elu
from emberharmony.ops.activation import gelu as gelu
from emberharmony.ops.activation import glu as glu
from emberharmony.ops.activation import hard_shrink as hard_shrink
from emberharmony.ops.activation import hard_sigmoid as hard_sigmoid
from emberharmony.ops.activation import hard_silu as hard_silu
from emberharmony.ops.activation import hard_swish as hard_swish
from emberharmony.ops.activation import hard_tanh as hard_tanh
from emberharmony.ops.activation import leaky_relu as leaky_relu
from emberharmony.ops.activation import log_sigmoid as log_sigmoid
from emberharmony.ops.activation import log_softmax as log_softmax
from emberharmony.ops.activation import relu as relu
from emberharmony.ops.activation import relu6 as relu6
from emberharmony.ops.activation import selu as selu
from emberharmony.ops.activation import sigmoid as sigmoid
from emberharmony.ops.activation import silu as silu
from emberharmony.ops.activation import soft_shrink as soft_shrink
from emberharmony.ops.activation import softmax as softmax
from emberharmony.ops.activation import softplus as softplus
from emberharmony.ops.activation import softsign as softsign
from emberharmony.ops.activation import sparse_plus as sparse_plus
from emberharmony.ops.activation import sparse_sigmoid as sparse_sigmoid
from emberharmony.ops.activation import sparsemax as sparsemax
from emberharmony.ops.activation import squareplus as squareplus
from emberharmony.ops.activation import swish as swish
from emberharmony.ops.activation import tanh_shrink as tanh_shrink
from emberharmony.ops.activation import threshold as threshold
from emberharmony.ops.comparison import greater_equal, less, logical_and
from emberharmony.ops.convolution import conv as conv
from emberharmony.ops.convolution import conv_transpose as conv_transpose
from emberharmony.ops.convolution import depthwise_conv as depthwise_conv
from emberharmony.ops.convolution import fold as fold
from emberharmony.ops.convolution import separable_conv as separable_conv
from emberharmony.ops.convolution import unfold as unfold
from emberharmony.ops.creation import tri
from emberharmony.ops.dtype import dtype, finfo
from emberharmony.ops.elementary import log, log10
from emberharmony.ops.indexing import one_hot as one_hot
from emberharmony.ops.indexing import take_along_axis, where
from emberharmony.ops.math import add, clip, divide, multiply, negative, rsqrt, square, subtract
from emberharmony.ops.pooling import adaptive_average_pool as adaptive_average_pool
from emberharmony.ops.pooling import adaptive_max_pool as adaptive_max_pool
from emberharmony.ops.pooling import average_pool as average_pool
from emberharmony.ops.pooling import max_pool as max_pool
from emberharmony.ops.products import matmul
from emberharmony.ops.reduction import mean, sum
from emberharmony.ops.sequences import ctc_decode as ctc_decode
from emberharmony.ops.sequences import ctc_loss as ctc_loss
from emberharmony.ops.shape import expand_dims, repeat, reshape, squeeze, swapaxes, transpose
from emberharmony.ops.tensor import cast

_EPSILON = 1e-7


@op
def layer_normalization(
    x: TensorLike,
    gamma: TensorLike | None = None,
    beta: TensorLike | None = None,
    axis: Axis = -1,
    epsilon: float = 1e-3,
) -> Tensor:
    """Returns `x` with mean 0 and variance 1 over axes, times `gamma` plus `beta`.

    Source: Ba, Kiros and Hinton, Layer normalization, 2016.
    """
    wide = _wide(x)
    centred = subtract(wide, mean(wide, axis, True))
    result = _like(multiply(centred, rsqrt(add(mean(square(centred), axis, True), epsilon))), x)
    result = result if gamma is None else multiply(result, gamma)
    return result if beta is None else add(result, beta)


@op
def rms_normalization(x: TensorLike, scale: TensorLike | None = None, axis: Axis = -1, epsilon: float = 1e-6) -> Tensor:
    """Returns `x` divided by its root mean square over axes, times `scale`.

    Source: Zhang and Sennrich, Root mean square layer normalization, 2019.
    """
    wide = _wide(x)
    result = _like(multiply(wide, rsqrt(add(mean(square(wide), axis, True), epsilon))), x)
    return result if scale is None else multiply(result, scale)


@op
def binary_crossentropy(target: TensorLike, output: TensorLike, from_logits: bool = False) -> Tensor:
    """Returns `-(t log p + (1 - t) log(1 - p))`, element by element.

    Args:
        from_logits: `output` is the logit of the probability p; without it p is kept 1e-7 away from 0 and 1.
    """
    if from_logits:
        return subtract(softplus(output), multiply(target, _inexact(output)))
    output = clip(output, _EPSILON, 1.0 - _EPSILON)
    lost = multiply(subtract(1.0, target), log(subtract(1.0, output)))
    return negative(add(multiply(target, log(output)), lost))


@op
def categorical_crossentropy(
    target: TensorLike, output: TensorLike, from_logits: bool = False, axis: int = -1
) -> Tensor:
    """Returns `-sum(t log p)` over the classes along an axis.

    Args:
        from_logits: `output` holds logits; without it probabilities, which are normalised and kept 1e-7 away from 0
        and 1.
    """
    if not from_logits:
        output = divide(output, sum(output, axis, True))
        return negative(sum(multiply(target, log(clip(output, _EPSILON, 1.0 - _EPSILON))), axis))
    return negative(sum(multiply(target, log_softmax(output, axis)), axis))


@op
def sparse_categorical_crossentropy(
    target: TensorLike, output: TensorLike, from_logits: bool = False, axis: int = -1
) -> Tensor:
    """Returns `-log p` of the class that each integer in `target` names; 0 where that is no class.

    Args:
        from_logits, axis: see `categorical_crossentropy`.

    Example:
        >>> ops.sparse_categorical_crossentropy([1, -1], [[0.0, 1.0], [0.5, 0.5]]).tolist()[1]
        0.0
    """
    known = logical_and(greater_equal(target, 0), less(target, output.shape[axis]))
    place = expand_dims(cast(where(known, target, 0), "int64"), axis)
    if from_logits:
        lost = negative(take_along_axis(log_softmax(output, axis), place, axis))
    else:
        share = take_along_axis(divide(output, sum(output, axis, True)), place, axis)
        lost = negative(log(clip(share, _EPSILON, 1.0 - _EPSILON)))
    return where(known, squeeze(lost, axis), 0)


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
    """Returns `(x - mean) / sqrt(variance + epsilon) * scale + offset`, with statistics for each place of an axis.

    Source: Ioffe and Szegedy, Batch normalization, 2015.

    Example:
        >>> ops.batch_normalization([[3.0, 5.0]], [1.0, 1.0], [4.0, 16.0], -1, epsilon=0.0).tolist()
        [[1.0, 1.0]]
    """
    shape = [1] * x.ndim
    shape[axis] = x.shape[axis]
    factor = rsqrt(add(reshape(variance, shape), epsilon))
    factor = factor if scale is None else multiply(factor, reshape(scale, shape))
    result = multiply(subtract(_inexact(x), reshape(mean, shape)), factor)
    return result if offset is None else add(result, reshape(offset, shape))


@op
def psnr(x1: TensorLike, x2: TensorLike, max_val: float) -> Tensor:
    """Returns the peak signal-to-noise ratio of two tensors in decibels; infinite where they are equal.

    Example:
        >>> ops.psnr([0.0, 0.0], [1.0, -1.0], 10.0).tolist()
        20.0
    """
    return subtract(20.0 * math.log10(max_val), multiply(log10(mean(square(subtract(_inexact(x1), x2)))), 10.0))


@op
def dot_product_attention(
    query: TensorLike,
    key: TensorLike,
    value: TensorLike,
    bias: TensorLike | None = None,
    mask: TensorLike | None = None,
    scale: float | None = None,
    is_causal: bool = False,
) -> Tensor:
    """Returns the values weighted by the softmax of the scaled products of queries and keys.

    Args:
        bias: added to the products; broadcasts to (batch, heads, queries, keys).
        mask: where it is False, a key is not looked at; broadcasts likewise. A query without any key takes the mean.
        scale: `1 / sqrt(width)` if None.
        is_causal: a query looks at no key that is behind it.

    Shape: (batch, queries, heads, width), (batch, keys, groups, width) twice; the groups divide the heads.

    Source: Vaswani et al., Attention is all you need, 2017, equation 1.

    Example:
        >>> ops.dot_product_attention([[[[0.0]]]], [[[[1.0]], [[2.0]]]], [[[[1.0]], [[3.0]]]]).tolist()
        [[[[2.0]]]]
    """
    groups, heads = key.shape[2], query.shape[2]
    if heads % groups:
        raise ShapeError(f"{groups} groups of keys do not divide {heads} heads")
    if groups != heads:
        key, value = repeat(key, heads // groups, 2), repeat(value, heads // groups, 2)
    query, key, value = _inexact(query), _inexact(key), _inexact(value)
    factor = (query.shape[-1] or 1) ** -0.5 if scale is None else float(scale)
    logits = multiply(matmul(swapaxes(query, 1, 2), transpose(key, (0, 2, 3, 1))), factor)
    logits = _wide(logits)
    logits = logits if bias is None else add(logits, bias)
    lowest = finfo(dtype(logits)).min * 0.5
    if mask is not None:
        logits = where(mask, logits, lowest)
    if is_causal:
        logits = where(tri(logits.shape[-2], logits.shape[-1], dtype="bool"), logits, lowest)
    weights = cast(softmax(logits, -1), dtype(value))
    return swapaxes(matmul(weights, swapaxes(value, 1, 2)), 1, 2)


def _inexact(x: Tensor) -> Tensor:
    """Returns integers, whose sums and products would wrap, in the default float; all else as it is."""
    kind = dtype(x)
    return x if kind.is_floating or kind.is_complex else cast(x, as_inexact(kind))


def _wide(x: Tensor) -> Tensor:
    """Returns half precision as float32, for its squares overflow, and integers in the default float."""
    return cast(x, "float32") if dtype(x).is_floating and dtype(x).bits == 16 else _inexact(x)


def _like(result: Tensor, x: Tensor) -> Tensor:
    """Returns a result in half precision again if `x` is."""
    return cast(result, dtype(x)) if dtype(x).is_floating and dtype(x).bits == 16 else result
