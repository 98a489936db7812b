"""`vmap` and `vectorize` for all backends: functions mapped over axes of trees, by means of `Backend.batched`."""

import functools
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

from emberharmony.core.axes import broadcast_shape, nonnegative_axes
from emberharmony.core.errors import ArgumentError, ArgumentTypeError, AxisError, ShapeError, brief
from emberharmony.core.trees.tree import tree_flatten, tree_unflatten
from emberharmony.transforms.trees import Function, ResultTree, fill_leaf, flatten, require_callable

_GROUPS = r"\((\w+(,\w+)*)?\)(,\((\w+(,\w+)*)?\))*"
_SIGNATURE = re.compile(f"{_GROUPS}->{_GROUPS}")

_FIXED = (int, type(None))


def map_over(op: str, fn: Function, in_axes: Any, out_axes: Any) -> Function:
    """Returns a function that maps `fn` over axes of its arguments' leaves and stacks the results along `out_axes`."""
    require_callable(op, fn)
    in_axes = tuple(in_axes) if isinstance(in_axes, list) else in_axes
    # Integers and tuples of them cannot change, so the axes of the leaves depend on the structure of the arguments
    # alone.
    has_axis_per_argument = in_axes.__class__ is tuple and all(isinstance(x, _FIXED) for x in in_axes)
    has_fixed_axes = has_axis_per_argument or isinstance(in_axes, _FIXED)
    last_axes_plan: tuple[Any, list[Any], list[int]] | None = None

    @functools.wraps(fn)
    def mapped_fn(*args: Any, **kwargs: Any) -> Any:
        nonlocal last_axes_plan
        result_tree = ResultTree(op)
        leaves: Sequence[Any]
        rebuild_arguments: Callable[[list[Any]], Any]
        if has_axis_per_argument and _are_tensors(args, in_axes, result_tree.backend.tensor_type):
            # Each argument is a leaf, so that no tree has to be flattened and built again.
            leaves, rebuild_arguments = args, _copy_lists
            axes, mapped_positions = in_axes, [i for i, axis in enumerate(in_axes) if axis is not None]
            tensors = [args[i] for i in mapped_positions]
        else:
            leaves, structure = flatten(args)
            rebuild_arguments = functools.partial(tree_unflatten, structure)
            axes_plan = last_axes_plan
            if axes_plan is None or axes_plan[0] != structure:
                axes = axis_of_each_leaf(result_tree, "in_axes", in_axes, args)
                axes_plan = structure, axes, [i for i, axis in enumerate(axes) if axis is not None]
                last_axes_plan = axes_plan if has_fixed_axes else None
            _, axes, mapped_positions = axes_plan
            tensors = [result_tree.tensor(leaves[i], "an argument to map over") for i in mapped_positions]
        mapped_axes = [
            _nonnegative_axis(result_tree, axes[i], tensor) for i, tensor in zip(mapped_positions, tensors, strict=True)
        ]
        require_one_length(result_tree, tensors, mapped_axes)

        def call_on_slices(*slices: Any) -> list[Any]:
            new_arguments = list(leaves)
            for i, tensor_slice in zip(mapped_positions, slices, strict=True):
                new_arguments[i] = fill_leaf(new_arguments[i], tensor_slice)
            return result_tree.tensors(fn(*rebuild_arguments(new_arguments), **kwargs))

        stacked_results = result_tree.backend.map_slices(call_on_slices, tensors, mapped_axes)
        if out_axes.__class__ is int and out_axes == 0:
            return result_tree.result(stacked_results)
        axes = axis_of_each_leaf(result_tree, "out_axes", out_axes, result_tree.result(stacked_results))
        return result_tree.result(
            [_move_axis(result_tree, value, axis) for value, axis in zip(stacked_results, axes, strict=True)]
        )

    return mapped_fn


def _are_tensors(args: Sequence[Any], in_axes: Sequence[Any], tensor_type: type) -> bool:
    """Returns whether each argument is a tensor or, if it is not mapped, a list or tuple of tensors."""
    if len(args) != len(in_axes):
        return False
    for argument, axis in zip(args, in_axes, strict=True):
        if argument.__class__ is tensor_type:
            continue
        if axis is not None or (argument.__class__ is not list and argument.__class__ is not tuple):
            return False
        for item in argument:
            if item.__class__ is not tensor_type:
                return False
    return True


