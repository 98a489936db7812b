"""`Record` behaves like `typing.NamedTuple`."""

import copy
import pickle
from typing import Any, NamedTuple

import pytest

from emberharmony import ops
from emberharmony.core.named_tuple import Record


class Point(Record):
    """A point of the plane."""

    x: Any
    y: Any = 2


class Native(NamedTuple):
    """A point of the plane."""

    x: Any
    y: Any = 2


@pytest.mark.parametrize("kind", [Point, Native])
def test_a_record_behaves_like_a_named_tuple(kind: Any) -> None:
    point = kind(1)
    assert (point.x, point.y, tuple(point), len(point)) == (1, 2, (1, 2), 2)
    assert point == kind(x=1, y=2) == kind(1, y=2) == (1, 2)
    assert point._fields == kind.__match_args__ == ("x", "y")
    assert point._asdict() == {"x": 1, "y": 2}
    assert point._replace(y=5) == (1, 5)
    assert kind._make([3, 4]) == (3, 4)
    assert repr(point) == f"{kind.__name__}(x=1, y=2)"
    assert hash(point) == hash((1, 2))
    for copied in (copy.copy(point), copy.deepcopy(point), pickle.loads(pickle.dumps(point))):
        assert type(copied) is kind
        assert copied == point
    match point:
        case kind(x=first, y=second):
            assert (first, second) == (1, 2)
    with pytest.raises(AttributeError):
        point.x = 3
    for wrong in ((), (1, 2, 3)):
        with pytest.raises(TypeError):
            kind(*wrong)
    for named in ({"x": 1, "z": 2}, {"y": 1}):
        with pytest.raises(TypeError):
            kind(**named)
    with pytest.raises(TypeError):
        kind(1, 2, x=1)


def test_tree_map_keeps_the_class_of_a_record(backend: str) -> None:
    doubled = ops.tree_map(lambda x: x * 2, Point(1, {"a": 2}))
    assert type(doubled) is Point
    assert doubled == (2, {"a": 4})
