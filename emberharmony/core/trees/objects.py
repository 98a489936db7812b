"""The leaves of objects that keep their tensors in attributes, such as the layers of a model."""

import enum
import sys
from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeVar

from emberharmony.core.trees.nodes import DERIVED, KINDS, LEAF, flatten_registered
from emberharmony.core.trees.paths import TreePath
from emberharmony.core.trees.tree import sorted_keys

C = TypeVar("C")


class Held(NamedTuple):
    """A leaf within an object.

    Attributes:
        path: the keys, positions and names of attributes that lead to it.
        holder: the dict, list, tuple or object that holds it under `path[-1]`; None if the whole object is a leaf.
        value: the leaf.
    """

    path: TreePath
    holder: Any
    value: Any


class Sealed:
    """The base of objects that hold no tensors, so that their attributes are not searched."""

    __slots__ = ()


def held_leaves(root: Any) -> Iterator[Held]:
    """Yields the leaves within an object: in its attributes, in trees there, in the attributes of objects in these.

    These are leaves: numbers, text, tensors, functions, classes, modules, objects of the standard library, and the
    parameters, generators, dtypes and backends of this library. Any other object with attributes is entered, and of a
    dataclass all fields. No object, dict or list is entered twice, so circles end; a leaf is yielded at each place.
    """
    entered_objects: dict[int, Any] = {}  # keeps the objects, so that no other gets the id of one
    path_keys: list[Any] = []
    holder_stack: list[Any] = [None]
    iterator_stack: list[Iterator[tuple[Any, Any]]] = [iter(((None, root),))]
    while iterator_stack:
        for key, value in iterator_stack[-1]:
            entries = _held_entries(value)
            if entries is None:
                yield Held(TreePath((*path_keys, key)[1:]), holder_stack[-1], value)
            elif id(value) not in entered_objects:
                if not isinstance(value, tuple):
                    entered_objects[id(value)] = value
                path_keys.append(key)
                holder_stack.append(value)
                iterator_stack.append(iter(entries))
                break
        else:
            iterator_stack.pop()
            holder_stack.pop()
            del path_keys[-1:]


def instances_in(root: Any, kind: type[C]) -> list[C]:
    """Returns the values of `held_leaves(root)` that are objects of a class, each once, in an eighth of the time."""
    handling_by_class = _HANDLING_BY_KIND[kind]
    instances_by_id: dict[int, C] = {}
    entered_objects: dict[int, Any] = {}
    unread_values = [root]
    while unread_values:
        value = unread_values.pop()
        handling = handling_by_class[value.__class__]
        if handling == "skipped":
            continue
        value_id = id(value)
        if handling == "found":
            instances_by_id[value_id] = value
        elif value_id in entered_objects:
            continue
        elif handling == "attributes":
            entered_objects[value_id] = value
            unread_values += [*value.__dict__.values()][::-1]
        elif handling == "list":
            entered_objects[value_id] = value
            unread_values += value[::-1]
        else:
            if not isinstance(value, tuple):
                entered_objects[value_id] = value
            unread_values += [child for _, child in _held_entries(value) or ()][::-1]
    return list(instances_by_id.values())


def _held_entries(value: Any) -> Iterable[tuple[Any, Any]] | None:
    """Returns the keys and values that a node or object holds; None for a leaf."""
    cls = value.__class__
    if cls is dict:
        return [(key, value[key]) for key in sorted_keys(value)]
    if cls is list or cls is tuple:
        return enumerate(value)
    if ENTERED[cls]:
        return _attributes(value)
    node_kind = KINDS[cls]
    if node_kind == "leaf":
        return None
    if node_kind == "none":
        return ()
    if issubclass(cls, dict):
        return [*[(key, value[key]) for key in sorted_keys(value)], *_attributes(value)]
    if issubclass(cls, (list, tuple)):
        return [*zip(getattr(cls, "_fields", range(len(value))), value, strict=True), *_attributes(value)]
    names, children, _ = flatten_registered(value)
    return zip(range(len(children)) if names is None else names, children, strict=True)


def _attributes(value: Any) -> Iterable[tuple[str, Any]]:
    dict_attributes: dict[str, Any] = getattr(value, "__dict__", {})
    slots = SLOTS[value.__class__]
    if not slots:
        return list(dict_attributes.items())
    return [*[(name, getattr(value, name)) for name in slots if hasattr(value, name)], *dict_attributes.items()]


class _Slots(dict[type, tuple[str, ...]]):
    """A cache from a class to the attributes that its objects have in slots."""

    def __missing__(self, cls: type) -> tuple[str, ...]:
        slot_names: list[str] = []
        for base in reversed(cls.__mro__):
            slots = vars(base).get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                is_private = name.startswith("__") and not name.endswith("__")
                slot_names.append(f"_{base.__name__.lstrip('_')}{name}" if is_private else name)
        self[cls] = attribute_names = tuple([name for name in slot_names if name not in ("__dict__", "__weakref__")])
        return attribute_names


class _Entered(dict[type, bool]):
    """A cache from a class to whether the attributes of its objects are searched."""

    def __missing__(self, cls: type) -> bool:
        self[cls] = is_entered = _is_entered(cls)
        return is_entered


class _HandlingByClass(dict[type, str]):
    """A cache from a class to what `instances_in` does with its objects.

    Args:
        kind: the class whose objects are to be found.
    """

    def __init__(self, kind: type) -> None:
        super().__init__({list: "list"})
        self.kind = kind

    def __missing__(self, cls: type) -> str:
        if ENTERED[cls]:
            handling = "attributes" if cls.__dictoffset__ and not SLOTS[cls] else "entered"
        elif KINDS[cls] in (LEAF, "none"):
            handling = "found" if KINDS[cls] == LEAF and issubclass(cls, self.kind) else "skipped"
        else:
            handling = "entered"
        self[cls] = handling
        return handling


class _HandlingByKind(dict[type, _HandlingByClass]):
    """A cache from a class to its `_HandlingByClass`, which follow from `KINDS`."""

    def __missing__(self, kind: type) -> _HandlingByClass:
        self[kind] = handling_by_class = _HandlingByClass(kind)
        return handling_by_class


SLOTS = _Slots()
"""By class, the names of the attributes that its objects have in slots, if they are set."""

ENTERED = _Entered({SimpleNamespace: True})
"""By class, whether the attributes of its objects are searched."""

_HANDLING_BY_KIND = _HandlingByKind()
DERIVED.append(_HANDLING_BY_KIND)

_OTHERS = (dict, list, tuple, type, str, bytes, int, float, complex, enum.Enum)
_LIBRARY = ("emberharmony.core.", "emberharmony.backend.", "emberharmony.transforms.")


def _is_entered(cls: type) -> bool:
    if issubclass(cls, _OTHERS) or hasattr(cls, "__array__") or hasattr(cls, "__dlpack__"):
        return False
    if cls.__module__.partition(".")[0] in sys.stdlib_module_names:
        return False
    if any(base.__module__.startswith(_LIBRARY) for base in cls.__mro__):
        return False
    return bool(cls.__dictoffset__) or any(vars(base).get("__slots__") for base in cls.__mro__)