def _copy_lists(arguments: Sequence[Any]) -> list[Any]:
    """Returns arguments with copies of lists, which a function may change."""
    return [list(x) if x.__class__ is list else x for x in arguments]


def axis_of_each_leaf(result_tree: ResultTree, name: str, axes: Any, tree: Any) -> list[Any]:
    """Returns one axis, or None, for each leaf of a tree.

    Args:
        name: the name of the argument `axes`, for messages.
        axes: an int or None for all leaves, or a tree of these, each of which applies to the subtree at its place.

    Raises:
        ArgumentError: if the structure of `axes` does not fit that of the tree.
    """
    if axes is None or isinstance(axes, int):
        return [axes] * len(flatten(tree)[0])
    axis_entries, axes_structure = tree_flatten(axes, lambda node: node is not axes)
    children, child_structure = tree_flatten(tree, lambda node: node is not tree)
    if axes_structure != child_structure or axes_structure.kind == "leaf":
        raise ArgumentError(
            f"{result_tree.head}{name} must be an int, None, or a tree of these with the structure of the tree that it "
            f"is for; {brief(axes)} does not fit"
        )
    return [
        axis
        for axis_entry, child in zip(axis_entries, children, strict=True)
        for axis in axis_of_each_leaf(result_tree, name, axis_entry, child)
    ]


def _nonnegative_axis(result_tree: ResultTree, axis: int, tensor: Any) -> int:
    try:
        return nonnegative_axes(axis, len(tensor.shape))[0]
    except AxisError as error:
        raise AxisError(f"{result_tree.head}{error}") from None


def require_one_length(result_tree: ResultTree, tensors: Sequence[Any], axes: Sequence[int]) -> None:
    """Checks that there is an axis to map over, and that all such axes have the same length, which is not 0.

    Raises:
        ArgumentError: if there are no axes to map over.
        ShapeError: if the lengths differ or are 0.
    """
    lengths = [tensor.shape[axis] for tensor, axis in zip(tensors, axes, strict=True)]
    if not lengths:
        raise ArgumentError(f"{result_tree.head}there is nothing to map over: in_axes selects no axis of any argument")
    if len(set(lengths)) != 1:
        raise ShapeError(f"{result_tree.head}the axes to map over have lengths {lengths}, which must be equal")
    if lengths[0] == 0:
        raise ShapeError(f"{result_tree.head}the axes to map over are empty, so the shape of the result is unknown")


def _move_axis(result_tree: ResultTree, value: Any, axis: int | None) -> Any:
    if axis is None:
        raise ArgumentError(
            f"{result_tree.head}out_axes is None for a result, but each result has a mapped axis: give its position"
        )
    return value if axis == 0 else result_tree.backend.bound.moveaxis(value, 0, axis)


def vectorize(op: str, fn: Function, excluded: Sequence[int], signature: str | None) -> Function:
    """Returns a function that broadcasts its arguments over all axes except those that `fn` itself handles.

    Args:
        excluded: positions of arguments that are passed to `fn` as they are.
        signature: the axes that `fn` handles, such as "(m,n),(n)->(m)"; None if it takes and returns scalars.

    Raises:
        ArgumentTypeError: if an argument has the wrong type.
        ArgumentError: if the signature cannot be parsed.
    """
    require_callable(op, fn)
    if not isinstance(excluded, (list, tuple, set, frozenset, range)):
        raise ArgumentTypeError(
            f"{op}() takes excluded, the positions of unmapped arguments, as a list, not {type(excluded).__name__}"
        )
    input_dimensions, output_dimensions = _parse_signature(op, signature) if signature is not None else (None, None)

    @functools.wraps(fn)
    def vectorized_fn(*args: Any) -> Any:
        result_tree = ResultTree(op)
        mapped_positions = [i for i in range(len(args)) if i not in excluded]
        tensors = [result_tree.tensor(args[i], "an argument") for i in mapped_positions]
        core_dimensions = [()] * len(tensors) if input_dimensions is None else input_dimensions
        if len(core_dimensions) != len(tensors):
            raise ArgumentError(
                f"{result_tree.head}the signature names {len(core_dimensions)} arguments, {len(tensors)} were given"
            )
        length_by_letter: dict[str, int] = {}
        leading_shapes = [
            _leading_lengths(result_tree, x, names, length_by_letter)
            for x, names in zip(tensors, core_dimensions, strict=True)
        ]
        try:
            loop_shape = broadcast_shape(leading_shapes)
        except ShapeError as error:
            raise ShapeError(f"{result_tree.head}the leading axes {leading_shapes} do not broadcast") from error

        def call_on_slices(*slices: Any) -> list[Any]:
            new_arguments = list(args)
            for i, tensor_slice in zip(mapped_positions, slices, strict=True):
                new_arguments[i] = tensor_slice
            return result_tree.tensors(fn(*new_arguments))

        results = _map_leading_axes(result_tree, call_on_slices, tensors, leading_shapes, loop_shape)
        if output_dimensions is not None:
            _check_results(result_tree, results, output_dimensions, length_by_letter, len(loop_shape))
        return result_tree.result(results)

    return vectorized_fn


