"""Recurrent layers, on PyTorch: its own kernels, except inside of `torch.func` and of the forward mode.

The kernels (PyTorch 2.13) have no batching rule for `vmap`, that of `lstm` has no forward mode on a CPU, and those of
CUDA have no second derivatives.
"""

from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import torch
from torch.autograd import forward_ad

from emberharmony.backend.torch.dtypes import promotion
from emberharmony.backend.torch.tracing import HAS_VALUES, is_watched
from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import fast

if TYPE_CHECKING:
    from emberharmony.backend.shared.neural import recurrent as shared_recurrent
else:
    shared_recurrent = Deferred("emberharmony.backend.shared.neural.recurrent")

Native = Callable[..., tuple[torch.Tensor, ...]]
_VF: Any = torch._VF
_DTYPE, _REQUIRES_GRAD = attrgetter("dtype"), attrgetter("requires_grad")
_IS_COMPLEX, _NUMEL = torch.Tensor.is_complex, torch.Tensor.numel
_PLAIN, _GRU, _LSTM = {"tanh": _VF.rnn_tanh, "relu": _VF.rnn_relu}, _VF.gru, _VF.lstm
_WIDE = frozenset((torch.float32, torch.float64))


def _has_native_kernel(tensors: list[torch.Tensor]) -> bool:
    """Returns whether PyTorch's kernels can compute a layer of these tensors and the derivatives it may need."""
    if torch.compiler.is_compiling() or forward_ad._current_level >= 0:
        return False
    if torch._C._functorch.peek_interpreter_stack() is not None:
        return False
    if not all(map(_NUMEL, tensors)) or any(map(_IS_COMPLEX, tensors)):
        return False
    return tensors[0].is_cpu or not is_watched(2)


def _run_layer(
    native: Native,
    tensors: list[torch.Tensor],
    weights: list[Any],
    states: list[Any],
    state_shapes: list[tuple[int, int, int]],
    time_major: bool,
    reverse: bool,
    layer_axis: bool,
) -> tuple[torch.Tensor, ...]:
    """Returns the outputs of a recurrent layer, computed by PyTorch's kernel, and its last states.

    Args:
        native: the kernel.
        tensors: the sequences, then the weights and states that are not None.
        weights: two matrices, two biases or None, and further matrices.
        states: the first states, each a tensor or None.
        state_shapes: the shapes of the states, with the axis of layers that the kernel expects.
        time_major: whether the first axis of the sequences is the time.
        reverse: whether to begin at the end.
        layer_axis: whether the given and the returned states have an axis of layers.
    """
    # On a CPU a layer that needs no gradients is faster if it is not in training.
    needs_gradient = torch.is_grad_enabled() and any(map(_REQUIRES_GRAD, tensors))
    x = tensors[0]
    result_dtype = wide_dtype = x.dtype
    if result_dtype not in _WIDE or {*map(_DTYPE, tensors)} != {result_dtype}:
        x, *tensors = promotion.common(*tensors, inexact=True)
        result_dtype = x.dtype
        wide_dtype = torch.float32 if result_dtype.itemsize == 2 and x.is_cpu else result_dtype
        x, other_tensors = x.to(wide_dtype), iter(tensors)
        weights = [None if w is None else next(other_tensors).to(wide_dtype) for w in weights]
        states = [None if state is None else next(other_tensors).to(wide_dtype) for state in states]
    has_bias = weights[2] is not None or weights[3] is not None
    if weights[2] is None or weights[3] is None:
        weights = [x.new_zeros(weights[0].shape[:1]) if w is None else w for w in weights if has_bias or w is not None]
    first_states = []
    for state, shape in zip(states, state_shapes, strict=True):
        first_states.append(x.new_zeros(shape) if state is None else state if layer_axis else state.unsqueeze(0))
    initial_states: Any = first_states if len(first_states) > 1 else first_states[0]
    x = x.flip(0 if time_major else 1) if reverse else x
    layer_results = native(x, initial_states, weights, has_bias, 1, 0.0, needs_gradient, False, not time_major)
    if reverse or not layer_axis:
        outputs, *last_states = layer_results
        outputs = outputs.flip(0 if time_major else 1) if reverse else outputs
        layer_results = (outputs, *(last_states if layer_axis else [state.squeeze(0) for state in last_states]))
    return layer_results if wide_dtype is result_dtype else tuple([t.to(result_dtype) for t in layer_results])


_PLAIN_TENSORS = (
    f"{HAS_VALUES} and {{1}}.__class__ is {{2}}.__class__ is {{3}}.__class__ is {{4}}.__class__ is native_type "
    "and {0}.dtype is {1}.dtype is {2}.dtype is {3}.dtype is {4}.dtype is native_float32"
)
"""When a layer of float32 has both biases, whose classes tell that they are tensors, and nothing maps or traces it."""


def _quick_layer(
    native: Native, gates: int, state_count: int, x: torch.Tensor, weights: list[torch.Tensor]
) -> tuple[torch.Tensor, ...]:
    """Returns the outputs and last states of a layer whose first states are 0.

    Args:
        native: the kernel.
        gates: the number of blocks of rows that the weights have.
        state_count: the number of states.
        x: the sequences, (batch, time, features).
        weights: two matrices and two biases.
    """
    batch_size, hidden_size, _ = shared_recurrent.check_recurrent(gates, x, weights, False)
    if not (x.numel() and hidden_size) or forward_ad._current_level >= 0:
        raise NotImplementedError
    needs_gradient = torch.is_grad_enabled() and any(map(_REQUIRES_GRAD, (x, *weights)))
    state = x.new_zeros((1, batch_size, hidden_size))
    initial_states: Any = [state] * state_count if state_count > 1 else state
    outputs, *last_states = native(x, initial_states, weights, True, 1, 0.0, needs_gradient, False, True)
    return outputs, *[last_state.squeeze(0) for last_state in last_states]


