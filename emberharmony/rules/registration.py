"""Ops of other packages: declared as ours are, and given gradients of their own."""

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

from emberharmony.backend.base import Backend
from emberharmony.core.dispatch import GLOBALS, Bound, op
from emberharmony.core.dtypes import ALL
from emberharmony.core.errors import ArgumentError, ArgumentTypeError, brief
from emberharmony.core.registry import ALIASES, OPS
from emberharmony.ops.transforms import custom_gradient
from emberharmony.rules import RULES

F = TypeVar("F", bound=Callable[..., Any])


def _reserved() -> set[str]:
    """Returns the names that an op would hide from the dispatch, or that would hide the op."""
    taken = {*GLOBALS, *(dtype.name for dtype in ALL)}
    for owner in (Backend, Bound):
        taken |= {*dir(owner), *owner.__annotations__}
    return taken - set(OPS)


def register_op(function: F) -> F:
    """Makes a function written with `ops` an op: its arguments are converted, its errors typed, its name known.

    The annotations say what is converted, as in the declarations of `ops` (`TensorLike`, `Operand`, `Tensors`,
    `DTypeLike` of `emberharmony.core.types`). The decorator stands alone on the line above `def`. The gradient is that
    of the body unless `register_vjp` gives another.

    Raises: ArgumentTypeError for what is no plain function; ArgumentError for a name that is taken, by an op or by what
    every backend has besides its ops.

    Example:
        >>> import emberharmony
        >>> from emberharmony.core.types import TensorLike
        >>> @emberharmony.register_op
        ... def cube(x: TensorLike):
        ...     return ops.multiply(ops.square(x), x)
        >>> cube([1.0, 2.0]).tolist()
        [1.0, 8.0]
    """
    if not isinstance(function, FunctionType):
        raise ArgumentTypeError(f"register_op takes a plain function, not {type(function).__name__}")
    name = function.__name__
    if name.startswith("_") or name in _reserved():
        raise ArgumentError(
            f"register_op: {name!r} is a name that backends use themselves, as all are that begin with an underscore; "
            f"choose another name"
        )
    known = OPS.get(name)
    if name in ALIASES or (known is not None and known.declared.__module__ != function.__module__):
        raise ArgumentError(f"register_op: an op is already named {name!r}; choose another name")
    registered = op(function)
    spec = OPS[name]
    if not spec.composite:
        del OPS[name]
        raise ArgumentError(f"register_op: {name} has no body; write one with ops")
    spec.body = _with_rule(name, function)
    return registered


def _with_rule(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def body(*args: Any, **kwargs: Any) -> Any:
        rule: Any = RULES.get(name)
        if rule is None:
            return function(*args, **kwargs)

        def with_gradient(*given: Any) -> Any:
            result = function(*given, **kwargs)

            def gradient(*primals: Any, upstream: Any) -> tuple[Any, ...]:
                return tuple(rule(upstream, result, *primals, *kwargs.values())[: len(primals)])

            return result, gradient

        return custom_gradient(with_gradient)(*args)

    return body


def register_vjp(name: str | Callable[..., Any]) -> Callable[[F], F]:
    """Returns a decorator that makes a function the gradient of an op, named or given itself.

    It is called as `rule(g, y, *arguments)`, with the cotangent of the op's result, the result and the op's arguments
    in the declared order, and returns a tuple with one gradient for each argument, None where there is none. Written
    with `ops` it is differentiated in its turn. It holds on every backend for ops made by `register_op`; for others,
    which PyTorch and MLX differentiate themselves, where the tape differentiates: on NumPy and on backends that bring
    no gradients.

    Raises: ArgumentError for an unknown op.

    Example:
        >>> import emberharmony
        >>> from emberharmony.core.types import TensorLike
        >>> @emberharmony.register_op
        ... def through_steps(x: TensorLike):
        ...     return ops.round(x)
        >>> @emberharmony.register_vjp("through_steps")
        ... def straight_through(g, y, x):
        ...     return (g,)
        >>> ops.grad(through_steps)(1.2).tolist()
        1.0
    """
    known = name if isinstance(name, str) else getattr(name, "__name__", None)
    if known is None:
        raise ArgumentTypeError(f"register_vjp takes an op or its name, not {brief(name)}")
    known = ALIASES.get(known, known)
    if known not in OPS:
        raise ArgumentError(f"register_vjp: no op is named {known!r}; declare it with register_op")

    def register(rule: F) -> F:
        RULES[known] = rule
        return rule

    return register
