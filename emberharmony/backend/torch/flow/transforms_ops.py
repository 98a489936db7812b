"""Transforms of functions, on PyTorch: those of `torch.func` nest with each other and with `torch.autograd`.

`torch.func.vjp` doubles the cost of small tensors, so `grad` uses `torch.autograd.grad` unless a transform of
`torch.func` is running, and on the CPU the engine itself: `torch.autograd.grad` also copies the context for the threads
of accelerators, and checks its arguments. If the loss also depends on other leaves, as in a gradient inside a gradient,
`grad` keeps the graph; it finds them by a walk, which makes a Python object of each node. `ops.backward` stores
constants, so it walks nothing.
"""

import functools
import operator
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch._C._functorch import TransformType
from torch.autograd import forward_ad

from emberharmony.backend.torch.derivatives import run_engine
from emberharmony.backend.torch.flow.compilation import (
    TorchFunction,
    call_with_own_ops,
    is_traced_whole,
    make_traceable,
)
from emberharmony.backend.torch.tracing import Watched, is_recorded, is_traced
from emberharmony.core import selection
from emberharmony.core.deferred import Deferred
from emberharmony.core.errors import TracedTensorError, has_message
from emberharmony.core.state.draws import HostDrawError, WithoutDraws
from emberharmony.core.tracing import CLOSED_OVER, Enclosing

if TYPE_CHECKING:
    from emberharmony.backend.torch.flow import host_programs
    from emberharmony.transforms import source
    from emberharmony.transforms.program import Program
else:
    host_programs = Deferred("emberharmony.backend.torch.flow.host_programs")
    source = Deferred("emberharmony.transforms.source")

TensorFunction = Callable[..., Sequence[torch.Tensor]]
Tensors = Sequence[torch.Tensor]
_ACCUMULATE: Any = type(torch.ones((), requires_grad=True).view(()).grad_fn.next_functions[0][0])  # type: ignore[union-attr]
"""The class of the nodes of PyTorch's graph that belong to leaves."""
_IS_INFERENCE = torch.Tensor.is_inference
_NO_BATCHING = "vmap|batching rule|batchedtensor|doesn't have storage"


