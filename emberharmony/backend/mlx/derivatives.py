"""Adds derivatives to functions for which MLX has none, or has them wrong.

There are three ways. `with_own_derivatives` takes a differential; the reverse mode is its transpose.
`elementwise_function` takes partial derivatives. `with_forward_mode` adds the forward mode to a function that MLX has
in reverse mode only.

Derivatives of higher order need no rules of their own: the rules are written in functions that have derivatives, and
MLX also differentiates the outputs that it passes to a rule.

`logsumexp` of a few elements has a derivative of its own around the native function, because that of MLX 0.32 is NaN in
rows of -inf; to keep NaN out by `where` costs twice as many instructions. MLX's own derivative of `tanh` over an
argument clipped to [-10, 10] is right to any order, and takes 61 µs for value and gradient of 4 x 32 elements, where a
custom function takes 71 and `mx.tanh` 30.
"""

import functools
import operator
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, compress, repeat
from typing import Any

import mlx.core as mx

from emberharmony.core import op_globals
from emberharmony.core.state.commits import Step
from emberharmony.core.state.scopes import Entry, Scope, ThreadStack

Function = Callable[..., Any]
Arrays = Sequence[mx.array]
Differential = Callable[[Arrays, Arrays, Arrays], Arrays]
"""Maps primals, outputs and tangents to the tangents of the outputs; it is linear in the tangents."""
Tangents = Sequence[mx.array | None]
Partial = Callable[..., mx.array]
"""Maps primals and the output to the derivative of the output by one of the primals."""
ReverseRule = Callable[[Arrays, Arrays, Arrays], Arrays]
"""Maps primals, outputs and cotangents to the gradients of the primals."""
ForwardRule = Callable[[Arrays, Tangents], Arrays]
"""Maps primals and their tangents, None for zero, to the tangents of the outputs."""


def with_own_derivatives(
    function: Function, differential: Differential, pull: ReverseRule | None = None, hosted: bool = False
) -> Function:
    """Returns a function whose derivatives are given by functions instead of MLX's rules.

    Args:
        function: takes tensors, and returns one or several.
        differential: see `Differential`.
        pull: the transpose of the differential. By default MLX derives it.
        hosted: whether the function reads its arguments on the host. A rule must read nothing on the host, because MLX
            cuts off an array that is evaluated inside a rule from outer transforms. The rules of complex matrices do
            read, so they have no forward mode by `mx.jvp`; `ops.jvp` then runs the reverse mode twice.
    """

    def transpose(primals: Arrays, outputs: Arrays, cotangents: Arrays) -> Arrays:
        fixed_arrays, zero_tangents = [*primals, *outputs], [mx.zeros_like(x) for x in primals]
        primal_count = len(primals)

        def push_tangents(*xs: mx.array) -> list[mx.array]:
            return list(differential(xs[:primal_count], xs[primal_count : len(fixed_arrays)], xs[len(fixed_arrays) :]))

        # Inside a rule MLX may cut off arrays that a function closes over from outer transforms, so pass them as
        # arguments.
        return pull_back(push_tangents, [*fixed_arrays, *zero_tangents], cotangents)[len(fixed_arrays) :]

    def push_all_tangents(primals: Arrays, tangents: Tangents) -> Arrays:
        all_tangents = [mx.zeros_like(x) if t is None else t for x, t in zip(primals, tangents, strict=True)]
        outputs = _as_sequence(function_with_rules(*primals))
        if hosted and any(map(_is_complex, (*primals, *outputs))):
            raise NotImplementedError("[jvp] Not implemented for complex matrices on the host; use ops.jvp")
        return differential(primals, outputs, all_tangents)

    function_with_rules = (_with_rules if hosted else _opaque_function)(function, pull or transpose, push_all_tangents)
    return function_with_rules


