"""Transformers: layers of attention and of linear layers, and stacks of them."""

import copy
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from emberharmony import ops
from emberharmony.core.errors import ArgumentError, ArgumentTypeError, ShapeError, brief
from emberharmony.core.types import DTypeLike
from emberharmony.nn import rngs
from emberharmony.nn.cache import KVCache
from emberharmony.nn.layers.attention import MultiheadAttention
from emberharmony.nn.layers.dropout import Dropout
from emberharmony.nn.layers.linear import Linear
from emberharmony.nn.layers.normalization.without_state import LayerNorm
from emberharmony.nn.locate import fault
from emberharmony.nn.module import Module
from emberharmony.nn.options import choice_option, length_option
from emberharmony.types import Tensor, TensorLike

Activation: TypeAlias = str | Callable[[Any], Any]
"""The type of the option `activation`: "relu", "gelu", a function or a module."""

Mask: TypeAlias = TensorLike | None
"""The type of masks for `nn.MultiheadAttention`: a tensor, a list or None."""


def _gelu(x: Any) -> Any:
    return ops.gelu(x, False)


_NAMED: dict[str, Callable[[Any], Any]] = {"relu": ops.relu, "gelu": _gelu}


class _Layer(Module):
    """The base of encoder and decoder layers: the two linear layers, and the order of normalisation."""

    def _create_layers(
        self,
        d_model: int,
        dim_feedforward: int,
        dropout: float,
        activation: Activation,
        norm_first: bool,
        bias: bool,
        rng: "rngs.Generator | rngs.Rngs | None",
        dtype: DTypeLike | None,
    ) -> None:
        self.linear1 = Linear(d_model, length_option("dim_feedforward", dim_feedforward), bias, rng=rng, dtype=dtype)
        self.dropout = Dropout(dropout, rng=rng)
        self.linear2 = Linear(dim_feedforward, d_model, bias, rng=rng, dtype=dtype)
        self.norm_first = norm_first
        self.activation = activation if callable(activation) else choice_option("activation", activation, tuple(_NAMED))

    def _feed_forward(self, x: Tensor) -> Tensor:
        activate = _NAMED[self.activation] if isinstance(self.activation, str) else self.activation
        return self.linear2(self.dropout(activate(self.linear1(x))))


