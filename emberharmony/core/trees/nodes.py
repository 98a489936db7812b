"""The nodes of trees: which classes are nodes, what their children are, and which fields of a dataclass are static.

A field of a dataclass is static if its metadata says so, `dataclasses.field(metadata={"static": True})`. Otherwise it
is static if it is declared as an option and its value is one. An annotation declares an option if it names only these
types: `str`, `bytes`, `int`, `bool`, an enumeration, a dtype, a class (`type`), a function (`Callable`), a `Literal`,
None, tuples of these, and their unions. The declaration decides, and not the value alone, because two objects of a
class must have the same structure: one of them may hold a name or an axis in the place of each tensor.
"""

import enum
import sys
import typing
from collections.abc import Callable, Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, Literal, Union

from emberharmony.core.errors import ArgumentError, ArgumentTypeError, brief
from emberharmony.core.named_tuple import Record

LEAF = "leaf"
_OPTIONS = (str, bytes, int, enum.Enum, type, type(None))
_NOT_NODES = (str, bytes, int, float, complex)
_CONTAINERS = (dict, list, tuple, type(None))


Fields = tuple[tuple[str, "bool | None"], ...]
"""Each field of a dataclass with whether it is static; None if this depends on the value."""


class Registered(Record):
    """The functions that take an object of a registered class apart into children, and rebuild one."""

    flatten: Callable[[Any], tuple[Any, Any]]
    unflatten: Callable[[Any, Any], Any]


class _Kinds(dict[type, str]):
    """A cache from the class of an object to its kind of node."""

    def __missing__(self, cls: type) -> str:
        self[cls] = kind = kind_of(cls)
        return kind


def kind_of(cls: type) -> str:
    """Returns which kind of tree node the objects of a class are, such as "dict", "dataclass" or "leaf"."""
    for base in cls.__mro__:
        if base in _REGISTERED:
            _HANDLERS[cls] = _REGISTERED[base]
            return "registered"
    if issubclass(cls, tuple):
        return "namedtuple" if hasattr(cls, "_fields") else "tuple"
    if issubclass(cls, (dict, list)):
        return "dict" if issubclass(cls, dict) else "list"
    return "dataclass" if hasattr(cls, "__dataclass_fields__") else LEAF


class _Declared(dict[type, Fields]):
    """A cache of `declared_fields` by dataclass."""

    def __missing__(self, cls: type) -> Fields:
        self[cls] = fields = declared_fields(cls)
        return fields


class _Handlers(dict[type, Registered]):
    """A cache from a registered class, or a subclass, to its functions; torch.compile cannot read a plain dict."""

    def __missing__(self, cls: type) -> Registered:
        if kind_of(cls) != "registered":
            raise ArgumentError(f"{cls.__qualname__} is not registered in this process; call ops.register_node first")
        return self[cls]


_REGISTERED: dict[type, Registered] = {}
_HANDLERS = _Handlers()
_DECLARED = _Declared()
KINDS = _Kinds({type(None): "none"})
DERIVED: list[dict[type, Any]] = []
"""Caches that follow from `KINDS`; a registration empties them."""


def register_node(cls: type, flatten: Callable[[Any], tuple[Any, Any]], unflatten: Callable[[Any, Any], Any]) -> None:
    """Makes the objects of a class, and of its subclasses, nodes of trees; a subclass may be registered by itself.

    Args:
        cls: the class whose objects become nodes.
        flatten: returns the pair (children, static) of an object. The children are a list or tuple, or a dict from
            names, which the paths of leaves then contain. `static` is the rest of the object; it is a part of the
            structure of the tree, so `==` must be able to compare it.
        unflatten: returns an object from `static` and children, which are a list, or a dict with the same names.

    Raises:
        ArgumentTypeError: if `cls` is not a class, or `flatten` or `unflatten` is not a function.
        ArgumentError: if the class is registered already, or is a container or number of Python.

    Example:
        >>> class Line:
        ...     def __init__(self, slope, start, unit):
        ...         self.slope, self.start, self.unit = slope, start, unit
        >>> ops.register_node(
        ...     Line,
        ...     lambda line: ({"slope": line.slope, "start": line.start}, line.unit),
        ...     lambda unit, children: Line(**children, unit=unit),
        ... )
        >>> gradient = ops.grad(lambda line: ops.add(ops.multiply(line.slope, 3.0), line.start))(Line(2.0, 1.0, "m"))
        >>> gradient.slope.tolist(), gradient.start.tolist(), gradient.unit
        (3.0, 1.0, 'm')
    """
    if not isinstance(cls, type):
        raise ArgumentTypeError(f"register_node() takes a class, not {brief(cls)}")
    for name, function in (("flatten", flatten), ("unflatten", unflatten)):
        if not callable(function):
            raise ArgumentTypeError(f"register_node() takes a function as {name}, not {brief(function)}")
    if cls in _CONTAINERS or cls is object or issubclass(cls, _NOT_NODES):
        raise ArgumentError(f"register_node() cannot make {cls.__name__} a node: register a class of your own")
    # `setdefault` is one call, so that of two threads that register a class only one succeeds.
    handler = Registered(flatten, unflatten)
    if _REGISTERED.setdefault(cls, handler) is not handler:
        raise ArgumentError(f"register_node(): {cls.__qualname__} is registered already; register a class once")
    for subclass in [registered_class for registered_class in list(KINDS) if issubclass(registered_class, cls)]:
        KINDS.pop(subclass, None)
    for cache in DERIVED:
        cache.clear()


