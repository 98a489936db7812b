"""The forms of values: what an annotation declares beside what is known, and functions of the leaves of trees."""

from collections.abc import Callable

from emberlint.inference import values as v


def refine(declared: v.Value, known: v.Value) -> v.Value:
    """Returns the value that an annotation declares, with what is known besides: dtypes, and values for `Any`."""
    if isinstance(declared, v.Tensor) and isinstance(known, v.Tensor):
        return declared.of_dtype(known.dtype)
    if isinstance(declared, v.Mapping) and isinstance(known, v.Mapping):
        return known if declared.element is None and declared.rest is None else declared
    if isinstance(declared, v.Sequence) and isinstance(known, v.Sequence) and declared.rest is None:
        items, known_items = declared.items or [], known.items or []
        if items and len(items) == len(known_items):
            return v.Sequence(items=[refine(*pair) for pair in zip(items, known_items, strict=True)])
    return known if declared is None else declared


def mapped(function: Callable[[list[v.Value]], v.Value], trees: list[v.Value]) -> v.Value:
    """Returns the result of a function of the leaves of trees: a container of the form of the first, or a leaf."""
    first_tree = trees[0]
    if isinstance(first_tree, v.Mapping) and first_tree.by_key:
        return v.Mapping(
            {
                key: mapped(function, [tree.by_key.get(key) if isinstance(tree, v.Mapping) else None for tree in trees])
                for key in first_tree.by_key
            }
        )
    return function(trees)
