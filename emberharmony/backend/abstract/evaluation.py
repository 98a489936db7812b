"""Shapes and dtypes of the results of a function of trees, which runs on the backend that computes shapes only."""

from collections.abc import Sequence
from typing import Any

from emberharmony.backend.abstract import AbstractBackend
from emberharmony.core import selection
from emberharmony.core.cells.blocks import Assignments
from emberharmony.core.cells.cell import Cell
from emberharmony.core.errors import EmberError, brief
from emberharmony.core.tensor_spec import TensorSpec
from emberharmony.core.trees.tree import tree_flatten, tree_unflatten
from emberharmony.transforms.trees import Function, ResultTree, fill_leaf, require_callable


def evaluate_shapes(op: str, fn: Function, specs: Sequence[Any]) -> Any:
    """Returns a tree like the result of `fn(*specs)` whose leaves are specs, computing shapes and dtypes only.

    Raises:
        ArgumentTypeError: if `fn` is not a function, or a length of a spec is not an integer.
        DTypeError: if the backend lacks the dtype of a spec.
        ShapeError: if a length of a spec is negative.
        TracedTensorError: if the function passes a tensor to a function or operator of the library that refuses it.
    """
    require_callable(op, fn)
    backend = AbstractBackend.over(selection.current())
    leaves, structure = tree_flatten(tuple(specs))
    tensors = [_abstract_leaf(op, backend, leaf.value if isinstance(leaf, Cell) else leaf) for leaf in leaves]
    # Assignments to cells inside of the function have no values, so they end with the block.
    with selection.Override(backend), Assignments({}):
        args = tree_unflatten(structure, [fill_leaf(leaf, x) for leaf, x in zip(leaves, tensors, strict=True)])
        result_tree = ResultTree(op)
        outputs = result_tree.tensors(result_tree.run(fn, *args))
    return result_tree.result([TensorSpec(x.shape, backend.dtype_of(x)) for x in outputs])


def _abstract_leaf(op: str, backend: Any, leaf: Any) -> Any:
    """Returns a spec or tensor as a tensor without values; anything else unchanged."""
    shape, dtype = getattr(leaf, "shape", None), getattr(leaf, "dtype", None)
    if shape is None or dtype is None:
        return leaf
    try:
        spec = TensorSpec(shape, dtype)
        return backend.tensor_of(spec.shape, backend.dtypes[spec.dtype])
    except EmberError as error:
        error_class = type(error)
        raise error_class(f"{op}() on backend {backend.name!r}: {brief(leaf)} is no spec: {error}") from error
