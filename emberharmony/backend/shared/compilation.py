"""Functions compiled by a library that takes and returns lists of arrays, with any trees as arguments and results.

A backend names its class of arrays and its compiler: `mx.compile`, `jax.jit`. It shares no code with the recorder of
NumPy but the keys of arguments: the library traces the function itself and differentiates it by its own rules, where a
program would have the derivatives of the tape.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

from emberharmony.core.cells.blocks import ReadFromOutside, cells_of_open_blocks
from emberharmony.core.cells.cell import Cell
from emberharmony.core.dtypes import default_float
from emberharmony.core.state.checked_mode import checking
from emberharmony.core.state.draws import WithoutDraws
from emberharmony.core.tracing import TensorProxy
from emberharmony.core.trees.tree import NONE, TreeDef, tree_flatten, tree_unflatten


class OnTapeError(Exception):
    """Raised when a library cannot transform a function because of what it reads, computes or returns."""


class UncompiledError(Exception):
    """Raised when a function had better run uncompiled, because compiling it would take longer than it saves."""


def untaped_outputs(outputs: Sequence[Any]) -> list[Any]:
    """Returns the outputs of a function as a list, checked not to be recorded on a tape.

    Raises:
        OnTapeError: if an output is recorded on a tape, because the function closes over a tensor that is.
    """
    if any(isinstance(output, TensorProxy) for output in outputs):
        raise OnTapeError("the function closes over a tensor that is recorded on a tape")
    return list(outputs)


class Compiler(NamedTuple):
    """The functions by which `LibraryFunction` uses one library: its compiler and its class of arrays.

    Attributes:
        array: the class of its arrays.
        compile: returns a function of lists of arrays, compiled.
    """

    array: type
    compile: Callable[[Callable[[list[Any]], list[Any]]], Callable[[list[Any]], list[Any]]]


class LibraryFunction:
    """A function that is compiled once for each structure, shape, dtype and number among its arguments.

    Args:
        fn: the function.
        is_uncompilable: returns whether an error means that the library cannot compile `fn`, so it runs uncompiled.
    """

    compiler: ClassVar[Compiler]

    def __init__(self, fn: Callable[..., Any], is_uncompilable: Callable[[BaseException], bool]) -> None:
        self._fn, self._is_uncompilable = fn, is_uncompilable
        self._graph_by_key: dict[Any, _Graph | None] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the result of the function, compiled at the first call with arguments of these kinds."""
        leaves, structure = tree_flatten((args, kwargs))
        if checking() or any(isinstance(leaf, TensorProxy) or _is_temporary_cell(leaf) for leaf in leaves):
            return self._fn(*args, **kwargs)
        array_class = self.compiler.array
        try:
            key = default_float(), hashable_form(structure), *(_leaf_kind(leaf, array_class) for leaf in leaves)
            if key not in self._graph_by_key:
                self._graph_by_key[key] = _Graph(self._fn, leaves, structure, self.compiler)
        except TypeError:  # a leaf or static value that is not hashable cannot be part of the key
            return self._fn(*args, **kwargs)
        graph = self._graph_by_key[key]
        if graph is not None and graph.is_current():
            try:
                with WithoutDraws():
                    return graph(leaves)
            except OnTapeError:
                return self._fn(*args, **kwargs)
            except Exception as error:
                if not self._is_uncompilable(error):
                    raise
        self._graph_by_key[key] = None
        return self._fn(*args, **kwargs)


class _Graph:
    """A compiled function for the calls whose arguments differ in the values of their arrays only.

    Leaves of the arguments and the result that are no arrays are constants, recorded when the function is traced.
    """

    def __init__(self, fn: Callable[..., Any], leaves: list[Any], structure: TreeDef, compiler: Compiler) -> None:
        self._fn, self._structure, self._array = fn, structure, compiler.array
        self._leaves = [None if isinstance(leaf, self._array) else leaf for leaf in leaves]
        self._places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, self._array)]
        self._compiled = compiler.compile(self._trace_function)
        self._output_structure = NONE
        self._output_leaves: list[Any] = []
        self._value_by_cell: dict[Cell, Any] = {}

    def is_current(self) -> bool:
        """Returns whether the cells that the function read while it was traced still hold the same tensors."""
        return all(cell.value is value for cell, value in self._value_by_cell.items())

    def __call__(self, leaves: list[Any]) -> Any:
        output_arrays = self._compiled([leaves[i] for i in self._places])
        next_arrays = iter(output_arrays)
        return tree_unflatten(
            self._output_structure, [next(next_arrays) if leaf is _ARRAY else leaf for leaf in self._output_leaves]
        )

    def _trace_function(self, arrays: list[Any]) -> list[Any]:
        filled_leaves = list(self._leaves)
        for i, array in zip(self._places, arrays, strict=True):
            filled_leaves[i] = array
        args, kwargs = tree_unflatten(self._structure, filled_leaves)
        with (read_block := ReadFromOutside()) as self._value_by_cell:
            output_tree = self._fn(*args, **kwargs)
        open_cells = set(cells_of_open_blocks())
        if any(cell.is_temporary or cell in open_cells for cell in self._value_by_cell):
            self._value_by_cell = {}
            raise OnTapeError("the function reads a parameter that is being differentiated, as a constant")
        leaves, self._output_structure = tree_flatten(output_tree)
        if any(isinstance(leaf, Cell) and read_block.has_made(leaf) for leaf in leaves):
            raise OnTapeError("the function returns a new parameter, which each call must make anew")
        leaves = untaped_outputs(leaves)
        self._output_leaves = [_ARRAY if isinstance(leaf, self._array) else leaf for leaf in leaves]
        return [leaf for leaf in leaves if isinstance(leaf, self._array)]


_ARRAY = object()


def _is_temporary_cell(leaf: Any) -> bool:
    return isinstance(leaf, Cell) and leaf.is_temporary


def _leaf_kind(leaf: Any, array: Any) -> Any:
    """Returns the key of an argument in a graph: the shape and dtype of an array, else the argument and its class."""
    return (leaf.shape, leaf.dtype) if isinstance(leaf, array) else constant_kind(leaf)


def constant_kind(leaf: Any) -> Any:
    """Returns the key of a value that is no array: its class and the value, floats and complex numbers as text.

    The class tells 1, 1.0 and True apart, and the text 0.0 and -0.0, which are equal.
    """
    return type(leaf), repr(leaf) if isinstance(leaf, (float, complex)) else leaf


def hashable_form(value: Any) -> Any:
    """Returns a static value, such as the structure of a tree, in a hashable form that no later change reaches.

    Raises:
        TypeError: if it has none.
    """
    try:
        hash(value)
        return value
    except TypeError:
        if isinstance(value, dict):
            return type(value), tuple((name, hashable_form(item)) for name, item in value.items())
        if isinstance(value, (list, tuple, set)):
            return type(value), tuple(map(hashable_form, value))
        raise
