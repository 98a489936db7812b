"""The namespace of the array API standard for one backend, whose arrays have everything that the standard asks for."""

import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from emberharmony.core.dtypes import DType
from emberharmony.core.names.unknown_names import missing_name_error
from emberharmony.core.registry import OPS, complete
from emberharmony.xp import source
from emberharmony.xp.array import ArrayBase
from emberharmony.xp.dtypes import Dtype
from emberharmony.xp.functions import MAKERS, with_default_dtype
from emberharmony.xp.kit import Kit
from emberharmony.xp.links import LOCK
from emberharmony.xp.transforms import function_on_trees

_PACKAGE = "emberharmony.xp"
_CHOOSERS = ("array_namespace", "available_backends", "backend_of", "get_backend", "set_backend", "use_backend")
_SPACES: "dict[str, Namespace]" = {}
_EXTENSIONS: "dict[str, Callable[[Namespace], Any]]" = {}


class Namespace(ModuleType):
    """The functions, constants and dtypes of `ops`, or of a part such as `ops.linalg`, for the arrays of one backend.

    Each name is made when it is first asked for.
    """

    def __init__(self, kit: Kit, part: str = "") -> None:
        ops_module = complete()
        self._source: ModuleType = getattr(ops_module, part) if part else ops_module
        super().__init__(f"{kit.module}.{part}" if part else kit.module, self._source.__doc__)
        self._kit, self._part = kit, part
        if not part:
            kit.namespace = self
            self.Array = kit.array
            for neutral_dtype in kit.backend.dtypes.natives:
                setattr(self, neutral_dtype.name, Dtype(neutral_dtype))
        # A method `__getattr__` of the class would slow down all attributes; one in the dict runs for new ones only.
        self.__dict__["__getattr__"] = self._make_attribute

    def _names(self) -> Iterator[str]:
        for name in self._source.__all__:
            if name not in _CHOOSERS and (not isinstance(getattr(self._source, name), DType) or name in vars(self)):
                yield name

    def _make_attribute(self, name: str) -> Any:
        """Creates and stores the attribute of a name that is asked for the first time, and returns it.

        Raises:
            AttributeError: if there is none; the message has the nearest name.
        """
        if name in _EXTENSIONS and not self._part:
            return self.__dict__.setdefault(name, _EXTENSIONS[name](self))
        op_or_constant = vars(self._source).get(name)
        if isinstance(op_or_constant, DType):
            names_text = ", ".join(dtype.name for dtype in self._kit.backend.dtypes.natives)
            raise AttributeError(f"backend {self._kit.name!r} has no dtype {name!r}; it has {names_text}", name=name)
        is_unknown = name not in self._source.__all__ or name in _CHOOSERS
        if is_unknown:
            raise missing_name_error(
                repr(self), "attribute", name, self._source.__name__.removeprefix("emberharmony."), "xp"
            )
        with LOCK:  # only one thread creates the attribute
            if name not in self.__dict__:
                self.__dict__[name] = self._make_member(name, op_or_constant)
        return self.__dict__[name]

    def _make_member(self, name: str, op_or_constant: Any) -> Any:
        kit = self._kit
        make_function = MAKERS.get(f"{self._part}.{name}" if self._part else name)
        if make_function is not None:
            function = make_function(kit)
            function.__module__, function.__qualname__ = self.__name__, name
            return function
        if isinstance(op_or_constant, ModuleType):
            part_namespace = Namespace(kit, name)
            return sys.modules.setdefault(part_namespace.__name__, part_namespace)
        spec = OPS.get(getattr(op_or_constant, "__name__", ""))
        if spec is None or spec.function is not op_or_constant:
            is_constant_or_class = isinstance(op_or_constant, type) or not callable(op_or_constant)
            return op_or_constant if is_constant_or_class else function_on_trees(kit, op_or_constant)
        if spec.takes_callable or spec.returns in ("Any", "Callable[..., Any]"):
            return function_on_trees(kit, op_or_constant)
        function = source.array_function(kit, spec, self._part, name)
        makes_arrays = spec.category in ("creation", "fft") and any(p.role == "DTypeLike" for p in spec.parameters)
        makes_arrays = makes_arrays and not spec.parameters[0].is_tensor
        return with_default_dtype(kit, function) if makes_arrays else function

    def __dir__(self) -> list[str]:
        return sorted([*self._names(), "Array"] if not self._part else self._names())

    def __repr__(self) -> str:
        return f"<module {self.__name__!r}: the array API on backend {self._kit.name!r}>"

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __reduce__(self) -> "tuple[Callable[[str, str], Any], tuple[str, str]]":
        return _namespace_part, (self._kit.name, self._part)


def _namespace_part(name: str, part: str) -> Any:
    """Returns the namespace of a backend, or a part of it; pickles refer to this function."""
    return getattr(namespace(name), part) if part else namespace(name)


def namespace(backend: Any) -> Namespace:
    """Returns the array API namespace of a backend.

    Args:
        backend: the name of a backend, such as "mlx", or an array.

    Raises:
        BackendNotFoundError: if no backend has this name.
        BackendUnavailableError: if the library of the backend is not installed.

    Example:
        >>> from emberharmony import xp
        >>> np = xp.namespace("numpy")
        >>> float(np.sum(np.asarray([1.0, 2.0])))
        3.0
    """
    if isinstance(backend, ArrayBase):
        return backend._kit.namespace  # type: ignore[no-any-return]
    namespace_of_backend = _SPACES.get(backend)
    if namespace_of_backend is None:
        with LOCK:
            namespace_of_backend = _SPACES.get(backend)
            if namespace_of_backend is None:
                module_name = f"{_PACKAGE}.{backend}"
                namespace_of_backend = _SPACES[backend] = Namespace(Kit(backend, module_name))
                namespace_of_backend._kit.join()
                sys.modules[module_name] = namespace_of_backend
                setattr(sys.modules[_PACKAGE], backend, namespace_of_backend)
    return namespace_of_backend


def set_or_remove_extension(name: str, make_extension: "Callable[[Namespace], Any] | None") -> None:
    """Adds an attribute to all array API namespaces, or removes it.

    Args:
        make_extension: returns the attribute of a namespace; None takes it away.
    """
    with LOCK:
        _EXTENSIONS.pop(name, None)
        for space in _SPACES.values():
            vars(space).pop(name, None)
        if make_extension is not None:
            _EXTENSIONS[name] = make_extension
