"""Rules of `ops/neural/recurrent.py`.

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
from emberharmony.ops.neural.recurrent import dtypes, lstm, product
from emberharmony.ops.reductions.reduction import sum as sum_
from emberharmony.ops.tensor import cast

T = Any


def _states_of_layer(states: T) -> T:
    """Returns the states of one layer without the axis of layers; None is none."""
    return None if states is None else squeeze(states, 0)


def _previous_states(first: T, following: T) -> T:
    """Returns the states before each time: the first one, and all others but the last."""
    return concatenate([expand_dims(first, 0), get_item(following, slice(0, -1))], 0)


def _sum_of_outer_products(rows: T, others: T) -> T:
    """Returns the sum over times and samples of the outer products of two vectors."""
    times, samples, length = rows.shape
    flat = reshape(rows, (times * samples, length))
    return matmul(matrix_transpose(flat), reshape(others, (times * samples, others.shape[-1])))


def _lstm(
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
    result_dtype, wide_dtype = dtypes(x, weight_ih, weight_hh, bias_ih, bias_hh, h, c, weight_hr)
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
    x, outputs, of_outputs = (flip(t, 0) for t in time_major_tensors) if reverse else time_major_tensors
    batch, hidden = x.shape[1], weight_ih.shape[0] // 4
    h = zeros((batch, weight_hh.shape[1]), wide_dtype, get_device(x)) if h is None else h
    c = zeros((batch, hidden), wide_dtype, get_device(x)) if c is None else c
    earlier_states = _previous_states(h, outputs)
    gates = add(product(x, matrix_transpose(weight_ih)), product(earlier_states, matrix_transpose(weight_hh)))
    for bias in (bias_ih, bias_hh):
        gates = gates if bias is None else add(gates, bias)
    activations = (sigmoid, sigmoid, tanh, sigmoid)
    input_gate, forget_gate, candidate, output_gate = [
        function(gate) for function, gate in zip(activations, split(gates, 4, -1), strict=True)
    ]
    cell, cells, forget_gates = c, [], unstack(forget_gate)
    for forget_share, change in zip(forget_gates, unstack(multiply(input_gate, candidate)), strict=True):
        cell = add(multiply(forget_share, cell), change)
        cells.append(cell)
    cell_states = stack(cells, 0)
    cell_output = tanh(cell_states)
    # The derivatives of the cell state by the output, and of the gates by both.
    inward = multiply(output_gate, subtract(1, square(cell_output)))
    factors = concatenate(
        [
            multiply(multiply(candidate, input_gate), subtract(1, input_gate)),
            multiply(multiply(_previous_states(c, cell_states), forget_gate), subtract(1, forget_gate)),
            multiply(input_gate, subtract(1, square(candidate))),
            multiply(multiply(cell_output, output_gate), subtract(1, output_gate)),
        ],
        -1,
    )
    of_h, of_c = cast(g[1], wide_dtype), cast(g[2], wide_dtype)
    of_gates, of_projected = [], []
    steps = zip(unstack(of_outputs), unstack(inward), unstack(factors), forget_gates, strict=True)
    for of_output, slope, factor, forget_share in reversed([*steps]):
        of_h = add(of_h, of_output)
        of_projected.append(of_h)
        of_state = of_h if weight_hr is None else matmul(of_h, weight_hr)
        of_c = add(of_c, multiply(of_state, slope))
        of_gate = multiply(concatenate([of_c, of_c, of_c, of_state], -1), factor)
        of_gates.append(of_gate)
        of_h, of_c = matmul(of_gate, weight_hh), multiply(of_c, forget_share)
    backward = stack(of_gates[::-1], 0)
    of_x = product(backward, weight_ih)
    of_x = flip(of_x, 0) if reverse else of_x
    of_bias = sum_(backward, (0, 1))
    of_hr = (
        None
        if weight_hr is None
        else _sum_of_outer_products(stack(of_projected[::-1], 0), multiply(output_gate, cell_output))
    )
    if layer_axis:
        of_h, of_c = expand_dims(of_h, 0), expand_dims(of_c, 0)
    return [
        of_x if time_major else swapaxes(of_x, 0, 1),
        _sum_of_outer_products(backward, x),
        _sum_of_outer_products(backward, earlier_states),
        of_bias,
        of_bias,
        of_h,
        of_c,
        of_hr,
    ]


RULES: dict[str, Any] = {"lstm": _lstm}
