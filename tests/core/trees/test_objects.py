"""The leaves that objects hold in their attributes."""

import dataclasses
import enum
import logging
import sys
import threading
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from emberharmony import Parameter, TensorSpec, ops
from emberharmony.core.trees.objects import Held, held_leaves, instances_in


class Layer:
    def __init__(self, weight: Any, **rest: Any) -> None:
        self.weight = weight
        vars(self).update(rest)


class Base:
    __slots__ = ("__hidden", "left", "unset")

    def __init__(self, hidden: Any, left: Any) -> None:
        self.__hidden, self.left = hidden, left


class Slotted(Base):
    __slots__ = "right"

    def __init__(self, *values: Any) -> None:
        super().__init__(*values[:2])
        self.right = values[2]


class Items(dict[str, Any]):
    pass


class Pair(NamedTuple):
    x: Any
    y: Any


@dataclasses.dataclass
class Made:
    x: Any
    name: str = "made"
    twice: Any = dataclasses.field(default=None, init=False)

    def __post_init__(self) -> None:
        self.twice = [self.x, self.x]


class Color(enum.Enum):
    RED = 1


class Named(str):
    """Text with attributes."""


class Own(Parameter):
    """A parameter of another library."""


def found(root: Any) -> dict[str, Any]:
    held = list(held_leaves(root))
    assert instances_in(root, object) == list({id(each.value): each.value for each in held}.values())
    return {str(each.path): each.value for each in held}


def test_attributes_trees_and_objects_in_trees_are_entered() -> None:
    model = Layer(1, inner=[Layer(2), {"b": Pair(Layer(3), 4), "a": (5, None)}], space=SimpleNamespace(x=6), _own=7)
    assert found(model) == {
        "weight": 1,
        "inner.0.weight": 2,
        "inner.1.a.0": 5,
        "inner.1.b.x.weight": 3,
        "inner.1.b.y": 4,
        "space.x": 6,
        "_own": 7,
    }
    assert found(3.0) == {"": 3.0}
    assert found(Slotted(1, 2, [3])) == {"_Base__hidden": 1, "left": 2, "right.0": 3}
    items = Items(a=1)
    vars(items).update(b=2)
    assert found(items) == {"a": 1, "b": 2}
    assert found(Made(1)) == {"x": 1, "name": "made", "twice.0": 1, "twice.1": 1}


def test_each_leaf_comes_with_its_holder() -> None:
    model = Layer(1, inner=[2])
    assert list(held_leaves(model)) == [Held(("weight",), model, 1), Held(("inner", 0), model.inner, 2)]
    assert list(held_leaves(1)) == [Held((), None, 1)]
    for path, holder, value in held_leaves(model):
        change = setattr if isinstance(holder, Layer) else type(holder).__setitem__
        change(holder, path[-1], value * 10)
    assert found(model) == {"weight": 10, "inner.0": 20}


def test_circles_end_and_objects_are_entered_once() -> None:
    shared = Layer(1)
    model = Layer(2, parts=[shared, shared, (3, shared)], same=(shared,))
    model.parts.append(model)
    shared.parent, shared.again = model, model.parts
    assert found(model) == {"weight": 2, "parts.0.weight": 1, "parts.2.0": 3}
    chain: Any = None
    for depth in range(5000):
        chain = Layer(depth, next=chain)
    assert len(list(held_leaves(chain))) == 5000


def test_tensors_cells_and_foreign_objects_are_leaves(backend: str) -> None:
    leaves = [
        ops.ones(2),
        np.ones(2),
        Parameter([1.0]),
        Own([1.0]),
        ops.random.Generator(0),
        TensorSpec((2,)),
        ops.float32,
        *(Color.RED, Named("a"), Layer, ops.sin, sys, threading.Lock(), logging.getLogger("a"), {1, 2}),
    ]
    held = [each.value for each in held_leaves(Layer(0, leaves=leaves))][1:]
    assert len(held) == len(leaves)
    assert all(a is b for a, b in zip(held, leaves, strict=True))


def test_a_tuple_that_occurs_twice_is_entered_at_each_place() -> None:
    pair, listed = (1.0, 2.0), [3.0]
    found = [(str(held.path), held.value) for held in held_leaves({"a": pair, "b": pair, "c": listed, "d": listed})]
    assert [value for _, value in found] == [1.0, 2.0, 1.0, 2.0, 3.0]
    assert len({path for path, _ in found}) == 5
