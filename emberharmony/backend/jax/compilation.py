"""Functions compiled by `jax.jit`, whose arguments and results may be any trees."""

from collections.abc import Callable
from typing import Any

import jax

from emberharmony.core.cells.cell import Cell, ReadCells, differentiated
from emberharmony.core.state.checked_mode import checking
from emberharmony.core.state.draws import WithoutDraws
from emberharmony.core.tracing import TensorProxy
from emberharmony.core.trees.tree import NONE, TreeDef, tree_flatten, tree_unflatten


class Compiled:
    """A function that is compiled once for each structure, shape, dtype and number among its arguments.

    Args:
        fn: the function.
        cannot: returns whether an error means that JAX cannot compile `fn`, which then runs uncompiled.
    """

    def __init__(self, fn: Callable[..., Any], cannot: Callable[[BaseException], bool]) -> None:
        self._fn, self._cannot = fn, cannot
        self._made: dict[Any, _Graph | None] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the result of the function."""
        leaves, structure = tree_flatten((args, kwargs))
        if checking() or any(isinstance(leaf, TensorProxy) or _is_passing(leaf) for leaf in leaves):
            return self._fn(*args, **kwargs)
        key = structure, *(_kind(leaf) for leaf in leaves)
        try:
            if key not in self._made:
                self._made[key] = _Graph(self._fn, leaves, structure)
        except TypeError:  # a leaf that is not hashable cannot be part of the key
            return self._fn(*args, **kwargs)
        graph = self._made[key]
        if graph is not None and graph.is_current():
            try:
                with WithoutDraws():
                    return graph(leaves)
            except PassingError:
                return self._fn(*args, **kwargs)
            except Exception as error:
                if not self._cannot(error):
                    raise
        self._made[key] = None
        return self._fn(*args, **kwargs)


class PassingError(Exception):
    """Raised when JAX cannot compile this call of a function, because a tape records what it reads."""


class _Graph:
    """A compiled function for the calls whose arguments differ in the values of their arrays only.

    The other leaves of the arguments and of the result are constants, recorded when the function is traced.
    """

    def __init__(self, fn: Callable[..., Any], leaves: list[Any], structure: TreeDef) -> None:
        self._fn, self._structure = fn, structure
        self._leaves = [None if isinstance(leaf, jax.Array) else leaf for leaf in leaves]
        self._places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, jax.Array)]
        self._compiled = jax.jit(self._traced)
        self._result = NONE
        self._others: list[Any] = []
        self._read: dict[Cell, Any] = {}

    def is_current(self) -> bool:
        """Returns whether the cells that the function read while it was traced still hold the same tensors."""
        return all(cell.value is value for cell, value in self._read.items())

    def __call__(self, leaves: list[Any]) -> Any:
        arrays = self._compiled([leaves[i] for i in self._places])
        given = iter(arrays)
        return tree_unflatten(self._result, [next(given) if leaf is _ARRAY else leaf for leaf in self._others])

    def _traced(self, arrays: list[jax.Array]) -> list[jax.Array]:
        filled = list(self._leaves)
        for i, array in zip(self._places, arrays, strict=True):
            filled[i] = array
        args, kwargs = tree_unflatten(self._structure, filled)
        with ReadCells() as self._read:
            returned = self._fn(*args, **kwargs)
        open_cells = differentiated()
        if any(cell.is_passing or cell in open_cells for cell in self._read):
            self._read = {}
            raise PassingError("the function reads a parameter that is being differentiated, as a constant")
        leaves, self._result = tree_flatten(returned)
        if any(isinstance(leaf, TensorProxy) for leaf in leaves):
            raise PassingError("the function closes over a tensor that is recorded on a tape")
        self._others = [_ARRAY if isinstance(leaf, jax.Array) else leaf for leaf in leaves]
        return [leaf for leaf in leaves if isinstance(leaf, jax.Array)]


_ARRAY = object()


def _is_passing(leaf: Any) -> bool:
    return isinstance(leaf, Cell) and leaf.is_passing


def _kind(leaf: Any) -> Any:
    """Returns the part of a leaf that a graph depends on: an array's shape and dtype, else the leaf and its class.

    The class tells 1, 1.0 and True apart, which are equal.
    """
    return (leaf.shape, leaf.dtype) if isinstance(leaf, jax.Array) else (type(leaf), leaf)
