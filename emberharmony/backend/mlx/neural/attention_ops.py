"""Attention, on MLX: the fused kernel, except where it loses digits.

`mx.fast.rope` (MLX 0.32) computes the angles in float32, whose error is 450 eps at position 1,000, so `rope` takes
those of the host.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import mlx.core as mx

from emberharmony.backend.mlx.dtypes import of_host
from emberharmony.backend.mlx.elementwise.elementary_ops import on_cpu
from emberharmony.backend.mlx.neural.activation_ops import SHORT
from emberharmony.core.deferred import Deferred
from emberharmony.core.options import is_number

if TYPE_CHECKING:
    import numpy as np

    from emberharmony.backend.shared.neural import attention as shared_attention
else:
    np = Deferred("numpy")
    shared_attention = Deferred("emberharmony.backend.shared.neural.attention")


def _attention_mask(mask: mx.array | None, is_causal: bool, lengths: tuple[int, int]) -> mx.array | None:
    """Returns the merged causal and given mask, which is not 0 where a query attends to a key; None if all do.

    Args:
        mask: the mask of the user, of any dtype.
        is_causal: whether a query attends only to the keys up to its own position.
        lengths: the numbers of queries and of keys.
    """
    if is_causal:
        causal_mask = mx.tri(*lengths, dtype=mx.bool_)
        mask = causal_mask if mask is None else mx.logical_and(mask, causal_mask)
    return mask


def _additive_mask(bias: mx.array | None, mask: mx.array | None, kind: mx.Dtype) -> mx.array | None:
    """Returns the additive mask: the bias, and for masked keys a number so low that it absorbs the logit."""
    if mask is None:
        return bias
    lowest_logit = mx.array(mx.finfo(kind).min * 0.5, kind)
    return mx.where(mask, mx.array(0, kind) if bias is None else bias, lowest_logit)


def _as_float32(table: np.ndarray) -> np.ndarray:
    return table.astype(np.float32)


def _table_rows(table: np.ndarray, positions: slice) -> mx.array:
    # Slice on the host, because a slice of an MLX array would belong to the trace that is running.
    return of_host(table[positions])


class MLXAttentionOps:
    """Holds the ops of `ops/neural/attention.py`.

    MLX's kernels take one call; the bodies take 1.5 times (attention) and 4.6 times as long, for few elements.
    """

    composed: Callable[[str], Callable[..., mx.array]]

    def dot_product_attention(
        self,
        query: mx.array,
        key: mx.array,
        value: mx.array,
        bias: mx.array | None = None,
        mask: mx.array | None = None,
        scale: Any = None,
        is_causal: bool = False,
        flash_attention: bool | None = None,
        attn_logits_soft_cap: Any = None,
        dropout_rate: Any = 0.0,
        seed: Any = None,
        empty_rows: str = "mean",
    ) -> mx.array:
        if empty_rows != "mean" and not (bias is None and mask is None):
            composed_op, logit_cap = self.composed("dot_product_attention"), attn_logits_soft_cap
            return composed_op(
                query, key, value, bias, mask, scale, is_causal, None, logit_cap, dropout_rate, seed, empty_rows
            )
        shared_attention.check_attention(query, key, value, bias, mask)
        tensors = (query, key, value) if bias is None else (query, key, value, bias)
        # On the CPU the kernel (MLX 0.32) adds float32 sequentially, and loses digits over many keys.
        fits_kernel = query.size and key.size and all(t.dtype == mx.float32 for t in tensors)
        fits_kernel = (
            fits_kernel and (scale is None or is_number(scale)) and is_number(dropout_rate) and not dropout_rate
        )
        if not fits_kernel or attn_logits_soft_cap is not None or (on_cpu() and key.shape[1] > SHORT):
            composed_op = self.composed("dot_product_attention")
            options = (scale, is_causal, None, attn_logits_soft_cap, dropout_rate, seed)
            return composed_op(query, key, value, bias, mask, *options)
        merged_mask = _attention_mask(mask, is_causal, (query.shape[1], key.shape[1]))
        queries = mx.swapaxes(query, 1, 2)
        if mask is not None and merged_mask is not None:
            # Zero fully masked queries: their logits, though tiny, would still receive a gradient.
            queries = mx.where(mx.any(merged_mask, -1, keepdims=True), queries, mx.array(0, query.dtype))
        attention_output = mx.fast.scaled_dot_product_attention(
            queries,
            mx.swapaxes(key, 1, 2),
            mx.swapaxes(value, 1, 2),
            scale=query.shape[-1] ** -0.5 if scale is None else scale,
            mask=_additive_mask(bias, merged_mask, query.dtype),
        )
        return mx.swapaxes(attention_output, 1, 2)

    def rope(
        self,
        x: mx.array,
        dims: int | None = None,
        offset: Any = 0,
        traditional: bool = False,
        base: Any = 10000.0,
        scale: Any = 1.0,
        frequencies: Any = None,
        axis: int = 1,
    ) -> mx.array:
        position_axis = shared_attention.supported_position_axis(
            x.shape, dims, offset, traditional, base, scale, frequencies, axis
        )
        if position_axis is None or x.dtype != mx.float32:
            return self.composed("rope")(x, dims, offset, traditional, base, scale, frequencies, axis)
        cosine, sine = shared_attention.rotation_tables(
            x.shape, offset, position_axis, base, scale, mx.float32, _as_float32, _table_rows
        )
        half_length = x.shape[-1] // 2
        return x * cosine + mx.concatenate([x[..., half_length:], x[..., :half_length]], -1) * sine