class TransformerEncoderLayer(_Layer):
    """Attention of a sequence to itself, and two linear layers, each added to its input and normalised.

    A call takes the sequence, and in this order, as `nn.MultiheadAttention` does, a mask `src_mask`, a mask of keys
    `src_key_padding_mask` and `is_causal`, and as a keyword the `cache` of the keys and values seen so far. With
    `is_causal` it is a layer of a decoder without an encoder.

    Shape: src (time, batch, d_model), or with `batch_first` (batch, time, d_model), or without the batch, to the same.

    Args:
        d_model: the length of the last axis.
        nhead: the number of heads, which divides `d_model`.
        dim_feedforward: the width between the linear layers.
        dropout: the probability of dropout, in training, after both parts, between the linear layers and of the weights
            of attention.
        activation: "relu", "gelu", or a function or module between the linear layers.
        layer_norm_eps: what the normalisation adds to the variance.
        batch_first: whether the first axis is the batch.
        norm_first: whether the input of each part is normalised, in place of the sum after it.
        bias: whether the linear layers and the normalisations have a bias.
        rng: draws the initial values and the masks of dropout.
        dtype: the dtype of the parameters; None is the default floating dtype.

    Attributes:
        self_attn: the attention, an `nn.MultiheadAttention`.
        linear1, linear2: the linear layers.
        norm1, norm2: the normalisations.

    Raises:
        ArgumentError: if `nhead` does not divide `d_model`, or the activation is unknown.

    Example:
        >>> layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
        >>> tuple(layer(ops.ones((1, 3, 8)), is_causal=True).shape)
        (1, 3, 8)

    Source: Vaswani et al., Attention is all you need, 2017.
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        *,
        rng: "rngs.Generator | rngs.Rngs | None" = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout, bias, batch_first=batch_first, rng=rng, dtype=dtype
        )
        self._create_layers(d_model, dim_feedforward, dropout, activation, norm_first, bias, rng, dtype)
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.dropout1, self.dropout2 = Dropout(dropout, rng=rng), Dropout(dropout, rng=rng)

    def __call__(
        self,
        src: TensorLike,
        src_mask: Mask = None,
        src_key_padding_mask: Mask = None,
        is_causal: bool = False,
        *,
        cache: KVCache | None = None,
    ) -> Tensor:
        def attend_to_itself(x: Tensor) -> Tensor:
            output, _ = self.self_attn(x, x, x, src_key_padding_mask, False, src_mask, True, is_causal, cache=cache)
            return self.dropout1(output)

        x = ops.convert_to_tensor(src)
        if self.norm_first:
            x = ops.add(x, attend_to_itself(self.norm1(x)))
            return ops.add(x, self.dropout2(self._feed_forward(self.norm2(x))))
        x = self.norm1(ops.add(x, attend_to_itself(x)))
        return self.norm2(ops.add(x, self.dropout2(self._feed_forward(x))))


class TransformerDecoderLayer(_Layer):
    """Attention of a sequence to itself, attention to the output of an encoder, and two linear layers.

    A call takes the sequence, the output of the encoder, and in this order the masks `tgt_mask`, `memory_mask`,
    `tgt_key_padding_mask` and `memory_key_padding_mask`, `tgt_is_causal` and `memory_is_causal`, and as a keyword the
    `cache` of the keys and values of the sequence seen so far.

    Shape: tgt (time, batch, d_model) and memory (source time, batch, d_model) to the shape of tgt, or with
    `batch_first` (batch, ...), or without the batch.

    Args:
        d_model: the length of the last axis.
        nhead: the number of heads, which divides `d_model`.
        dim_feedforward: the width between the linear layers.
        dropout: the probability of dropout, in training, after each part, between the linear layers and of the weights
            of attention.
        activation: "relu", "gelu", or a function or module between the linear layers.
        layer_norm_eps: what the normalisation adds to the variance.
        batch_first: whether the first axis is the batch.
        norm_first: whether the input of each part is normalised, in place of the sum after it.
        bias: whether the linear layers and the normalisations have a bias.
        rng: draws the initial values and the masks of dropout.
        dtype: the dtype of the parameters; None is the default floating dtype.

    Attributes:
        self_attn, multihead_attn: the attention to the sequence itself and to the output of the encoder.
        linear1, linear2: the linear layers.
        norm1, norm2, norm3: the normalisations.

    Raises:
        ArgumentError: if `nhead` does not divide `d_model`, or the activation is unknown.

    Example:
        >>> layer = nn.TransformerDecoderLayer(8, 2, 16, batch_first=True).eval()
        >>> tuple(layer(ops.ones((1, 3, 8)), ops.ones((1, 5, 8)), tgt_is_causal=True).shape)
        (1, 3, 8)

    Source: Vaswani et al., Attention is all you need, 2017.
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        *,
        rng: "rngs.Generator | rngs.Rngs | None" = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        self.self_attn, self.multihead_attn = (
            MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, rng=rng, dtype=dtype)
            for _ in range(2)
        )
        self._create_layers(d_model, dim_feedforward, dropout, activation, norm_first, bias, rng, dtype)
        self.norm1, self.norm2, self.norm3 = (
            LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype) for _ in range(3)
        )
        self.dropout1, self.dropout2, self.dropout3 = (Dropout(dropout, rng=rng) for _ in range(3))

    def __call__(
        self,
        tgt: TensorLike,
        memory: TensorLike,
        tgt_mask: Mask = None,
        memory_mask: Mask = None,
        tgt_key_padding_mask: Mask = None,
        memory_key_padding_mask: Mask = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
        *,
        cache: KVCache | None = None,
    ) -> Tensor:
        memory_tensor = ops.convert_to_tensor(memory)

        def attend_to_itself(x: Tensor) -> Tensor:
            output, _ = self.self_attn(x, x, x, tgt_key_padding_mask, False, tgt_mask, True, tgt_is_causal, cache=cache)
            return self.dropout1(output)

        def attend_to_memory(x: Tensor) -> Tensor:
            output, _ = self.multihead_attn(
                x, memory_tensor, memory_tensor, memory_key_padding_mask, False, memory_mask, True, memory_is_causal
            )
            return self.dropout2(output)

        x = ops.convert_to_tensor(tgt)
        if self.norm_first:
            x = ops.add(x, attend_to_itself(self.norm1(x)))
            x = ops.add(x, attend_to_memory(self.norm2(x)))
            return ops.add(x, self.dropout3(self._feed_forward(self.norm3(x))))
        x = self.norm1(ops.add(x, attend_to_itself(x)))
        x = self.norm2(ops.add(x, attend_to_memory(x)))
        return self.norm3(ops.add(x, self.dropout3(self._feed_forward(x))))


