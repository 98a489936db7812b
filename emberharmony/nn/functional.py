"""Modules as pure functions of their tensors: `value_and_grad`, `functional_call`, `split` and `merge`."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from emberharmony import Buffer, Parameter, ops
from emberharmony.core.cells.blocks import Assignments, newly_assigned_tensors
from emberharmony.core.cells.cell import Cell
from emberharmony.core.errors import ArgumentError, ArgumentTypeError, brief, suggest
from emberharmony.core.names.lazy import public_getattr_and_dir
from emberharmony.core.tracing import Enclosing
from emberharmony.core.trees.tree import TreeDef, tree_flatten, tree_unflatten
from emberharmony.core.types import Tensor
from emberharmony.nn import walk
from emberharmony.nn.module import Module


def value_and_grad(module: Module, fn: Callable[..., Any], *, has_aux: bool = False) -> Callable[..., Any]:
    """Returns a function that returns the value of a loss and its gradients by the names of the parameters.

    What the loss assigns to buffers of the module, such as running means, is kept.

    Args:
        module: the module whose trainable parameters are differentiated.
        fn: returns the loss, a scalar; with `has_aux` a pair of the loss and a tree of other results.
        has_aux: whether `fn` returns (loss, aux); the value is then this pair.

    Returns:
        a function with the arguments of `fn`, which returns `(value, gradients)`; `optimizer.step(gradients)` takes
        these. With `has_aux` it returns `((value, others), gradients)`.

    Raises:
        ArgumentError: if the module has no trainable parameter.

    Example:
        >>> layer = nn.Linear(2, 1)
        >>> loss, gradients = nn.value_and_grad(layer, lambda x: ops.sum(layer(x)))([1.0, 2.0])
        >>> gradients["weight"].tolist(), gradients["bias"].tolist()
        ([[1.0, 2.0]], [1.0])
    """
    return _ValueAndGrad(module, fn, has_aux)


class _ValueAndGrad(Enclosing):
    """The function that `value_and_grad` returns: it computes a loss and its gradients by parameter name."""

    def __init__(self, module: Module, inner: Callable[..., Any], has_aux: bool) -> None:
        self.module, self.inner, self.has_aux = module, inner, has_aux

    def around(self, inner: Callable[..., Any]) -> "_ValueAndGrad":
        """Returns the same function for another loss of the same module."""
        return _ValueAndGrad(self.module, inner, self.has_aux)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the value of the loss and its gradients by parameter name."""
        fn, has_aux = self.inner, self.has_aux
        cell_by_name = dict(walk.named_cells(self.module))
        trained_by_name = {
            name: cell for name, cell in cell_by_name.items() if isinstance(cell, Parameter) and cell.trainable
        }
        if not trained_by_name:
            raise ArgumentError(f"value_and_grad(): {type(self.module).__name__} has no trainable parameter")
        changed_cells: list[Cell] = []

        def compute_loss(tensors: dict[str, Tensor]) -> Any:
            with Assignments({trained_by_name[key]: tensor for key, tensor in tensors.items()}) as assigned:
                old_value_by_cell = dict(assigned)
                value, aux = fn(*args, **kwargs) if has_aux else (fn(*args, **kwargs), None)
                trained_cells = set(trained_by_name.values())
                new_values = newly_assigned_tensors(assigned, old_value_by_cell, trained_cells)
                changed_cells[:] = new_values
                return value, (aux, list(new_values.values()))

        # Reading `value` moves each cell to the backend before the trace, because torch.compile traces no move.
        tensor_by_name = {key: cell.value for key, cell in cell_by_name.items()}
        tensor_by_name = {key: tensor_by_name[key] for key in trained_by_name}
        (value, (aux, changed_tensors)), gradients = ops.value_and_grad(compute_loss, has_aux=True)(tensor_by_name)
        for cell, tensor in zip(changed_cells, changed_tensors, strict=True):
            cell.value = tensor
        return ((value, aux) if has_aux else value), gradients


