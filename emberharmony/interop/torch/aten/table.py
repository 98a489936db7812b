"""The table of functions that compute the operators of PyTorch's library ATen by ops."""

from collections.abc import Callable
from typing import Any, TypeVar

from emberharmony.core.errors import ArgumentError, ArgumentTypeError, brief

F = TypeVar("F", bound=Callable[..., Any])

TABLE: dict[str, Callable[..., Any]] = {}
"""The functions by the name of their operator, with its overload (`aten.max.dim`) or for all overloads (`aten.add`)."""


def aten(*names: str) -> Callable[[F], F]:
    """Returns a decorator that registers a function for operators of the namespace `aten`, named without it.

    The function takes the arguments of the operator, in its order and with its names, but for those that say where and
    how a tensor lies in memory (`device`, `layout`, `memory_format`). Its result may have another dtype than PyTorch's:
    the program casts it.

    Args:
        names: names as "add" or "max.dim".
    """
    return register_names(*(f"aten.{name}" for name in names))


def register_names(*names: str) -> Callable[[F], F]:
    """Returns a decorator that registers a function for operators, named with their namespace, as "aten.add".

    Raises:
        ArgumentError: if the table has a function for an operator already.
    """

    def register(function: F) -> F:
        for name in names:
            if name in TABLE:
                raise ArgumentError(f"the table of ATen has {name} twice")
            TABLE[name] = function
        return function

    return register


def find_function(target: str) -> Callable[..., Any] | None:
    """Returns the function registered for an operator's overload, else the one for all its overloads, else None.

    Args:
        target: the name of the operator, as `aten.max.dim`.
    """
    return TABLE.get(target) or TABLE.get(target.rsplit(".", 1)[0])


def register_aten(name: str, function: F) -> F:
    """Registers a function that computes an operator of PyTorch in models captured from now on, and returns it.

    Args:
        name: the operator, as "mylib::scale", or one of its overloads, as "mylib::scale.default".
        function: computes it with `ops`; it takes the operator's arguments, without `device`, `layout` and
            `memory_format`.

    Raises:
        ArgumentError: if the name has no namespace.
        ArgumentTypeError: if it is not a function.

    Example:
        >>> import emberharmony
        >>> from emberharmony import ops
        >>> scale = emberharmony.register_aten("mylib::scale", lambda x, factor: ops.multiply(x, factor))
    """
    if not isinstance(name, str) or name.count("::") != 1:
        raise ArgumentError(f"register_aten() takes a name with its namespace, as 'mylib::scale', not {brief(name)}")
    if not callable(function):
        raise ArgumentTypeError(f"register_aten() takes a function of ops for {name}, not {brief(function)}")
    TABLE[name.replace("::", ".")] = function
    return function
