"""The paths of the leaves of a tree."""

from collections.abc import Callable, Iterator
from typing import Any

from emberharmony.core.trees.tree import IsLeaf, TreeDef, flatten_alike, tree_flatten, tree_unflatten


class TreePath(tuple[Any, ...]):
    """The keys, names and positions that lead to a leaf; as text they are joined by dots, as in `h.0.attention.weight`.

    Within a tree the path of each leaf is unique. Its text is not if keys contain dots, or are numbers in one node and
    their text in another.
    """

    __slots__ = ()

    def __str__(self) -> str:
        return ".".join(map(str, self))


def tree_paths(tree: Any, is_leaf: IsLeaf = None) -> list[TreePath]:
    """Returns the path of each leaf of a tree: a tuple, of which `str` makes text.

    Args:
        tree: nested dicts, lists, tuples, dataclasses and registered objects; all else is a leaf.

    Example:
        >>> tree = {"h": [{"weight": 1.0, "bias": 2.0}], "scale": 3.0}
        >>> [str(path) for path in ops.tree_paths(tree)]
        ['h.0.bias', 'h.0.weight', 'scale']
        >>> ops.tree_paths(tree)[0] == ("h", 0, "bias")
        True
    """
    return paths_of(tree_flatten(tree, is_leaf)[1])


def tree_flatten_with_path(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[tuple[TreePath, Any]], TreeDef]:
    """Returns the pairs (path, leaf) of a tree in order, and its structure, for `tree_unflatten`.

    Args:
        tree: nested dicts, lists, tuples, dataclasses and registered objects; all else is a leaf.
    """
    leaves, treedef = tree_flatten(tree, is_leaf)
    return list(zip(paths_of(treedef), leaves, strict=True)), treedef


def tree_map_with_path(fn: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """Returns a tree of the same structure, each leaf being `fn` of its path and of the leaves at its place.

    Args:
        fn: returns the new leaf for a path and the leaves there, one of each tree.
        tree: nested dicts, lists, tuples, dataclasses and registered objects; all else is a leaf.
        *rest: trees of the same structure, whose leaves are the further arguments of `fn`.

    Raises:
        ArgumentError: if the structures of `tree` and of the trees in `rest` differ; the message shows both.

    Example:
        >>> ops.tree_map_with_path(lambda path, leaf: f"{path}={leaf}", {"a": [1, 2]})
        {'a': ['a.0=1', 'a.1=2']}
    """
    leaf_columns, treedef = flatten_alike("tree_map_with_path", (tree, *rest), is_leaf)
    return tree_unflatten(treedef, [fn(*row) for row in zip(paths_of(treedef), *leaf_columns, strict=True)])


def paths_of(treedef: TreeDef) -> list[TreePath]:
    """Returns the path of each leaf of a structure."""
    return list(map(TreePath, _paths(treedef, ())))


def _paths(treedef: TreeDef, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    if treedef.kind == "leaf":
        yield path
    for key, child in zip(treedef.keys, treedef.children, strict=True):
        yield from _paths(child, (*path, key))
