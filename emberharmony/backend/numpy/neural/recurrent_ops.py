"""Recurrent layers, on NumPy: the steps of an LSTM computed in place."""

from typing import TYPE_CHECKING, Any

import numpy as np

from emberharmony.core.deferred import Deferred

if TYPE_CHECKING:
    from emberharmony.backend.shared.neural import recurrent as shared_recurrent
else:
    shared_recurrent = Deferred("emberharmony.backend.shared.neural.recurrent")


_PLAIN = (np.dtype(np.float32), np.dtype(np.float64))


def _sigmoid(x: np.ndarray) -> np.ndarray:
    """Returns the sigmoid, computed in place; the exponential may overflow, which gives 0.

    `np.negative(x, x)` gives wrong values where the elements of `x` are 16 or 64 bytes apart (NumPy 2.1 to 2.4), as the
    gates of a state of length 1 are; see `docs/upstream.md`.
    """
    np.subtract(0.0, x, x)
    np.exp(x, x)
    x += 1.0
    return np.reciprocal(x, x)


class NumpyRecurrentOps:
    """Holds the ops of `ops/neural/recurrent.py`.

    The body takes 2.7 times as long, for few elements: 10 calls of ops for each step.
    """

    composed: Any

    def lstm(
        self,
        x: np.ndarray,
        weight_ih: np.ndarray,
        weight_hh: np.ndarray,
        bias_ih: np.ndarray | None = None,
        bias_hh: np.ndarray | None = None,
        h: np.ndarray | None = None,
        c: np.ndarray | None = None,
        weight_hr: np.ndarray | None = None,
        time_major: bool = False,
        reverse: bool = False,
        layer_axis: bool = False,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        weights = (weight_ih, weight_hh, bias_ih, bias_hh)
        present_tensors = [t for t in (*weights, h, c, weight_hr) if t is not None]
        if x.dtype not in _PLAIN or any(t.dtype != x.dtype for t in present_tensors):
            return self.composed("lstm")(x, *weights, h, c, weight_hr, time_major, reverse, layer_axis)
        batch_size, hidden_size, output_size = shared_recurrent.check_recurrent(4, x, weights, time_major, weight_hr)
        shared_recurrent.check_state("h", h, batch_size, output_size, layer_axis)
        shared_recurrent.check_state("c", c, batch_size, hidden_size, layer_axis)
        x_steps = x if time_major else x.swapaxes(0, 1)
        # NumPy 2.4 multiplies a stack of matrices by a transposed one without BLAS, in 20 times the time.
        gates = x_steps.reshape(len(x_steps) * batch_size, x.shape[-1]) @ weight_ih.T
        gates = gates.reshape(*x_steps.shape[:2], len(weight_ih))
        for bias in (bias_ih, bias_hh):
            if bias is not None:
                gates += bias
        states = np.empty((len(x_steps), batch_size, output_size), x.dtype)
        state = np.zeros((batch_size, output_size), x.dtype) if h is None else h.reshape(batch_size, output_size)
        cell = np.zeros((batch_size, hidden_size), x.dtype) if c is None else c.reshape(batch_size, hidden_size).copy()
        transposed_hh = np.ascontiguousarray(weight_hh.T)
        with np.errstate(over="ignore"):
            for t in reversed(range(len(x_steps))) if reverse else range(len(x_steps)):
                gate_sums = gates[t]
                gate_sums += state @ transposed_hh
                gates_in_and_forget, candidate, output_gate = (
                    gate_sums[:, : 2 * hidden_size],
                    gate_sums[:, 2 * hidden_size : 3 * hidden_size],
                    gate_sums[:, 3 * hidden_size :],
                )
                gates_in_and_forget, output_gate, candidate = (
                    _sigmoid(gates_in_and_forget),
                    _sigmoid(output_gate),
                    np.tanh(candidate, candidate),
                )
                cell *= gates_in_and_forget[:, hidden_size:]
                cell += gates_in_and_forget[:, :hidden_size] * candidate
                output_gate *= np.tanh(cell)
                states[t] = output_gate if weight_hr is None else output_gate @ weight_hr.T
                state = states[t]
        states = states if time_major else np.ascontiguousarray(states.swapaxes(0, 1))
        state = state.copy()
        return (states, state[np.newaxis], cell[np.newaxis]) if layer_axis else (states, state, cell)
