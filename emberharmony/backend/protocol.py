"""The protocol of a backend: `isinstance(backend, TensorBackend)` tells whether it has every op.

Its methods are made from the declarations. `protocol.pyi`, which `make generate` writes, has them for type checkers.
"""

import inspect
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from emberharmony.backend.base import Backend
from emberharmony.core.registry import OPS, OpSpec, complete


def _protocol_method(spec: OpSpec) -> Callable[..., Any]:
    """Returns the method that a protocol has for an op: with its signature, and the first line of its docstring."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any: ...

    self_parameter = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    signature = inspect.signature(spec.declared)
    method.__signature__ = signature.replace(parameters=[self_parameter, *signature.parameters.values()])  # type: ignore[attr-defined]
    method.__name__, method.__qualname__ = spec.name, f"TensorBackend.{spec.name}"
    method.__doc__ = (spec.declared.__doc__ or "").strip().partition("\n")[0]
    return method


@runtime_checkable
class TensorBackend(Protocol):
    """A backend with every op as an attribute."""

    name: str
    tensor_type: type

    @property
    def version(self) -> str:
        """The version of the library behind the backend."""
        ...

    @classmethod
    def __subclasshook__(cls, other: type) -> bool:
        """Returns whether a class is a backend that defines every primitive."""
        return issubclass(other, Backend) and not other.missing_ops()

    complete()
    locals().update({name: _protocol_method(OPS[name]) for name in sorted(OPS)})