class TorchTransformsOps:
    """Holds ops of `ops/flow/transforms.py`, and the methods (`pullback`, …) on which other ops are built.

    `host_call` is the body, which `torch.compile` does not trace: it would translate the calls of NumPy in the
    function.
    """

    stop_gradient = staticmethod(torch.detach)

    @staticmethod
    def is_traced(x: Any) -> bool:
        return isinstance(x, torch.Tensor) and is_traced(x)

    @staticmethod
    def may_outlive_transforms(x: Any) -> bool:
        # torch.compile cannot trace `is_traced`; it makes assignments after the compiled code has run.
        return torch.compiler.is_compiling() or not is_traced(x)

    @staticmethod
    def detach(x: Any) -> Any:
        if x.__class__ is torch.Tensor:
            is_recorded = x.requires_grad
        else:
            is_recorded = isinstance(x, torch.nn.Parameter) or (isinstance(x, torch.Tensor) and x.requires_grad)
        if not (is_recorded or _is_in_transform()) or torch.compiler.is_compiling() or is_traced(x):
            return x
        # `torch.func` wraps the constants that are made in it, and fails on a wrapper that outlives its transform.
        while isinstance(x, torch.Tensor) and torch._C._functorch.is_gradtrackingtensor(x):
            x = torch._C._functorch.get_unwrapped(x)
        # The detached tensor shares the memory, so it sees what an optimizer of PyTorch writes.
        return x.detach() if is_recorded else x

    @staticmethod
    def may_all_outlive_transforms(tensors: Tensors) -> bool:
        is_in_transform = torch.compiler.is_compiling() or _is_in_transform() or forward_ad._current_level >= 0
        return not is_in_transform and not any(map(operator.attrgetter("requires_grad"), tensors))

    bound: Any
    composed: Any
    loop_over_slices: Any
    transpose_pullback: Any

    @make_traceable
    def pullback(self, fn: TensorFunction, primals: Tensors) -> tuple[list[torch.Tensor], Any]:
        inexact_positions: list[int] = []

        def split_outputs(*leaves: torch.Tensor) -> tuple[Any, Any]:
            outputs = _call_watched(fn, leaves)
            # torch.func.vjp requires at least one output, and rejects integer outputs.
            inexact_positions[:] = [i for i, y in enumerate(outputs) if _is_inexact(y)]
            return tuple(outputs[i] for i in inexact_positions) or (torch.zeros(()),), tuple(outputs)

        inexact_outputs, pull, outputs = torch.func.vjp(split_outputs, *primals, has_aux=True)  # type: ignore[misc]

        def pull_cotangents(cotangents: Sequence[torch.Tensor | None]) -> list[torch.Tensor]:
            inexact_cotangents = [cotangents[i] for i in inexact_positions] or [None]
            outputs_and_cotangents = zip(inexact_outputs, inexact_cotangents, strict=True)
            return list(pull(tuple(torch.zeros_like(y) if ct is None else ct for y, ct in outputs_and_cotangents)))

        merged_outputs = list(outputs)
        for i, output in zip(inexact_positions, inexact_outputs, strict=False):
            merged_outputs[i] = output
        return merged_outputs, pull_cotangents

    @staticmethod
    @make_traceable
    def gradients(
        fn: TensorFunction, primals: Tensors, constant: bool = False
    ) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        if not _needs_func():
            return _gradients_of_autograd(fn, primals, constant)
        outputs, gradients = _gradients_of_func(fn, primals)
        if constant:
            return [y.detach() for y in outputs], [g.detach() for g in gradients]
        return outputs, gradients

    def linearize(self, fn: TensorFunction, primals: Tensors) -> Any:
        if _is_in_reverse_mode() or is_recorded():
            return self.transpose_pullback(fn, primals)

        @make_traceable
        def push_tangents(tangents: Tensors) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
            if not torch.compiler.is_compiling():
                _load_forward_mode()
            output_count = 0

            def call_with_output(*leaves: torch.Tensor) -> tuple[torch.Tensor, ...]:
                nonlocal output_count
                outputs = tuple(_call_watched(fn, leaves))
                output_count = len(outputs)
                return outputs or (torch.zeros(()),)  # torch.func.jvp requires at least one output

            outputs, pushed_tangents = torch.func.jvp(call_with_output, tuple(primals), tuple(tangents))  # type: ignore[misc]
            outputs, pushed_tangents = outputs[:output_count], pushed_tangents[:output_count]
            # The user's own autograd graph will differentiate the forward mode, whose gradients PyTorch has partly
            # wrong (see `_is_in_reverse_mode`).
            if any(tangent.requires_grad for tangent in pushed_tangents):
                outputs_and_tangents: tuple[list[torch.Tensor], list[torch.Tensor]] = self.transpose_pullback(
                    fn, primals
                )(tangents)
                return outputs_and_tangents
            # PyTorch 2.13: an op of a 0-d tensor and a Python number makes the tangent float64.
            cast_tangents = [
                t.to(y.dtype) if _is_inexact(y) else t for y, t in zip(outputs, pushed_tangents, strict=True)
            ]
            return list(outputs), cast_tangents

        return push_tangents

    @make_traceable
    def map_slices(
        self, fn: TensorFunction, tensors: Tensors, axes: Sequence[int], same: bool = False
    ) -> list[torch.Tensor]:
        def call_on_slices(*slices: torch.Tensor) -> Any:
            results = fn(*slices)
            return results[0] if len(results) == 1 else tuple(results)

        # Trees of axes and of results take 20 µs more than one axis and one result (PyTorch 2.13).
        in_dims = axes[0] if len(set(axes)) == 1 else tuple(axes)
        mapped_function = torch.func.vmap(call_on_slices, in_dims=in_dims, randomness="same" if same else "different")
        if torch.compiler.is_compiling():
            return _list_of(mapped_function(*tensors))
        try:
            if same:
                return _list_of(mapped_function(*tensors))
            with WithoutDraws():
                return _list_of(mapped_function(*tensors))
        except Exception as error:
            if not self.cannot_transform(error):
                raise
        return self.loop_over_slices(fn, tensors, axes)

    @staticmethod
    def cannot_transform(error: BaseException | None) -> bool:
        return has_message(error, (RuntimeError, NotImplementedError), _NO_BATCHING) or has_message(
            error, (HostDrawError,)
        )

    @staticmethod
    def custom_vjp(forward: TensorFunction, backward: Callable[..., Any], primals: Tensors) -> list[torch.Tensor]:
        outputs = list(forward(*map(torch.detach, primals)))
        if not torch.compiler.is_compiling() and any(map(is_traced, outputs)):
            raise TracedTensorError(CLOSED_OVER)
        return list(_Custom.apply(backward, len(outputs), *outputs, *primals))

    def host_call(self, fn: Callable[..., Any], *args: Any, vjp: Callable[..., Any] | None = None) -> Any:
        call = self.composed("host_call")
        if torch.compiler.is_compiling():
            # torch.compile would translate NumPy calls inside `fn` into PyTorch ops; `fn` must run unchanged.
            call = torch._dynamo.disable(call)
        return call(fn, *args, vjp=vjp)

    def compile_function(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        if isinstance(fn, Enclosing):
            return fn.around(self.compile_function(fn.inner))
        return TorchFunction(fn, selection.active(), _is_in_transform)

    def compile_program(self, program: "Program") -> Callable[[Sequence[np.ndarray]], list[np.ndarray]]:
        """Returns the function of NumPy arrays that runs a program of ops, compiled.

        Args:
            program: its inputs are arrays, whose shapes, dtypes and strides never change.
        """
        function = source.write_function(program, functools.partial(getattr, self.bound))
        return host_programs.HostProgram(function, self.bound)

    def call_with_own_ops(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        if is_traced_whole():
            return call_with_own_ops(self.bound, function, args, kwargs)
        return super().call_with_own_ops(function, args, kwargs)  # type: ignore[misc]


def _list_of(results: torch.Tensor | Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Returns one result, or several, in a list."""
    return [results] if isinstance(results, torch.Tensor) else list(results)


def _is_inexact(x: torch.Tensor) -> bool:
    """Returns whether the dtype of a tensor allows derivatives."""
    return x.is_floating_point() or x.is_complex()


def _is_in_transform() -> bool:
    """Returns whether a transform of `torch.func` is running."""
    return torch._C._functorch.peek_interpreter_stack() is not None


def _needs_func() -> bool:
    """Returns whether `torch.func` must compute a gradient, because `torch.autograd` cannot."""
    return torch.compiler.is_compiling() or torch.is_inference_mode_enabled() or _is_in_transform()


def _gradients_of_func(fn: TensorFunction, primals: Tensors) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Returns the outputs of `fn(*primals)`, and the gradients of the first output, computed by `torch.func`."""

    def split_loss(*leaves: torch.Tensor) -> tuple[torch.Tensor, tuple[torch.Tensor, ...]]:
        loss, *aux = _call_watched(fn, leaves)
        return loss, tuple(aux)

    loss, pull, aux = torch.func.vjp(split_loss, *primals, has_aux=True)  # type: ignore[misc]
    return [loss, *aux], list(pull(torch.ones_like(loss)))


def _gradients_of_autograd(
    fn: TensorFunction, primals: Tensors, constant: bool = False
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Returns the same as `_gradients_of_func`, by `torch.autograd`, at half the cost for small tensors.

    Inside another gradient, ours or the user's, an output also depends on other tensors that require gradients, so the
    graph is kept for it, unless the result is to be constant. A `torch.nn.Parameter` does not mean that: it always
    requires gradients.
    """
    if not torch.is_grad_enabled():
        with torch.enable_grad():
            return _gradients_of_autograd(fn, primals, constant)
    is_recorded_outside = not constant and any(
        x.requires_grad and not isinstance(x, torch.nn.Parameter) for x in primals
    )
    if is_recorded_outside or any(map(_IS_INFERENCE, primals)):
        leaves = [x.view_as(x) if is_recorded_outside and x.requires_grad else _leaf_with_gradient(x) for x in primals]
    else:
        leaves = [x.detach().requires_grad_() for x in primals]
    outputs = _call_watched(fn, leaves, leaves)
    loss = outputs[0]
    if not loss.requires_grad:
        return [y.detach() for y in outputs] if constant else outputs, [torch.zeros_like(x) for x in primals]
    creates_graph = is_recorded_outside or (not constant and _has_other_leaves(outputs, leaves))
    found_gradients = run_engine(loss, leaves, torch.ones_like(loss), creates_graph)
    gradients = [torch.zeros_like(x) if g is None else g for g, x in zip(found_gradients, primals, strict=True)]
    return (outputs if creates_graph else [y.detach() for y in outputs]), gradients


def _leaf_with_gradient(x: torch.Tensor) -> torch.Tensor:
    """Returns a tensor of the same values that requires a gradient.

    A tensor made in inference mode cannot require one, so it is cloned.
    """
    return (x.clone() if x.is_inference() else x.detach()).requires_grad_()


def _call_watched(fn: TensorFunction, leaves: Tensors, recorded_leaves: Tensors = ()) -> list[torch.Tensor]:
    """Returns the outputs of `fn(*leaves)` as a list, while `fn` is differentiated.

    Args:
        fn: the function.
        leaves: its arguments.
        recorded_leaves: these arguments if `torch.autograd` differentiates it, rather than `torch.func`.
    """
    if torch.compiler.is_compiling():
        return list(fn(*leaves))
    watch = Watched(recorded_leaves)
    try:
        with watch:
            return list(fn(*leaves))
    finally:
        watch.leave()


def _has_other_leaves(outputs: Sequence[torch.Tensor], leaves: Sequence[torch.Tensor]) -> bool:
    """Returns whether outputs were computed from tensors that require gradients besides `leaves`, or are such."""
    leaf_ids = set(map(id, leaves))
    if any(y.requires_grad and y.grad_fn is None and id(y) not in leaf_ids for y in outputs):
        return True
    pending_nodes: list[Any] = [y.grad_fn for y in outputs if y.grad_fn is not None]
    seen_nodes = set(pending_nodes)
    for node in pending_nodes:  # grows meanwhile
        for parent, _ in node.next_functions:
            if parent.__class__ is _ACCUMULATE:
                if id(parent.variable) not in leaf_ids:
                    return True
            elif parent is not None and parent not in seen_nodes:
                seen_nodes.add(parent)
                pending_nodes.append(parent)
    return False


class _Custom(torch.autograd.Function):
    """The autograd function that gives outputs a user-defined gradient: `backward(primals, cotangents)`.

    The outputs were computed from detached primals. They keep what the user's own autograd graph recorded of them, for
    example by a `torch.nn.Parameter` that the function closes over.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(backward: Callable[..., Any], count: int, *tensors: torch.Tensor) -> Any:
        """Returns views of the outputs, because PyTorch cannot save an output that is itself an input."""
        return tuple(y.view_as(y) for y in tensors[:count])

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Saves the primals, and the shapes, dtypes and devices of the outputs."""
        ctx.backward_function, ctx.count, *tensors = inputs
        primals = tensors[ctx.count :]
        ctx.save_for_backward(*primals)
        ctx.save_for_forward(*primals)
        ctx.like = [{"size": y.shape, "dtype": y.dtype, "device": y.device} for y in output]
        ctx.mark_non_differentiable(*(y for y in output if not _is_inexact(y)))

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor) -> Any:
        """Returns the cotangents unchanged as the gradients of the outputs, and the gradients of the primals."""
        # A saved tensor may belong to a transform that has ended; its view does not.
        primals = [x.view_as(x) for x in ctx.saved_tensors]
        return None, None, *cotangents, *ctx.backward_function(primals, cotangents)

    @staticmethod
    def jvp(ctx: Any, _backward: None, _count: None, *tangents: torch.Tensor) -> Any:
        """Returns the tangents of the outputs, by the transpose of `backward`."""
        zero_cotangents = [torch.zeros(**like) for like in ctx.like]
        # Drop the tangents of the saved primals, or `backward` would propagate them a second time.
        primals = [forward_ad.unpack_dual(x).primal for x in ctx.saved_tensors]
        _, transpose = torch.func.vjp(  # type: ignore[misc]
            lambda *cotangents: tuple(ctx.backward_function(primals, cotangents)), *zero_cotangents
        )
        pushed_tangents = transpose(tangents[ctx.count :])
        return tuple(y if t is None else y + t for y, t in zip(pushed_tangents, tangents, strict=False))


def _is_in_reverse_mode() -> bool:
    """Returns whether an enclosing `torch.func` gradient will differentiate the result of this call.

    PyTorch 2.13 differentiates the forward mode of solve, slogdet, eigh, layer_norm and others wrongly, without an
    error.
    """
    if torch.compiler.is_compiling():
        return False
    return any(level.key() == TransformType.Grad for level in torch._C._functorch.get_interpreter_stack() or ())


@functools.cache
def _load_forward_mode() -> None:
    """Makes `torch.func.jvp` do the imports of its first call, without the DeprecationWarning that they cause."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.func.jvp(torch.sin, (torch.zeros(()),), (torch.zeros(()),))
