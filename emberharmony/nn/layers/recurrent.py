"""The recurrent layers `RNN`, `GRU`, `LSTM` and `Bidirectional`."""

import math
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, cast

from emberharmony import Parameter, ops
from emberharmony.core.errors import ArgumentError, ArgumentTypeError, ShapeError, brief
from emberharmony.core.types import DTypeLike
from emberharmony.nn import rngs, spatial
from emberharmony.nn.layers.recurrent_cells import NONLINEARITIES, pair_of_states
from emberharmony.nn.locate import fault
from emberharmony.nn.module import Module
from emberharmony.nn.options import choice_option, flag_option, length_option, share_option
from emberharmony.types import Tensor, TensorLike

States: TypeAlias = Sequence[Any]
"""The outputs or state of a layer, and for an LSTM also its cell state, each (1, batch, hidden)."""


class _Recurrent(Module):
    """The base of recurrent layers: a stack of layers, each of which runs in one or two directions."""

    _gates = 1

    def _create_parameters(
        self,
        sizes: tuple[int, int],
        num_layers: int,
        bias: bool,
        batch_first: bool,
        dropout: float,
        bidirectional: bool,
        rng: "rngs.Generator | rngs.Rngs | None",
        dtype: DTypeLike | None,
        proj_size: int = 0,
    ) -> None:
        self.input_size, self.hidden_size = (
            length_option("input_size", sizes[0]),
            length_option("hidden_size", sizes[1]),
        )
        self.num_layers, self.bias = length_option("num_layers", num_layers), flag_option("bias", bias)
        self.batch_first, self.bidirectional = bool(batch_first), bool(bidirectional)
        self.dropout = share_option("dropout", dropout)
        self._proj_size = proj_size
        self._names: list[list[str]] = []  # parameter names of each layer and direction
        generator, bound = rngs.generator(rng), 1 / math.sqrt(self.hidden_size)
        self.rng = rngs.generator(rng, "dropout") if dropout and num_layers > 1 else None
        row_count, output_size = self._gates * self.hidden_size, proj_size or self.hidden_size
        for layer in range(self.num_layers):
            input_width = output_size * (1 + self.bidirectional) if layer else self.input_size
            for suffix in ("", "_reverse")[: 1 + self.bidirectional]:
                shape_by_kind: dict[str, tuple[int, ...]] = {
                    "weight_ih": (row_count, input_width),
                    "weight_hh": (row_count, output_size),
                }
                if bias:
                    shape_by_kind |= {"bias_ih": (row_count,), "bias_hh": (row_count,)}
                if proj_size:
                    shape_by_kind["weight_hr"] = (proj_size, self.hidden_size)
                shape_by_name = {f"{name}_l{layer}{suffix}": shape for name, shape in shape_by_kind.items()}
                self._names.append(list(shape_by_name))
                for name, shape in shape_by_name.items():
                    setattr(self, name, Parameter(rngs.uniform(generator, shape, bound, dtype)))

    def _run_direction(self, x: Tensor, states: States, names: list[str], time_major: bool, reverse: bool) -> States:
        """Runs one layer in one direction over a sequence, and returns its outputs and last states."""
        raise NotImplementedError

    def _weights_and_biases(self, names: list[str]) -> tuple[Any, Any, Any, Any]:
        """Returns the two weight matrices of one layer and direction, and its two biases or None."""
        biases = (getattr(self, names[2]), getattr(self, names[3])) if self.bias else (None, None)
        return getattr(self, names[0]), getattr(self, names[1]), *biases

    def _run_layers(self, x: TensorLike, given_states: "tuple[TensorLike, ...] | None") -> "tuple[Tensor, States]":
        """Runs all layers over an input, and returns the outputs of the last layer and the last states of all."""
        x = spatial.to_tensor(x)
        input_shape = x.shape
        if len(input_shape) not in (2, 3) or input_shape[-1] != self.input_size:
            axes_text = "(batch, time, {0})" if self.batch_first else "(time, batch, {0})"
            raise fault(
                ShapeError(
                    f"expected an input of shape {axes_text.format(self.input_size)} or (time, {self.input_size}), got "
                    f"{tuple(input_shape)}"
                )
            )
        is_single = len(input_shape) == 2
        time_major = is_single or not self.batch_first
        if given_states is None and not is_single and len(self._names) == 1:
            x, *end_states = self._run_direction(x, (None, None), self._names[0], time_major, False)
            return x, end_states
        x = ops.expand_dims(x, 1) if is_single else x
        first_states = self._initial_states(x.shape[1] if time_major else x.shape[0], is_single, given_states)
        last_states: list[States] = []
        for layer in range(self.num_layers):
            if layer and self.rng is not None and self.training:
                x = ops.dropout(x, self.dropout, generator=self.rng)
            outputs = []
            for reverse in (False, True) if self.bidirectional else (False,):
                weight_names = self._names[len(last_states)]
                output, *end_states = self._run_direction(
                    x, first_states[len(last_states)], weight_names, time_major, reverse
                )
                outputs.append(output)
                last_states.append(end_states)
            x = ops.concatenate(outputs, -1) if self.bidirectional else outputs[0]
        states = (
            last_states[0]
            if len(last_states) == 1
            else [ops.concatenate(states) for states in zip(*last_states, strict=True)]
        )
        return (ops.squeeze(x, 1), [ops.squeeze(state, 1) for state in states]) if is_single else (x, states)

    def _initial_states(self, batch: int, is_single: bool, given_states: "tuple[TensorLike, ...] | None") -> list[Any]:
        """Returns the initial states of each layer and direction after a check; None stands for zeros.

        Raises:
            ShapeError: if those that are given do not fit.
        """
        state_count, widths = len(self._names), (self._proj_size or self.hidden_size, self.hidden_size)
        if given_states is None:
            return [(None, None)] * state_count
        states = []
        for state_text, width, state in zip(("the state", "the cell state"), widths, given_states, strict=False):
            state = ops.convert_to_tensor(state)
            state_shape = (state_count, width) if is_single else (state_count, batch, width)
            if tuple(state.shape) != state_shape:
                raise fault(
                    ShapeError(
                        f"expected {state_text} of shape {state_shape}, where {state_count} is layers * directions, "
                        f"got {tuple(state.shape)}"
                    )
                )
            state = ops.expand_dims(state, 1) if is_single else state
            states.append(ops.split(state, state_count) if state_count > 1 else [state])
        return list(zip(*states, strict=True))


