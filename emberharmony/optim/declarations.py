"""Decorators by which a rule declares that it works element by element, and the name of kernels for it."""

from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

Rule = TypeVar("Rule", bound=Callable[..., Any])

_KERNELS: "WeakKeyDictionary[Callable[..., Any], str]" = WeakKeyDictionary()


def elementwise(rule: Rule) -> Rule:
    """Declares that a rule, and `initial` of its optimizer, work element by element; a decorator.

    Small parameters are then computed as one vector, with the same bits and fewer calls.

    Args:
        rule: a function (gradient, parameter, state, hyper) that returns the new parameter and state.
    """
    _KERNELS[rule] = ""
    return rule


def computed_by(kernel: str) -> Callable[[Rule], Rule]:
    """Declares that a rule works element by element, and names the libraries' kernels for it; a decorator."""

    def declare(rule: Rule) -> Rule:
        _KERNELS[rule] = kernel
        return rule

    return declare


def is_elementwise(rule: Any) -> bool:
    """Returns whether a rule is declared to work element by element."""
    return rule in _KERNELS


def kernel_name_of(rule: Any) -> str | None:
    """Returns the name of the libraries' kernels for a rule; "" if it has none, None if it is not elementwise."""
    return _KERNELS.get(rule)