def _parse_signature(op: str, signature: str) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """Returns the names of the axes of each argument and of each result in a signature such as "(m,n),(n)->(m)"."""
    if not isinstance(signature, str):
        raise ArgumentTypeError(
            f"{op}() takes a signature such as '(m,n),(n)->(m)', not of type {type(signature).__name__}"
        )
    if _SIGNATURE.fullmatch(signature.replace(" ", "")) is None:
        raise ArgumentError(f"{op}() takes a signature such as '(m,n),(n)->(m)', not {signature!r}")
    input_dimensions, output_dimensions = (
        [tuple(name for name in group.split(",") if name) for group in re.findall(r"\(([^()]*)\)", side)]
        for side in signature.replace(" ", "").split("->")
    )
    return input_dimensions, output_dimensions


def _leading_lengths(
    result_tree: ResultTree, tensor: Any, names: tuple[str, ...], lengths: dict[str, int]
) -> tuple[int, ...]:
    """Returns the lengths of the leading axes, and records the lengths of the named axes, which follow them."""
    shape = tuple(tensor.shape)
    leading_axis_count = len(shape) - len(names)
    if leading_axis_count < 0:
        raise ShapeError(f"{result_tree.head}shape {shape} has fewer axes than {names} in the signature")
    _note_lengths(result_tree, shape[leading_axis_count:], names, lengths)
    return shape[:leading_axis_count]


def _note_lengths(
    result_tree: ResultTree, core_lengths: tuple[int, ...], names: tuple[str, ...], lengths: dict[str, int]
) -> None:
    for name, length in zip(names, core_lengths, strict=True):
        if lengths.setdefault(name, length) != length:
            raise ShapeError(
                f"{result_tree.head}the axis {name!r} of the signature has lengths {lengths[name]} and {length}, which "
                f"must be equal"
            )


def _map_leading_axes(
    result_tree: ResultTree,
    fn: Function,
    tensors: Sequence[Any],
    leading_shapes: Sequence[tuple[int, ...]],
    shape: tuple[int, ...],
) -> list[Any]:
    """Returns the results of `fn` for each element of the leading axes, which are first broadcast to `shape`."""
    if shape == ():
        return list(fn(*tensors))
    ops, element_count = result_tree.backend.bound, math.prod(shape)
    if element_count == 0:
        raise ShapeError(f"{result_tree.head}the leading axes {shape} are empty, so the shape of the result is unknown")
    flat_tensors = []
    for tensor, leading_shape in zip(tensors, leading_shapes, strict=True):
        core_shape = tuple(tensor.shape)[len(leading_shape) :]
        flat_tensors.append(ops.reshape(ops.broadcast_to(tensor, (*shape, *core_shape)), (element_count, *core_shape)))
    stacked_results = result_tree.backend.map_slices(fn, flat_tensors, [0] * len(flat_tensors))
    return [ops.reshape(value, (*shape, *tuple(value.shape)[1:])) for value in stacked_results]


def _check_results(
    result_tree: ResultTree,
    results: Sequence[Any],
    output_dimensions: list[tuple[str, ...]],
    lengths: dict[str, int],
    leading_axis_count: int,
) -> None:
    if len(results) != len(output_dimensions):
        raise ArgumentError(
            f"{result_tree.head}the signature names {len(output_dimensions)} results, the function returns "
            f"{len(results)}"
        )
    for result, names in zip(results, output_dimensions, strict=True):
        core_shape = tuple(result.shape)[leading_axis_count:]
        if len(core_shape) != len(names):
            raise ShapeError(f"{result_tree.head}a result has shape {core_shape}, but the signature has {names}")
        _note_lengths(result_tree, core_shape, names, lengths)
