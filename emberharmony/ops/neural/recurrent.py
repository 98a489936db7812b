"""Recurrent layers over sequences: one layer in one direction.

Sequences are (batch, time, features); with `time_major=True` (time, batch, features). The weights are those of PyTorch:
`weight_ih` (gates * hidden, features) for the input and `weight_hh` (gates * hidden, hidden) for the state, with a bias
for each. A state is (batch, hidden), and zero if it is None. With `layer_axis=True` the given and the returned states
are (1, batch, hidden), as those of `torch.nn`, which have an axis of layers. With `reverse=True` the layer reads the
sequences from their ends; each output stays at the place of its input.

Dtype: the promoted dtype of the tensors, integers become the default float; half precision is computed in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import op
from emberharmony.core.numeric.promotion import as_inexact
from emberharmony.core.types import Tensor, TensorLike
from emberharmony.ops.algebra.products import matmul
from emberharmony.ops.arrays.creation import zeros
from emberharmony.ops.arrays.shape import expand_dims, matrix_transpose, reshape, split, squeeze, stack, unstack
from emberharmony.ops.device import get_device
from emberharmony.ops.dtype import dtype, result_type
from emberharmony.ops.elementwise.elementary import tanh
from emberharmony.ops.math import add, multiply, subtract
from emberharmony.ops.neural.activation import relu, sigmoid
from emberharmony.ops.tensor import cast

if TYPE_CHECKING:
    from emberharmony.backend.shared.neural import recurrent as shared_recurrent
    from emberharmony.core.dtypes import DType
else:
    shared_recurrent = Deferred("emberharmony.backend.shared.neural.recurrent")


@op(autocast="half")
def rnn(
    x: TensorLike,
    weight_ih: TensorLike,
    weight_hh: TensorLike,
    bias_ih: TensorLike | None = None,
    bias_hh: TensorLike | None = None,
    h: TensorLike | None = None,
    activation: Literal["tanh", "relu"] = "tanh",
    time_major: bool = False,
    reverse: bool = False,
    layer_axis: bool = False,
) -> tuple[Tensor, Tensor]:
    """Returns the states of a plain recurrent layer, `h = tanh(weight_ih x + bias_ih + weight_hh h + bias_hh)`.

    Args:
        activation: "relu" replaces the hyperbolic tangent.

    Returns:
        The states of all times, (batch, time, hidden), and the last state, (batch, hidden).

    Raises:
        ArgumentError: if the activation is unknown.
        ShapeError: if the shapes do not fit together, or if the sequences have no element.

    See also: `nn.RNN`, the layer; `gru`, with gates; `lstm`, with a cell.

    Example:
        >>> states, last = ops.rnn([[[1.0], [2.0]]], [[1.0]], [[10.0]], activation="relu")
        >>> states.tolist(), last.tolist()
        ([[[1.0], [12.0]]], [[12.0]])

    Source: `torch.nn.RNN`.
    """
    shared_recurrent.check_activation(activation)
    batch, hidden, _ = shared_recurrent.check_recurrent(1, x, (weight_ih, weight_hh, bias_ih, bias_hh), time_major)
    shared_recurrent.check_state("h", h, batch, hidden, layer_axis)
    dtype, wide_dtype = result_and_compute_dtypes(x, weight_ih, weight_hh, bias_ih, bias_hh, h)
    input_gates = _input_gates(x, weight_ih, (bias_ih, bias_hh), wide_dtype, time_major)
    transposed_hh = matrix_transpose(_cast_if_needed(weight_hh, wide_dtype))
    state = _initial_state(h, batch, hidden, wide_dtype, x, layer_axis)
    activation_function = tanh if activation == "tanh" else relu
    states = []
    for step_input in input_gates[::-1] if reverse else input_gates:
        state = activation_function(add(step_input, matmul(state, transposed_hh)))
        states.append(state)
    return _join_states(states, dtype, time_major, reverse), _add_layer_axis(state, dtype, layer_axis)


@op(autocast="half")
def gru(
    x: TensorLike,
    weight_ih: TensorLike,
    weight_hh: TensorLike,
    bias_ih: TensorLike | None = None,
    bias_hh: TensorLike | None = None,
    h: TensorLike | None = None,
    time_major: bool = False,
    reverse: bool = False,
    layer_axis: bool = False,
) -> tuple[Tensor, Tensor]:
    """Returns the states of a layer of gated recurrent units.

    The rows of the weights and biases are those of the reset gate r, the update gate z and the new state n, in this
    order: `n = tanh(W_in x + b_in + r * (W_hn h + b_hn))` and `h = (1 - z) * n + z * h`.

    Returns:
        The states of all times, (batch, time, hidden), and the last state, (batch, hidden).

    Raises:
        ShapeError: if the shapes do not fit together, or if the sequences have no element.

    See also: `nn.GRU`, the layer; `lstm`, with a cell; `rnn`, without gates.

    Example:
        >>> states, last = ops.gru([[[1.0], [2.0]]], [[0.0]] * 3, [[0.0]] * 3, h=[[8.0]])
        >>> states.tolist(), last.tolist()
        ([[[4.0], [2.0]]], [[2.0]])

    Source: `torch.nn.GRU`, after Cho et al., Learning phrase representations using RNN encoder-decoder, 2014.
    """
    batch, hidden, _ = shared_recurrent.check_recurrent(3, x, (weight_ih, weight_hh, bias_ih, bias_hh), time_major)
    shared_recurrent.check_state("h", h, batch, hidden, layer_axis)
    dtype, wide_dtype = result_and_compute_dtypes(x, weight_ih, weight_hh, bias_ih, bias_hh, h)
    input_gates = _input_gates(x, weight_ih, (bias_ih,), wide_dtype, time_major)
    transposed_hh, bias_hh_or_none = (
        matrix_transpose(_cast_if_needed(weight_hh, wide_dtype)),
        None if bias_hh is None else _cast_if_needed(bias_hh, wide_dtype),
    )
    state = _initial_state(h, batch, hidden, wide_dtype, x, layer_axis)
    states = []
    for step_input in input_gates[::-1] if reverse else input_gates:
        state_gates = matmul(state, transposed_hh)
        state_gates = state_gates if bias_hh_or_none is None else add(state_gates, bias_hh_or_none)
        input_reset, input_update, candidate = split(step_input, 3, -1)
        state_reset, state_update, state_candidate = split(state_gates, 3, -1)
        candidate = tanh(add(candidate, multiply(sigmoid(add(input_reset, state_reset)), state_candidate)))
        state = add(candidate, multiply(sigmoid(add(input_update, state_update)), subtract(state, candidate)))
        states.append(state)
    return _join_states(states, dtype, time_major, reverse), _add_layer_axis(state, dtype, layer_axis)


@op(autocast="half")
def lstm(
    x: TensorLike,
    weight_ih: TensorLike,
    weight_hh: TensorLike,
    bias_ih: TensorLike | None = None,
    bias_hh: TensorLike | None = None,
    h: TensorLike | None = None,
    c: TensorLike | None = None,
    weight_hr: TensorLike | None = None,
    time_major: bool = False,
    reverse: bool = False,
    layer_axis: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the outputs of a layer of long short-term memory.

    The rows of the weights and biases are those of the input gate i, the forget gate f, the cell g and the output gate
    o, in this order: `c = f * c + i * g` and `h = o * tanh(c)`.

    Args:
        h: the first output, (batch, hidden), or (1, batch, hidden) with `layer_axis`; None is zeros.
        c: the first cell state, (batch, hidden), or (1, batch, hidden) with `layer_axis`; None is zeros.
        weight_hr: the matrix (outputs, hidden) by which each output is multiplied; `weight_hh` then has `outputs`
            columns. None multiplies nothing.

    Returns:
        The outputs of all times, (batch, time, hidden), the last output and the last cell state, (batch, hidden).

    Raises:
        ShapeError: if the shapes do not fit together, or if the sequences have no element.

    See also: `nn.LSTM`, the layer; `gru`, without a cell; `rnn`, without gates.

    Example:
        >>> outputs, h, c = ops.lstm([[[1.0], [2.0]]], [[0.0]] * 4, [[0.0]] * 4, c=[[8.0]])
        >>> tuple(outputs.shape), c.tolist()
        ((1, 2, 1), [[2.0]])

    Source: `torch.nn.LSTM`, after Hochreiter and Schmidhuber, Long short-term memory, 1997.
    """
    batch, hidden, output_width = shared_recurrent.check_recurrent(
        4, x, (weight_ih, weight_hh, bias_ih, bias_hh), time_major, weight_hr
    )
    shared_recurrent.check_state("h", h, batch, output_width, layer_axis)
    shared_recurrent.check_state("c", c, batch, hidden, layer_axis)
    dtype, wide_dtype = result_and_compute_dtypes(x, weight_ih, weight_hh, bias_ih, bias_hh, h, c, weight_hr)
    input_gates = _input_gates(x, weight_ih, (bias_ih, bias_hh), wide_dtype, time_major)
    transposed_hh = matrix_transpose(_cast_if_needed(weight_hh, wide_dtype))
    projection = None if weight_hr is None else matrix_transpose(_cast_if_needed(weight_hr, wide_dtype))
    state = _initial_state(h, batch, output_width, wide_dtype, x, layer_axis)
    cell = _initial_state(c, batch, hidden, wide_dtype, x, layer_axis)
    states = []
    for step_input in input_gates[::-1] if reverse else input_gates:
        input_gate, forget_gate, candidate, output_gate = split(add(step_input, matmul(state, transposed_hh)), 4, -1)
        cell = add(multiply(sigmoid(forget_gate), cell), multiply(sigmoid(input_gate), tanh(candidate)))
        state = multiply(sigmoid(output_gate), tanh(cell))
        state = state if projection is None else matmul(state, projection)
        states.append(state)
    all_outputs = _join_states(states, dtype, time_major, reverse)
    return all_outputs, _add_layer_axis(state, dtype, layer_axis), _add_layer_axis(cell, dtype, layer_axis)