def flatten_registered(node: Any) -> tuple[tuple[Any, ...] | None, Sequence[Any], tuple[Any, Any]]:
    """Returns the names of the children of a registered node, or None, its children, and its static part.

    Returns:
        the names, the children, and the `_number_type` and value of the static part.

    Raises:
        ArgumentTypeError: if its `flatten` does not return a pair of children and a static part.
    """
    cls = type(node)
    flat_node = _HANDLERS[cls].flatten(node)
    if not isinstance(flat_node, tuple) or len(flat_node) != 2 or not isinstance(flat_node[0], (list, tuple, Mapping)):
        raise ArgumentTypeError(
            f"the flatten function of {cls.__qualname__} must return a pair (children, static), with the children in a "
            f"list, tuple or dict, not {brief(flat_node)}"
        )
    children, static_part = flat_node
    if isinstance(children, Mapping):
        return tuple(children), list(children.values()), (_number_type(static_part), static_part)
    return None, children, (_number_type(static_part), static_part)


def rebuild_registered(cls: type, names: tuple[Any, ...] | None, children: list[Any], static: Any) -> Any:
    """Returns an object of a registered class, rebuilt from its children and its static part.

    Raises:
        ArgumentTypeError: if its `unflatten` does not return an object of the class.
    """
    node = _HANDLERS[cls].unflatten(static, children if names is None else dict(zip(names, children, strict=True)))
    if not isinstance(node, cls):
        raise ArgumentTypeError(
            f"the unflatten function of {cls.__qualname__} must return an object of that class, not {brief(node)}"
        )
    return node


def fields_of(node: Any) -> tuple[tuple[str, ...], list[Any], tuple[tuple[str, Any, Any], ...]]:
    """Returns the names and values of the fields of a dataclass that are children, and its static fields.

    Fields with `init=False` are neither: the class computes them itself.

    Returns:
        the names, the children, and for each static field its name, `_number_type` and value.

    Raises:
        ArgumentTypeError: if a field that is declared static holds a tensor.
    """
    cls = type(node)
    child_names: list[str] = []
    children: list[Any] = []
    static_fields: list[tuple[str, Any, Any]] = []
    for name, is_static in _DECLARED[cls]:
        field_value = getattr(node, name)
        if is_static is False or (is_static is None and not _is_option(field_value)):
            child_names.append(name)
            children.append(field_value)
        else:
            if is_static and (hasattr(type(field_value), "__array__") or hasattr(type(field_value), "__dlpack__")):
                raise ArgumentTypeError(
                    f"the field {name!r} of {cls.__qualname__} is static but holds a tensor, which is a leaf: remove "
                    f"'static' from the metadata of the field"
                )
            static_fields.append((name, _number_type(field_value), field_value))
    return tuple(child_names), children, tuple(static_fields)


def declared_fields(cls: type) -> Fields:
    """Returns the fields of a dataclass that its constructor takes."""
    # A dataclass exists, so `dataclasses` is already imported; importing it here costs 2 ms.
    fields = [field for field in sys.modules["dataclasses"].fields(cls) if field.init]
    return tuple([(field.name, _is_declared_static(cls, field)) for field in fields])


OF_CLASSES = (kind_of, declared_fields)
"""Functions whose result never changes for a class, and which torch.compile cannot trace."""


def _is_declared_static(cls: type, field: Any) -> bool | None:
    if "static" in field.metadata:
        return bool(field.metadata["static"])
    return None if _names_options(_annotation_of(cls, field)) else False


def _annotation_of(cls: type, field: Any) -> Any:
    """Returns the annotation of a field as an object, or `Any` if it cannot be evaluated.

    Under `from __future__ import annotations` it is text, which is evaluated in the module of the class that has it.
    """
    if not isinstance(field.type, str):
        return field.type
    declaring_classes = [
        base for base in cls.__mro__ if vars(base).get("__dataclass_fields__", {}).get(field.name) is field
    ]
    module = sys.modules.get(declaring_classes[-1].__module__)
    stand_in_class = type(cls.__name__, (), {"__annotations__": {field.name: field.type}})
    try:
        return typing.get_type_hints(stand_in_class, vars(module) if module else {}, vars(declaring_classes[-1]))[
            field.name
        ]
    except (NameError, AttributeError, TypeError, SyntaxError):
        return Any  # the names exist for type checkers only, or inside of a function


def _names_options(annotation: Any) -> bool:
    """Returns whether an annotation names only types of options: text, integers, enums, classes, functions."""
    origin, type_arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        return _names_options(type_arguments[0])
    if origin in (Union, UnionType):
        return all(map(_names_options, type_arguments))
    if origin is tuple:
        return bool(type_arguments) and all(
            type_argument is Ellipsis or _names_options(type_argument) for type_argument in type_arguments
        )
    if origin is not None:
        return origin in (Literal, Callable, type)
    if annotation in (Callable, typing.Callable, callable, None):
        return True
    return isinstance(annotation, type) and issubclass(annotation, _OPTIONS)


def _is_option(value: Any) -> bool:
    if isinstance(value, _OPTIONS):
        return True
    if type(value) is tuple:
        return all(map(_is_option, value))
    # A function is an option; another object that can be called may be a layer, whose tensors are leaves.
    return callable(value) and KINDS[type(value)] == LEAF


def _number_type(value: Any) -> Any:
    """Returns the type of a number, or the types in a tuple, since 1, 1.0 and True are equal; None for other values."""
    if type(value) is tuple:
        return tuple(map(_number_type, value))
    return type(value) if isinstance(value, (int, float, complex)) else None
