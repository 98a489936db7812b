"""Operators of ATen that compute recurrent layers, such as `lstm`."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from emberharmony import ops
from emberharmony.interop.torch.aten.table import aten


def _run_layers(
    cell: Callable[..., Any],
    x: Any,
    states: Sequence[Any],
    params: Sequence[Any],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Any, ...]:
    """Returns the output of a stack of recurrent layers, and the last states of all layers."""
    direction_count = 2 if bidirectional else 1
    weights_per_cell = len(params) // (num_layers * direction_count)
    has_projection = weights_per_cell == (5 if has_biases else 3)
    last_states_of_cells: list[list[Any]] = []
    has_batch = len(x.shape) == 3
    if not has_batch:
        x, states = ops.expand_dims(x, 0 if batch_first else 1), [ops.expand_dims(state, 1) for state in states]
    for layer in range(num_layers):
        direction_outputs = []
        for direction in range(direction_count):
            cell_index = layer * direction_count + direction
            weights = list(params[cell_index * weights_per_cell : (cell_index + 1) * weights_per_cell])
            weight_options = {"weight_hr": weights.pop()} if has_projection else {}
            biases = weights[2:] if has_biases else [None, None]
            output, *last_states = cell(
                x,
                *weights[:2],
                *biases,
                *[ops.get_item(state, cell_index) for state in states],
                time_major=not batch_first,
                reverse=bool(direction),
                **weight_options,
            )
            direction_outputs.append(output)
            last_states_of_cells.append(last_states)
        x = ops.concatenate(direction_outputs, axis=-1) if bidirectional else direction_outputs[0]
        if dropout and train and layer < num_layers - 1:
            x = ops.dropout(x, dropout)
    end_states = [ops.stack(list(each)) for each in zip(*last_states_of_cells, strict=True)]
    if not has_batch:
        x, end_states = ops.squeeze(x, 0 if batch_first else 1), [ops.squeeze(end, 1) for end in end_states]
    return (x, *end_states)


@aten("lstm.input")
def lstm(x: Any, hx: Sequence[Any], params: Sequence[Any], *options: Any) -> tuple[Any, ...]:
    """Returns the output of a stack of LSTM layers, and the last outputs and cell states of all layers."""
    return _run_layers(ops.lstm, x, hx, params, *options)


@aten("gru.input")
def gru(x: Any, hx: Any, params: Sequence[Any], *options: Any) -> tuple[Any, ...]:
    """Returns the output of a stack of GRU layers, and the last outputs of all layers."""
    return _run_layers(ops.gru, x, [hx], params, *options)


@aten("rnn_tanh.input")
def rnn_tanh(x: Any, hx: Any, params: Sequence[Any], *options: Any) -> tuple[Any, ...]:
    """Returns the output of a stack of recurrent layers with tanh, and the last outputs of all layers."""
    return _run_layers(partial(ops.rnn, activation="tanh"), x, [hx], params, *options)


@aten("rnn_relu.input")
def rnn_relu(x: Any, hx: Any, params: Sequence[Any], *options: Any) -> tuple[Any, ...]:
    """Returns the output of a stack of recurrent layers with relu, and the last outputs of all layers."""
    return _run_layers(partial(ops.rnn, activation="relu"), x, [hx], params, *options)
