"""Functions of a namespace that are not made from an op alone: they make arrays of what is none, or return dtypes."""

from collections.abc import Callable
from typing import Any

from emberharmony.core.errors import ArgumentError, BackendMismatchError
from emberharmony.core.namespace import ArrayNamespaceInfo
from emberharmony.xp.array import ArrayBase
from emberharmony.xp.dtypes import Dtype, dtype_named
from emberharmony.xp.views import alone, value

Function = Callable[..., Any]


def asarray(kit: Any) -> Function:
    """Returns the function `asarray` of a backend."""

    def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Any:
        """Returns an array of the values of an array, a number, a nested list, or an array of another library.

        Args:
            copy: True always copies; None copies where it is necessary; False never copies.

        Raises:
            ArgumentError: if `copy` is False and a copy is necessary.
            BackendMismatchError: if `obj` is an array of another backend.
        """
        kit.join()
        if obj.__class__ is kit.array:
            if not copy and (dtype is None or obj.dtype == dtype) and (device is None or obj.device == device):
                return obj
            if copy is False:
                raise ArgumentError("another dtype or device needs a copy, which copy=False refuses")
        if isinstance(obj, ArrayBase) and obj.__class__ is not kit.array:
            raise BackendMismatchError(f"an array of {obj._kit.name!r} becomes one of {kit.name!r} by from_dlpack")
        if copy is False and isinstance(obj, (bool, int, float, complex, list, tuple)):
            raise ArgumentError("numbers and lists are copied, which copy=False refuses")
        wanted = None if dtype is None else dtype_named(dtype).neutral
        made = kit.lift(kit.ops.convert_to_tensor(_data(obj), wanted, device=device, copy=copy))
        if not copy and (hasattr(obj, "__array__") or kit.is_native(obj)):
            made._links = alone(foreign=not kit.memory.shares)
        return made

    return asarray


def _data(given: Any) -> Any:
    """Returns what an array is made of; the scalars of NumPy stay, whose dtypes count."""
    if isinstance(given, ArrayBase):
        return value(given)
    return [_data(x) for x in given] if given.__class__ in (list, tuple) else given


def from_dlpack(kit: Any) -> Function:
    """Returns the function `from_dlpack` of a backend."""

    def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Any:
        """Returns an array of another library, or of another backend, by DLPack; memory is shared if it can be.

        Raises:
            ArgumentError: if `copy` is False and a copy is necessary.
        """
        kit.join()
        if x.__class__ is kit.array:
            return kit.namespace.asarray(x, device=device, copy=copy)
        if isinstance(x, ArrayBase):
            x = x._given_out()
        made = kit.lift(kit.ops.from_dlpack(x, device=device, copy=copy))
        made._links = None if copy else alone(foreign=not kit.memory.shares)
        return made

    return from_dlpack


def astype(kit: Any) -> Function:
    """Returns the function `astype` of a backend."""

    def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
        """Returns an array in another dtype.

        Args:
            copy: whether the result always has memory of its own; if False, it is `x` itself if that has the dtype.
        """
        kit.join()
        if x.__class__ is not kit.array:
            x = kit.namespace.asarray(x)
        wanted = dtype_named(dtype)
        if x.dtype == wanted and (device is None or device == x.device):
            return x.copy() if copy else x
        return kit.lift(kit.ops.convert_to_tensor(value(x), wanted.neutral, device=device, copy=True))

    return astype


def isdtype(kit: Any) -> Function:
    """Returns the function `isdtype` of a backend."""

    def isdtype(dtype: Any, kind: Any) -> bool:
        """Returns whether a dtype is of a kind: a word of the standard, a dtype, or a tuple of these."""
        return bool(kit.ops.isdtype(dtype_named(dtype).neutral, kit.low(kind)))

    return isdtype


def info(kit: Any) -> Function:
    """Returns the function `__array_namespace_info__` of a backend."""
    return lambda: Info(kit.backend)


def of_info(name: str) -> Callable[[Any], Function]:
    """Returns the maker of a function that the inspection namespace has too."""
    return lambda kit: lambda **options: getattr(Info(kit.backend), name)(**options)


class Devices(tuple[str, ...]):
    """The names of devices: a tuple, as the standard asks; SciPy 1.17 adds lists to it, as the one before allowed."""

    __slots__ = ()

    def __add__(self, other: Any) -> Any:
        return [*self, *other] if isinstance(other, list) else Devices(tuple(self) + tuple(other))

    def __radd__(self, other: Any) -> Any:
        return [*other, *self]


class Info(ArrayNamespaceInfo):
    """The inspection namespace of one backend."""

    def _spelled(self, dtypes: dict[str, Any]) -> dict[str, Any]:
        return {name: Dtype(dtype) for name, dtype in dtypes.items()}

    def devices(self) -> tuple[str, ...]:
        """Returns the names of the available devices."""
        return Devices(super().devices())

    def capabilities(self) -> dict[str, Any]:
        """Returns what the backend can: all index by masks, since `x[mask]` is an op."""
        return super().capabilities() | {"boolean indexing": True}


MAKERS: dict[str, Callable[[Any], Function]] = {
    "__array_namespace_info__": info,
    "asarray": asarray,
    "astype": astype,
    "capabilities": of_info("capabilities"),
    "default_dtypes": of_info("default_dtypes"),
    "from_dlpack": from_dlpack,
    "isdtype": isdtype,
}
"""By name, the makers of the functions of the main namespace."""