def elementwise_function(function: Function, *partials: Partial, chooses: bool = False) -> Function:
    """Returns an elementwise function of tensors, which broadcast, with the given derivatives.

    Args:
        function: the function. All operands but the first may be Python numbers.
        partials: one partial derivative for each operand.
        chooses: whether the function chooses between its operands, like a maximum. Then an operand that is not chosen
            has the gradient 0 even if the cotangent is infinite or NaN.
    """

    def partial_values(primals: Arrays, output: mx.array) -> list[mx.array]:
        return [partial(*primals, output) for partial in partials]

    def pull_cotangents(primals: Arrays, outputs: Arrays, cotangents: Arrays) -> Any:
        conjugate_factors = [
            mx.conj(factor) if _is_complex(factor) else factor for factor in partial_values(primals, outputs[0])
        ]
        gradients = [cotangents[0] * factor for factor in conjugate_factors]
        if chooses:
            gradients = [
                mx.where(f == 0, mx.zeros_like(gradient), gradient)
                for f, gradient in zip(conjugate_factors, gradients, strict=True)
            ]
        return [_sum_to_shape(x, gradient_of_x) for x, gradient_of_x in zip(primals, gradients, strict=True)]

    def push_tangents(primals: Arrays, tangents: Tangents) -> Arrays:
        # Skip operands without a tangent, because their partial derivative may be NaN.
        tangents_and_factors = zip(tangents, partial_values(primals, function_with_rules(*primals)), strict=True)
        return (functools.reduce(operator.add, (t * factor for t, factor in tangents_and_factors if t is not None)),)

    function_with_rules = _opaque_function(function, pull_cotangents, push_tangents)
    return lambda x, *rest: function_with_rules(
        x, *(y if isinstance(y, mx.array) else _array_from_number(y, x) for y in rest)
    )


# A flag: whether no transform is running, so that the native functions need no derivatives of our own.
op_globals.publish(untransformed=True)


class _Transforms(ThreadStack):
    """The open `Transforming` blocks of this thread; a flag in `op_globals` says whether any thread has one."""

    def effect_steps(self, entry: Entry | None) -> Iterator[Step]:
        """Returns the steps that set the flag by whether any `Transforming` block is open when they run."""
        none_open, some_open = (map(test, repeat(self.opened)) for test in (operator.not_, operator.truth))
        return chain(
            compress(op_globals.set_flag_steps("untransformed", True), none_open),
            compress(op_globals.set_flag_steps("untransformed", False), some_open),
        )


_OPENED: list[Any] = []


class Transforming(Scope):
    """A block in which ops call the functions that have derivatives of their own, in all threads.

    Outside, ops use native functions, because a custom function costs 4 µs for each call: MLX builds and inspects a
    graph for it.
    """

    __slots__ = ()

    _stack: Any = _Transforms(_OPENED)

    def __enter__(self) -> None:
        self._stack.set((None, self._stack.get(), self, self._watch))


def dispatch_on_transform(native: Function, derived: Function) -> Function:
    """Returns a function that calls `derived`, which has derivatives, while a transform is running, else `native`."""

    def call_either(*xs: Any) -> Any:
        return native(*xs) if op_globals.untransformed else derived(*xs)

    return call_either


def _array_from_number(number: float, x: mx.array) -> mx.array:
    """Returns a Python number as an array: in the dtype of `x`, unless `x` holds integers and the number is not one."""
    keeps_dtype = type(number) is int or mx.issubdtype(x.dtype, mx.inexact)
    return mx.array(number, x.dtype) if keeps_dtype else mx.array(number)


def _is_complex(x: mx.array) -> bool:
    return mx.issubdtype(x.dtype, mx.complexfloating)


def _sum_to_shape(x: mx.array, gradient: mx.array) -> mx.array:
    """Returns the sum of a gradient over the axes that `x` was broadcast along."""
    if gradient.shape == x.shape:
        return gradient
    if not gradient.size:
        return mx.zeros_like(x)
    added_axis_count = gradient.ndim - x.ndim
    axes = [
        *range(added_axis_count),
        *(added_axis_count + i for i, n in enumerate(x.shape) if n != gradient.shape[added_axis_count + i]),
    ]
    return mx.sum(gradient, axes, keepdims=True).reshape(x.shape)


