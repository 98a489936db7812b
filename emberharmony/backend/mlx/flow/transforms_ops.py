"""Transforms of functions, on MLX, which keeps no graph: differentiating again traces the function again."""

import contextlib
import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

import mlx.core as mx

from emberharmony.backend.base import Backend
from emberharmony.backend.mlx.derivatives import Transforming, move_axes_to_front, pull_back, separate_arrays
from emberharmony.backend.mlx.flow.compilation import MLXFunction
from emberharmony.backend.mlx.tracing import LATER, Mapping, Unread, is_nested, is_traced, is_unread, run_watched
from emberharmony.backend.shared.compilation import OnTapeError, UncompiledError, untaped_outputs
from emberharmony.core.deferred import Deferred
from emberharmony.core.errors import TracedTensorError, has_message
from emberharmony.core.state.checked_mode import checked, checking
from emberharmony.core.state.draws import Draws, HostDrawError, WithoutDraws
from emberharmony.core.tracing import CLOSED_OVER, TensorProxy
from emberharmony.transforms.watchers import THREADS, tell_watchers, watchers

if TYPE_CHECKING:
    from emberharmony.transforms.logs import lines
else:
    lines = Deferred("emberharmony.transforms.logs.lines")

TensorFunction = Callable[..., Sequence[mx.array]]
Tensors = Sequence[mx.array]
Pair = tuple[list[mx.array], list[mx.array]]
T = TypeVar("T")
_REFUSED = "TracedTensor|incompatible function arguments|bad_cast"
_NO_OPERATOR = (
    "A function of MLX, or an operator with an array of MLX on its left, was given a tensor that is being "
    "differentiated, and the function reads a value or has a derivative of its own, to which MLX cannot nest its "
    "transforms: call the functions of ops, such as ops.matmul(a, x) in place of a @ x"
)
_UNSEEN = (
    "MLX itself computes a gradient, because one of its functions or operators was given a traced tensor{}, so the ops "
    "of the function and of the backward pass are not observed: call the functions of ops"
)
_NO_RULE = r"not (yet )?implemented|cannot vmap|No JVP|during function transformations|without a primitive|\[addmm\]"
_MERGED = "_Map_base::at|unordered_map::at"
"""The errors of `mx.compile` of MLX 0.32 for a function that returns `x` and `stop_gradient(x)`, both computed anew.

A gradient with `has_aux=True` stops the gradients of the auxiliary results; see `docs/upstream.md`.
"""


