"""Tensors that are being differentiated: the class that stands for one on a tape, and the words that refuse a read."""

from collections.abc import Callable
from typing import Any

from emberharmony.core.errors import TracedTensorError

_WAYS_OUT = "ops.host_call(fn, x, vjp=...) for a function of another library, or ops.stop_gradient(x) for a constant"
LEAVES = f"the tensor is being differentiated, and its gradient would be lost: use the functions of ops, {_WAYS_OUT}"
"""The message of an op that would take a tensor out of the function that is differentiated."""

CLOSED_OVER = (
    "the function uses a tensor that is being differentiated and is none of its arguments, so its gradient would be "
    "lost: pass it as an argument"
)
"""The message where a function whose gradient is its own closes over such a tensor."""


def lost(what: str, instead: str = "the functions of ops") -> str:
    """Returns the message for something of another library, or of Python, that would do that."""
    return (
        f"{what} was applied to a tensor that is being differentiated, and its gradient would be lost: use {instead}, "
        f"{_WAYS_OUT}"
    )


class TensorProxy:
    """Is the base of what is passed in place of a native tensor while its ops are recorded.

    No fast path takes one, for it is no native tensor; so nothing is paid for it where none is.
    """

    __slots__ = ()

    def run(self, backend: Any, op: str, arguments: tuple[Any, ...]) -> Any:
        """Runs an op on arguments of which this is one; they are as dispatch packs them, in the declared order."""
        raise NotImplementedError


TELLERS: dict[type, Callable[[Any], bool]] = {}
"""For each type of native tensors that a library differentiates itself what tells those that are being differentiated.

A backend adds its own, so that others can ask when they take a tensor from it.
"""


def require_untraced(x: Any) -> None:
    """Raises a `TracedTensorError` for a tensor of any backend that is being differentiated."""
    if isinstance(x, TensorProxy) or any(isinstance(x, kind) and tells(x) for kind, tells in TELLERS.items()):
        raise TracedTensorError(LEAVES)
