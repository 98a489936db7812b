"""Attention.

Dtype: integers become the default float; queries, keys and values are promoted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import op
from emberharmony.core.types import Tensor, TensorLike, Varying
from emberharmony.ops.activation import softmax
from emberharmony.ops.creation import tri
from emberharmony.ops.device import get_device, to_device
from emberharmony.ops.dtype import dtype, finfo, option, result_type
from emberharmony.ops.elementary import tanh
from emberharmony.ops.indexing import where
from emberharmony.ops.math import add, divide, multiply
from emberharmony.ops.normalization import inexact, widened
from emberharmony.ops.products import matmul
from emberharmony.ops.shape import repeat, swapaxes, transpose
from emberharmony.ops.tensor import cast

if TYPE_CHECKING:
    from emberharmony.backend.shared import attention as shared_attention
else:
    shared_attention = Deferred("emberharmony.backend.shared.attention")


@op
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
) -> Tensor:
    """Returns the values weighted by the softmax of the scaled products of queries and keys.

    Args:
        bias: added to the products; broadcast to (batch, heads, queries, keys).
        mask: False excludes a key; broadcast like `bias`. A query without any key gets the mean of the values.
        scale: the factor of the products, broadcast like `bias`; None is `1 / sqrt(width)`.
        is_causal: whether query i is limited to the keys up to i.
        flash_attention: an option of Keras without effect: the backend chooses its kernel.
        attn_logits_soft_cap: the c of `c * tanh(products / c)`, which replaces the scaled products; None leaves them.

    Shape: query (batch, queries, heads, width); key and value (batch, keys, groups, width), where groups divides heads.
    The width of the values may be another.

    Raises:
        ShapeError: if the shapes do not fit together, or the number of groups does not divide the number of heads.

    Example:
        >>> ops.dot_product_attention([[[[0.0]]]], [[[[1.0]], [[2.0]]]], [[[[1.0]], [[3.0]]]]).tolist()
        [[[[2.0]]]]

    Source: Vaswani et al., Attention is all you need, 2017, equation 1.
    """
    shared_attention.check_attention(query, key, value, bias, mask)
    groups, heads = key.shape[2], query.shape[2]
    if groups != heads:
        key, value = repeat(key, heads // groups, 2), repeat(value, heads // groups, 2)
    query, key, value = inexact(query), inexact(key), inexact(value)
    if not query.dtype == key.dtype == value.dtype:
        common = result_type(query, key, value)
        query, key, value = cast(query, common), cast(key, common), cast(value, common)
    factor = (query.shape[-1] or 1) ** -0.5 if scale is None else option("scale", scale, query)
    logits = multiply(matmul(swapaxes(query, 1, 2), transpose(key, (0, 2, 3, 1))), factor)
    logits = widened(logits)
    if attn_logits_soft_cap is not None:
        cap = option("attn_logits_soft_cap", attn_logits_soft_cap, logits)
        logits = multiply(tanh(divide(logits, cap)), cap)
    logits = logits if bias is None else add(logits, bias)
    lowest = finfo(dtype(logits)).min * 0.5
    if mask is not None:
        logits = where(mask, logits, lowest)
    if is_causal:
        earlier = tri(logits.shape[-2], logits.shape[-1], dtype="bool")
        logits = where(to_device(earlier, get_device(logits)), logits, lowest)
    weights = cast(softmax(logits, -1), dtype(value))
    return swapaxes(matmul(weights, swapaxes(value, 1, 2)), 1, 2)
