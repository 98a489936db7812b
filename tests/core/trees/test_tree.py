"""Trees of all node types survive flattening, mapping and rebuilding."""

import dataclasses
from collections import OrderedDict, defaultdict
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emberharmony import ops
from emberharmony.core.errors import ArgumentError, EmberError


class Point(NamedTuple):
    x: Any
    y: Any


@dataclasses.dataclass
class Pair:
    left: Any
    right: Any


LEAVES = st.integers()
TREES = st.recursive(
    LEAVES | st.none(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
        | st.builds(Point, inner, inner)
        | st.builds(Pair, inner, inner)
    ),
    max_leaves=12,
)


@given(TREES)
def test_unflatten_inverts_flatten(tree: Any) -> None:
    leaves, treedef = ops.tree_flatten(tree)
    assert ops.tree_unflatten(treedef, leaves) == tree
    assert treedef.leaves == len(leaves)


@given(TREES)
def test_map_keeps_the_structure(tree: Any) -> None:
    doubled = ops.tree_map(lambda leaf: leaf * 2, tree)
    assert ops.tree_leaves(doubled) == [leaf * 2 for leaf in ops.tree_leaves(tree)]
    assert ops.tree_flatten(doubled)[1] == ops.tree_flatten(tree)[1]


def test_dicts_are_walked_in_sorted_order() -> None:
    assert ops.tree_leaves({"b": 1, "a": 2}) == [2, 1]
    assert ops.tree_leaves({1: "x", "a": "y"}) == ["x", "y"]


def test_map_keeps_the_class_of_a_dict() -> None:
    tree = OrderedDict(b=1, a=2)
    assert type(ops.tree_map(abs, tree)) is OrderedDict


def test_a_subclass_of_list_is_a_list() -> None:
    class Rows(list[int]):
        pass

    mapped = ops.tree_map(lambda a, b: a + b, Rows([1, 2]), [10, 20])
    assert (type(mapped), mapped) == (list, [11, 22])


def test_map_combines_the_leaves_of_several_trees() -> None:
    assert ops.tree_map(lambda a, b: a + b, {"x": [1, 2]}, {"x": [10, 20]}) == {"x": [11, 22]}


def test_map_refuses_trees_of_different_structures() -> None:
    with pytest.raises(ArgumentError, match=r"dict\(x: \*\) and dict\(y: \*\)"):
        ops.tree_map(lambda a, b: a, {"x": 1}, {"y": 1})


def test_unflatten_refuses_a_wrong_number_of_leaves() -> None:
    with pytest.raises(ArgumentError, match="has 2 leaves, 3 were given"):
        ops.tree_unflatten(ops.tree_flatten([1, 2])[1], [1, 2, 3])


def test_is_leaf_stops_the_walk() -> None:
    assert ops.tree_leaves([(1, 2), (3, 4)], is_leaf=lambda node: isinstance(node, tuple)) == [(1, 2), (3, 4)]


def test_a_tree_nested_too_deeply_is_refused() -> None:
    tree: list[object] = []
    for _ in range(2000):
        tree = [tree]
    for call in (ops.tree_leaves, ops.tree_flatten, ops.backend_of, ops.grad(ops.sum), ops.vmap(ops.sin)):
        with pytest.raises(EmberError, match="a tree is nested too deeply to be walked"):
            call(tree)


def test_tensors_are_leaves(backend: str) -> None:
    tree = {"w": ops.convert_to_tensor([1.0, 2.0]), "b": None}
    assert len(ops.tree_leaves(tree)) == 1
    assert ops.tree_map(lambda x: ops.to_numpy(ops.add(x, x)).tolist(), tree) == {"w": [2.0, 4.0], "b": None}


class Strict(dict[str, Any]):
    """A dict whose constructor and methods are not those of dict."""

    def __init__(self, name: str, notes: list[str]) -> None:
        self.name, self.notes = name, notes

    def update(self, *args: Any, **kwargs: Any) -> None:
        raise KeyError("no new keys")


class Fielded(OrderedDict[str, Any]):
    """A dict whose items are attributes too."""

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key, value)
        object.__setattr__(self, key, value)

    def update(self, *args: Any, **kwargs: Any) -> None:
        raise KeyError("no update")


def test_a_subclass_of_dict_keeps_its_attributes_whatever_its_methods_do() -> None:
    strict, fielded = Strict("one", ["a"]), Fielded()
    strict["w"] = 1.0
    fielded["x"], fielded["b"] = 2.0, 3.0
    doubled = ops.tree_map(lambda x: 2 * x, [strict, fielded, defaultdict(list, {"k": 4.0})])
    assert [dict(tree) for tree in doubled] == [{"w": 2.0}, {"x": 4.0, "b": 6.0}, {"k": 8.0}]
    assert (doubled[0].name, doubled[0].notes) == ("one", ["a"])
    assert doubled[0].notes is not strict.notes
    assert doubled[1].x == 4.0
    assert doubled[2]["new"] == []
    assert ops.tree_flatten(doubled[0])[1] == ops.tree_flatten(strict)[1]
    other = Strict("two", ["a"])
    other["w"] = 1.0
    assert ops.tree_flatten(other)[1] != ops.tree_flatten(strict)[1]
