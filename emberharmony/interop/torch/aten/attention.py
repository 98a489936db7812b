"""The attention operator of ATen, computed by ops."""

from typing import Any

from emberharmony import ops
from emberharmony.interop.torch.aten.table import aten


@aten("scaled_dot_product_attention")
def attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """Returns the values weighted by the softmax of the scaled products of queries and keys.

    The result of a query without any key is 0.
    """
    if len(query.shape) != 4:
        return _attention_of_any_batch(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
    if attn_mask is not None and len(attn_mask.shape) < 2:
        attn_mask = ops.broadcast_to(attn_mask, (query.shape[-2], key.shape[-2]))
    is_boolean_mask = attn_mask is not None and ops.dtype(attn_mask) == "bool"
    attention_output = ops.dot_product_attention(
        ops.swapaxes(query, 1, 2),
        ops.swapaxes(key, 1, 2),
        ops.swapaxes(value, 1, 2),
        bias=None if is_boolean_mask else attn_mask,
        mask=attn_mask if is_boolean_mask else None,
        scale=scale,
        is_causal=is_causal,
        dropout_rate=dropout_p,
        empty_rows="zero",
    )
    return ops.swapaxes(attention_output, 1, 2)


def _attention_of_any_batch(query: Any, key: Any, value: Any, mask: Any, *options: Any) -> Any:
    """Returns dot-product attention for inputs with any number of batch axes, by merging these into one."""
    batch_shape = tuple(query.shape[:-2])
    time_lengths = (query.shape[-2], key.shape[-2])
    if mask is not None:
        mask = ops.reshape(ops.broadcast_to(mask, (*batch_shape, *time_lengths)), (-1, 1, *time_lengths))
    q, k, v = [ops.reshape(x, (-1, 1, *x.shape[-2:])) for x in (query, key, value)]
    return ops.reshape(attention(q, k, v, mask, *options), (*batch_shape, query.shape[-2], value.shape[-1]))
