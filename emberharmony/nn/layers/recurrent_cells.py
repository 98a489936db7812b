"""The recurrent cells `RNNCell`, `GRUCell` and `LSTMCell`, which compute one time step."""

import math
from typing import Any

from emberharmony import Parameter, ops
from emberharmony.core.errors import ArgumentTypeError, ShapeError, brief
from emberharmony.core.types import DTypeLike
from emberharmony.nn import rngs
from emberharmony.nn.locate import fault
from emberharmony.nn.module import Module
from emberharmony.nn.options import choice_option, flag_option, length_option
from emberharmony.types import Tensor, TensorLike

NONLINEARITIES = ("tanh", "relu")


class _Cell(Module):
    """The base of recurrent cells: the weights of one step and the check of the state.

    Attributes:
        weight_ih: (gates * hidden_size, input_size).
        weight_hh: (gates * hidden_size, hidden_size).
        bias_ih, bias_hh: (gates * hidden_size,), or None.
    """

    def _create_parameters(
        self,
        gates: int,
        sizes: tuple[int, int],
        bias: bool,
        rng: "rngs.Generator | rngs.Rngs | None",
        dtype: DTypeLike | None,
    ) -> None:
        self.input_size, self.hidden_size = (
            length_option("input_size", sizes[0]),
            length_option("hidden_size", sizes[1]),
        )
        self.bias = flag_option("bias", bias)
        generator, bound, row_count = rngs.generator(rng), 1 / math.sqrt(self.hidden_size), gates * self.hidden_size
        self.weight_ih = Parameter(rngs.uniform(generator, (row_count, self.input_size), bound, dtype))
        self.weight_hh = Parameter(rngs.uniform(generator, (row_count, self.hidden_size), bound, dtype))
        self.bias_ih = Parameter(rngs.uniform(generator, (row_count,), bound, dtype)) if bias else None
        self.bias_hh = Parameter(rngs.uniform(generator, (row_count,), bound, dtype)) if bias else None

    def _state_or_zeros(self, name: str, x: Tensor, state: TensorLike | None) -> Tensor:
        """Returns the given state after a check that its shape fits the input; zeros if none is given.

        Raises:
            ShapeError: if it does not fit.
        """
        state_shape = (*x.shape[:-1], self.hidden_size)
        if state is None:
            return zeros(state_shape, self.weight_hh)
        state = ops.convert_to_tensor(state)
        if tuple(state.shape) != state_shape:
            raise fault(
                ShapeError(
                    f"expected {name} of shape {state_shape} for an input of shape {tuple(x.shape)}, got "
                    f"{tuple(state.shape)}"
                )
            )
        return state

    def _input_and_state_products(self, x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the products of the input and of the state with their weights, each with its bias."""
        return (
            ops.linear(x, self.weight_ih, self.bias_ih, True),
            ops.linear(h, self.weight_hh, self.bias_hh, True),
        )


class RNNCell(_Cell):
    """One step of `RNN`: `tanh(weight_ih @ x + bias_ih + weight_hh @ h + bias_hh)`.

    Shape: x (..., input_size) and hx (..., hidden_size) to (..., hidden_size).

    Args:
        input_size: the length of the last axis of the input.
        hidden_size: the length of the last axis of the state.
        bias: whether biases are added.
        nonlinearity: the function of the sum that gives the new state, "tanh" or "relu".
        rng: draws the initial values, which are uniform within 1 / sqrt(hidden_size), as in PyTorch.
        dtype: the dtype of the parameters; None is the default floating dtype.

    Attributes:
        weight_ih: (hidden_size, input_size).
        weight_hh: (hidden_size, hidden_size).
        bias_ih, bias_hh: (hidden_size,), or None.

    Raises:
        ArgumentError: if an option is none of those above.

    Example:
        >>> cell = nn.RNNCell(3, 4)
        >>> h = cell(ops.ones((2, 3)))
        >>> tuple(cell(ops.ones((2, 3)), h).shape)
        (2, 4)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        *,
        rng: "rngs.Generator | rngs.Rngs | None" = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        self.nonlinearity = choice_option("nonlinearity", nonlinearity, NONLINEARITIES)
        self._create_parameters(1, (input_size, hidden_size), bias, rng, dtype)

    def __call__(self, x: TensorLike, hx: TensorLike | None = None) -> Tensor:
        x = ops.convert_to_tensor(x)
        by_input, by_state = self._input_and_state_products(x, self._state_or_zeros("hx", x, hx))
        return rnn_step(by_input, by_state, self.nonlinearity)


class GRUCell(_Cell):
    """A cell that computes one time step of `GRU`.

    Shape: x (..., input_size) and hx (..., hidden_size) to (..., hidden_size).

    Args:
        input_size: the length of the last axis of the input.
        hidden_size: the length of the last axis of the state.
        bias: whether biases are added.
        rng: draws the initial values, which are uniform within 1 / sqrt(hidden_size), as in PyTorch.
        dtype: the dtype of the parameters; None is the default floating dtype.

    Attributes:
        weight_ih: (3 * hidden_size, input_size), the rows of the reset gate, the update gate and the new value.
        weight_hh: (3 * hidden_size, hidden_size).
        bias_ih, bias_hh: (3 * hidden_size,), or None.

    Example:
        >>> cell = nn.GRUCell(3, 4)
        >>> tuple(cell(ops.ones((2, 3)), ops.zeros((2, 4))).shape)
        (2, 4)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        *,
        rng: "rngs.Generator | rngs.Rngs | None" = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        self._create_parameters(3, (input_size, hidden_size), bias, rng, dtype)

    def __call__(self, x: TensorLike, hx: TensorLike | None = None) -> Tensor:
        x = ops.convert_to_tensor(x)
        h = self._state_or_zeros("hx", x, hx)
        return gru_step(*self._input_and_state_products(x, h), h)


class LSTMCell(_Cell):
    """A cell that computes one time step of `LSTM`.

    Shape: x (..., input_size) and a pair hx of shapes (..., hidden_size) to a pair of these shapes: the state, which is
    the output, and the cell state.

    Args:
        input_size: the length of the last axis of the input.
        hidden_size: the length of the last axis of the states.
        bias: whether biases are added.
        rng: draws the initial values, which are uniform within 1 / sqrt(hidden_size), as in PyTorch.
        dtype: the dtype of the parameters; None is the default floating dtype.

    Attributes:
        weight_ih: (4 * hidden_size, input_size), the rows of the input, forget, cell and output gates.
        weight_hh: (4 * hidden_size, hidden_size).
        bias_ih, bias_hh: (4 * hidden_size,), or None.

    Example:
        >>> cell = nn.LSTMCell(3, 4)
        >>> h, c = cell(ops.ones((2, 3)))
        >>> h, c = cell(ops.ones((2, 3)), (h, c))
        >>> tuple(h.shape), tuple(c.shape)
        ((2, 4), (2, 4))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        *,
        rng: "rngs.Generator | rngs.Rngs | None" = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        self._create_parameters(4, (input_size, hidden_size), bias, rng, dtype)

    def __call__(self, x: TensorLike, hx: "tuple[TensorLike, TensorLike] | None" = None) -> tuple[Tensor, Tensor]:
        x = ops.convert_to_tensor(x)
        first_states: Any = (None, None) if hx is None else pair_of_states(hx)
        h, c = (
            self._state_or_zeros("the state", x, first_states[0]),
            self._state_or_zeros("the cell state", x, first_states[1]),
        )
        by_input, by_state = self._input_and_state_products(x, h)
        return lstm_step(ops.add(by_input, by_state), c)


def zeros(shape: tuple[int, ...], weight: Any) -> Tensor:
    """Returns zeros of a shape, with the dtype and on the device of a weight."""
    return ops.to_device(ops.zeros(shape, ops.dtype(weight)), ops.get_device(weight))


def pair_of_states(hx: Any) -> "tuple[TensorLike, TensorLike]":
    """Returns the argument `hx` of an LSTM after a check that it is a pair of state and cell state.

    Raises:
        ArgumentTypeError: if it is no pair.
    """
    if not isinstance(hx, (tuple, list)) or len(hx) != 2:
        raise fault(ArgumentTypeError(f"hx must be a pair of the state and the cell state, got {brief(hx)}"))
    return hx[0], hx[1]


def rnn_step(by_input: Tensor, by_state: Tensor, nonlinearity: str) -> Tensor:
    """Returns the next state of a simple recurrent layer from the products of input and state with the weights."""
    sum_of_products = ops.add(by_input, by_state)
    return ops.tanh(sum_of_products) if nonlinearity == "tanh" else ops.relu(sum_of_products)


def gru_step(by_input: Tensor, by_state: Tensor, h: Tensor) -> Tensor:
    """Returns the next state of a GRU from the products of input and state with the weights, and the old state."""
    reset, update, candidate = ops.split(by_input, 3, -1)
    reset_h, update_h, candidate_h = ops.split(by_state, 3, -1)
    update_gate = ops.sigmoid(ops.add(update, update_h))
    candidate = ops.tanh(ops.add(candidate, ops.multiply(ops.sigmoid(ops.add(reset, reset_h)), candidate_h)))
    return ops.add(candidate, ops.multiply(update_gate, ops.subtract(h, candidate)))


def lstm_step(gates: Tensor, c: Tensor, axis: int = -1) -> tuple[Tensor, Tensor]:
    """Returns the next state and cell state of an LSTM from the sum of its gates' products and the old cell state.

    Args:
        gates: the four gates, one after the other on the axis.
    """
    input_gate, forget_gate, candidate, output_gate = ops.split(gates, 4, axis)
    c = ops.add(ops.multiply(ops.sigmoid(forget_gate), c), ops.multiply(ops.sigmoid(input_gate), ops.tanh(candidate)))
    return ops.multiply(ops.sigmoid(output_gate), ops.tanh(c)), c