class TorchRecurrentOps:
    """Holds the ops of `ops/neural/recurrent.py`.

    PyTorch's kernels compute all steps in one call; the bodies take 1.7 to 2.1 times as long, for few elements.
    """

    composed: Any

    @fast(
        lambda x, w, v, b, c, h, activation, *options: _quick_layer(_PLAIN[activation], 1, 1, x, [w, v, b, c]),
        f"{{5}} is None and {{6}}.__class__ is str and {{7}} is {{8}} is {{9}} is False and {_PLAIN_TENSORS}",
        whole=True,
    )
    def rnn(
        self,
        x: torch.Tensor,
        weight_ih: torch.Tensor,
        weight_hh: torch.Tensor,
        bias_ih: torch.Tensor | None = None,
        bias_hh: torch.Tensor | None = None,
        h: torch.Tensor | None = None,
        activation: str = "tanh",
        time_major: bool = False,
        reverse: bool = False,
        layer_axis: bool = False,
    ) -> tuple[torch.Tensor, ...]:
        weights: list[Any] = [weight_ih, weight_hh, bias_ih, bias_hh]
        present_tensors = [t for t in (x, *weights, h) if t is not None]
        if not _has_native_kernel(present_tensors):
            return self.composed("rnn")(x, *weights, h, activation, time_major, reverse, layer_axis)
        shared_recurrent.check_activation(activation)
        batch_size, hidden_size, _ = shared_recurrent.check_recurrent(1, x, weights, time_major)
        shared_recurrent.check_state("h", h, batch_size, hidden_size, layer_axis)
        return _run_layer(
            _PLAIN[activation],
            present_tensors,
            weights,
            [h],
            [(1, batch_size, hidden_size)],
            time_major,
            reverse,
            layer_axis,
        )

    @fast(
        lambda x, w, v, b, c, *options: _quick_layer(_GRU, 3, 1, x, [w, v, b, c]),
        f"{{5}} is None and {{6}} is {{7}} is {{8}} is False and {_PLAIN_TENSORS}",
        whole=True,
    )
    def gru(
        self,
        x: torch.Tensor,
        weight_ih: torch.Tensor,
        weight_hh: torch.Tensor,
        bias_ih: torch.Tensor | None = None,
        bias_hh: torch.Tensor | None = None,
        h: torch.Tensor | None = None,
        time_major: bool = False,
        reverse: bool = False,
        layer_axis: bool = False,
    ) -> tuple[torch.Tensor, ...]:
        weights: list[Any] = [weight_ih, weight_hh, bias_ih, bias_hh]
        present_tensors = [t for t in (x, *weights, h) if t is not None]
        if not _has_native_kernel(present_tensors):
            return self.composed("gru")(x, *weights, h, time_major, reverse, layer_axis)
        batch_size, hidden_size, _ = shared_recurrent.check_recurrent(3, x, weights, time_major)
        shared_recurrent.check_state("h", h, batch_size, hidden_size, layer_axis)
        return _run_layer(
            _GRU, present_tensors, weights, [h], [(1, batch_size, hidden_size)], time_major, reverse, layer_axis
        )

    @fast(
        lambda x, w, v, b, c, *options: _quick_layer(_LSTM, 4, 2, x, [w, v, b, c]),
        f"{{5}} is {{6}} is {{7}} is None and {{8}} is {{9}} is {{10}} is False and {_PLAIN_TENSORS}",
        whole=True,
    )
    def lstm(
        self,
        x: torch.Tensor,
        weight_ih: torch.Tensor,
        weight_hh: torch.Tensor,
        bias_ih: torch.Tensor | None = None,
        bias_hh: torch.Tensor | None = None,
        h: torch.Tensor | None = None,
        c: torch.Tensor | None = None,
        weight_hr: torch.Tensor | None = None,
        time_major: bool = False,
        reverse: bool = False,
        layer_axis: bool = False,
    ) -> tuple[torch.Tensor, ...]:
        weights: list[Any] = [weight_ih, weight_hh, bias_ih, bias_hh]
        # On a CPU the kernel (PyTorch 2.13) warns that oneDNN has no projected outputs in float32.
        torch_warns = weight_hr is not None and x.is_cpu and x.dtype is not torch.float64
        matrices = weights if weight_hr is None else [*weights, weight_hr]
        present_tensors = [t for t in (x, *matrices, h, c) if t is not None]
        if torch_warns or not _has_native_kernel(present_tensors):
            return self.composed("lstm")(x, *weights, h, c, weight_hr, time_major, reverse, layer_axis)
        batch_size, hidden_size, output_size = shared_recurrent.check_recurrent(4, x, weights, time_major, weight_hr)
        shared_recurrent.check_state("h", h, batch_size, output_size, layer_axis)
        shared_recurrent.check_state("c", c, batch_size, hidden_size, layer_axis)
        state_shapes = [(1, batch_size, output_size), (1, batch_size, hidden_size)]
        return _run_layer(_LSTM, present_tensors, matrices, [h, c], state_shapes, time_major, reverse, layer_axis)
