"""The rows of the layout table for recurrent layers.

PyTorch adds two biases, the others one; that is their sum, which becomes the first one when it is read back. Only the
new value of a GRU needs two, because the reset gate is between them. The others have no layers one above the other:
their names begin with `layers.0.`, and those of two directions with `forward_layer.` and `backward_layer.`, as in
Keras's `Bidirectional`.
"""

from collections.abc import Callable, Iterator
from typing import Any

from emberharmony.nn.layouts.row import Part, Row, Weight

_TURNED = "r i -> i r"


def _prefixes_and_suffixes(layer: Any) -> Iterator[tuple[str, str]]:
    """Yields (prefix, suffix) for each layer and direction: of the names in the layout and of our parameters."""
    if not hasattr(layer, "num_layers"):  # a recurrent cell has one layer
        yield "", ""
        return
    for layer_number in range(layer.num_layers):
        layer_prefix = f"layers.{layer_number}." if layer.num_layers > 1 else ""
        if layer.bidirectional:
            yield f"{layer_prefix}forward_layer.", f"_l{layer_number}"
            yield f"{layer_prefix}backward_layer.", f"_l{layer_number}_reverse"
        else:
            yield layer_prefix, f"_l{layer_number}"


def _layer_row(layer: Any, weights: Callable[[str, str], tuple[Weight, ...]], prefix: str = "") -> Row:
    """Returns the row of a recurrent layer, from a function that gives the weights of one layer and direction.

    Args:
        layer: the layer.
        weights: returns the tensors, for the beginning of their names and the end of the names of the parameters.
        prefix: the attribute of the layer in which the other library has the tensors; cells have none.
    """
    row_weights: list[Weight] = []
    for layer_prefix, suffix in _prefixes_and_suffixes(layer):
        row_weights += weights(layer_prefix + (prefix if suffix else ""), suffix)
    return Row(tuple(row_weights))


def _bias_sum_parts(suffix: str) -> tuple[Part, ...]:
    return (Part(f"bias_ih{suffix}", plus=f"bias_hh{suffix}"),)


def mlx_rnn_row(layer: Any) -> Row:
    """Returns the row for `mlx.nn.RNN`."""

    def direction_weights(prefix: str, suffix: str) -> tuple[Weight, ...]:
        return (
            Weight(f"{prefix}Wxh", (Part(f"weight_ih{suffix}"),)),
            Weight(f"{prefix}Whh", (Part(f"weight_hh{suffix}"),)),
            Weight(f"{prefix}bias", _bias_sum_parts(suffix)),
        )

    return _layer_row(layer, direction_weights)


def mlx_lstm_row(layer: Any) -> Row:
    """Returns the row for `mlx.nn.LSTM`; it has no projection, so `weight_hr` keeps its name."""

    def direction_weights(prefix: str, suffix: str) -> tuple[Weight, ...]:
        return (
            Weight(f"{prefix}Wx", (Part(f"weight_ih{suffix}"),)),
            Weight(f"{prefix}Wh", (Part(f"weight_hh{suffix}"),)),
            Weight(f"{prefix}bias", _bias_sum_parts(suffix)),
            Weight(f"{prefix}weight_hr", (Part(f"weight_hr{suffix}"),)),
        )

    return _layer_row(layer, direction_weights)


def mlx_gru_row(layer: Any) -> Row:
    """Returns the row for `mlx.nn.GRU`, which has one bias for each gate, and two for the new value."""
    two_gates_size, row_count = 2 * layer.hidden_size, 3 * layer.hidden_size

    def direction_weights(prefix: str, suffix: str) -> tuple[Weight, ...]:
        joined_bias = Part(f"bias_ih{suffix}", 0, two_gates_size, f"bias_hh{suffix}")
        return (
            Weight(f"{prefix}Wx", (Part(f"weight_ih{suffix}"),)),
            Weight(f"{prefix}Wh", (Part(f"weight_hh{suffix}"),)),
            Weight(f"{prefix}b", (joined_bias, Part(f"bias_ih{suffix}", two_gates_size, row_count))),
            Weight(f"{prefix}bhn", (Part(f"bias_hh{suffix}", two_gates_size, row_count),)),
        )

    return _layer_row(layer, direction_weights)


def _keras_recurrent_row(layer: Any) -> Row:
    def direction_weights(prefix: str, suffix: str) -> tuple[Weight, ...]:
        return (
            Weight(f"{prefix}kernel", (Part(f"weight_ih{suffix}"),), _TURNED),
            Weight(f"{prefix}recurrent_kernel", (Part(f"weight_hh{suffix}"),), _TURNED),
            Weight(f"{prefix}bias", _bias_sum_parts(suffix)),
            Weight(f"{prefix}weight_hr", (Part(f"weight_hr{suffix}"),)),
        )

    return _layer_row(layer, direction_weights, "cell.")


def keras_rnn_row(layer: Any) -> Row:
    """Returns the row for `keras.layers.SimpleRNN`."""
    return _keras_recurrent_row(layer)


def keras_lstm_row(layer: Any) -> Row:
    """Returns the row for `keras.layers.LSTM`, whose gates are in PyTorch's order."""
    return _keras_recurrent_row(layer)


def keras_gru_row(layer: Any) -> Row:
    """Returns the row for `keras.layers.GRU` with `reset_after`: it has the update gate before the reset gate."""
    hidden_size = layer.hidden_size

    def gate_parts(name: str) -> tuple[Part, ...]:
        return (
            Part(name, hidden_size, 2 * hidden_size),
            Part(name, 0, hidden_size),
            Part(name, 2 * hidden_size, 3 * hidden_size),
        )

    def direction_weights(prefix: str, suffix: str) -> tuple[Weight, ...]:
        biases = (*gate_parts(f"bias_ih{suffix}"), *gate_parts(f"bias_hh{suffix}"))
        return (
            Weight(f"{prefix}kernel", gate_parts(f"weight_ih{suffix}"), _TURNED),
            Weight(f"{prefix}recurrent_kernel", gate_parts(f"weight_hh{suffix}"), _TURNED),
            Weight(f"{prefix}bias", biases, "(b r) -> b r", {"b": 2}),
        )

    return _layer_row(layer, direction_weights, "cell.")
