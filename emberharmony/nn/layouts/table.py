"""The layout table: for each class of layers the names and layouts of its tensors in MLX and Keras.

The patterns begin with PyTorch's axes: o are outputs, i inputs, r rows of several gates, "..." the axes of a kernel.

From one row come the name, the shape and both directions of the conversion, so they cannot contradict each other. Only
a model can say what a tensor is: a kernel of size 1 and a square matrix have the same shape in several layouts, and
converters that decided by shapes have transposed weights twice, or not at all. So a file says its layout by a tag, and
shapes only serve to say in an error which layout would fit. Names of Keras are attribute paths, because those in
`Weight.path` are made up while a program runs (`dense_3/kernel`). Files are converted on NumPy with bits as they are,
because MLX lacks float64.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from emberharmony.nn.layouts import attention, recurrent
from emberharmony.nn.layouts.row import Part, Row, Weight, row, weight_of

Rule = Row | Callable[[Any], Row]
"""A row, or a function that returns the row of a layer whose options decide it."""

SAME = Row()


class Layouts(NamedTuple):
    """The rows of a class of layers for MLX and for Keras.

    Attributes:
        mlx: the row for `mlx.nn`.
        keras: the row for `keras.layers`.
        mlx_class, keras_class: the class there, or "" if there is none.
    """

    mlx: Rule
    keras: Rule
    mlx_class: str = ""
    keras_class: str = ""


_BATCH = ("num_batches_tracked",)
_SCALED = row(weight_of("gamma", "weight"), weight_of("beta", "bias"))
_RUNNING = (*_SCALED.weights, weight_of("moving_mean", "running_mean"), weight_of("moving_variance", "running_var"))
_MLX_KERNEL = "o i ... -> o ... i"
_KERNEL = "o i ... -> ... i o"
_DEPTHWISE = "(in_channels m) 1 ... -> ... in_channels m"
_MLX_TRANSPOSED = "(groups i) o ... -> (groups o) ... i"
_TRANSPOSED = "(groups i) o ... -> ... (groups o) i"


def _keras_separable_row(layer: Any) -> Row:
    length_by_name = {"channels": layer.depthwise.in_channels}
    return row(
        Weight("depthwise_kernel", (Part("depthwise.weight"),), "(channels m) 1 ... -> ... channels m", length_by_name),
        weight_of("pointwise_kernel", "pointwise.weight", _KERNEL),
        weight_of("bias", "pointwise.bias"),
    )


TABLE: dict[str, Layouts] = {
    "Linear": Layouts(SAME, row(weight_of("kernel", "weight", "o i -> i o")), "Linear", "Dense"),
    "LoRALinear": Layouts(
        row(
            weight_of("linear.weight", "weight"),
            weight_of("linear.bias", "bias"),
            weight_of("lora_a", "lora_a.weight", "r i -> i r"),
            weight_of("lora_b", "lora_b.weight", "o r -> r o"),
        ),
        row(
            weight_of("kernel", "weight", "o i -> i o"),
            weight_of("lora_kernel_a", "lora_a.weight", "r i -> i r"),
            weight_of("lora_kernel_b", "lora_b.weight", "o r -> r o"),
        ),
        "LoRALinear of mlx-lm",
        "Dense after enable_lora",
    ),
    "Bilinear": Layouts(row(weight_of("weight", "weight", "o i j -> o j i")), SAME, "Bilinear"),
    "Embedding": Layouts(SAME, row(weight_of("embeddings", "weight")), "Embedding", "Embedding"),
    "EmbeddingBag": Layouts(SAME, SAME),
    "QuantizedLinear": Layouts(SAME, SAME, "QuantizedLinear"),
    "QuantizedEmbedding": Layouts(SAME, SAME, "QuantizedEmbedding"),
    "LearnedPositional": Layouts(SAME, SAME),
    **{
        f"Conv{n}d": Layouts(
            row(weight_of("weight", "weight", _MLX_KERNEL)),
            row(weight_of("kernel", "weight", _KERNEL)),
            f"Conv{n}d",
            f"Conv{n}D",
        )
        for n in (1, 2, 3)
    },
    **{
        f"DepthwiseConv{n}d": Layouts(
            row(weight_of("weight", "weight", _MLX_KERNEL)),
            row(weight_of("kernel", "weight", _DEPTHWISE)),
            f"Conv{n}d with groups" if n < 3 else "",
            f"DepthwiseConv{n}D" if n < 3 else "",
        )
        for n in (1, 2, 3)
    },
    **{
        f"SeparableConv{n}d": Layouts(SAME, _keras_separable_row, "", f"SeparableConv{n}D" if n < 3 else "")
        for n in (1, 2, 3)
    },
    **{
        f"ConvTranspose{n}d": Layouts(
            row(weight_of("weight", "weight", _MLX_TRANSPOSED)),
            row(weight_of("kernel", "weight", _TRANSPOSED)),
            f"ConvTranspose{n}d",
            f"Conv{n}DTranspose",
        )
        for n in (1, 2, 3)
    },
    **{
        f"BatchNorm{n}d": Layouts(
            row(left_out=_BATCH), row(*_RUNNING, left_out=_BATCH), "BatchNorm", "BatchNormalization"
        )
        for n in (1, 2, 3)
    },
    **{f"InstanceNorm{n}d": Layouts(SAME, row(*_RUNNING), "InstanceNorm", "GroupNormalization(-1)") for n in (1, 2, 3)},
    "LayerNorm": Layouts(SAME, _SCALED, "LayerNorm", "LayerNormalization"),
    "GroupNorm": Layouts(SAME, _SCALED, "GroupNorm", "GroupNormalization"),
    "RMSNorm": Layouts(SAME, row(weight_of("scale", "weight")), "RMSNorm", "RMSNormalization"),
    "PReLU": Layouts(SAME, row(weight_of("alpha", "weight")), "PReLU", "PReLU"),
    "RNN": Layouts(recurrent.mlx_rnn_row, recurrent.keras_rnn_row, "RNN", "SimpleRNN"),
    "LSTM": Layouts(recurrent.mlx_lstm_row, recurrent.keras_lstm_row, "LSTM", "LSTM"),
    "GRU": Layouts(recurrent.mlx_gru_row, recurrent.keras_gru_row, "GRU", "GRU"),
    "RNNCell": Layouts(recurrent.mlx_rnn_row, recurrent.keras_rnn_row, "RNN", "SimpleRNNCell"),
    "LSTMCell": Layouts(recurrent.mlx_lstm_row, recurrent.keras_lstm_row, "LSTM", "LSTMCell"),
    "GRUCell": Layouts(recurrent.mlx_gru_row, recurrent.keras_gru_row, "GRU", "GRUCell"),
    "ConvLSTM2d": Layouts(
        SAME,
        row(
            weight_of("cell.kernel", "conv_ih.weight", _KERNEL),
            weight_of("cell.recurrent_kernel", "conv_hh.weight", _KERNEL),
            weight_of("cell.bias", "conv_ih.bias"),
        ),
        "",
        "ConvLSTM2D",
    ),
    "Bidirectional": Layouts(SAME, SAME, "", "Bidirectional"),
    "MultiheadAttention": Layouts(
        attention.mlx_attention_row,
        attention.keras_attention_row,
        "MultiHeadAttention",
        "MultiHeadAttention, GroupedQueryAttention",
    ),
    "TransformerEncoderLayer": Layouts(
        row(self_attn="attention", norm1="ln1", norm2="ln2"), SAME, "TransformerEncoderLayer"
    ),
    "TransformerDecoderLayer": Layouts(
        row(self_attn="self_attention", multihead_attn="cross_attention", norm1="ln1", norm2="ln2", norm3="ln3"),
        SAME,
        "TransformerDecoderLayer",
    ),
    "TransformerEncoder": Layouts(row(norm="ln"), SAME, "TransformerEncoder"),
    "TransformerDecoder": Layouts(row(norm="ln"), SAME, "TransformerDecoder"),
    "Transformer": Layouts(SAME, SAME, "Transformer"),
    "Sequential": Layouts(row(**{"*": "layers.*"}), row(**{"*": "layers.*"}), "Sequential", "Sequential"),
    "Loss": Layouts(SAME, SAME),
}
"""The layouts by the name of a layer class; subclasses without an entry have that of their base."""


def layouts_of(kind: type[Any]) -> Layouts | None:
    """Returns the rows of a class of layers, or None if it has none: then all tensors are as in PyTorch."""
    for base in kind.__mro__:
        if base.__module__.startswith("emberharmony.nn.") and base.__name__ in TABLE:
            return TABLE[base.__name__]
    return None


def row_of(layer: Any, layout: str) -> Row:
    """Returns the row of a layer in a layout; the row `SAME` if all its tensors are as in PyTorch."""
    layouts = layouts_of(type(layer))
    if layouts is None or layout == "torch":
        return SAME
    row_or_function = layouts.mlx if layout == "mlx" else layouts.keras
    return row_or_function if isinstance(row_or_function, Row) else row_or_function(layer)
