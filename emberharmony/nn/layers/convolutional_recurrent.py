"""`ConvLSTM2d`, a recurrent layer whose inputs and states are images."""

from collections.abc import Sequence
from typing import Any

from emberharmony import ops
from emberharmony.core.errors import ShapeError
from emberharmony.core.types import DTypeLike
from emberharmony.nn import rngs, spatial
from emberharmony.nn.layers.convolution import Conv2d, Padding
from emberharmony.nn.layers.recurrent_cells import lstm_step, pair_of_states, zeros
from emberharmony.nn.locate import fault
from emberharmony.nn.module import Module
from emberharmony.nn.spatial import DataFormat
from emberharmony.types import Tensor, TensorLike


class ConvLSTM2d(Module):
    """A long short-term memory (LSTM) that convolves images instead of multiplying vectors by matrices.

    A call takes the images and a pair `hx` of the first state and cell state, zeros if None, and returns the outputs
    and the pair of the last ones.

    Shape: x (time, batch, in_channels, height, width) to (time, batch, out_channels, ...), or with `batch_first`
    (batch, time, ...), or without the batch. The states are (batch, out_channels, ...).

    Args:
        in_channels: the number of channels of the input.
        out_channels: the number of channels of the states.
        kernel_size: the size of both kernels: one integer, or one for each spatial axis; so for the next options.
        stride, padding, dilation: those of the convolution of the input; see `Conv2d`. The state is convolved with
            stride 1, and keeps its size.
        bias: whether a bias is added.
        batch_first: whether the first axis of the input is the batch.
        data_format: "channels_last" if the channels come after the spatial axes.
        rng: draws the initial values, which are those of `Conv2d`.
        dtype: the dtype of the parameters; None is the default floating dtype.

    Attributes:
        conv_ih: the convolution of the input, a `Conv2d` with 4 * out_channels outputs, those of the input, forget,
            cell and output gates.
        conv_hh: that of the state, without bias.

    Raises:
        ArgumentError: if an option is none that `Conv2d` takes.

    Example:
        >>> layer = nn.ConvLSTM2d(3, 4, 3, padding=1)
        >>> outputs, (h, c) = layer(ops.ones((5, 2, 3, 8, 6)))
        >>> tuple(outputs.shape), tuple(h.shape), tuple(c.shape)
        ((5, 2, 4, 8, 6), (2, 4, 8, 6), (2, 4, 8, 6))

    Source: Shi et al., Convolutional LSTM network, 2015, without peepholes, as in `keras.layers.ConvLSTM2D`.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: Padding = 0,
        dilation: int | Sequence[int] = 1,
        bias: bool = True,
        batch_first: bool = False,
        *,
        data_format: DataFormat = "channels_first",
        rng: "rngs.Generator | rngs.Rngs | None" = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        generator = rngs.generator(rng)
        convolution_options: Any = {"data_format": data_format, "rng": generator, "dtype": dtype}
        self.conv_ih = Conv2d(
            in_channels, 4 * out_channels, kernel_size, stride, padding, dilation, bias=bias, **convolution_options
        )
        self.conv_hh = Conv2d(
            out_channels, 4 * out_channels, kernel_size, padding="same", bias=False, **convolution_options
        )
        self.batch_first = batch_first
        self._channel_axis = -1 if data_format == "channels_last" else 1

    def __call__(
        self, x: TensorLike, hx: "tuple[TensorLike, TensorLike] | None" = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        x = spatial.to_tensor(x)
        if len(x.shape) not in (4, 5) or not x.shape[0] or not x.shape[1]:
            raise fault(
                ShapeError(
                    "expected images of at least one time step, of 5 axes with time and batch, or of 4 without batch, "
                    f"got shape {tuple(x.shape)}"
                )
            )
        is_single = len(x.shape) == 4
        x = ops.expand_dims(x, 1) if is_single else ops.swapaxes(x, 0, 1) if self.batch_first else x
        input_products = self.conv_ih(ops.reshape(x, (-1, *x.shape[2:])))
        time_steps = ops.unstack(ops.reshape(input_products, (*x.shape[:2], *input_products.shape[1:])))
        h, c = self._initial_states(time_steps[0], is_single, hx)
        outputs = []
        for step_products in time_steps:
            h, c = lstm_step(ops.add(step_products, self.conv_hh(h)), c, self._channel_axis)
            outputs.append(h)
        y = ops.stack(outputs, 1 if self.batch_first and not is_single else 0)
        return (ops.squeeze(y, 1), (ops.squeeze(h, 0), ops.squeeze(c, 0))) if is_single else (y, (h, c))

    def _initial_states(
        self, gates: Tensor, is_single: bool, hx: "tuple[TensorLike, TensorLike] | None"
    ) -> tuple[Tensor, Tensor]:
        """Returns the initial state and cell state with a batch axis: the given ones after a check, or zeros.

        Raises:
            ShapeError: if they do not fit.
        """
        batch_shape = list(gates.shape)
        batch_shape[self._channel_axis] //= 4
        if hx is None:
            zero_state = zeros(tuple(batch_shape), self.conv_hh.weight)
            return zero_state, zero_state
        state_shape, initial_states = tuple(batch_shape[1:] if is_single else batch_shape), []
        for state_text, given_state in zip(("the state", "the cell state"), pair_of_states(hx), strict=True):
            state = spatial.to_tensor(given_state)
            if tuple(state.shape) != state_shape:
                raise fault(ShapeError(f"expected {state_text} of shape {state_shape}, got {tuple(state.shape)}"))
            initial_states.append(ops.expand_dims(state, 0) if is_single else state)
        return initial_states[0], initial_states[1]
