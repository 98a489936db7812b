"""Registers modules as tree nodes: they are flattened to the attributes that contain tensors.

Attributes that hold cells, tensors or nodes are children, the rest is static. Random generators do not count when two
structures are compared, so models with dropout can be stacked into an ensemble. `ops.grad` leaves None in the places of
frozen cells: zeros would keep the structure, but an optimizer would take them for gradients, decay frozen parameters,
and count them in a norm.
"""

from typing import Any

from emberharmony import TensorSpec, ops
from emberharmony.core.cells.cell import Cell
from emberharmony.core.stand_ins.shared_methods import SharedMethods
from emberharmony.core.trees.nodes import KINDS
from emberharmony.nn.rngs import Rngs
from emberharmony.nn.walk import Holder


class Static(list[tuple[str, Any]]):
    """The attributes of a module that hold no leaves; random generators do not count when two are compared."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Static) or len(self) != len(other):
            return False
        return all(
            name == other_name and _is_same(value, other_value)
            for (name, value), (other_name, other_value) in zip(self, other, strict=True)
        )

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None


def _is_same(value: Any, other_value: Any) -> bool:
    if type(value) is not type(other_value):
        return False
    return isinstance(value, (ops.random.Generator, Rngs)) or value is other_value or bool(value == other_value)


def _holds_leaves(value: Any) -> bool:
    if isinstance(value, (Cell, Holder, SharedMethods, TensorSpec)):
        return True
    if isinstance(value, dict):
        return any(map(_holds_leaves, value.values()))
    if isinstance(value, (list, tuple)):
        return any(map(_holds_leaves, value))
    return hasattr(value, "__dlpack__") or KINDS[type(value)] in ("dataclass", "registered")


def flatten_module(module: Holder) -> tuple[dict[str, Any], tuple[type[Holder], Static]]:
    """Returns the attributes of a module that hold leaves (tensors), and its static attributes."""
    child_by_name: dict[str, Any] = {}
    static_attributes = Static()
    for name, value in vars(module).items():
        if _holds_leaves(value):
            child_by_name[name] = value
        else:
            static_attributes.append((name, value))
    return child_by_name, (type(module), static_attributes)


def unflatten_module(static: tuple[type[Holder], Static], children: dict[str, Any]) -> Holder:
    """Returns a new module of a class with the given static attributes and tensor attributes."""
    cls, attributes = static
    module = object.__new__(cls)
    vars(module).update(attributes)
    vars(module).update(children)
    return module
