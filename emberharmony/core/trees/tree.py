"""Trees: nested dicts, lists, tuples, named tuples, dataclasses and registered objects; leaves are tensors or numbers.

`None` is an empty subtree. A dict is walked in the sorted order of its keys, so that equal dicts give the same order of
leaves; if the keys cannot be sorted, it is walked in the order of insertion. The static fields of dataclasses and the
static part of registered objects belong to the structure; `nodes` says which fields are static.

The structure of a tree is a tuple of tuples, which Python compares and hashes in C; it holds the static values, so MLX
compiles a function for each. optree, which does the same in C++, is not used: a large model flattens in 123 instead of
187 µs, once in each step, but its import takes 22 ms, and its nodes are others: a dataclass is a leaf unless optree
decorated it, a subclass of dict or list is a leaf, and neither has static fields by annotation.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from functools import partial
from typing import Any, NamedTuple

from emberharmony.core.errors import ArgumentError, brief
from emberharmony.core.trees.nodes import KINDS, fields_of, flatten_registered, rebuild_registered

IsLeaf = Callable[[Any], bool] | None


class TreeDef(NamedTuple):
    """The structure of a tree.

    Structures are equal if they have the same nodes with the same keys and the same static values.

    Attributes:
        kind: the kind of the top node.
        node: the class of that node, with its keys and its static values if it has any.
        children: the structures of its children.
        leaves: the number of leaves.
    """

    kind: str
    node: Any = None
    children: tuple["TreeDef", ...] = ()
    leaves: int = 0

    @property
    def keys(self) -> tuple[Any, ...]:
        """The key, name or position of each child."""
        if self.kind == "namedtuple":
            fields: tuple[Any, ...] = self.node._fields
            return fields
        child_names: tuple[Any, ...] | None = self.node[1] if self.kind in ("dict", "dataclass", "registered") else None
        return tuple(range(len(self.children))) if child_names is None else child_names

    def __str__(self) -> str:
        return _treedef_text(self)


LEAF, NONE = TreeDef("leaf", leaves=1), TreeDef("none")
_make_treedef: Callable[[tuple[Any, ...]], TreeDef] = partial(tuple.__new__, TreeDef)


def sorted_keys(tree: dict[Any, Any]) -> list[Any]:
    """Returns the keys of a dict in the order of its children."""
    try:
        return sorted(tree)
    except TypeError:
        return list(tree)


def _key_and_children(kind: str, tree: Any) -> tuple[Any, Sequence[Any]]:
    """Returns a key that tells a node from others with as many children, and the children."""
    cls = tree.__class__
    if kind == "dict":
        keys = sorted_keys(tree)
        node_key = (cls, tuple(keys)) if cls is dict else (cls, tuple(keys), _extra_attributes(tree))
        return node_key, [tree[key] for key in keys]
    if kind == "list":
        return list, tree
    if kind == "dataclass":
        names, field_values, static = fields_of(tree)
        return (cls, names, static), field_values
    if kind == "registered":
        child_names, child_nodes, static_pair = flatten_registered(tree)
        return (cls, child_names, static_pair), child_nodes
    return cls, tree


def _extra_attributes(tree: dict[Any, Any]) -> tuple[tuple[str, Any], ...]:
    """Returns the attributes of a subclass's dict that are no items, and the `default_factory` of a defaultdict."""
    extra_by_name = {name: value for name, value in getattr(tree, "__dict__", {}).items() if name not in tree}
    if isinstance(tree, defaultdict):
        extra_by_name["default_factory"] = tree.default_factory
    return tuple(extra_by_name.items())


def tree_flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], TreeDef]:
    """Returns the leaves of a tree in order, and its structure, for `tree_unflatten`.

    Args:
        tree: nested dicts, lists, tuples, dataclasses and registered objects; all else is a leaf.

    Raises:
        ArgumentError: if the tree is nested too deeply.
    """
    leaves: list[Any] = []
    try:
        return leaves, _flatten(tree, leaves) if is_leaf is None else _flatten_until(tree, leaves, is_leaf)
    except RecursionError as error:
        raise ArgumentError("a tree is nested too deeply to be walked; flatten its outer levels") from error


def _flatten(tree: Any, leaves: list[Any]) -> TreeDef:
    node_kind = KINDS[tree.__class__]
    if node_kind == "leaf":
        leaves.append(tree)
        return LEAF
    return NONE if node_kind == "none" else _flatten_node(node_kind, tree, leaves)


def _flatten_node(kind: str, tree: Any, leaves: list[Any]) -> TreeDef:
    node_key, children = _key_and_children(kind, tree)
    leaf_count_before = len(leaves)
    child_defs: list[TreeDef] = []
    # A call of `_flatten` for each child would take a third more time.
    for child in children:
        child_kind = KINDS[child.__class__]
        if child_kind == "leaf":
            leaves.append(child)
            child_defs.append(LEAF)
        else:
            child_defs.append(NONE if child_kind == "none" else _flatten_node(child_kind, child, leaves))
    return _make_treedef((kind, node_key, tuple(child_defs), len(leaves) - leaf_count_before))


