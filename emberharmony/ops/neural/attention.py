"""Attention.

Dtype: integers become the default float; queries, keys and values are promoted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from emberharmony.backend.promote import nonnegative_axes
from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import op
from emberharmony.core.errors import ArgumentError, ShapeError
from emberharmony.core.numeric.promotion import as_inexact
from emberharmony.core.options import as_number, is_number
from emberharmony.core.types import Tensor, TensorLike, Varying
from emberharmony.ops.algebra.products import matmul
from emberharmony.ops.arrays.creation import arange, tri
from emberharmony.ops.arrays.indexing import get_item, where
from emberharmony.ops.arrays.shape import concatenate, expand_dims, repeat, reshape, stack, swapaxes
from emberharmony.ops.device import get_device, to_device
from emberharmony.ops.dtype import cast_option, dtype, finfo, result_type, to_inexact, widen
from emberharmony.ops.elementwise.elementary import cos, sin, tanh
from emberharmony.ops.logic.comparison import greater, logical_and, logical_not, logical_or
from emberharmony.ops.math import add, divide, multiply, subtract
from emberharmony.ops.neural.activation import softmax
from emberharmony.ops.random_ops import dropout
from emberharmony.ops.reductions.reduction import any
from emberharmony.ops.tensor import cast, convert_to_tensor

if TYPE_CHECKING:
    from emberharmony.backend.shared.neural import attention as shared_attention
else:
    shared_attention = Deferred("emberharmony.backend.shared.neural.attention")


@op(autocast="half")
def dot_product_attention(
    query: TensorLike,
    key: TensorLike,
    value: TensorLike,
    bias: TensorLike | None = None,
    mask: TensorLike | None = None,
    scale: Varying | None = None,
    is_causal: bool = False,
    flash_attention: bool | None = None,
    attn_logits_soft_cap: Varying | None = None,
    dropout_rate: Varying = 0.0,
    seed: Any = None,
    empty_rows: Literal["mean", "zero"] = "mean",
) -> Tensor:
    """Returns the values weighted by the softmax of the scaled products of queries and keys.

    Args:
        query: (batch, queries, heads, width); integers become the default float.
        key: (batch, keys, groups, width), where the number of groups divides that of the heads.
        value: (batch, keys, groups, width of the values).
        bias: added to the products; broadcast to (batch, heads, queries, keys). None adds nothing.
        mask: False excludes a key; broadcast like `bias`. None excludes no key.
        scale: the factor of the products, broadcast like `bias`; None is `1 / sqrt(width)`.
        is_causal: whether query i is limited to the keys up to i.
        flash_attention: an option of Keras without effect: the backend chooses its kernel. None is like True and False.
        attn_logits_soft_cap: the c of `c * tanh(products / c)`, which replaces the scaled products; None leaves them.
        dropout_rate: the probability by which each weight is set to 0; the others are divided by `1 - dropout_rate`.
        seed: an integer or a `Generator` for the random weights to drop; None draws from the default stream.
        empty_rows: what a query without any key gets: "mean", that of the values, or "zero", as in PyTorch. With "zero"
            a bias of negative infinity excludes a key too, and may do so for all; else the result is NaN there.

    Shape: query (batch, queries, heads, width); key and value (batch, keys, groups, width), where groups divides heads.
    The width of the values may be another.

    Raises:
        ArgumentError: if `empty_rows` is another word.
        ShapeError: if the shapes do not fit together, or the number of groups does not divide the number of heads.

    See also: `nn.MultiheadAttention`, the layer; `rope`, for positions; `softmax`, of the products.

    Example:
        >>> ops.dot_product_attention([[[[0.0]]]], [[[[1.0]], [[2.0]]]], [[[[1.0]], [[3.0]]]]).tolist()
        [[[[2.0]]]]

    Source: Vaswani et al., Attention is all you need, 2017, equation 1.
    """
    shared_attention.check_attention(query, key, value, bias, mask)
    if empty_rows != "mean" and not (bias is None and mask is None):
        if empty_rows != "zero":
            raise ArgumentError(f"empty_rows is 'mean' or 'zero', not {empty_rows!r}")
        options = scale, is_causal, None, attn_logits_soft_cap, dropout_rate, seed
        return _zero_without_keys(query, key, value, bias, mask, *options)
    key_heads, query_heads = key.shape[2], query.shape[2]
    if key_heads != query_heads:
        key, value = repeat(key, query_heads // key_heads, 2), repeat(value, query_heads // key_heads, 2)
    query, key, value = to_inexact(query), to_inexact(key), to_inexact(value)
    if not query.dtype == key.dtype == value.dtype:
        common_dtype = result_type(query, key, value)
        query, key, value = cast(query, common_dtype), cast(key, common_dtype), cast(value, common_dtype)
    scale_factor = (query.shape[-1] or 1) ** -0.5 if scale is None else cast_option("scale", scale, query)
    # torch.compile (PyTorch 2.13) would take a permutation of the keys for the exchange of their last two axes.
    logits = multiply(matmul(swapaxes(query, 1, 2), swapaxes(swapaxes(key, 1, 2), -1, -2)), scale_factor)
    logits = widen(logits)
    if attn_logits_soft_cap is not None:
        soft_cap = cast_option("attn_logits_soft_cap", attn_logits_soft_cap, logits)
        logits = multiply(tanh(divide(logits, soft_cap)), soft_cap)
    logits = logits if bias is None else add(logits, bias)
    masked_logit = finfo(dtype(logits)).min * 0.5
    if mask is not None:
        logits = where(mask, logits, masked_logit)
    if is_causal:
        causal_mask = tri(logits.shape[-2], logits.shape[-1], dtype="bool")
        logits = where(to_device(causal_mask, get_device(logits)), logits, masked_logit)
    weights = softmax(logits, -1)
    if not is_number(dropout_rate) or dropout_rate:
        weights = dropout(weights, dropout_rate, seed=seed)
    weights = cast(weights, dtype(value))
    return swapaxes(matmul(weights, swapaxes(value, 1, 2)), 1, 2)


def _zero_without_keys(
    query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None, mask: Tensor | None, *options: Any
) -> Tensor:
    """Returns attention in which queries without any key get 0; they attend to all keys until the end."""
    pair_mask = None if mask is None else cast(mask, "bool")
    if bias is not None:
        is_finite_bias = greater(bias, -math.inf)
        pair_mask = is_finite_bias if pair_mask is None else logical_and(pair_mask, is_finite_bias)
    if options[1]:
        pair_mask = logical_and(
            pair_mask, to_device(tri(query.shape[1], key.shape[1], dtype="bool"), get_device(query))
        )
    has_key = any(pair_mask, -1, True)
    mask = None if mask is None else logical_or(mask, logical_not(has_key))
    bias = None if bias is None else where(has_key, bias, 0.0)
    attention_output = dot_product_attention(query, key, value, bias, mask, *options)
    query_shape = (*(1,) * (4 - len(has_key.shape)), *has_key.shape)
    return where(swapaxes(reshape(has_key, query_shape), 1, 2), attention_output, 0.0)


@op
def rope(
    x: TensorLike,
    dims: int | None = None,
    offset: int | Sequence[int] | Tensor = 0,
    traditional: bool = False,
    base: float = 10000.0,
    scale: float = 1.0,
    frequencies: TensorLike | None = None,
    axis: int = 1,
) -> Tensor:
    """Returns `x` with rotary positions: pairs of features rotated by angles that grow with the position.

    The angle of pair i at position t is `(offset + t) * scale * base ** (-2 i / dims)`. Products of rotated queries and
    keys then depend on the distance of their positions.

    Args:
        x: a tensor whose last axis has the features; integers become the default float.
        dims: the number of features to rotate, the first ones; None rotates all.
        offset: the position of the first element: an integer, or a tensor with one for each sample of the batch.
        traditional: whether the pairs are neighbours, as in (0, 1) and (2, 3); else features i and i + dims / 2 are.
        base: the base of the powers that give the angles of the pairs; a larger one turns the last pairs more slowly.
        scale: the factor of the positions, such as 0.5 for twice the distance.
        frequencies: the angle of each pair from one position to the next, in radians, (dims / 2,); None takes `base **
            (-2 i / dims)`.
        axis: the axis of the positions. Tensors (batch, positions, heads, width), which `dot_product_attention` takes,
            have the axis 1.

    Dtype: integers become the default float; half precision is computed in float32. The angles are computed in float64
    if the offset is an integer and there are no `frequencies`.

    Raises:
        ArgumentError: if the axis is the last one, or if `base` is not positive.
        ShapeError: if `dims` is odd or larger than the number of features, or if there is not one frequency for each
            pair or one offset for each sample.

    See also: `nn.RoPE`, the layer; `dot_product_attention`, of what it rotates.

    Example:
        >>> ops.round(ops.rope([[[1.0, 0.0], [1.0, 0.0]]], scale=1.5707963), 3).tolist()
        [[[1.0, 0.0], [0.0, 1.0]]]

    Source: Su et al., RoFormer: enhanced transformer with rotary position embedding, 2021; options as in `mlx.nn.RoPE`.
    """
    (axis_index,) = nonnegative_axes(axis, len(x.shape))
    base_number, scale_number = as_number("base", base), as_number("scale", scale)
    pair_count = shared_attention.check_rotation(x.shape, axis_index, dims, base_number, frequencies)
    widened_x = widen(x)
    x_dtype, device = dtype(widened_x), get_device(widened_x)
    if frequencies is None and isinstance(offset, int):
        cosine_and_sine = shared_attention.rotations(x.shape[axis_index], offset, pair_count, base_number, scale_number)
        cosine, sine = (to_device(convert_to_tensor(table, x_dtype), device) for table in cosine_and_sine)
        samples_shape: tuple[int, ...] = ()
    else:
        angle_steps = (
            shared_attention.angle_steps(pair_count, base_number, scale_number) if frequencies is None else frequencies
        )
        angle_steps = to_device(convert_to_tensor(angle_steps, x_dtype), device)
        angle_steps = angle_steps if frequencies is None else multiply(angle_steps, scale_number)
        first_positions = to_device(cast(convert_to_tensor(offset), x_dtype), device)
        samples_shape = tuple(first_positions.shape)
        if samples_shape not in ((), x.shape[:1]) or (samples_shape and not axis_index):
            raise ShapeError(f"expected offset to be one integer, or one for each sample, got shape {samples_shape}")
        positions = add(expand_dims(first_positions, -1), arange(x.shape[axis_index], dtype=x_dtype, device=device))
        angles = multiply(expand_dims(positions, -1), angle_steps)
        cosine, sine = cos(angles), sin(angles)
    angles_shape = [x.shape[a] if a == axis_index or (samples_shape and not a) else 1 for a in range(len(x.shape) - 1)]
    cosine, sine = reshape(cosine, (*angles_shape, pair_count)), reshape(sine, (*angles_shape, pair_count))
    rotated_x = _rotate_pairs(get_item(widened_x, (..., slice(0, 2 * pair_count))), cosine, sine, traditional)
    if 2 * pair_count < x.shape[-1]:
        rotated_x = concatenate([rotated_x, get_item(widened_x, (..., slice(2 * pair_count, None)))], -1)
    return cast(rotated_x, as_inexact(dtype(x)))


def _rotate_pairs(x: Tensor, cosine: Tensor, sine: Tensor, neighbours: bool) -> Tensor:
    """Returns pairs of features rotated by angles; a pair is two neighbours, or one feature of each half."""
    pair_count = x.shape[-1] // 2
    if neighbours:
        neighbour_pairs = reshape(x, (*x.shape[:-1], pair_count, 2))
        first_of_pairs, second_of_pairs = get_item(neighbour_pairs, (..., 0)), get_item(neighbour_pairs, (..., 1))
    else:
        first_of_pairs, second_of_pairs = (
            get_item(x, (..., slice(0, pair_count))),
            get_item(x, (..., slice(pair_count, 2 * pair_count))),
        )
    rotated_pair = (
        subtract(multiply(first_of_pairs, cosine), multiply(second_of_pairs, sine)),
        add(multiply(first_of_pairs, sine), multiply(second_of_pairs, cosine)),
    )
    return reshape(stack(rotated_pair, -1), tuple(x.shape)) if neighbours else concatenate(rotated_pair, -1)
