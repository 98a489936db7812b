"""Functions compiled by `torch.compile`: as a whole, else in parts, else not at all."""

import functools
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import torch

from emberharmony.backend.torch.tracing import is_watched

F = TypeVar("F", bound=Callable[..., Any])
_WHOLE, _IN_PARTS, _NOT = range(3)
_LOCK = threading.Lock()


class _State:
    """Tells the transforms called in a function that is compiled in parts: then none of these may lie inside them.

    PyTorch would compile what a transform calls for itself, and take tensors that are being differentiated for plain.
    """

    in_parts = 0


def whole(transform: F) -> F:
    """Returns a transform that torch.compile either traces with all that it calls, or leaves alone with it."""

    @functools.wraps(transform)
    def call(*args: Any, **kwargs: Any) -> Any:
        if _State.in_parts:
            return torch._dynamo.disable(transform)(*args, **kwargs)  # type: ignore[no-untyped-call]
        return transform(*args, **kwargs)

    return call  # type: ignore[return-value]


class Compiled:
    """A function that is compiled as far as it can be, which its first calls find out.

    Args:
        fn: the function.
        in_transform: tells whether a transform is under way, which traces what it is given; `torch.compile` refuses to
            run inside it.
    """

    def __init__(self, fn: Callable[..., Any], in_transform: Callable[[], bool]) -> None:
        self._fn, self._in_transform = fn, in_transform
        self._whole, self._parts = torch.compile(fn, fullgraph=True), torch.compile(fn)
        self._way = _WHOLE

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Returns what the function returns."""
        if self._in_transform():
            return self._fn(*args, **kwargs)
        if is_watched():
            # PyTorch would compile NumPy's functions too, and lose the gradient that NumPy itself refuses to lose.
            with torch._dynamo.config.patch(trace_numpy=False):
                return self._called(*args, **kwargs)
        return self._called(*args, **kwargs)

    def _called(self, *args: Any, **kwargs: Any) -> Any:
        for way in range(self._way, _NOT):
            try:
                result = self._run(way, *args, **kwargs)
            except (torch._dynamo.exc.TorchDynamoException, torch._dynamo.exc.FailOnRecompileLimitHit, AssertionError):
                # The bug may be in `fn` itself; running it eagerly gives the readable error.
                continue
            self._way = way
            return result
        result = self._fn(*args, **kwargs)
        self._way = _NOT
        return result

    def _run(self, way: int, *args: Any, **kwargs: Any) -> Any:
        if way == _WHOLE:
            return self._whole(*args, **kwargs)
        with _LOCK:
            _State.in_parts += 1
        try:
            return self._parts(*args, **kwargs)
        finally:
            with _LOCK:
                _State.in_parts -= 1