def _flatten_until(tree: Any, leaves: list[Any], is_leaf: Callable[[Any], bool]) -> TreeDef:
    node_kind = KINDS[tree.__class__]
    if node_kind == "leaf" or is_leaf(tree):
        leaves.append(tree)
        return LEAF
    if node_kind == "none":
        return NONE
    node_key, children = _key_and_children(node_kind, tree)
    leaf_count_before = len(leaves)
    child_defs = tuple([_flatten_until(child, leaves, is_leaf) for child in children])
    return _make_treedef((node_kind, node_key, child_defs, len(leaves) - leaf_count_before))


def tree_unflatten(treedef: TreeDef, leaves: Iterable[Any]) -> Any:
    """Returns the tree of structure `treedef` with these leaves.

    Args:
        treedef: the structure, as `tree_flatten` returns it.
        leaves: as many leaves as the structure has, in its order.

    Raises:
        ArgumentError: if the number of leaves is wrong.
    """
    leaf_list = list(leaves)
    if len(leaf_list) != treedef.leaves:
        raise ArgumentError(f"tree_unflatten: the structure has {treedef.leaves} leaves, {len(leaf_list)} were given")
    return _unflatten(treedef, iter(leaf_list))


def _unflatten(treedef: TreeDef, leaves: Iterator[Any]) -> Any:
    node_kind, node_key, child_defs, _ = treedef
    if not child_defs and node_kind in ("leaf", "none"):
        return next(leaves) if node_kind == "leaf" else None
    children = [next(leaves) if child is LEAF else _unflatten(child, leaves) for child in child_defs]
    if node_kind == "dict":
        return _rebuild_dict(children, *node_key)
    if node_kind == "list":
        return children
    if node_kind == "tuple":
        return node_key(children)
    if node_kind == "namedtuple":
        return node_key(*children)
    cls, child_names, static = node_key
    if node_kind == "registered":
        return rebuild_registered(cls, child_names, children, static[1])
    return cls(**dict(zip(child_names, children, strict=True)), **{name: value for name, _, value in static})


def _rebuild_dict(
    values: list[Any], cls: type[dict[Any, Any]], keys: tuple[Any, ...], attributes: tuple[tuple[str, Any], ...] = ()
) -> Any:
    item_by_key = dict(zip(keys, values, strict=True))
    if cls is dict:
        return item_by_key
    # Not cls(items): a subclass may take other arguments, as defaultdict does. Its own `update` may refuse new keys, as
    # that of mlx.nn.Module does, and its `__setattr__` may make items of attributes. `OrderedDict` needs its own one.
    rebuilt_dict = cls.__new__(cls)
    for name, value in attributes:
        object.__setattr__(rebuilt_dict, name, copy(value) if isinstance(value, (dict, list, set)) else value)
    (OrderedDict if isinstance(rebuilt_dict, OrderedDict) else dict).update(rebuilt_dict, item_by_key)
    return rebuilt_dict


def tree_leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """Returns the leaves of a tree in order.

    Args:
        tree: nested dicts, lists, tuples, dataclasses and registered objects; all else is a leaf.
    """
    return tree_flatten(tree, is_leaf)[0]


def tree_map(fn: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """Returns a tree of the same structure, each leaf being `fn` of the leaves at its place in `tree` and in `rest`.

    Args:
        fn: returns the new leaf for the leaves at one place, one of each tree.
        tree: nested dicts, lists, tuples, dataclasses and registered objects; all else is a leaf.
        *rest: trees of the same structure, whose leaves are the further arguments of `fn`.

    Raises:
        ArgumentError: if the structures of the trees differ; the message shows both.
    """
    leaf_columns, treedef = flatten_alike("tree_map", (tree, *rest), is_leaf)
    return tree_unflatten(treedef, [fn(*row) for row in zip(*leaf_columns, strict=True)])


def flatten_alike(name: str, trees: Sequence[Any], is_leaf: IsLeaf) -> tuple[list[list[Any]], TreeDef]:
    """Returns the leaves of each tree, and the structure that all trees have.

    Args:
        name: the function, for the message.

    Raises:
        ArgumentError: if the structures of the trees differ; the message shows both.
    """
    leaf_columns: list[list[Any]] = []
    structure = LEAF
    for tree in trees:
        leaves, treedef = tree_flatten(tree, is_leaf)
        if leaf_columns and treedef != structure:
            raise ArgumentError(f"{name}: the trees differ in structure: {structure} and {treedef}")
        leaf_columns.append(leaves)
        structure = treedef
    return leaf_columns, structure


def _treedef_text(treedef: TreeDef) -> str:
    node_kind, node_key, children, _ = treedef
    if node_kind in ("leaf", "none"):
        return "*" if node_kind == "leaf" else "None"
    child_texts = [_treedef_text(child) for child in children]
    if node_kind in ("list", "tuple", "namedtuple"):
        return f"{node_key.__name__}({', '.join(child_texts)})"
    cls, child_names, *statics = node_key
    if child_names is not None:
        child_texts = [f"{name}: {child}" for name, child in zip(child_names, child_texts, strict=True)]
    if node_kind == "dataclass":
        child_texts += [f"{name}={brief(value)}" for name, _, value in statics[0]]
    elif node_kind == "registered":
        child_texts.append(f"static={brief(statics[0][1])}")
    return f"{cls.__name__}({', '.join(child_texts)})"
