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
    for layer_prefix, end in _prefixes_and_suffixes(layer):
        row_weights += weights(layer_prefix + (prefix if end else ""), end)
    return Row(tuple(row_weights))


def _bias_sum_parts(end: str) -> tuple[Part, ...]:
    return (Part(f"bias_ih{end}", plus=f"bias_hh{end}"),)


def mlx_rnn_row(layer: Any) -> Row:
    """Returns the row for `mlx.nn.RNN`."""

    def weights(place: str, end: str) -> tuple[Weight, ...]:
        return (
            Weight(f"{place}Wxh", (Part(f"weight_ih{end}"),)),
            Weight(f"{place}Whh", (Part(f"weight_hh{end}"),)),
            Weight(f"{place}bias", _bias_sum_parts(end)),
        )

    return _layer_row(layer, weights)


def mlx_lstm_row(layer: Any) -> Row:
    """Returns the row for `mlx.nn.LSTM`; it has no projection, so `weight_hr` keeps its name."""

    def weights(place: str, end: str) -> tuple[Weight, ...]:
        return (
            Weight(f"{place}Wx", (Part(f"weight_ih{end}"),)),
            Weight(f"{place}Wh", (Part(f"weight_hh{end}"),)),
            Weight(f"{place}bias", _bias_sum_parts(end)),
            Weight(f"{place}weight_hr", (Part(f"weight_hr{end}"),)),
        )

    return _layer_row(layer, weights)


def mlx_gru_row(layer: Any) -> Row:
    """Returns the row for `mlx.nn.GRU`, which has one bias for each gate, and two for the new value."""
    two_gates_size, row_count = 2 * layer.hidden_size, 3 * layer.hidden_size

    def weights(place: str, end: str) -> tuple[Weight, ...]:
        joined_bias = Part(f"bias_ih{end}", 0, two_gates_size, f"bias_hh{end}")
        return (
            Weight(f"{place}Wx", (Part(f"weight_ih{end}"),)),
            Weight(f"{place}Wh", (Part(f"weight_hh{end}"),)),
            Weight(f"{place}b", (joined_bias, Part(f"bias_ih{end}", two_gates_size, row_count))),
            Weight(f"{place}bhn", (Part(f"bias_hh{end}", two_gates_size, row_count),)),
        )

    return _layer_row(layer, weights)


def _keras_recurrent_row(layer: Any) -> Row:
    def weights(place: str, end: str) -> tuple[Weight, ...]:
        return (
            Weight(f"{place}kernel", (Part(f"weight_ih{end}"),), _TURNED),
            Weight(f"{place}recurrent_kernel", (Part(f"weight_hh{end}"),), _TURNED),
            Weight(f"{place}bias", _bias_sum_parts(end)),
            Weight(f"{place}weight_hr", (Part(f"weight_hr{end}"),)),
        )

    return _layer_row(layer, weights, "cell.")


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

    def weights(place: str, end: str) -> tuple[Weight, ...]:
        biases = (*gate_parts(f"bias_ih{end}"), *gate_parts(f"bias_hh{end}"))
        return (
            Weight(f"{place}kernel", gate_parts(f"weight_ih{end}"), _TURNED),
            Weight(f"{place}recurrent_kernel", gate_parts(f"weight_hh{end}"), _TURNED),
            Weight(f"{place}bias", biases, "(b r) -> b r", {"b": 2}),
        )

    return _layer_row(layer, weights, "cell.")
