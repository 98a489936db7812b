"""Sample rows of `ops/neural/recurrent.py`; the oracles step through the formulas of the docstrings."""

from typing import Any

import numpy as np
from scipy import special

from emberharmony.core.errors import ArgumentError, ShapeError
from emberharmony.testing.refused import LINE, ONES_3_4
from emberharmony.testing.sample import FLOATS, HALVES, Sample, case, grid

D: dict[str, Any] = {"dtypes": FLOATS + HALVES, "differentiable": True, "tolerance": 4}


def _test_tensor(*shape: int) -> np.ndarray[Any, Any]:
    return np.sin(grid(-30, 40, int(np.prod(shape)))).reshape(shape)


def _time_steps(x: Any, time_major: bool, reverse: bool) -> list[Any]:
    rows = list(x if time_major else x.swapaxes(0, 1))
    return rows[::-1] if reverse else rows


def _stack_states(states: list[Any], time_major: bool, reverse: bool) -> Any:
    return np.stack(states[::-1] if reverse else states, 0 if time_major else 1)


def _state_or_zeros(h: Any, x: Any, length: int, time_major: bool, layer_axis: bool) -> Any:
    if h is None:
        return np.zeros((x.shape[1 if time_major else 0], length))
    return h[0] if layer_axis else h


def _add_layer_axis(state: Any, layer_axis: bool) -> Any:
    return state[np.newaxis] if layer_axis else state


def _rnn_oracle(
    x: Any,
    wi: Any,
    wh: Any,
    bi: Any = None,
    bh: Any = None,
    h: Any = None,
    activation: str = "tanh",
    time_major: bool = False,
    reverse: bool = False,
    layer_axis: bool = False,
) -> Any:
    state, states = _state_or_zeros(h, x, wh.shape[1], time_major, layer_axis), []
    for row in _time_steps(x, time_major, reverse):
        preactivation = row @ wi.T + state @ wh.T + (0 if bi is None else bi) + (0 if bh is None else bh)
        state = np.tanh(preactivation) if activation == "tanh" else np.maximum(preactivation, 0)
        states.append(state)
    return _stack_states(states, time_major, reverse), _add_layer_axis(state, layer_axis)


def _gru_oracle(
    x: Any,
    wi: Any,
    wh: Any,
    bi: Any = None,
    bh: Any = None,
    h: Any = None,
    time_major: bool = False,
    reverse: bool = False,
    layer_axis: bool = False,
) -> Any:
    state, states = _state_or_zeros(h, x, wh.shape[1], time_major, layer_axis), []
    for row in _time_steps(x, time_major, reverse):
        input_part, state_part = row @ wi.T + (0 if bi is None else bi), state @ wh.T + (0 if bh is None else bh)
        (r, z, n), (reset_state_part, update_state_part, new_state_part) = (
            np.split(input_part, 3, -1),
            np.split(state_part, 3, -1),
        )
        candidate = np.tanh(n + special.expit(r + reset_state_part) * new_state_part)
        update_gate = special.expit(z + update_state_part)
        state = (1 - update_gate) * candidate + update_gate * state
        states.append(state)
    return _stack_states(states, time_major, reverse), _add_layer_axis(state, layer_axis)


def _lstm_oracle(
    x: Any,
    wi: Any,
    wh: Any,
    bi: Any = None,
    bh: Any = None,
    h: Any = None,
    c: Any = None,
    weight_hr: Any = None,
    time_major: bool = False,
    reverse: bool = False,
    layer_axis: bool = False,
) -> Any:
    state, cell = (_state_or_zeros(t, x, n, time_major, layer_axis) for t, n in ((h, wh.shape[1]), (c, len(wi) // 4)))
    states = []
    for row in _time_steps(x, time_major, reverse):
        preactivations = row @ wi.T + state @ wh.T + (0 if bi is None else bi) + (0 if bh is None else bh)
        i, f, g, o = np.split(preactivations, 4, -1)
        cell = special.expit(f) * cell + special.expit(i) * np.tanh(g)
        state = special.expit(o) * np.tanh(cell)
        state = state if weight_hr is None else state @ weight_hr.T
        states.append(state)
    return (
        _stack_states(states, time_major, reverse),
        _add_layer_axis(state, layer_axis),
        _add_layer_axis(cell, layer_axis),
    )


_X, _H, _C = _test_tensor(2, 4, 3), _test_tensor(2, 5), _test_tensor(2, 5) + 0.5

SAMPLES = [
    Sample(
        "rnn",
        _rnn_oracle,
        (
            case(_X, _test_tensor(5, 3), _test_tensor(5, 5) / 2),
            case(_X, _test_tensor(5, 3), _test_tensor(5, 5) / 2, _test_tensor(5), None, _H, "tanh", False, True),
            case(
                _X.swapaxes(0, 1), _test_tensor(5, 3), _test_tensor(5, 5) / 2, _test_tensor(5), _H[0], time_major=True
            ),
            case(_X, _test_tensor(5, 3), _test_tensor(5, 5) / 4, None, _H[0], activation="relu"),
            case(_X, _test_tensor(5, 3), _test_tensor(5, 5) / 2, h=_H[np.newaxis], layer_axis=True),
        ),
        result=("promoted", "promoted"),
        **D,
        refuses=(
            (ShapeError, case(LINE, ONES_3_4, ONES_3_4)),
            (ArgumentError, case(LINE, ONES_3_4, ONES_3_4, activation="gelu")),
        ),
    ),
    Sample(
        "gru",
        _gru_oracle,
        (
            case(_X, _test_tensor(15, 3), _test_tensor(15, 5) / 2),
            case(
                _X,
                _test_tensor(15, 3),
                _test_tensor(15, 5) / 2,
                _test_tensor(15),
                _test_tensor(15) / 3,
                _H,
                False,
                True,
            ),
            case(
                _X.swapaxes(0, 1), _test_tensor(15, 3), _test_tensor(15, 5) / 2, None, _test_tensor(15), time_major=True
            ),
            case(_X, _test_tensor(15, 3), _test_tensor(15, 5) / 2, h=_H[np.newaxis], reverse=True, layer_axis=True),
        ),
        result=("promoted", "promoted"),
        **D,
        refuses=((ShapeError, case(LINE, ONES_3_4, ONES_3_4)),),
    ),
    Sample(
        "lstm",
        _lstm_oracle,
        (
            case(_X, _test_tensor(20, 3), _test_tensor(20, 5) / 2),
            case(
                _X,
                _test_tensor(20, 3),
                _test_tensor(20, 5) / 2,
                _test_tensor(20),
                _test_tensor(20) / 3,
                _H,
                _C,
                None,
                False,
                True,
            ),
            case(
                _X.swapaxes(0, 1),
                _test_tensor(20, 3),
                _test_tensor(20, 5) / 2,
                None,
                _test_tensor(20),
                None,
                _C,
                time_major=True,
            ),
            case(_X, _test_tensor(20, 3), _test_tensor(20, 2), _test_tensor(20), weight_hr=_test_tensor(2, 5)),
            case(_X, _test_tensor(20, 3), _test_tensor(20, 5) / 2, c=_C[np.newaxis], layer_axis=True),
        ),
        result=("promoted", "promoted", "promoted"),
        **D,
        refuses=((ShapeError, case(LINE, ONES_3_4, ONES_3_4)),),
    ),
]
