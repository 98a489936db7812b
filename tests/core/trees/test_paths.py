"""The paths of the leaves of trees, as tuples and as text."""

import dataclasses
import pickle
from typing import Any, NamedTuple

import pytest
from hypothesis import given

from emberharmony import ops
from emberharmony.errors import ArgumentError
from tests.core.trees.test_tree import TREES, Pair, Point


class Attention(NamedTuple):
    weight: Any
    bias: Any


@dataclasses.dataclass
class Block:
    attention: Any
    name: str = "block"


MODEL = {"h": [Block(Attention(1.0, None)), Block((2.0, {3: 3.0}))], "scale": 4.0}


def test_a_path_is_a_tuple_whose_text_is_dotted() -> None:
    paths = ops.tree_paths(MODEL)
    assert paths == [("h", 0, "attention", "weight"), ("h", 1, "attention", 0), ("h", 1, "attention", 1, 3), ("scale",)]
    assert [str(path) for path in paths] == ["h.0.attention.weight", "h.1.attention.0", "h.1.attention.1.3", "scale"]
    assert f"{paths[-1]}" == "scale"
    assert repr(paths[0]) == "('h', 0, 'attention', 'weight')"
    assert pickle.loads(pickle.dumps(paths)) == paths
    assert (ops.tree_paths(1.0), str(ops.tree_paths(1.0)[0]), ops.tree_paths(None)) == ([()], "", [])


def test_leaves_come_with_their_paths() -> None:
    pairs, treedef = ops.tree_flatten_with_path(MODEL)
    assert {str(path): leaf for path, leaf in pairs} == {
        "h.0.attention.weight": 1.0,
        "h.1.attention.0": 2.0,
        "h.1.attention.1.3": 3.0,
        "scale": 4.0,
    }
    assert treedef == ops.tree_flatten(MODEL)[1]
    assert ops.tree_paths(MODEL, is_leaf=lambda node: isinstance(node, Block)) == [("h", 0), ("h", 1), ("scale",)]


def test_map_passes_the_path_and_the_leaves_of_all_trees() -> None:
    trees = {"a": [1, 2], "b": None}, {"a": [3, 4], "b": None}
    mapped = ops.tree_map_with_path(lambda path, a, b: (str(path), a + b), *trees)
    assert mapped == {"a": [("a.0", 4), ("a.1", 6)], "b": None}
    with pytest.raises(ArgumentError, match=r"tree_map_with_path: .* dict\(x: \*\) and dict\(y: \*\)"):
        ops.tree_map_with_path(lambda *_: None, {"x": 1}, {"y": 1})


@given(TREES)
def test_each_path_leads_to_its_leaf(tree: Any) -> None:
    pairs, _ = ops.tree_flatten_with_path(tree)
    assert [leaf for _, leaf in pairs] == ops.tree_leaves(tree)
    assert len({path for path, _ in pairs}) == len(pairs)
    for path, leaf in pairs:
        node = tree
        for key in path:
            node = getattr(node, key) if isinstance(node, (Pair, Point)) else node[key]
        assert node is leaf
