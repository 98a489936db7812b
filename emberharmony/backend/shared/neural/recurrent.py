"""Recurrent layers: checks of their arguments, which PyTorch's kernels do not make on all devices."""

from collections.abc import Sequence
from typing import Any

from emberharmony.core.errors import ArgumentError, ShapeError


def check_recurrent(
    gates: int, x: Any, weights: Sequence[Any], time_major: bool, weight_hr: Any = None
) -> tuple[int, int, int]:
    """Returns the batch size and the lengths of state and outputs of a recurrent layer, after checks of its arguments.

    Args:
        gates: the number of blocks of rows that the weights have.
        x: the sequences, (batch, time, features) or, if `time_major`, (time, batch, features).
        weights: `weight_ih` (gates * hidden, features), `weight_hh` (gates * hidden, outputs), and the biases of both,
            each None or (gates * hidden,).
        time_major: see `x`.
        weight_hr: None, or (outputs, hidden); without it the outputs are the state.

    Raises:
        ShapeError: if the shapes do not fit together, or if the sequences have no element.
    """
    shape = tuple(x.shape)
    if len(shape) != 3:
        axes_text = "(time, batch, features)" if time_major else "(batch, time, features)"
        raise ShapeError(f"expected sequences of shape {axes_text}, got {shape}")
    weight_ih, weight_hh, bias_ih, bias_hh = weights
    time, batch, features = shape if time_major else (shape[1], shape[0], shape[2])
    if not time:
        raise ShapeError("expected sequences of at least one element, got length 0")
    shape = tuple(weight_ih.shape)
    row_count = shape[0] if len(shape) == 2 else -1
    if row_count < 0 or row_count % gates or shape[1] != features:
        raise ShapeError(
            f"expected weight_ih of shape ({gates} * hidden, {features}) for {features} features, got {shape}"
        )
    hidden_size = output_size = row_count // gates
    if weight_hr is not None:
        if len(weight_hr.shape) != 2 or weight_hr.shape[1] != hidden_size:
            raise ShapeError(f"expected weight_hr of shape (outputs, {hidden_size}), got {tuple(weight_hr.shape)}")
        output_size = weight_hr.shape[0]
    if tuple(weight_hh.shape) != (row_count, output_size):
        raise ShapeError(f"expected weight_hh of shape {(row_count, output_size)}, got {tuple(weight_hh.shape)}")
    for name, bias in (("bias_ih", bias_ih), ("bias_hh", bias_hh)):
        if bias is not None and tuple(bias.shape) != (row_count,):
            raise ShapeError(f"expected {name} of shape ({row_count},), got {tuple(bias.shape)}")
    return batch, hidden_size, output_size


def check_state(name: str, state: Any, batch: int, length: int, layer_axis: bool) -> None:
    """Checks the first state of a recurrent layer, or that it is None.

    Raises:
        ShapeError: if its shape is not (batch, length) or, if `layer_axis`, (1, batch, length).
    """
    if state is None:
        return
    shape, axes_text = (
        ((1, batch, length), "(1, batch, length)") if layer_axis else ((batch, length), "(batch, length)")
    )
    if tuple(state.shape) != shape:
        raise ShapeError(f"expected {name} of shape {shape}, {axes_text}, got {tuple(state.shape)}")


def check_activation(activation: str) -> None:
    """Checks that the activation of a plain recurrent layer is "tanh" or "relu".

    Raises:
        ArgumentError: if it is neither "tanh" nor "relu".
    """
    if activation not in ("tanh", "relu"):
        raise ArgumentError(f"activation is 'tanh' or 'relu', not {activation!r:.60}")
