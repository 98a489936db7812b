"""Gradient rules of the ops in `ops/neural/recurrent.py`.

The op is a composite, which needs no rule. With one, the tape records one node for a layer in place of a dozen for each
time, and what does not depend on the step before is computed for all times at once. The gradient of the body takes
2.3 times as long.
"""

from typing import Any

from emberharmony.ops.algebra.products import matmul
from emberharmony.ops.arrays.creation import zeros
from emberharmony.ops.arrays.indexing import get_item
from emberharmony.ops.arrays.shape import (
    concatenate,
    expand_dims,
    flip,
    matrix_transpose,
    reshape,
    split,
    squeeze,
    stack,
    swapaxes,
    unstack,
)
from emberharmony.ops.device import get_device
from emberharmony.ops.dtype import dtype
from emberharmony.ops.elementwise.elementary import tanh
from emberharmony.ops.math import add, multiply, square, subtract
from emberharmony.ops.neural.activation import sigmoid
from emberharmony.ops.neural.recurrent import lstm, multiply_vectors, result_and_compute_dtypes
from emberharmony.ops.reductions.reduction import sum as sum_
from emberharmony.ops.tensor import cast

T = Any


def _states_of_layer(states: T) -> T:
    """Returns the states of one layer without the axis of layers; None for None."""
    return None if states is None else squeeze(states, 0)


def _previous_states(first: T, following: T) -> T:
    """Returns the states before each time: the first one, and all others but the last."""
    return concatenate([expand_dims(first, 0), get_item(following, slice(0, -1))], 0)


def _sum_of_outer_products(rows: T, others: T) -> T:
    """Returns the sum over times and samples of the outer products of two vectors."""
    times, samples, length = rows.shape
    flat_rows = reshape(rows, (times * samples, length))
    return matmul(matrix_transpose(flat_rows), reshape(others, (times * samples, others.shape[-1])))


def _lstm_gradients(
    g: T,
    y: T,
    x: T,
    weight_ih: T,
    weight_hh: T,
    bias_ih: T = None,
    bias_hh: T = None,
    h: T = None,
    c: T = None,
    weight_hr: T = None,
    time_major: bool = False,
    reverse: bool = False,
    layer_axis: bool = False,
) -> list[T]:
    if layer_axis:
        g, h, c = [g[0], _states_of_layer(g[1]), _states_of_layer(g[2])], _states_of_layer(h), _states_of_layer(c)
    result_dtype, wide_dtype = result_and_compute_dtypes(x, weight_ih, weight_hh, bias_ih, bias_hh, h, c, weight_hr)
    wide_tensors = [
        t if t is None or dtype(t) == wide_dtype else cast(t, wide_dtype)
        for t in (x, weight_ih, weight_hh, bias_ih, bias_hh, h, c, weight_hr)
    ]
    x, weight_ih, weight_hh, bias_ih, bias_hh, h, c, weight_hr = wide_tensors
    # Results in half precision are rounded, so the outputs are computed again.
    outputs = y[0]
    if result_dtype != wide_dtype:
        outputs = lstm(x, weight_ih, weight_hh, bias_ih, bias_hh, h, c, weight_hr, time_major, reverse)[0]
    time_major_tensors = [t if time_major else swapaxes(t, 0, 1) for t in (x, outputs, cast(g[0], wide_dtype))]
    x, outputs, output_cotangents = (flip(t, 0) for t in time_major_tensors) if reverse else time_major_tensors
    batch_size, hidden_size = x.shape[1], weight_ih.shape[0] // 4
    h = zeros((batch_size, weight_hh.shape[1]), wide_dtype, get_device(x)) if h is None else h
    c = zeros((batch_size, hidden_size), wide_dtype, get_device(x)) if c is None else c
    earlier_states = _previous_states(h, outputs)
    gates = add(
        multiply_vectors(x, matrix_transpose(weight_ih)), multiply_vectors(earlier_states, matrix_transpose(weight_hh))
    )
    for bias in (bias_ih, bias_hh):
        gates = gates if bias is None else add(gates, bias)
    activations = (sigmoid, sigmoid, tanh, sigmoid)
    input_gate, forget_gate, candidate, output_gate = [
        function(gate) for function, gate in zip(activations, split(gates, 4, -1), strict=True)
    ]
    cell_state, cell_list, forget_gates = c, [], unstack(forget_gate)
    for forget_share, change in zip(forget_gates, unstack(multiply(input_gate, candidate)), strict=True):
        cell_state = add(multiply(forget_share, cell_state), change)
        cell_list.append(cell_state)
    cell_states = stack(cell_list, 0)
    cell_output = tanh(cell_states)
    # The derivative of the output by the cell state, and those of the cell state or output by each gate's argument.
    cell_derivative = multiply(output_gate, subtract(1, square(cell_output)))
    gate_derivatives = concatenate(
        [
            multiply(multiply(candidate, input_gate), subtract(1, input_gate)),
            multiply(multiply(_previous_states(c, cell_states), forget_gate), subtract(1, forget_gate)),
            multiply(input_gate, subtract(1, square(candidate))),
            multiply(multiply(cell_output, output_gate), subtract(1, output_gate)),
        ],
        -1,
    )
    h_gradient, c_gradient = cast(g[1], wide_dtype), cast(g[2], wide_dtype)
    gate_gradient_list, projected_gradients = [], []
    step_values = zip(
        unstack(output_cotangents), unstack(cell_derivative), unstack(gate_derivatives), forget_gates, strict=True
    )
    for output_cotangent, cell_slope, gate_derivative, forget_share in reversed([*step_values]):
        h_gradient = add(h_gradient, output_cotangent)
        projected_gradients.append(h_gradient)
        state_gradient = h_gradient if weight_hr is None else matmul(h_gradient, weight_hr)
        c_gradient = add(c_gradient, multiply(state_gradient, cell_slope))
        gate_gradient = multiply(concatenate([c_gradient, c_gradient, c_gradient, state_gradient], -1), gate_derivative)
        gate_gradient_list.append(gate_gradient)
        h_gradient, c_gradient = matmul(gate_gradient, weight_hh), multiply(c_gradient, forget_share)
    gate_gradients = stack(gate_gradient_list[::-1], 0)
    x_gradient = multiply_vectors(gate_gradients, weight_ih)
    x_gradient = flip(x_gradient, 0) if reverse else x_gradient
    bias_gradient = sum_(gate_gradients, (0, 1))
    hr_gradient = (
        None
        if weight_hr is None
        else _sum_of_outer_products(stack(projected_gradients[::-1], 0), multiply(output_gate, cell_output))
    )
    if layer_axis:
        h_gradient, c_gradient = expand_dims(h_gradient, 0), expand_dims(c_gradient, 0)
    return [
        x_gradient if time_major else swapaxes(x_gradient, 0, 1),
        _sum_of_outer_products(gate_gradients, x),
        _sum_of_outer_products(gate_gradients, earlier_states),
        bias_gradient,
        bias_gradient,
        h_gradient,
        c_gradient,
        hr_gradient,
    ]


RULES: dict[str, Any] = {"lstm": _lstm_gradients}