def functional_call(module: Module, values: Mapping[str, Tensor], *args: Any, **kwargs: Any) -> Any:
    """Returns what a module returns with other tensors in the place of its own; the module does not change.

    Args:
        module: the module to call.
        values: tensors of the active backend by the names of parameters and buffers; the others keep their own.
        args, kwargs: what the module is called with.

    Raises:
        ArgumentError: if the module has no parameter or buffer of a name.

    Example:
        >>> layer = nn.Linear(2, 1)
        >>> nn.functional_call(layer, {"weight": [[1.0, 2.0]], "bias": [5.0]}, [1.0, 1.0]).tolist()
        [8.0]
        >>> by_weight = ops.grad(lambda w: ops.sum(nn.functional_call(layer, {"weight": w}, [3.0, 4.0])))
        >>> by_weight([[0.0, 0.0]]).tolist()
        [[3.0, 4.0]]
    """
    cell_by_name = dict(walk.named_cells_of_all_places(module))
    unknown_name = next((name for name in values if name not in cell_by_name), None)
    if unknown_name is not None:
        raise ArgumentError(
            f"functional_call(): {type(module).__name__} has no parameter or buffer {unknown_name!r}"
            f"{suggest(unknown_name, cell_by_name)}"
        )
    with Assignments({cell_by_name[name]: ops.convert_to_tensor(value) for name, value in values.items()}):
        return module(*args, **kwargs)


class Structure:
    """A module without the tensors that `split` took out; `merge` puts them back.

    Attributes:
        names: the names of the tensors of each kind.
    """

    def __init__(self, treedef: TreeDef, leaves: list[Any], places: dict[str, Cell], names: list[list[str]]) -> None:
        self._treedef, self._leaves, self._places = treedef, leaves, places
        self.names = names

    def with_tensors(self, tensors: Mapping[str, Tensor]) -> Any:
        """Returns a module like the one that was split, with new cells for these tensors."""
        new_cell_by_cell: dict[Cell, Cell] = {}
        for name, tensor in tensors.items():
            cell = self._places[name]
            new_cell_by_cell[cell] = cell.with_tensor(tensor)
        leaves = [new_cell_by_cell.get(leaf, leaf) if isinstance(leaf, Cell) else leaf for leaf in self._leaves]
        return tree_unflatten(self._treedef, leaves)


def split(module: Module, *kinds: type[Cell]) -> tuple[Any, ...]:
    """Returns the structure of a module, and for each kind of cell a dict from names to tensors.

    Args:
        module: the module, which does not change.
        kinds: `Parameter`, `Buffer` or subclasses; without any, these two. A cell goes to the first kind that fits;
            cells of other kinds stay in the structure.

    Raises:
        ArgumentTypeError: if a kind is not a class of parameters or buffers.

    Example:
        >>> structure, params, buffers = nn.split(nn.Linear(2, 1))
        >>> sorted(params), buffers
        (['bias', 'weight'], {})
        >>> nn.merge(structure, ops.tree_map(ops.zeros_like, params), buffers)([1.0, 2.0]).tolist()
        [0.0]
    """
    cell_classes = kinds or (Parameter, Buffer)
    for cell_class in cell_classes:
        if not isinstance(cell_class, type) or not issubclass(cell_class, Cell):
            raise ArgumentTypeError(f"split() takes classes of cells, such as Parameter, not {brief(cell_class)}")
    states: list[dict[str, Tensor]] = [{} for _ in cell_classes]
    cells_by_path: dict[str, Cell] = {}
    for name, cell in walk.named_cells(module):
        kind_index = next((i for i, cell_class in enumerate(cell_classes) if isinstance(cell, cell_class)), None)
        if kind_index is not None:
            states[kind_index][name] = cell.value
            cells_by_path[name] = cell
    leaves, treedef = tree_flatten(module)
    return Structure(treedef, leaves, cells_by_path, [list(state) for state in states]), *states


def merge(structure: Structure, *states: Mapping[str, Tensor]) -> Any:
    """Returns a module from a structure and the tensors of all kinds that `split` returned, or others like them.

    The module has cells of its own, so what it assigns to buffers does not reach the one that was split. Inside of a
    transform the tensors may be traced.

    Args:
        structure: what `split` returned first: the module without its tensors.
        *states: what `split` returned besides: dicts of tensors by name, one for each kind.

    Raises:
        ArgumentError: if tensors are missing or do not belong to the structure.
    """
    tensor_by_name = {name: tensor for state in states for name, tensor in state.items()}
    expected_names = [name for names in structure.names for name in names]
    missing_names = [name for name in expected_names if name not in tensor_by_name]
    unknown_names = [name for name in tensor_by_name if name not in expected_names]
    if missing_names or unknown_names:
        raise ArgumentError(
            f"merge(): missing {missing_names}, unexpected {unknown_names}; pass all states that split() returned"
        )
    return structure.with_tensors(tensor_by_name)


if not TYPE_CHECKING:
    __getattr__, __dir__ = public_getattr_and_dir(__name__)
