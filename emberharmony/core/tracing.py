"""Tensors that are being differentiated: the base class of those on a tape, and the errors when one is read."""

from collections.abc import Callable
from typing import Any

from emberharmony.core.errors import TracedTensorError

_WAYS_OUT = "ops.host_call(fn, x, vjp=...) for a function of another library, or ops.stop_gradient(x) for a constant"
LEAVES = f"the tensor is being differentiated, so its gradient would be lost: use the functions of ops, {_WAYS_OUT}"
"""The message of an op that would take a tensor out of the function that is differentiated, as a constant."""

CLOSED_OVER = (
    "the function uses a tensor that is being differentiated but is not one of its arguments, so the gradient would be "
    "lost: pass it as an argument"
)
"""The message for a function with a custom gradient that closes over a tensor being differentiated."""


def outside_function_message(what: str, instead: str = "the functions of ops") -> str:
    """Returns the message for a function outside `ops` that is applied to a tensor being differentiated.

    Args:
        what: the function of Python or of another library.
        instead: what to use in its place.
    """
    return (
        f"{what} was applied to a tensor that is being differentiated, so its gradient would be lost: use {instead}, "
        f"{_WAYS_OUT}"
    )


class Substitute:
    """The base class of objects that ops take in the place of a native tensor: traced tensors, and cells.

    The fast paths of ops accept only native tensors, so they need no check for substitutes, and calls without them cost
    nothing extra.
    """

    __slots__ = ()

    def run(self, backend: Any, op: str, arguments: tuple[Any, ...]) -> Any:
        """Runs an op that has this object among its arguments, which dispatch packs in the declared order."""
        raise NotImplementedError


class Standing(Substitute):
    """The base class of objects that hold a tensor, or can make it at any time, and take its place in calls of ops."""

    __slots__ = ()

    def tensor_on(self, bound: Any) -> Any:
        """Returns the tensor for the ops of a backend."""
        raise NotImplementedError


class Enclosing:
    """The base class of functions that wrap another one with work that torch.compile cannot trace.

    A backend whose compiler traces Python compiles the inner function alone.

    Attributes:
        inner: the other function.
    """

    inner: Callable[..., Any]

    def around(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        """Returns a function that does the same work around another inner function."""
        raise NotImplementedError


class TensorProxy(Substitute):
    """The base class of objects that stand for a native tensor while the ops on it are recorded."""

    __slots__ = ()

    @property
    def wants_derivative(self) -> bool:
        """Whether the ops are recorded for a derivative."""
        return True

    @property
    def backend(self) -> Any:
        """The backend of the native tensor."""
        raise NotImplementedError


TELLERS: dict[type, Callable[[Any], bool]] = {}
"""By native tensor type, the function that returns whether a tensor is being differentiated by its own library.

A backend whose library differentiates adds its type here, so that other backends can check tensors that they import.
"""


def is_traced(x: Any) -> bool:
    """Returns whether a tensor, of any backend, is being differentiated."""
    if isinstance(x, TensorProxy):
        return x.wants_derivative
    return any(isinstance(x, traced_class) and tells(x) for traced_class, tells in TELLERS.items())


def require_untraced(x: Any) -> None:
    """Checks that a tensor, of any backend, is not being differentiated.

    Raises:
        TracedTensorError: if it is.
    """
    if is_traced(x):
        raise TracedTensorError(LEAVES)
