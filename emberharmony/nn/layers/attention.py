"""`MultiheadAttention`, the layer of attention with several heads."""

import math
from typing import Any

from emberharmony import Parameter, ops
from emberharmony.core.errors import ArgumentError, ArgumentTypeError, ShapeError, brief
from emberharmony.core.types import DTypeLike
from emberharmony.nn import rngs
from emberharmony.nn.cache import KVCache
from emberharmony.nn.layers.linear import Linear
from emberharmony.nn.locate import fault
from emberharmony.nn.module import Module
from emberharmony.nn.options import length_option, share_option
from emberharmony.types import Tensor, TensorLike


class MultiheadAttention(Module):
    """Attention of several heads: a call returns the outputs and the weights, or None for weights that nobody needs.

    `layer(query, key, value)` is the form of PyTorch; without `value` the keys are the values too, and without `key`
    the layer attends to its queries. Its other arguments:

    - `key_padding_mask` (batch, keys): True excludes a key; floats are added to the logits.
    - `need_weights`: whether the weights are returned, else None; without them the fused kernels of the backends run.
    - `attn_mask`: True excludes a key for a query; floats are added to the logits. Its shape is (queries, keys), or
      (batch * num_heads, queries, keys), or one of four axes that broadcasts to (batch, num_heads, queries, keys).
    - `average_attn_weights`: whether the weights are averaged over the heads.
    - `is_causal`: whether query i is limited to the keys up to i. Unlike PyTorch, this needs no `attn_mask`.
    - `cache`: a `KVCache`, to which the keys and values are added; the queries follow the time steps in it.

    A query whose keys are all excluded by booleans gets the mean of the values, where PyTorch gives NaN.

    Shape: query (queries, batch, embed_dim), key (keys, batch, kdim), value (keys, batch, vdim) to (queries, batch,
    embed_dim), or with `batch_first` (batch, queries, ...), or without the batch. The weights are (batch, queries,
    keys), or with each head (batch, num_heads, queries, keys).

    Args:
        embed_dim: the length of the last axis of query and output.
        num_heads: how many heads there are, which divides `embed_dim`.
        dropout: in training, the probability with which a weight is dropped.
        bias: whether the projections have a bias.
        add_bias_kv: whether a learned key and value is added at the end of the sequence.
        add_zero_attn: whether a key and a value of zeros are added at the end.
        kdim, vdim: the lengths of the last axes of key and value; None is `embed_dim`.
        batch_first: whether the first axis is the batch.
        num_kv_heads: the number of heads of keys and values, which divides `num_heads`; each is shared by a group of
            query heads. None is `num_heads`.
        rope: rotates queries and keys by their positions: an `nn.RoPE`, or a module with its call, which gets tensors
            (batch, time, heads, width). None rotates nothing.
        rng: draws the initial values, which are those of PyTorch, and the masks of dropout.
        dtype: the dtype of the parameters; None is the default floating dtype.

    Attributes:
        in_proj_weight: (3 * embed_dim, embed_dim), the rows of queries, keys and values; None if `kdim`, `vdim` or
            `num_kv_heads` is another than that of the queries.
        q_proj_weight, k_proj_weight, v_proj_weight: these rows as three parameters then; else None.
        in_proj_bias: the biases of queries, keys and values, or None.
        out_proj: the last projection, an `nn.Linear`.
        bias_k, bias_v: (1, 1, width of keys), or None.

    Raises:
        ArgumentError: if `num_heads` does not divide `embed_dim`, or `num_kv_heads` does not divide `num_heads`.

    Example:
        >>> layer = nn.MultiheadAttention(8, 2, batch_first=True)
        >>> outputs, weights = layer(ops.ones((1, 3, 8)), is_causal=True)
        >>> tuple(outputs.shape), tuple(weights.shape)
        ((1, 3, 8), (1, 3, 3))

    Source: Vaswani et al., Attention is all you need, 2017; for `num_kv_heads` Ainslie et al., GQA, 2023.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        *,
        num_kv_heads: int | None = None,
        rope: Module | None = None,
        rng: "rngs.Generator | rngs.Rngs | None" = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        self.embed_dim, self.num_heads = length_option("embed_dim", embed_dim), length_option("num_heads", num_heads)
        self.num_kv_heads = num_heads if num_kv_heads is None else length_option("num_kv_heads", num_kv_heads)
        self.kdim = embed_dim if kdim is None else length_option("kdim", kdim)
        self.vdim = embed_dim if vdim is None else length_option("vdim", vdim)
        self.dropout, self.batch_first, self.add_zero_attn = (
            share_option("dropout", dropout),
            batch_first,
            add_zero_attn,
        )
        self.head_dim = embed_dim // num_heads
        self.rope = rope
        self._check_heads(rope)
        self.rng = rngs.generator(rng, "dropout") if dropout else None
        self._initialize(bias, add_bias_kv, rngs.generator(rng), dtype)

    def _check_heads(self, rope: Module | None) -> None:
        """Checks that the numbers of heads divide the sizes, and that the rotary encoding fits the heads.

        Raises:
            ArgumentError: if not.
        """
        if self.embed_dim % self.num_heads:
            raise fault(
                ArgumentError(f"embed_dim, {self.embed_dim}, must be a multiple of num_heads, {self.num_heads}")
            )
        if self.num_heads % self.num_kv_heads:
            raise fault(
                ArgumentError(f"num_heads, {self.num_heads}, must be a multiple of num_kv_heads, {self.num_kv_heads}")
            )
        if rope is not None and not isinstance(rope, Module):
            raise fault(ArgumentTypeError(f"rope must be a module such as nn.RoPE({self.head_dim}), got {brief(rope)}"))
        if getattr(rope, "dims", 0) > self.head_dim:
            raise fault(
                ArgumentError(
                    f"rope rotates {getattr(rope, 'dims', 0)} features of each head, but a head has {self.head_dim}, "
                    f"embed_dim / num_heads"
                )
            )

    def _initialize(self, bias: bool, add_bias_kv: bool, rng: "rngs.Generator", dtype: DTypeLike | None) -> None:
        width, key_width = self.embed_dim, self.head_dim * self.num_kv_heads
        is_packed = self.kdim == self.vdim == width == key_width
        self.in_proj_weight = _xavier_parameter(rng, (3 * width, width), dtype) if is_packed else None
        self.q_proj_weight = None if is_packed else _xavier_parameter(rng, (width, width), dtype)
        self.k_proj_weight = None if is_packed else _xavier_parameter(rng, (key_width, self.kdim), dtype)
        self.v_proj_weight = None if is_packed else _xavier_parameter(rng, (key_width, self.vdim), dtype)
        self.in_proj_bias = Parameter(ops.zeros((width + 2 * key_width,), dtype)) if bias else None
        self.out_proj = Linear(width, width, bias, rng=rng, dtype=dtype)
        if self.out_proj.bias is not None:
            self.out_proj.bias.value = ops.zeros((width,), dtype)
        self.bias_k: Parameter | None = None
        self.bias_v: Parameter | None = None
        if add_bias_kv:
            std = 1 / math.sqrt(key_width)
            self.bias_k = Parameter(ops.random.normal((1, 1, key_width), 0.0, std, dtype, generator=rng))
            self.bias_v = Parameter(ops.random.normal((1, 1, key_width), 0.0, std, dtype, generator=rng))

    def __call__(
        self,
        query: TensorLike,
        key: TensorLike | None = None,
        value: TensorLike | None = None,
        key_padding_mask: TensorLike | None = None,
        need_weights: bool = True,
        attn_mask: TensorLike | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
        *,
        cache: KVCache | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        query = ops.convert_to_tensor(query)
        key = query if key is None else key if key is query else ops.convert_to_tensor(key)
        value = key if value is None else value if value is key or value is query else ops.convert_to_tensor(value)
        self._check_inputs(query, key, value)
        is_single = len(query.shape) == 2
        q, k, v = (self._split_heads(x) for x in self._project(query, key, value))
        past_length = 0 if cache is None else cache.length
        if self.rope is not None:
            q, k = self.rope(q, offset=past_length, axis=1), self.rope(k, offset=past_length, axis=1)
        if cache is not None:
            k, v = cache.extend(k, v)
        key_count = k.shape[1]
        k, v = self._append_keys(k, v)
        attention_sizes = q.shape[0], q.shape[1], key_count
        bias, mask = self._bias_and_mask(attention_sizes, key_padding_mask, attn_mask, k.shape[1] - key_count)
        text_mask = None if cache is None else cache.text_mask()
        if text_mask is not None:
            text_mask = _append_true(text_mask, k.shape[1] - key_count)
            mask = text_mask if mask is None else ops.logical_and(mask, text_mask)
        if is_causal and (past_length or k.shape[1] != key_count):
            is_causal = False
            if q.shape[1] > 1:
                causal_mask = _append_true(ops.tri(q.shape[1], key_count, past_length, "bool"), k.shape[1] - key_count)
                causal_mask = ops.to_device(causal_mask, ops.get_device(q))
                mask = causal_mask if mask is None else ops.logical_and(mask, causal_mask)
        weights: Tensor | None = None
        dropout_rate = self.dropout if self.training else 0.0
        if need_weights:
            outputs, weights = self._attend(q, k, v, bias, mask, is_causal, dropout_rate)
        else:
            outputs = ops.dot_product_attention(
                q, k, v, bias, mask, is_causal=is_causal, dropout_rate=dropout_rate, seed=self.rng
            )
        if not self.batch_first and not is_single:
            outputs = ops.swapaxes(outputs, 0, 1)
        outputs = self.out_proj(ops.reshape(outputs, (*outputs.shape[:2], self.embed_dim)))
        if not need_weights or weights is None:
            return ops.squeeze(outputs, 0) if is_single else outputs, None
        weights = ops.mean(weights, 1) if average_attn_weights else weights
        return (ops.squeeze(outputs, 0), ops.squeeze(weights, 0)) if is_single else (outputs, weights)

    def _check_inputs(self, query: Tensor, key: Tensor, value: Tensor) -> None:
        """Checks that the shapes of query, key and value fit the layer and each other.

        Raises:
            ShapeError: if they do not fit the layer or each other.
        """
        input_shapes = [tuple(x.shape) for x in (query, key, value)]
        query_shape, key_shape, value_shape = input_shapes
        batch_axis = 0 if self.batch_first else 1
        are_shapes_valid = [s[-1:] for s in input_shapes] == [(self.embed_dim,), (self.kdim,), (self.vdim,)]
        are_shapes_valid = (
            are_shapes_valid
            and len(query_shape) in (2, 3)
            and len(query_shape) == len(key_shape)
            and key_shape[:-1] == value_shape[:-1]
        )
        if not are_shapes_valid or (len(query_shape) == 3 and query_shape[batch_axis] != key_shape[batch_axis]):
            axes_text = "(batch, {0}, {1})" if self.batch_first else "({0}, batch, {1})"
            raise fault(
                ShapeError(
                    f"expected query of shape {axes_text.format('queries', self.embed_dim)}, key of shape "
                    f"{axes_text.format('keys', self.kdim)} and value of shape {axes_text.format('keys', self.vdim)}, "
                    f"or all three without batch, got {query_shape}, {key_shape} and {value_shape}"
                )
            )

    def _project(self, query: Tensor, key: Tensor, value: Tensor) -> "list[Tensor] | tuple[Tensor, ...]":
        """Returns the linear projections of query, key and value, with all heads in the last axis."""
        width, key_width = self.embed_dim, self.head_dim * self.num_kv_heads
        split_points = [width, width + key_width]
        if self.in_proj_weight is not None and key is query and value is query:
            projections = ops.linear(query, self.in_proj_weight, self.in_proj_bias, True)
            return ops.split(projections, split_points, -1)
        weights: Any = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        if self.in_proj_weight is not None:
            weights = ops.split(self.in_proj_weight, split_points)
        biases = (None, None, None) if self.in_proj_bias is None else ops.split(self.in_proj_bias, split_points)
        return [
            ops.linear(x, weight, bias, True)
            for x, weight, bias in zip((query, key, value), weights, biases, strict=True)
        ]

    def _split_heads(self, x: Tensor) -> Tensor:
        """Returns a projection in the shape (batch, time, heads, width)."""
        if len(x.shape) == 2:
            return ops.reshape(x, (1, x.shape[0], -1, self.head_dim))
        x = ops.reshape(x, (*x.shape[:2], -1, self.head_dim))
        return x if self.batch_first else ops.swapaxes(x, 0, 1)

    def _append_keys(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Appends learned vectors or zeros to keys and values, as `add_bias_kv` and `add_zero_attn` say."""
        row_shape = (k.shape[0], 1, self.num_kv_heads, self.head_dim)
        if self.bias_k is not None and self.bias_v is not None:
            parameter_shape = (1, 1, self.num_kv_heads, self.head_dim)
            k = ops.concatenate([k, ops.broadcast_to(ops.reshape(self.bias_k, parameter_shape), row_shape)], 1)
            v = ops.concatenate([v, ops.broadcast_to(ops.reshape(self.bias_v, parameter_shape), row_shape)], 1)
        if self.add_zero_attn:
            k, v = (ops.pad(x, ((0, 0), (0, 1), (0, 0), (0, 0))) for x in (k, v))
        return k, v

    def _bias_and_mask(
        self, sizes: tuple[int, int, int], padding: TensorLike | None, mask: TensorLike | None, extra_columns: int
    ) -> "tuple[Tensor | None, Tensor | None]":
        """Returns the sum of float masks and the conjunction of boolean ones, each broadcastable to four axes, or None.

        Args:
            sizes: the lengths of the batch, of the queries and of the keys.
            padding, mask: those of the user.
            extra_columns: how many keys were added, which all queries look at.

        Raises:
            ShapeError: if a mask has another shape than expected.
        """
        bias: Tensor | None = None
        boolean_mask: Tensor | None = None
        for name, mask_tensor in (("key_padding_mask", padding), ("attn_mask", mask)):
            if mask_tensor is not None:
                extended_mask = self._broadcast_to_four_axes(name, ops.convert_to_tensor(mask_tensor), sizes)
                if ops.dtype(extended_mask).is_floating:
                    extended_mask = (
                        ops.pad(extended_mask, (*((0, 0),) * 3, (0, extra_columns))) if extra_columns else extended_mask
                    )
                    bias = extended_mask if bias is None else ops.add(bias, extended_mask)
                else:
                    extended_mask = _append_true(ops.logical_not(extended_mask), extra_columns)
                    boolean_mask = (
                        extended_mask if boolean_mask is None else ops.logical_and(boolean_mask, extended_mask)
                    )
        return bias, boolean_mask

    def _broadcast_to_four_axes(self, name: str, mask: Tensor, sizes: tuple[int, int, int]) -> Tensor:
        batch, queries, keys = sizes
        shape, heads = tuple(mask.shape), self.num_heads
        if name == "key_padding_mask":
            mask_shapes = ((batch, keys), *(((keys,),) if batch == 1 else ()))
            four_axes_shape: tuple[int, ...] = (batch, 1, 1, keys)
        else:
            mask_shapes = ((queries, keys), (batch * heads, queries, keys))
            four_axes_shape = (batch, heads, queries, keys) if len(shape) == 3 else (1, 1, queries, keys)
            if len(shape) == 4 and all(n in (1, m) for n, m in zip(shape, (batch, heads, queries, keys), strict=True)):
                return mask
        if shape not in mask_shapes:
            raise fault(ShapeError(f"expected {name} of shape {' or '.join(map(str, mask_shapes))}, got {shape}"))
        return ops.reshape(mask, four_axes_shape)

    def _attend(
        self, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, mask: Tensor | None, is_causal: bool, rate: float
    ) -> tuple[Tensor, Tensor]:
        """Returns the outputs, (batch, queries, heads, width), and the weights, (batch, heads, queries, keys)."""
        heads_per_group = self.num_heads // self.num_kv_heads
        if heads_per_group > 1:
            k, v = ops.repeat(k, heads_per_group, 2), ops.repeat(v, heads_per_group, 2)
        q = ops.multiply(ops.swapaxes(q, 1, 2), 1 / math.sqrt(self.head_dim))
        logits = ops.matmul(q, ops.transpose(k, (0, 2, 3, 1)))
        if bias is not None:
            logits = ops.add(logits, bias)
        if is_causal:
            causal_mask = ops.to_device(ops.tri(logits.shape[-2], logits.shape[-1], dtype="bool"), ops.get_device(q))
            mask = causal_mask if mask is None else ops.logical_and(mask, causal_mask)
        if mask is not None:
            logits = ops.where(mask, logits, ops.finfo(ops.dtype(logits)).min * 0.5)
        attention_weights = ops.softmax(logits, -1)
        if rate:
            attention_weights = ops.dropout(attention_weights, rate, generator=self.rng)
        return ops.swapaxes(ops.matmul(attention_weights, ops.swapaxes(v, 1, 2)), 1, 2), attention_weights


MultiHeadAttention = MultiheadAttention
"""The same class under the name that MLX and Keras give it."""


def _append_true(mask: Tensor, extra_columns: int) -> Tensor:
    """Returns a boolean mask with further columns of True at its end, for keys that are always attended to."""
    if not extra_columns:
        return mask
    return ops.concatenate(
        [mask, ops.to_device(ops.ones((*mask.shape[:-1], extra_columns), "bool"), ops.get_device(mask))], -1
    )


def _xavier_parameter(rng: "rngs.Generator", shape: tuple[int, int], dtype: DTypeLike | None) -> Parameter:
    return Parameter(rngs.uniform(rng, shape, math.sqrt(6 / sum(shape)), dtype))