class _Stack(Module):
    """The base of encoders and decoders: a sequence of copies of a layer, and a normalisation at the end."""

    def __init__(self, layer: Module, num_layers: int, norm: Module | None) -> None:
        if not isinstance(layer, Module):
            raise fault(ArgumentTypeError(f"expected a layer, got {brief(layer)}"))
        self.layers = [_copy_layer(layer) for _ in range(length_option("num_layers", num_layers))]
        self.num_layers = num_layers
        self.norm = norm

    def _run_layers(self, x: TensorLike, args: tuple[Any, ...], caches: Sequence[KVCache] | None) -> Tensor:
        """Runs an input through all layers and the final normalisation, and returns the output.

        Raises:
            ArgumentError: if there is not one cache for each layer.
        """
        if caches is not None and len(caches) != len(self.layers):
            raise fault(ArgumentError(f"expected {len(self.layers)} caches, one for each layer, got {len(caches)}"))
        for position, layer in enumerate(self.layers):
            x = layer(x, *args) if caches is None else layer(x, *args, cache=caches[position])
        return ops.convert_to_tensor(x) if self.norm is None else self.norm(x)


class TransformerEncoder(_Stack):
    """Layers of an encoder one after the other, all with the initial values of one layer.

    A call takes the sequence, and in this order the masks `mask` and `src_key_padding_mask` and `is_causal`, which all
    layers get, and as a keyword `caches`, one `KVCache` for each layer. The copies of a layer draw the masks of dropout
    from the same streams, one after the other.

    Shape: as that of the layer.

    Args:
        encoder_layer: the layer that is copied.
        num_layers: the number of layers.
        norm: a module for the output, or None.

    Attributes:
        layers: the list of the layers.

    Raises:
        ArgumentError: if `num_layers` is not a positive integer.

    Example:
        >>> net = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 2, nn.LayerNorm(8)).eval()
        >>> tuple(net(ops.ones((3, 1, 8))).shape), len(net.layers)
        ((3, 1, 8), 2)
    """

    def __init__(self, encoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__(encoder_layer, num_layers, norm)

    def __call__(
        self,
        src: TensorLike,
        mask: Mask = None,
        src_key_padding_mask: Mask = None,
        is_causal: bool | None = None,
        *,
        caches: Sequence[KVCache] | None = None,
    ) -> Tensor:
        return self._run_layers(src, (mask, src_key_padding_mask, bool(is_causal)), caches)


class TransformerDecoder(_Stack):
    """Layers of a decoder one after the other, all with the initial values of one layer.

    A call takes the arguments of `TransformerDecoderLayer`, which all layers get, and as a keyword `caches`, one
    `KVCache` for each layer.

    Shape: as that of the layer.

    Args:
        decoder_layer: the layer that is copied.
        num_layers: the number of layers.
        norm: a module for the output, or None.

    Attributes:
        layers: the list of the layers.

    Raises:
        ArgumentError: if `num_layers` is not a positive integer.

    Example:
        >>> net = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16), 2).eval()
        >>> tuple(net(ops.ones((3, 1, 8)), ops.ones((5, 1, 8))).shape)
        (3, 1, 8)
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__(decoder_layer, num_layers, norm)

    def __call__(
        self,
        tgt: TensorLike,
        memory: TensorLike,
        tgt_mask: Mask = None,
        memory_mask: Mask = None,
        tgt_key_padding_mask: Mask = None,
        memory_key_padding_mask: Mask = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
        *,
        caches: Sequence[KVCache] | None = None,
    ) -> Tensor:
        masks = (tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
        return self._run_layers(tgt, (memory, *masks, bool(tgt_is_causal), memory_is_causal), caches)


class Transformer(Module):
    """An encoder, and a decoder that attends to its output.

    A call takes the two sequences, and in this order the masks `src_mask`, `tgt_mask`, `memory_mask`,
    `src_key_padding_mask`, `tgt_key_padding_mask` and `memory_key_padding_mask`, and `src_is_causal`, `tgt_is_causal`
    and `memory_is_causal`.

    Shape: src (source time, batch, d_model) and tgt (time, batch, d_model) to the shape of tgt, or with `batch_first`
    (batch, ...), or without the batch.

    Args:
        d_model: the length of the last axis.
        nhead: the number of heads, which divides `d_model`.
        num_encoder_layers: how many layers the encoder has.
        num_decoder_layers: how many layers the decoder has.
        dim_feedforward: the length of the last axis between the two linear layers of each layer.
        dropout: the probability with which an element becomes 0 in training, from 0 to 1.
        activation: "relu", "gelu", or a function or module between the linear layers.
        custom_encoder: a module in the place of the encoder; None makes a `TransformerEncoder`.
        custom_decoder: a module in the place of the decoder; None makes a `TransformerDecoder`.
        layer_norm_eps: what the normalisations add to the variance.
        batch_first: whether the batch is the first axis, and not the second.
        norm_first: whether a normalisation comes before its part of a layer, and not after the sum.
        bias: whether the linear layers and the normalisations have biases.
        rng: draws the initial values, those of Glorot and Bengio for matrices, and the masks of dropout.
        dtype: the dtype of the parameters; None is the default floating dtype.

    Attributes:
        encoder, decoder: the two parts, each with a normalisation at its end.

    Raises:
        ArgumentError: if `nhead` does not divide `d_model`, or the activation is unknown.

    Example:
        >>> net = nn.Transformer(8, 2, 1, 1, 16).eval()
        >>> tuple(net(ops.ones((5, 1, 8)), ops.ones((3, 1, 8)), tgt_is_causal=True).shape)
        (3, 1, 8)

    Source: Vaswani et al., Attention is all you need, 2017.
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        *,
        rng: "rngs.Generator | rngs.Rngs | None" = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        self.d_model, self.nhead, self.batch_first = (
            length_option("d_model", d_model),
            length_option("nhead", nhead),
            batch_first,
        )
        layer_options: Any = (dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)
        self.encoder, self.decoder = custom_encoder, custom_decoder
        if custom_encoder is None:
            layer: Module = TransformerEncoderLayer(d_model, nhead, *layer_options, rng=rng, dtype=dtype)
            final_norm = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
            self.encoder = TransformerEncoder(layer, num_encoder_layers, final_norm)
        if custom_decoder is None:
            layer = TransformerDecoderLayer(d_model, nhead, *layer_options, rng=rng, dtype=dtype)
            final_norm = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
            self.decoder = TransformerDecoder(layer, num_decoder_layers, final_norm)
        generator = rngs.generator(rng)
        for parameter in self.parameters():
            shape = parameter.shape
            if len(shape) == 2:
                bound = math.sqrt(6 / sum(shape))
                parameter.value = rngs.uniform(generator, shape, bound, ops.dtype(parameter.value))

    def __call__(
        self,
        src: TensorLike,
        tgt: TensorLike,
        src_mask: Mask = None,
        tgt_mask: Mask = None,
        memory_mask: Mask = None,
        src_key_padding_mask: Mask = None,
        tgt_key_padding_mask: Mask = None,
        memory_key_padding_mask: Mask = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        src, tgt = ops.convert_to_tensor(src), ops.convert_to_tensor(tgt)
        batch_axis = 0 if self.batch_first else 1
        if len(src.shape) != len(tgt.shape) or (len(src.shape) == 3 and src.shape[batch_axis] != tgt.shape[batch_axis]):
            raise fault(
                ShapeError(
                    f"expected src and tgt with the same batch on axis {batch_axis}, got {tuple(src.shape)} and "
                    f"{tuple(tgt.shape)}"
                )
            )
        encoder: Any = self.encoder
        decoder: Any = self.decoder
        memory = encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        masks = (tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
        output: Tensor = decoder(tgt, memory, *masks, tgt_is_causal, memory_is_causal)
        return output

    @staticmethod
    def generate_square_subsequent_mask(sz: int, dtype: DTypeLike | None = None) -> Tensor:
        """Returns the mask (sz, sz) to add to logits that excludes later keys: 0 up to the diagonal, then -inf.

        Args:
            sz: the number of queries, and of keys.
            dtype: the dtype of the mask; None is the default float.
        """
        return ops.triu(ops.full((sz, sz), -math.inf, dtype), 1)


def _copy_layer(layer: Module) -> Module:
    """Returns a copy of a layer with parameters of its own, which shares its generators.

    With copies of the generators all layers would drop the same elements.
    """
    sublayers = [sublayer for _, sublayer in layer.named_modules()]
    shared_generators = [
        value for part in sublayers for value in vars(part).values() if isinstance(value, ops.random.Generator)
    ]
    return copy.deepcopy(layer, {id(generator): generator for generator in shared_generators})