class MLXTransformsOps:
    """Holds the ops of `ops/flow/transforms.py` and the methods that the other transforms are made of.

    In checked mode the tape of `transforms/tape.py` differentiates functions, because it refuses every read of a traced
    tensor.
    """

    stop_gradient = staticmethod(mx.stop_gradient)

    constants: Any
    loop_over_slices: Any
    transpose_pullback: Any

    @staticmethod
    def is_traced(x: Any) -> bool:
        return isinstance(x, TensorProxy) or (isinstance(x, mx.array) and is_traced(x))

    @classmethod
    def tape_methods(cls) -> dict[str, Any]:
        method_by_name: dict[str, Any] = super().tape_methods()  # type: ignore[misc]
        return method_by_name | {
            "pullback": lambda self, fn, primals: cls.pullback(self, fn, primals, True),
            "gradients": lambda self, fn, primals, constant: cls.gradients(self, fn, primals, constant, True),
        }

    def pullback(self, fn: TensorFunction, primals: Tensors, taped: bool = False) -> tuple[list[mx.array], Any]:
        if taped or _must_use_tape(primals):
            run_on_tape: Any = functools.partial(Backend.pullback, cast(Backend, self), fn, primals)
            outputs_and_pull: tuple[list[mx.array], Any] = _run_or_fallback(
                run_on_tape, lambda: self._pulled_back(fn, primals, True), primals, Draws(), lambda: fn(*primals)
            )
            return outputs_and_pull
        return self._pulled_back(fn, primals)

    def _pulled_back(self, fn: TensorFunction, primals: Tensors, taped: bool = False) -> tuple[list[mx.array], Any]:
        # `pull` runs `fn` again, which must then draw the same random numbers.
        draws = Draws()
        with draws.first_run():
            outputs = list(fn(*primals))

        def pull(cotangents: Sequence[mx.array | None]) -> list[mx.array]:
            cotangent_by_index = {i: cotangent for i, cotangent in enumerate(cotangents) if cotangent is not None}
            tensors, primal_count = [*primals, *cotangent_by_index.values()], len(primals)

            def pull_by_tape() -> Pair:
                _, pull_recorded = Backend.pullback(cast(Backend, self), fn, primals)
                return [], pull_recorded(cotangents)

            def pull_natively(*tensors: mx.array) -> Pair:
                with Transforming():
                    return [], list(
                        pull_back(
                            _with_chosen_outputs(fn, list(cotangent_by_index)),
                            tensors[:primal_count],
                            tensors[primal_count:],
                        )
                    )

            def pull_later(run: Callable[[], Pair]) -> Pair:
                with draws.later_run():
                    return run()

            pull_function = (
                pull_by_tape if taped or _must_use_tape(tensors) else functools.partial(pull_natively, *tensors)
            )
            call_unread = functools.partial(_call_without_values, pull_natively, tensors)
            return _run_or_fallback(lambda: pull_later(pull_function), lambda: pull_later(call_unread), tensors)[1]

        return outputs, pull

    def gradients(self, fn: TensorFunction, primals: Tensors, constant: bool = False, taped: bool = False) -> Pair:
        outputs, gradients = self._outputs_and_pullback(fn, primals, taped)
        if not constant:
            return outputs, gradients
        if taped or _must_use_tape(primals) or is_unread():
            return self.constants(outputs), self.constants(gradients)
        LATER.put(outputs[0])  # nothing else is being differentiated
        return outputs, gradients

    def _outputs_and_pullback(self, fn: TensorFunction, primals: Tensors, taped: bool) -> Pair:
        def differentiate_natively(*leaves: mx.array) -> Pair:
            with Transforming():
                outputs, gradients = mx.value_and_grad(lambda leaves: tuple(run_watched(fn, leaves)))(list(leaves))
            return list(outputs), list(gradients)

        if taped or _must_use_tape(primals):
            gradients_on_tape: Any = functools.partial(Backend.gradients, cast(Backend, self), fn, primals)
            return _run_or_fallback(
                gradients_on_tape,
                lambda: _call_without_values(differentiate_natively, primals),
                primals,
                Draws(),
                lambda: fn(*primals),
            )
        if is_unread():
            return _call_without_values(differentiate_natively, primals)
        try:
            return differentiate_natively(*primals)
        except Exception as error:
            if not _is_refusal(error):
                raise
            return _run_fallback(error, lambda: _call_without_values(differentiate_natively, primals))

    def linearize(self, fn: TensorFunction, primals: Tensors) -> Any:
        if _must_use_tape(primals):
            return self.transpose_pullback(fn, primals)

        def push_tangents(tangents: Tensors) -> Pair:
            def push_natively(*tensors: mx.array) -> Pair:
                primals, tangents = tensors[: len(tensors) // 2], tensors[len(tensors) // 2 :]
                try:
                    with Transforming():
                        outputs, pushed_tangents = mx.jvp(
                            lambda *leaves: run_watched(fn, leaves), list(primals), list(tangents)
                        )
                except Exception as error:
                    if not self.cannot_transform(error):
                        raise
                    outputs_and_tangents: Pair = self.transpose_pullback(fn, primals)(tangents)
                    return outputs_and_tangents
                return list(outputs), list(pushed_tangents)

            tensors = [*primals, *tangents]
            return _run_or_fallback(
                functools.partial(push_natively, *tensors),
                lambda: _call_without_values(push_natively, tensors),
                tensors,
            )

        return push_tangents

    def map_slices(
        self, fn: TensorFunction, tensors: Tensors, axes: Sequence[int], same: bool = False
    ) -> list[mx.array]:
        if checking() or any(isinstance(tensor, TensorProxy) for tensor in tensors):
            return self.loop_over_slices(fn, tensors, axes)
        mapped_function = mx.vmap(lambda *slices: separate_arrays(untaped_outputs(fn(*slices))), in_axes=tuple(axes))
        try:
            with Transforming(), Mapping(), contextlib.nullcontext() if same else WithoutDraws():
                return list(mapped_function(*tensors))
        except Exception as error:
            if not self.cannot_transform(error):
                raise
        return self.loop_over_slices(fn, tensors, axes)

    @staticmethod
    def cannot_transform(error: BaseException | None) -> bool:
        return (
            has_message(error, (ValueError, RuntimeError), _NO_RULE)
            or has_message(error, (HostDrawError, OnTapeError, UncompiledError))
            or has_message(error, (IndexError,), _MERGED)
        )

    def custom_vjp(self, forward: TensorFunction, backward: Callable[..., Any], primals: Tensors) -> list[mx.array]:
        if any(isinstance(primal, TensorProxy) for primal in primals):
            return Backend.custom_vjp(cast(Backend, self), forward, backward, primals)
        # Stop the gradients of the primals: MLX would differentiate `forward` too, and raise for ops without a rule.
        outputs = forward(*map(mx.stop_gradient, primals))
        if not outputs:  # MLX 0.32 crashes on a custom function without outputs, because it reads the first one
            return []
        if any(isinstance(output, TensorProxy) for output in outputs):
            raise TracedTensorError(CLOSED_OVER)
        barriers = [_refuse_gradients(output) for output in outputs]
        return _link_custom_gradient(self, backward, len(primals), [*primals, *barriers]) if len(primals) else barriers

    def compile_function(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        return MLXFunction(fn, self.cannot_transform)


def _must_use_tape(tensors: Tensors) -> bool:
    """Returns whether the tape differentiates: in checked mode, inside another transform, or if a tensor is on one."""
    if any(isinstance(tensor, TensorProxy) for tensor in tensors):
        return True
    return (checking() or is_nested()) and not is_unread()


def _run_or_fallback(
    run: Callable[[], T],
    run_unread: Callable[[], T],
    tensors: Tensors,
    draws: Draws | None = None,
    forward: Callable[[], Any] | None = None,
) -> T:
    """Returns `run()`, or, if MLX refuses a tensor that is recorded on a tape, `run_unread()`, which reads no values.

    A function of MLX, or an operator whose left operand is an array of MLX, refuses such a tensor (MLX 0.32; it returns
    no `NotImplemented`). So MLX itself then differentiates to every order, in the outermost transform.

    Args:
        run: computes derivatives, perhaps by a tape.
        run_unread: computes the same by `_call_without_values`.
        tensors: the tensors by which they are derivatives.
        draws: keeps the random numbers of the first run for the second one. A gradient by MLX has none, because that
            would cost each of them 3 µs; what its first run draws before it is refused is lost.
        forward: calls the function without derivatives; None where nothing can check it.

    Raises:
        TracedTensorError: if the function reads a value that MLX would then treat as a constant.
    """
    if any(isinstance(tensor, TensorProxy) for tensor in tensors):
        return run()
    if is_unread():
        return run_unread()
    if is_nested():
        return run()
    try:
        if draws is None:
            return run()
        with draws.first_run():
            return run()
    except Exception as error:
        if not _is_refusal(error):
            raise
        return _run_fallback(error, run_unread, draws, forward)


def _is_refusal(error: Exception) -> bool:
    """Returns whether an error may mean that MLX refuses a tensor on a tape; an error of a watcher does not."""
    is_of_watcher = getattr(error, "of_watcher", False)
    return not is_of_watcher and has_message(error, (TypeError, ValueError, RuntimeError), _REFUSED)


def _run_fallback(
    first_error: Exception,
    run_unread: Callable[[], T],
    draws: Draws | None = None,
    forward: Callable[[], Any] | None = None,
) -> T:
    """Returns `run_unread()`, the fallback after MLX refused a tensor that is recorded on a tape.

    No check sees a value in `run_unread`, so where indices or numbers are checked the function runs once more before
    it.

    Raises:
        TracedTensorError: if the function reads a value that MLX would then treat as a constant.
    """
    active_watchers = watchers()
    later_draws: Any = contextlib.nullcontext if draws is None else draws.later_run
    if active_watchers:
        line_text = lines.line_text(lines.line_of_error(first_error))
        tell_watchers(active_watchers, "on_unseen_calls", _UNSEEN.format(f" at {line_text}" if line_text else ""))
    if forward is not None and (checking() or any(watcher.looks_again for watcher in active_watchers)):
        with later_draws():
            forward()
    thread, was_telling = THREADS.here, THREADS.here.telling
    try:
        thread.telling = True
        with later_draws():
            return run_unread()
    except Exception as error:
        if not has_message(error, (ValueError, RuntimeError), _NO_RULE):
            raise
        refusal_text = str(first_error).partition(_NO_OPERATOR)[0].partition(". The")[0].rstrip(". ")
        raise TracedTensorError(f"{refusal_text}. {_NO_OPERATOR}") from error
    finally:
        thread.telling = was_telling


def _call_without_values(transform: Callable[..., Pair], tensors: Tensors) -> Pair:
    """Returns `transform(*tensors)`, computed where no value can be read: in a `mx.vmap` over one slice.

    MLX 0.32 may nest transforms there. Elsewhere a transform inside another one removes the mark by which the arrays
    of the outer one keep their graph, and a read would evaluate them as constants. A check of indices would read them.
    """
    output_count = 0

    def run_transform(*leaves: mx.array) -> list[mx.array]:
        nonlocal output_count
        outputs, derivatives = transform(*leaves)
        output_count = len(outputs)
        return separate_arrays([*outputs, *derivatives])

    with Unread(), Mapping(), checked(False):
        batched_outputs = mx.vmap(run_transform)(*[mx.expand_dims(x, 0) for x in tensors])
    outputs_and_derivatives = [mx.squeeze(row, 0) for row in batched_outputs]
    return outputs_and_derivatives[:output_count], outputs_and_derivatives[output_count:]


def _link_custom_gradient(
    ops: MLXTransformsOps, backward: Callable[..., Any], count: int, tensors: Sequence[mx.array]
) -> list[mx.array]:
    """Returns the outputs of a function such that MLX differentiates them by a user-defined gradient.

    Args:
        ops: the backend.
        backward: called as `backward(primals, cotangents)`, returns the gradients of the primals.
        count: the number of primals.
        tensors: the primals, then the outputs.
    """

    @mx.custom_function
    def identity(tensors: list[mx.array]) -> list[mx.array]:
        return [mx.stop_gradient(tensor) for tensor in tensors[count:]]

    @identity.vjp
    def pull_cotangents(tensors: list[mx.array], cotangents: list[mx.array], outputs: list[mx.array]) -> list[mx.array]:
        # Without `depends` MLX might compute the intermediate values of `backward` early, and keep them in memory.
        return [*backward(mx.depends(tensors[:count], outputs), cotangents), *cotangents]

    @identity.jvp
    def push_tangents(tensors: list[mx.array], tangents: list[mx.array | None]) -> list[mx.array]:
        primals, zero_outputs = tensors[:count], [mx.zeros_like(output) for output in tensors[count:]]
        all_tangents = [mx.zeros_like(x) if t is None else t for x, t in zip(primals, tangents, strict=False)]
        # Watched, so that `backward` knows its cotangents for traced ones: it may hand them to a `custom_vjp` itself.
        return list(
            pull_back(
                lambda *cts: run_watched(lambda *each: backward(primals, each), list(cts)), zero_outputs, all_tangents
            )
        )

    @identity.vmap
    def map_backward(tensors: list[mx.array], axes: list[int | None]) -> tuple[list[mx.array], list[int]]:
        def backward_each(rows: Tensors, cotangents: Tensors) -> list[mx.array]:
            gradients: list[mx.array] = ops.map_slices(
                lambda *row: backward(row[:count], row[count:]), [*rows, *cotangents], [0] * len([*rows, *cotangents])
            )
            return gradients

        outputs = _link_custom_gradient(ops, backward_each, count, move_axes_to_front(tensors, axes))
        return outputs, [0] * len(outputs)

    linked_outputs: Any = identity(list(tensors))
    return list(linked_outputs)


def _refuse_gradients(x: mx.array) -> mx.array:
    """Returns a tensor through which nothing may be differentiated: if a gradient reaches it, an error is raised.

    Raises:
        TracedTensorError: later, when a transform differentiates the result.
    """

    @mx.custom_function
    def barrier(x: mx.array) -> mx.array:
        return mx.stop_gradient(x)

    @barrier.vjp
    def refuse_cotangents(*_: Any) -> mx.array:
        raise TracedTensorError(CLOSED_OVER)

    @barrier.jvp
    def refuse_tangents(*_: Any) -> mx.array:
        raise TracedTensorError(CLOSED_OVER)

    @barrier.vmap
    def map_barrier(x: mx.array, axis: int | None) -> tuple[mx.array, int | None]:
        return _refuse_gradients(x), axis

    barrier_output: Any = barrier(x)
    return barrier_output


def _with_chosen_outputs(fn: TensorFunction, output_indices: Sequence[int]) -> TensorFunction:
    """Returns `fn` reduced to some of its outputs.

    Args:
        fn: a function of arrays.
        output_indices: the positions of the outputs.
    """

    def run_chosen(*leaves: mx.array) -> list[mx.array]:
        outputs = run_watched(fn, leaves)
        return [outputs[i] for i in output_indices]

    return run_chosen
