"""Trees: nested dicts, lists, tuples, named tuples and dataclasses whose leaves are tensors or numbers.

`None` is an empty subtree. A dict is walked in the sorted order of its keys, so that equal dicts give the same order of
leaves; if the keys cannot be sorted, it is walked in the order of insertion.
"""

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from emberharmony.core.errors import ArgumentError


class TreeDef(NamedTuple):
    """The structure of a tree: the kind of its top node, the class and keys of that node, and its children."""

    kind: str
    node: Any = None
    children: tuple["TreeDef", ...] = ()

    @property
    def leaves(self) -> int:
        """The number of leaves."""
        return 1 if self.kind == "leaf" else sum([1 if child is _LEAF else child.leaves for child in self.children])

    def __str__(self) -> str:
        return _show(self)


_LEAF = TreeDef("leaf")
_NONE = TreeDef("none")
IsLeaf = Callable[[Any], bool] | None


def _keys(tree: dict[Any, Any]) -> list[Any]:
    try:
        return sorted(tree)
    except TypeError:
        return list(tree)


class _Kinds(dict[type, str]):
    """A cache from the class of an object to its kind of node."""

    def __missing__(self, cls: type) -> str:
        if issubclass(cls, tuple):
            kind = "namedtuple" if hasattr(cls, "_fields") else "tuple"
        elif issubclass(cls, (dict, list)):
            kind = "dict" if issubclass(cls, dict) else "list"
        else:
            kind = "dataclass" if hasattr(cls, "__dataclass_fields__") else "leaf"
        self[cls] = kind
        return kind


_KINDS = _Kinds({type(None): "none"})


def _children(kind: str, tree: Any) -> tuple[Any, Sequence[Any]]:
    """Returns the class of a node, with its keys if it has keys, and its children."""
    cls = tree.__class__
    if kind == "dict":
        keys = _keys(tree)
        return (cls, tuple(keys)), [tree[key] for key in keys]
    if kind == "list":
        return list, tree
    if kind == "dataclass":
        # A dataclass instance implies `dataclasses` is already imported; importing it here costs 2 ms.
        names = tuple(field.name for field in sys.modules["dataclasses"].fields(tree) if field.init)
        return (cls, names), [getattr(tree, name) for name in names]
    return cls, tree


def tree_flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], TreeDef]:
    """Returns the leaves of a tree in order, and its structure, for `tree_unflatten`.

    Raises:
        ArgumentError: if the tree is nested too deeply.
    """
    leaves: list[Any] = []
    try:
        return leaves, _flatten(tree, leaves, is_leaf)
    except RecursionError as error:
        raise ArgumentError("a tree is nested too deeply to be walked; flatten its outer levels") from error


def _flatten(tree: Any, leaves: list[Any], is_leaf: IsLeaf) -> TreeDef:
    if is_leaf is not None and is_leaf(tree):
        leaves.append(tree)
        return _LEAF
    kind = _KINDS[tree.__class__]
    if kind == "leaf":
        leaves.append(tree)
        return _LEAF
    if kind == "none":
        return _NONE
    node, children = _children(kind, tree)
    return TreeDef(kind, node, tuple([_flatten(child, leaves, is_leaf) for child in children]))


def tree_unflatten(treedef: TreeDef, leaves: Iterable[Any]) -> Any:
    """Returns the tree of structure `treedef` with these leaves.

    Raises:
        ArgumentError: if the number of leaves is wrong.
    """
    given = list(leaves)
    if len(given) != treedef.leaves:
        raise ArgumentError(f"tree_unflatten: the structure has {treedef.leaves} leaves, {len(given)} were given")
    return _unflatten(treedef, iter(given))


def _unflatten(treedef: TreeDef, leaves: Any) -> Any:
    kind, node, inner = treedef
    if kind == "leaf":
        return next(leaves)
    if kind == "none":
        return None
    children = [next(leaves) if child is _LEAF else _unflatten(child, leaves) for child in inner]
    if kind == "list":
        return children
    if kind == "tuple":
        return node(children)
    if kind == "namedtuple":
        return node(*children)
    cls, keys = node
    if kind == "dict":
        return _rebuild_dict(cls, keys, children)
    return cls(**dict(zip(keys, children, strict=True)))


def _rebuild_dict(cls: type[dict[Any, Any]], keys: tuple[Any, ...], values: list[Any]) -> Any:
    items = dict(zip(keys, values, strict=True))
    if cls is dict:
        return items
    # Not cls(items): a subclass may take other arguments, as defaultdict does.
    rebuilt = cls.__new__(cls)
    rebuilt.update(items)
    return rebuilt


def tree_leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """Returns the leaves of a tree in order."""
    return tree_flatten(tree, is_leaf)[0]


def tree_map(fn: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """Returns a tree of the same structure, each leaf being `fn` of the leaves at its place in `tree` and in `rest`.

    Raises:
        ArgumentError: if the structures of the trees differ; the message shows both.
    """
    leaves, treedef = tree_flatten(tree, is_leaf)
    columns = [leaves]
    for other in rest:
        other_leaves, other_def = tree_flatten(other, is_leaf)
        if other_def != treedef:
            raise ArgumentError(f"tree_map: the trees differ in structure: {treedef} and {other_def}")
        columns.append(other_leaves)
    return tree_unflatten(treedef, [fn(*row) for row in zip(*columns, strict=True)])


def _show(treedef: TreeDef) -> str:
    if treedef.kind in ("leaf", "none"):
        return "*" if treedef.kind == "leaf" else "None"
    inner = [_show(child) for child in treedef.children]
    if treedef.kind in ("dict", "dataclass"):
        cls, keys = treedef.node
        return f"{cls.__name__}({', '.join(f'{key}: {child}' for key, child in zip(keys, inner, strict=True))})"
    return f"{treedef.node.__name__}({', '.join(inner)})"