def multiply_vectors(x: Tensor, matrix: Tensor) -> Tensor:
    """Returns the products of the vectors of all times and samples with a matrix, as one product of two matrices.

    NumPy 2.4 multiplies a stack of matrices by a transposed one without BLAS, in 20 times the time.
    """
    axis_length1, axis_length2, features = x.shape
    return reshape(
        matmul(reshape(x, (axis_length1 * axis_length2, features)), matrix),
        (axis_length1, axis_length2, matrix.shape[1]),
    )


def result_and_compute_dtypes(*tensors: Tensor | None) -> tuple[DType, DType | str]:
    """Returns the dtype of the result, and that of the computation."""
    result_dtype = as_inexact(result_type(*[tensor for tensor in tensors if tensor is not None]))
    return result_dtype, "float32" if result_dtype.bits == 16 else result_dtype


def _cast_if_needed(x: Tensor, target_dtype: DType | str) -> Tensor:
    return x if dtype(x) == target_dtype else cast(x, target_dtype)


def _initial_state(
    state: Tensor | None, batch: int, length: int, target_dtype: DType | str, x: Tensor, layer_axis: bool
) -> Tensor:
    if state is None:
        return zeros((batch, length), target_dtype, get_device(x))
    return _cast_if_needed(squeeze(state, 0) if layer_axis else state, target_dtype)


def _add_layer_axis(state: Tensor, target_dtype: DType | str, layer_axis: bool) -> Tensor:
    state = _cast_if_needed(state, target_dtype)
    return expand_dims(state, 0) if layer_axis else state


def _input_gates(
    x: Tensor, weight: Tensor, biases: tuple[Tensor | None, ...], target_dtype: DType | str, time_major: bool
) -> Sequence[Tensor]:
    """Returns what the input contributes to the gates, time by time: one product for all times."""
    gates = multiply_vectors(_cast_if_needed(x, target_dtype), matrix_transpose(_cast_if_needed(weight, target_dtype)))
    for bias in biases:
        gates = gates if bias is None else add(gates, _cast_if_needed(bias, target_dtype))
    return unstack(gates, None, 0 if time_major else 1)


def _join_states(states: list[Tensor], kind: DType, time_major: bool, reverse: bool) -> Tensor:
    return _cast_if_needed(stack(states[::-1] if reverse else states, 0 if time_major else 1), kind)
