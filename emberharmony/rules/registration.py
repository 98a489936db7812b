"""Registration of ops that other packages define, and of gradients for them."""

import functools
import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

from emberharmony.backend.base import Backend
from emberharmony.core.dispatch import GLOBALS, Bound, op
from emberharmony.core.dtypes import ALL
from emberharmony.core.errors import ArgumentError, ArgumentTypeError, ShapeError, brief
from emberharmony.core.registry import ALIASES, OPS
from emberharmony.ops.flow.transforms import custom_gradient
from emberharmony.rules import RULES

F = TypeVar("F", bound=Callable[..., Any])


def _reserved_names() -> set[str]:
    """Returns the names that an op must not have, because it would hide a name of the dispatch or be hidden by one."""
    taken_names = {*GLOBALS, *(dtype.name for dtype in ALL)}
    for owner in (Backend, Bound):
        taken_names |= {*dir(owner), *owner.__annotations__}
    return taken_names - set(OPS)


def register_op(function: F) -> F:
    """Registers a function that is written with `ops` as an op: its arguments are converted and its errors are typed.

    The annotations decide which arguments are converted, as in the declarations of `ops` (`TensorLike`, `Operand`,
    `Tensors` and `DTypeLike` of `emberharmony.types`). Write `@register_op` alone on the line above `def`. The function
    is called by its own name, and `ops` does not get it; records, checks and comparisons show it by that name. The
    gradient is that of the body unless `register_vjp` defines another.

    Args:
        function: a function with annotations, whose name becomes that of the op.

    Raises:
        ArgumentTypeError: if `function` is not a plain function.
        ArgumentError: if the name is already used by an op or by an attribute of the backends, if it begins with an
            underscore, or if the function has no body.

    Example:
        >>> import emberharmony
        >>> from emberharmony.types import TensorLike
        >>> @emberharmony.register_op
        ... def cube(x: TensorLike):
        ...     return ops.multiply(ops.square(x), x)
        >>> cube([1.0, 2.0]).tolist()
        [1.0, 8.0]
    """
    if not isinstance(function, FunctionType):
        raise ArgumentTypeError(f"register_op takes a plain function, not {type(function).__name__}")
    op_name = function.__name__
    if op_name.startswith("_") or op_name in _reserved_names():
        raise ArgumentError(
            f"register_op: the name {op_name!r} is reserved, because backends use it or because it begins with an "
            f"underscore; choose another name"
        )
    earlier_spec = OPS.get(op_name)
    if op_name in ALIASES or (earlier_spec is not None and earlier_spec.declared.__module__ != function.__module__):
        raise ArgumentError(f"register_op: an op is already named {op_name!r}; choose another name")
    registered_op = op(function)
    spec = OPS[op_name]
    if not spec.composite:
        del OPS[op_name]
        raise ArgumentError(f"register_op: {op_name} has no body; write its body with ops")
    spec.body = _body_with_rule(op_name, function)
    return registered_op


def _body_with_rule(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def body(*args: Any, **kwargs: Any) -> Any:
        rule: Any = RULES.get(name)
        if rule is None:
            return function(*args, **kwargs)

        def value_and_gradient(*given: Any) -> Any:
            op_result = function(*given, **kwargs)

            def gradient(*primals: Any, upstream: Any) -> tuple[Any, ...]:
                return tuple(rule(upstream, op_result, *primals, *kwargs.values())[: len(primals)])

            return op_result, gradient

        return custom_gradient(value_and_gradient)(*args)

    return body


def _checked_rule(name: str, rule: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a gradient rule that raises an error for a gradient that is missing or too large, on each backend.

    Raises:
        ArgumentTypeError: if the rule takes other arguments than it is called with.
    """
    parameters = inspect.signature(OPS[name].declared).parameters
    if all(parameter.kind is not parameter.VAR_POSITIONAL for parameter in parameters.values()):
        signature = inspect.signature(rule)
        try:
            signature.bind("g", "y", *parameters)
        except TypeError:
            raise ArgumentTypeError(
                f"the gradient rule of {name} is called as rule(g, y, {', '.join(parameters)}), with the gradient of "
                f"the result, the result and all arguments, but this one takes {signature}"
            ) from None

    @functools.wraps(rule)
    def full_rule(g: Any, y: Any, *arguments: Any) -> tuple[Any, ...]:
        gradients = rule(g, y, *arguments)
        if not isinstance(gradients, (tuple, list)) or len(gradients) != len(arguments):
            result_text = (
                f"a tuple of length {len(gradients)}"
                if isinstance(gradients, (tuple, list))
                else type(gradients).__name__
            )
            raise ArgumentError(
                f"the gradient rule of {name} returned {result_text}; it returns a tuple with one gradient for each "
                f"argument ({', '.join(parameters)}), and None for an argument that has none"
            )
        for i, (argument, gradient) in enumerate(zip(arguments, gradients, strict=True)):
            shape, expected_shape = getattr(gradient, "shape", None), getattr(argument, "shape", None)
            if shape is not None and expected_shape is not None and tuple(shape) != tuple(expected_shape):
                raise ShapeError(
                    f"the gradient rule of {name} returned a gradient of shape {tuple(shape)} for "
                    f"{[*parameters][min(i, len(parameters) - 1)]}, which has shape {tuple(expected_shape)}; sum it "
                    f"over the axes along which the argument is broadcast"
                )
        return tuple(gradients)

    return full_rule


def register_vjp(name: str | Callable[..., Any]) -> Callable[[F], F]:
    """Returns a decorator that registers a function as the gradient rule of an op.

    The function is called as `rule(g, y, *arguments)`: with the cotangent of the op's result, the result, and the op's
    arguments in the declared order, options too. It returns a tuple with one gradient for each argument, and None in
    the place of an argument that has none, as of an option; None counts as zero. A gradient has the shape of its
    argument, also where that is broadcast. If the rule is written with `ops`, it can itself be differentiated, for
    derivatives of higher order.

    For an op made by `register_op` the rule is used on every backend. For a built-in op it is used only where the tape
    differentiates, on NumPy and on backends without gradients of their own: PyTorch and MLX differentiate built-in
    ops themselves.

    Args:
        name: the op, or its name.

    Raises:
        ArgumentError: if no op has this name.
        ArgumentTypeError: if `name` is neither a string nor a function, or the rule takes other arguments.

    Example:
        >>> import emberharmony
        >>> from emberharmony.types import TensorLike
        >>> @emberharmony.register_op
        ... def through_steps(x: TensorLike):
        ...     return ops.round(x)
        >>> @emberharmony.register_vjp("through_steps")
        ... def straight_through(g, y, x):
        ...     return (g,)
        >>> ops.grad(through_steps)(1.2).tolist()
        1.0
    """
    op_name = name if isinstance(name, str) else getattr(name, "__name__", None)
    if op_name is None:
        raise ArgumentTypeError(f"register_vjp takes an op or its name, not {brief(name)}")
    op_name = ALIASES.get(op_name, op_name)
    if op_name not in OPS:
        raise ArgumentError(f"register_vjp: no op is named {op_name!r}; declare it with register_op")

    def register(rule: F) -> F:
        RULES[op_name] = _checked_rule(op_name, rule)
        return rule

    return register