def with_forward_mode(native: Function) -> Function:
    """Returns a function with one output, to which the forward mode is added.

    The reverse mode is linear in the cotangent, so its transpose is the forward mode.

    Args:
        native: a function that MLX differentiates correctly in reverse mode.
    """

    def pull_cotangents(primals: Arrays, _: Any, cotangents: Arrays) -> Arrays:
        return pull_back(lambda *xs: [native(*xs)], primals, cotangents)

    def push_tangents(primals: Arrays, tangents: Tangents) -> Arrays:
        all_tangents = [mx.zeros_like(x) if t is None else t for x, t in zip(primals, tangents, strict=True)]
        zero_tangent = mx.zeros_like(native(*primals))
        return pull_back(
            lambda cotangent, *xs: pull_cotangents(xs, None, [cotangent]), [zero_tangent, *primals], all_tangents
        )[:1]

    return _opaque_function(native, pull_cotangents, push_tangents)


def with_transforms_of(native: Function, right: Function) -> Function:
    """Returns a function of tensors that computes `native`, and whose transforms are those of `right`.

    It is for a program that calls a transform of MLX itself, which no flag shows.

    Args:
        native: takes tensors and returns one; a kernel whose derivatives MLX has wrong.
        right: computes the same more slowly, by functions that MLX transforms correctly.
    """
    custom_function: Any = mx.custom_function(lambda *xs: native(*map(mx.stop_gradient, xs)))

    def vjp(primals: Any, cotangent: mx.array, _output: mx.array) -> Any:
        return _tuple_or_single(primals, pull_back(lambda *xs: [right(*xs)], _as_sequence(primals), [cotangent]))

    def jvp(primals: Any, tangents: Any) -> mx.array:
        xs, tangents_of_inputs = list(_as_sequence(primals)), _as_sequence(tangents)
        all_tangents = [mx.zeros_like(x) if t is None else t for x, t in zip(xs, tangents_of_inputs, strict=True)]
        return mx.jvp(lambda *xs: [right(*xs)], xs, all_tangents)[1][0]

    def batch(inputs: Any, axes: Any) -> Any:
        xs, batch_axes = _as_sequence(inputs), _as_sequence(axes)
        if all(axis is None for axis in batch_axes):
            return custom_function(*xs), None
        return mx.vmap(right)(*move_axes_to_front(xs, batch_axes)), 0

    custom_function.vjp(vjp)
    custom_function.jvp(jvp)
    custom_function.vmap(batch)
    return custom_function


def _opaque_function(function: Function, pull: ReverseRule, push_tangents: ForwardRule) -> Function:
    """Returns a custom function whose body MLX does not differentiate, as it otherwise does in forward mode."""
    return _with_rules(lambda *xs: function(*map(mx.stop_gradient, xs)), pull, push_tangents)


def _with_rules(function: Function, pull: ReverseRule, push_tangents: ForwardRule) -> Function:
    """Returns a custom function of MLX with a rule for the reverse mode and one for the forward mode.

    MLX passes a single tensor to a rule, and expects one, where there is only one; our rules always use sequences.
    """
    custom_function: Any = mx.custom_function(function)

    def vjp(primals: Any, cotangents: Any, outputs: Any) -> Any:
        return _tuple_or_single(primals, pull(_as_sequence(primals), _as_sequence(outputs), _as_sequence(cotangents)))

    def jvp(primals: Any, tangents: Any) -> Any:
        pushed_tangents = tuple(push_tangents(_as_sequence(primals), _as_sequence(tangents)))
        return pushed_tangents if len(pushed_tangents) > 1 else pushed_tangents[0]

    def batch(inputs: Any, axes: Any) -> Any:
        # Without this rule MLX would map over the body of the function, whose gradient is stopped.
        batch_axes = [axis for axis in _as_sequence(axes) if axis is not None]
        mapped_function = _map_rules(function, pull, push_tangents) if batch_axes else custom_function
        outputs = mapped_function(
            *(move_axes_to_front(_as_sequence(inputs), _as_sequence(axes)) if batch_axes else _as_sequence(inputs))
        )
        batch_axis = 0 if batch_axes else None
        return outputs, (batch_axis,) * len(outputs) if isinstance(outputs, (tuple, list)) else batch_axis

    custom_function.vjp(vjp)
    custom_function.jvp(jvp)
    custom_function.vmap(batch)
    return custom_function


