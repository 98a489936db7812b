"""Functions on inferred values: joining a declared with a known value, and mapping a function over a tree."""

from collections.abc import Callable

from emberlint.inference import values as v


def refine(declared: v.Value, known: v.Value) -> v.Value:
    """Returns the declared value of an annotation, with dtypes and values for `Any` from the known value."""
    if isinstance(declared, v.Tensor) and isinstance(known, v.Tensor):
        return declared.with_dtype(known.dtype)
    if isinstance(declared, v.Mapping) and isinstance(known, v.Mapping):
        return known if declared.element is None and declared.rest is None else declared
    if isinstance(declared, v.Sequence) and isinstance(known, v.Sequence) and declared.rest is None:
        declared_items, known_items = declared.items or [], known.items or []
        if declared_items and len(declared_items) == len(known_items):
            return v.Sequence(items=[refine(*pair) for pair in zip(declared_items, known_items, strict=True)])
    return known if declared is None else declared


def map_leaves(function: Callable[[list[v.Value]], v.Value], trees: list[v.Value]) -> v.Value:
    """Returns the result of a function applied to the leaves of trees, with the nesting of the first tree."""
    first_tree = trees[0]
    if isinstance(first_tree, v.Mapping) and first_tree.by_key:
        return v.Mapping(
            {
                key: map_leaves(
                    function, [tree.by_key.get(key) if isinstance(tree, v.Mapping) else None for tree in trees]
                )
                for key in first_tree.by_key
            }
        )
    return function(trees)