class RNN(_Recurrent):
    """A simple recurrent layer: `h[t] = tanh(weight_ih @ x[t] + bias_ih + weight_hh @ h[t - 1] + bias_hh)`.

    A call takes the input and the first states `hx`, zeros if None, and returns the outputs and the last states. With
    `bidirectional`, a second layer begins at the last time step, and its outputs follow those of the first on the last
    axis.

    Shape: x (time, batch, input_size) to (time, batch, directions * hidden_size), or with `batch_first` (batch, time,
    ...), or without the batch. The states are (num_layers * directions, batch, hidden_size).

    Args:
        input_size: the length of the last axis of the input.
        hidden_size: the length of the last axis of the states.
        num_layers: how many layers stand one above the other.
        nonlinearity: the function of the sum that gives the new state, "tanh" or "relu".
        bias: whether biases are added.
        batch_first: whether the first axis of the input is the batch; that of the states is not.
        dropout: in training, the probability with which an output of a layer is dropped; the last layer's are not.
        bidirectional: whether a second layer runs backward through the time.
        rng: draws the initial values, which are uniform within 1 / sqrt(hidden_size), as in PyTorch, and the masks of
            dropout.
        dtype: the dtype of the parameters; None is the default floating dtype.

    Attributes:
        weight_ih_l0: (hidden_size, input_size); with `_reverse` at its end that of the second direction.
        weight_hh_l0: (hidden_size, hidden_size).
        bias_ih_l0, bias_hh_l0: (hidden_size,), absent without bias.

    Raises:
        ArgumentError: if an option is none of those above.

    Example:
        >>> layer = nn.RNN(3, 4, num_layers=2)
        >>> outputs, states = layer(ops.ones((5, 2, 3)))
        >>> tuple(outputs.shape), tuple(states.shape)
        ((5, 2, 4), (2, 2, 4))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        rng: "rngs.Generator | rngs.Rngs | None" = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        self.nonlinearity = choice_option("nonlinearity", nonlinearity, NONLINEARITIES)
        self._create_parameters(
            (input_size, hidden_size), num_layers, bias, batch_first, dropout, bidirectional, rng, dtype
        )

    def _run_direction(self, x: Tensor, states: States, names: list[str], time_major: bool, reverse: bool) -> States:
        activation = cast("Literal['tanh', 'relu']", self.nonlinearity)
        return ops.rnn(x, *self._weights_and_biases(names), states[0], activation, time_major, reverse, True)

    def __call__(self, x: TensorLike, hx: TensorLike | None = None) -> tuple[Tensor, Tensor]:
        outputs, (last_states,) = self._run_layers(x, None if hx is None else (hx,))
        return outputs, last_states


class GRU(_Recurrent):
    """A gated recurrent unit, with the formulas of PyTorch.

    A call takes the input and the first states `hx`, zeros if None, and returns the outputs and the last states.

    Shape: as those of `RNN`.

    Args:
        input_size: the length of the last axis of the input.
        hidden_size: the length of the last axis of the states.
        num_layers: how many layers stand one above the other.
        bias: whether biases are added.
        batch_first: whether the first axis of the input is the batch; that of the states is not.
        dropout: in training, the probability with which an output of a layer is dropped; the last layer's are not.
        bidirectional: whether a second layer runs backward through the time.
        rng: draws the initial values, which are uniform within 1 / sqrt(hidden_size), as in PyTorch, and the masks of
            dropout.
        dtype: the dtype of the parameters; None is the default floating dtype.

    Attributes:
        weight_ih_l0: (3 * hidden_size, input_size), the rows of the reset gate, the update gate and the new value.
        weight_hh_l0: (3 * hidden_size, hidden_size).
        bias_ih_l0, bias_hh_l0: (3 * hidden_size,), absent without bias.

    Raises:
        ArgumentError: if an option is none of those above.

    Example:
        >>> layer = nn.GRU(3, 4, bidirectional=True, batch_first=True)
        >>> outputs, states = layer(ops.ones((2, 5, 3)))
        >>> tuple(outputs.shape), tuple(states.shape)
        ((2, 5, 8), (2, 2, 4))

    Source: Cho et al., Learning phrase representations using RNN encoder-decoder, 2014.
    """

    _gates = 3

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        rng: "rngs.Generator | rngs.Rngs | None" = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        self._create_parameters(
            (input_size, hidden_size), num_layers, bias, batch_first, dropout, bidirectional, rng, dtype
        )

    def _run_direction(self, x: Tensor, states: States, names: list[str], time_major: bool, reverse: bool) -> States:
        return ops.gru(x, *self._weights_and_biases(names), states[0], time_major, reverse, True)

    def __call__(self, x: TensorLike, hx: TensorLike | None = None) -> tuple[Tensor, Tensor]:
        outputs, (last_states,) = self._run_layers(x, None if hx is None else (hx,))
        return outputs, last_states


class LSTM(_Recurrent):
    """A long short-term memory, with the formulas of PyTorch.

    A call takes the input and a pair `hx` of the first states and cell states, zeros if None, and returns the outputs
    and the pair of the last ones.

    Shape: as those of `RNN`; with `proj_size` that is the width of the outputs and states, while that of the cell
    states is `hidden_size`.

    Args:
        input_size: the length of the last axis of the input.
        hidden_size: the length of the last axis of the states.
        num_layers: how many layers stand one above the other.
        bias: whether biases are added.
        batch_first: whether the first axis of the input is the batch; that of the states is not.
        dropout: in training, the probability with which an output of a layer is dropped; the last layer's are not.
        bidirectional: whether a second layer runs backward through the time.
        proj_size: the width to which a matrix reduces the state after each step; 0 leaves it as it is.
        rng: draws the initial values, which are uniform within 1 / sqrt(hidden_size), as in PyTorch, and the masks of
            dropout.
        dtype: the dtype of the parameters; None is the default floating dtype.

    Attributes:
        weight_ih_l0: (4 * hidden_size, input_size), the rows of the input, forget, cell and output gates.
        weight_hh_l0: (4 * hidden_size, proj_size or hidden_size).
        bias_ih_l0, bias_hh_l0: (4 * hidden_size,), absent without bias.
        weight_hr_l0: (proj_size, hidden_size), absent without `proj_size`.

    Raises:
        ArgumentError: if an option is none of those above.

    Example:
        >>> layer = nn.LSTM(3, 4, proj_size=2)
        >>> outputs, (h, c) = layer(ops.ones((5, 2, 3)))
        >>> tuple(outputs.shape), tuple(h.shape), tuple(c.shape)
        ((5, 2, 2), (1, 2, 2), (1, 2, 4))

    Source: Hochreiter and Schmidhuber, Long short-term memory, 1997; for `proj_size` Sak et al., 2014.
    """

    _gates = 4

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        *,
        rng: "rngs.Generator | rngs.Rngs | None" = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        self.proj_size = length_option("proj_size", proj_size, 0)
        if proj_size >= length_option("hidden_size", hidden_size):
            raise fault(ArgumentError(f"proj_size must be smaller than hidden_size, {hidden_size}, got {proj_size}"))
        self._create_parameters(
            (input_size, hidden_size), num_layers, bias, batch_first, dropout, bidirectional, rng, dtype, proj_size
        )

    def _run_direction(self, x: Tensor, states: States, names: list[str], time_major: bool, reverse: bool) -> States:
        h, c = states
        weight_hr = getattr(self, names[-1]) if self.proj_size else None
        return ops.lstm(x, *self._weights_and_biases(names), h, c, weight_hr, time_major, reverse, True)

    def __call__(
        self, x: TensorLike, hx: "tuple[TensorLike, TensorLike] | None" = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        outputs, (last_states, last_cell_states) = self._run_layers(x, None if hx is None else pair_of_states(hx))
        return outputs, (last_states, last_cell_states)


class Bidirectional(Module):
    """Runs one recurrent layer forward and another one backward through the time, and merges their outputs.

    `RNN`, `GRU` and `LSTM` have an option for this; this module takes any layer that returns `(outputs, states)`, and
    merges in other ways too.

    Shape: as those of the layers.

    Args:
        forward_layer: the layer that reads the sequences from their beginning.
        backward_layer: runs backward; its outputs are put back in the order of time.
        merge: "concat" on the last axis, "sum", "mul", "ave", or None for the pair of both.
        time_axis: the axis of the time; None is 1 for a layer with `batch_first`, and else 0.

    Raises:
        ArgumentError: if `merge` is none of those.

    Example:
        >>> layer = nn.Bidirectional(nn.GRU(3, 4), nn.GRU(3, 4), merge="sum")
        >>> outputs, states = layer(ops.ones((5, 2, 3)))
        >>> tuple(outputs.shape), [tuple(state.shape) for state in states]
        ((5, 2, 4), [(1, 2, 4), (1, 2, 4)])

    Source: `keras.layers.Bidirectional`.
    """

    def __init__(
        self,
        forward_layer: Module,
        backward_layer: Module,
        merge: Literal["concat", "sum", "mul", "ave"] | None = "concat",
        time_axis: int | None = None,
    ) -> None:
        for name, layer in (("forward_layer", forward_layer), ("backward_layer", backward_layer)):
            if not isinstance(layer, Module):
                raise fault(ArgumentTypeError(f"{name} must be a module, got {brief(layer)}"))
        if forward_layer is backward_layer:
            raise fault(ArgumentError("forward_layer and backward_layer must be two layers, got one for both"))
        self.forward_layer, self.backward_layer = forward_layer, backward_layer
        self.merge = None if merge is None else choice_option("merge", merge, ("concat", "sum", "mul", "ave"))
        self.time_axis = int(getattr(forward_layer, "batch_first", False)) if time_axis is None else time_axis

    def __call__(self, x: TensorLike, hx: "tuple[Any, Any] | None" = None) -> tuple[Any, tuple[Any, Any]]:
        x = ops.convert_to_tensor(x)
        first_states = (None, None) if hx is None else hx
        axis = 0 if len(x.shape) == 2 else self.time_axis
        forward_output, forward_state = self.forward_layer(x, first_states[0])
        backward_output, backward_state = self.backward_layer(ops.flip(x, axis), first_states[1])
        return self._merge_directions(forward_output, ops.flip(backward_output, axis)), (forward_state, backward_state)

    def _merge_directions(self, forward_output: Tensor, backward_output: Tensor) -> Any:
        if self.merge is None:
            return forward_output, backward_output
        if self.merge == "concat":
            return ops.concatenate([forward_output, backward_output], -1)
        if self.merge == "mul":
            return ops.multiply(forward_output, backward_output)
        sum_of_outputs = ops.add(forward_output, backward_output)
        return ops.multiply(sum_of_outputs, 0.5) if self.merge == "ave" else sum_of_outputs