def separate_arrays(outputs: Arrays) -> list[mx.array]:
    """Returns the outputs of a function, each as an array of its own, for `mx.vmap` and `mx.vjp` of MLX 0.32.

    If a function returns an array twice, `mx.vmap` moves the mapped axis twice, and `mx.vjp` ignores the second
    cotangent. `mx.vjp` also skips an output of `stop_gradient`, and gives its cotangent to the next one. Two objects of
    Python may be one array: a `reshape` to the same shape returns the array itself.
    """
    return [mx.contiguous(output, True) for output in outputs] if len(outputs) > 1 else list(outputs)


def pull_back(fn: Callable[..., Arrays], primals: Arrays, cotangents: Arrays) -> Arrays:
    """Returns the gradients of the primals of a function, from the cotangents of its outputs."""
    return mx.vjp(lambda *xs: separate_arrays(fn(*xs)), list(primals), list(cotangents))[1]


def move_axes_to_front(inputs: Arrays, axes: Sequence[int | None]) -> Arrays:
    """Returns inputs with the mapped axis moved to the front; an input without one is broadcast along it."""
    length = next(x.shape[axis] for x, axis in zip(inputs, axes, strict=True) if axis is not None)
    return [
        mx.broadcast_to(x, (length, *x.shape)) if axis is None else mx.moveaxis(x, axis, 0)
        for x, axis in zip(inputs, axes, strict=True)
    ]


def _map_rules(function: Function, pull: ReverseRule, push_tangents: ForwardRule) -> Function:
    """Returns a custom function that maps `function`, and its rules, over the first axis of all inputs."""

    def pull_all(primals: Arrays, outputs: Arrays, cotangents: Arrays) -> Arrays:
        primal_count, output_count = len(primals), len(outputs)

        def pull_row(*rows: mx.array) -> tuple[mx.array, ...]:
            return tuple(
                separate_arrays(
                    pull(
                        rows[:primal_count],
                        rows[primal_count : primal_count + output_count],
                        rows[primal_count + output_count :],
                    )
                )
            )

        return _as_sequence(mx.vmap(pull_row)(*primals, *outputs, *cotangents))

    def push_all(primals: Arrays, tangents: Tangents) -> Arrays:
        primal_count = len(primals)
        tangent_by_index = {i: tangent for i, tangent in enumerate(tangents) if tangent is not None}

        def push_row(*rows: mx.array) -> tuple[mx.array, ...]:
            row_tangent_by_index = dict(zip(tangent_by_index, rows[primal_count:], strict=True))
            return tuple(
                separate_arrays(
                    push_tangents(rows[:primal_count], [row_tangent_by_index.get(i) for i in range(primal_count)])
                )
            )

        return _as_sequence(mx.vmap(push_row)(*primals, *tangent_by_index.values()))

    return _with_rules(mx.vmap(function), pull_all, push_all)


def _as_sequence(values: Any) -> Sequence[Any]:
    """Returns one value or several as a sequence."""
    return values if isinstance(values, (tuple, list)) else (values,)


def _tuple_or_single(value: Any, values: Arrays) -> Any:
    """Returns values in the form in which MLX passed them: a tuple, or a single value."""
    return tuple(values) if isinstance(value, (tuple, list)) else values[0]
