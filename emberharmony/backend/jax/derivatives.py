"""Adds derivatives to functions for which JAX has none, or others than the backends agree on."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero

Function = Callable[..., Any]
Arrays = Sequence[jax.Array]
Differential = Callable[[Arrays, Arrays, Arrays], Sequence[jax.Array]]
"""Maps primals, outputs and tangents to the tangents of the outputs; it is linear in the tangents."""


def with_differential(function: Function, differential: Differential) -> Function:
    """Returns a function with a differential, a map of tangents, of its own; JAX transposes it for the reverse mode.

    Args:
        function: takes tensors, and returns one or a tuple.
        differential: see `Differential`.
    """
    return _function_with_rule(
        function, lambda primals, outputs, tangents: differential(primals, outputs, [*map(_tangent_tensor, tangents)])
    )


def _function_with_rule(function: Function, rule: Function) -> Function:
    function_with_rule = jax.custom_jvp(function)

    def push_tangents(primals: Arrays, tangents: Any) -> tuple[Any, Any]:
        outputs = function_with_rule(*primals)
        has_several_outputs = isinstance(outputs, tuple)
        result_tangents = rule(primals, outputs if has_several_outputs else (outputs,), tangents)
        if not has_several_outputs:
            return outputs, result_tangents[0].astype(outputs.dtype)
        return outputs, tuple(t.astype(y.dtype) for t, y in zip(result_tangents, outputs, strict=True))

    function_with_rule.defjvp(push_tangents, symbolic_zeros=True)
    return function_with_rule


def _tangent_tensor(tangent: Any) -> Any:
    """Returns a tangent as a tensor; None for the tangent of an integer tensor."""
    if tangent.dtype == jax.dtypes.float0:
        return None
    return jnp.zeros(tangent.shape, tangent.dtype) if isinstance(tangent, SymbolicZero) else tangent


def elementwise_function(function: Function, *partials: Function) -> Function:
    """Returns an elementwise function of tensors, which broadcast, with the given partial derivatives.

    Args:
        function: the function.
        partials: one for each operand: maps the operands and the result to the derivative of the result.
    """

    def push_tangents(primals: Arrays, outputs: Arrays, tangents: Any) -> Any:
        # The derivative by an operand that is not differentiated may be NaN, so leave out its term.
        output_tangent = jnp.zeros_like(outputs[0])
        for partial, tangent in zip(partials, tangents, strict=True):
            if not isinstance(tangent, SymbolicZero):
                output_tangent = output_tangent + partial(*primals, outputs[0]) * tangent
        return (output_tangent,)

    return _function_with_rule(function, push_tangents)
