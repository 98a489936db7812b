"""The rows of the layout table for attention: MLX and Keras have a layer for each projection PyTorch packs."""

from collections.abc import Iterator
from typing import Any

from emberharmony.nn.layouts.row import Part, Row, Weight, weight_of

_ROLES = ("query", "key", "value")


def _projections(layer: Any) -> Iterator[tuple[str, str, Part]]:
    """Yields (projection, "weight" or "bias", part) for the projections in a layer's packed parameters."""
    width, key_width = layer.embed_dim, layer.head_dim * layer.num_kv_heads
    row_stops = (width, width + key_width, width + 2 * key_width)
    for role, start_row, stop_row in zip(_ROLES, (0, *row_stops), row_stops, strict=False):
        is_separate = getattr(layer, f"{role[0]}_proj_weight") is not None
        yield (
            role,
            "weight",
            Part(f"{role[0]}_proj_weight") if is_separate else Part("in_proj_weight", start_row, stop_row),
        )
        yield role, "bias", Part("in_proj_bias", start_row, stop_row)


def mlx_attention_row(layer: Any) -> Row:
    """Returns the row for `mlx.nn.MultiHeadAttention`."""
    return Row(tuple(Weight(f"{role}_proj.{tensor_name}", (rows,)) for role, tensor_name, rows in _projections(layer)))


def keras_attention_row(layer: Any) -> Row:
    """Returns the row for `keras.layers.MultiHeadAttention`, whose projections have an axis of heads."""
    weights = []
    for role, tensor_name, rows in _projections(layer):
        heads_attribute = "num_heads" if role == "query" else "num_kv_heads"
        if tensor_name == "weight":
            weights.append(
                Weight(
                    f"{role}_dense.kernel", (rows,), f"({heads_attribute} head_dim) i -> i {heads_attribute} head_dim"
                )
            )
        else:
            weights.append(
                Weight(f"{role}_dense.bias", (rows,), f"({heads_attribute} head_dim) -> {heads_attribute} head_dim")
            )
    output_weight = weight_of(
        "output_dense.kernel", "out_proj.weight", "o (num_heads head_dim) -> num_heads head_dim o"
    )
    return Row((*weights, output_weight, weight_of("output_dense.bias", "out_proj.bias")))
