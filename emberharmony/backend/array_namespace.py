"""The namespace of one backend: the names of `ops`, bound to that backend whichever backend is active.

It is filled on first use of each name. A primitive, or a composite that the backend overrides, is the function compiled
for the backend, which looks nothing up. The body of any other composite calls ops, which run on the active backend, so
the namespace makes its own backend active during the call, unless it is active already.

The namespace is a module of a subclass of `ModuleType`, whose attributes cost 20 to 40 ns more than those of `ops` on
CPython 3.11 (NumPy, `xp.sin(x)`: 450 instead of 415 ns); those of a class that defines `__getattr__` cost more. A plain
module would cost nothing more, but it cannot be copied.
"""

import functools
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any

from emberharmony.backend.discovery import load
from emberharmony.core import selection
from emberharmony.core.deferred import import_what_ops_reach
from emberharmony.core.dtypes import DType, default_complex, default_float
from emberharmony.core.names.unknown_names import missing_name_error
from emberharmony.core.namespace import ArrayNamespaceInfo
from emberharmony.core.parameter import Buffer, Parameter
from emberharmony.core.registry import OPS, OpSpec, complete

Function = Callable[..., Any]
_CHOOSERS = ("array_namespace", "available_backends", "backend_of", "get_backend", "set_backend", "use_backend")
"""Names of `ops` that find or choose a backend; a namespace has its backend, so it lacks them."""

_PULLED_BACK = "vjp"
"""The op that returns a tuple whose item 1 is a function."""


class ArrayNamespace(ModuleType):
    """The functions, constants and dtypes of `ops`, or of a namespace in it such as `ops.linalg`, for one backend.

    It is a module, because the namespaces of the array API standard are modules, and some libraries test for that.
    Python also looks up the attributes of a module faster than those of another class that defines `__getattr__`.
    """

    def __init__(self, backend: Any, part: str = "") -> None:
        ops = complete()
        self._source: ModuleType = getattr(ops, part) if part else ops
        super().__init__(f"{self._source.__name__}[{backend.name}]", self._source.__doc__)
        self._backend, self._part = backend, part
        # A method `__getattr__` of the class would slow down all attributes; one in the dict runs for new ones only.
        self.__dict__["__getattr__"] = self._make_attribute
        if backend.tracer:  # which cannot trace the first use
            for name in self._attribute_names():
                getattr(self, name)
            import_what_ops_reach()

    def _attribute_names(self) -> Iterator[str]:
        dtypes = self._backend.dtypes.natives
        for name in self._source.__all__:
            attribute = getattr(self._source, name)
            if name not in _CHOOSERS and (not isinstance(attribute, DType) or attribute in dtypes):
                yield name

    def _make_attribute(self, name: str) -> Any:
        """Makes and keeps the attribute of this name at its first use.

        Raises:
            AttributeError: if there is none; the message has the nearest name.
        """
        # The dict of the module is tested first, because a search of its `__all__` takes 10 µs.
        if name not in vars(self._source) or name not in self._source.__all__:
            raise missing_name_error(
                repr(self), "attribute", name, self._source.__name__.removeprefix("emberharmony."), "xp"
            )
        attribute = getattr(self._source, name)
        if name in _CHOOSERS:
            raise AttributeError(
                f"{self!r} has no attribute {name!r}, because it is bound to a backend: use emberharmony.ops.{name}",
                name=name,
            )
        if isinstance(attribute, DType) and attribute not in self._backend.dtypes.natives:
            raise AttributeError(
                f"{self!r} has no attribute {name!r}, because the backend lacks this dtype; it has "
                f"{', '.join(self._backend.dtypes.available)}",
                name=name,
            )
        # Another thread may have made the attribute in the meantime: keep the first one.
        return self.__dict__.setdefault(name, _bound_object(self._backend, name, attribute))

    def __dir__(self) -> list[str]:
        return sorted(self._attribute_names())

    def __repr__(self) -> str:
        return f"<array namespace {self._source.__name__!r} on backend {self._backend.name!r}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ArrayNamespace):
            return NotImplemented
        return (self._backend.name, self._part) == (other._backend.name, other._part)

    def __hash__(self) -> int:
        return hash((self._backend.name, self._part))

    def __reduce__(self) -> "tuple[Callable[[str, str], ArrayNamespace], tuple[str, str]]":
        return _namespace_of, (self._backend.name, self._part)


def _namespace_of(backend: str, part: str) -> ArrayNamespace:
    """Returns the namespace of the backend of that name, or a part of it; pickles refer to this function."""
    namespace = load(backend).namespace
    return getattr(namespace, part) if part else namespace


def _bound_object(backend: Any, name: str, value: Any) -> Any:
    """Returns the form of a public object of `ops` that is bound to one backend."""
    if isinstance(value, DType):
        return backend.dtypes.native_of(value)
    if isinstance(value, ModuleType):
        return ArrayNamespace(backend, name)
    if name in _INSPECTION:
        return _INSPECTION[name](backend)
    if hasattr(value, "bound_to"):
        return value.bound_to(backend)
    if value is Parameter or value is Buffer:
        return _function_with_backend(backend, value, value)
    spec = OPS.get(getattr(value, "__name__", ""))
    return _bound_op(backend, spec) if spec is not None and spec.function is value else value


_INSPECTION: dict[str, Callable[[Any], Function]] = {
    "__array_namespace_info__": lambda backend: lambda: ArrayNamespaceInfo(backend),
    "capabilities": lambda backend: ArrayNamespaceInfo(backend).capabilities,
    "default_dtypes": lambda backend: ArrayNamespaceInfo(backend).default_dtypes,
    "default_float": lambda backend: lambda: backend.dtypes.native_of(default_float()),
    "default_complex": lambda backend: lambda: backend.dtypes.native_of(default_complex()),
}
"""By name, the makers of the functions for inspection."""


def _bound_op(backend: Any, spec: OpSpec) -> Function:
    bound_op: FunctionType = getattr(backend.bound, spec.name)
    if backend.defines(spec) and not spec.takes_callable and spec.returns != "DType":
        bound_op.__doc__, bound_op.__module__ = spec.function.__doc__, spec.declared.__module__
        bound_op.__annotations__ = spec.declared.__annotations__
        return bound_op
    convert_result = _result_conversion(backend, spec)
    return _function_with_backend(backend, bound_op, spec.function, convert_result)


def _function_with_backend(
    backend: Any, function: Function, named: Function, finish: Function | None = None
) -> Function:
    """Returns a function that runs with a backend active.

    Args:
        named: the function whose name, documentation and signature it has.
        finish: takes the result and returns the final one.
    """
    bound_ops = backend.bound

    @functools.wraps(named, updated=())
    def call_with_backend(*args: Any, **kwargs: Any) -> Any:
        if selection.is_active(bound_ops):
            output = function(*args, **kwargs)
        else:
            with selection.Override(backend):
                output = function(*args, **kwargs)
        return output if finish is None else finish(output)

    return call_with_backend


def _result_conversion(backend: Any, spec: OpSpec) -> Function | None:
    """Returns the function that converts an op's result: dtypes become native, functions get bound to the backend."""
    native_dtype_of = backend.dtypes.native_of
    if spec.returns == "DType":
        return native_dtype_of
    if spec.returns in ("FloatInfo", "IntegerInfo"):
        return lambda limits: limits._replace(dtype=native_dtype_of(limits.dtype))
    if spec.returns.startswith("Callable"):
        return lambda made: _function_with_backend(backend, made, made)
    if spec.name == _PULLED_BACK:
        return lambda made: (made[0], _function_with_backend(backend, made[1], made[1]), *made[2:])
    return None
