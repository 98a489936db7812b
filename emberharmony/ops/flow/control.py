"""Control flow as functions: branches, loops and scans over trees, with the signatures of Keras.

They are Python branches and loops over ops, so they can be differentiated, vectorized and compiled like any function.
Under `vmap` or `mx.compile` the value of a condition cannot be read. Then `cond` and `switch` run all branches and
select from the results. `while_loop` cannot do so: a function that calls it is mapped slice by slice, and runs
uncompiled.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from emberharmony.core import selection
from emberharmony.core.axes import nonnegative_axes
from emberharmony.core.cells.cell import Cell
from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import op
from emberharmony.core.errors import ArgumentError, ArgumentTypeError, ShapeError
from emberharmony.core.tracing import TensorProxy
from emberharmony.core.trees.tree import TreeDef, tree_unflatten
from emberharmony.ops.arrays.indexing import get_item, where
from emberharmony.ops.arrays.shape import concatenate, flip, reshape, stack
from emberharmony.ops.logic.comparison import greater_equal
from emberharmony.ops.tensor import convert_to_tensor

if TYPE_CHECKING:
    from emberharmony.transforms import trees
else:
    trees = Deferred("emberharmony.transforms.trees")


@op
def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], *operands: Any) -> Any:
    """Returns `true_fn(*operands)` if the scalar `pred` is true, else `false_fn(*operands)`.

    Args:
        pred: a boolean, a number, or a tensor without axes; a number counts as true unless it is 0.
        true_fn: the function that is called with the operands if `pred` is true.
        false_fn: the function that is called with the operands otherwise.
        *operands: the arguments of both functions, of any type.

    Raises:
        ShapeError: if `pred` is not a scalar.
        ArgumentError: if both functions run and their results have different tree structures.

    See also: `switch`, of several branches; `where`, element by element.

    Example:
        >>> x = ops.array(-2.0)
        >>> ops.cond(ops.less(x, 0.0), lambda: ops.negative(x), lambda: x).tolist()
        2.0
    """
    trees.require_callable("cond", true_fn)
    trees.require_callable("cond", false_fn)
    host_value = _read_scalar("cond", pred, bool)
    if host_value is not None:
        return true_fn(*operands) if host_value else false_fn(*operands)
    return _select_tree("cond", pred, true_fn(*operands), false_fn(*operands))


@op
def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """Returns `branches[index](*operands)`.

    An index below 0 selects the first branch, an index that is too large the last one.

    Args:
        index: an integer, or a tensor of one without axes, from 0.
        branches: functions of the operands, at least one.
        *operands: the arguments of the branches, of any type.

    Raises:
        ShapeError: if `index` is not a scalar.
        ArgumentError: if there are no branches, or if all run and their results have different tree structures.

    See also: `cond`, of two branches.

    Example:
        >>> ops.switch(1, [ops.sin, ops.square], 3.0).tolist()
        9.0
    """
    if not isinstance(branches, (list, tuple)):
        raise ArgumentTypeError(f"switch() takes a list of branches, not {type(branches).__name__}")
    if not branches:
        raise ArgumentError("switch() takes at least one branch")
    for branch in branches:
        trees.require_callable("switch", branch)
    host_index = _read_scalar("switch", index, int)
    if host_index is not None:
        return branches[min(max(host_index, 0), len(branches) - 1)](*operands)
    selected_result = branches[0](*operands)
    for i, branch in enumerate(branches[1:], 1):
        selected_result = _select_tree("switch", greater_equal(index, i), branch(*operands), selected_result)
    return selected_result


@op
def while_loop(
    cond: Callable[..., Any], body: Callable[..., Any], loop_vars: Any, maximum_iterations: int | None = None
) -> Any:
    """Returns the loop variables after repeating `loop_vars = body(*loop_vars)` while `cond(*loop_vars)` is true.

    Args:
        cond: a function of the loop variables that returns a boolean, or a tensor of one without axes.
        body: a function of the loop variables that returns the new ones, in the same structure.
        loop_vars: a tuple or list of trees, which is returned as a tuple, or a single tree.
        maximum_iterations: the loop ends after this number of iterations at the latest; None sets no limit.

    Raises:
        ShapeError: if the condition is not a scalar.
        ArgumentError: if `body` changes the number of variables.

    See also: `fori_loop`, of a known length; `scan`, with results.

    Example:
        >>> ops.while_loop(lambda x: ops.less(x, 100.0), lambda x: ops.multiply(x, 3.0), ops.array(2.0)).tolist()
        162.0
    """
    trees.require_callable("while_loop", cond)
    trees.require_callable("while_loop", body)
    has_several_variables = isinstance(loop_vars, (tuple, list))
    loop_vars = _tree_with_tensors(loop_vars)
    variables = tuple(loop_vars) if has_several_variables else (loop_vars,)
    iteration_count = 0
    while (maximum_iterations is None or iteration_count < maximum_iterations) and _as_condition(cond(*variables)):
        new_variables = body(*variables)
        next_variables = (
            tuple(new_variables)
            if isinstance(new_variables, (tuple, list)) and (has_several_variables or len(new_variables) == 1)
            else (new_variables,)
        )
        if len(next_variables) != len(variables):
            raise ArgumentError(f"while_loop(): body must return {len(variables)} variables, not {len(next_variables)}")
        variables = next_variables
        iteration_count += 1
    return variables if has_several_variables else variables[0]


@op
def fori_loop(lower: int, upper: int, body_fun: Callable[[int, Any], Any], init_val: Any) -> Any:
    """Returns the value after `value = body_fun(i, value)` for each integer `i` in [lower, upper).

    Args:
        lower: the first integer.
        upper: the integer before which the loop ends; up to `lower`, the result is `init_val`.
        body_fun: a function of the integer and the value, which returns the new value.
        init_val: the first value, a tree.

    See also: `while_loop`, until a condition; `scan`, with results.

    Example:
        >>> ops.fori_loop(1, 5, lambda i, value: ops.multiply(value, i), ops.array(1)).tolist()
        24
    """
    trees.require_callable("fori_loop", body_fun)
    loop_value = _tree_with_tensors(init_val)
    for i in range(operator.index(lower), operator.index(upper)):
        loop_value = body_fun(i, loop_value)
    return loop_value


@op
def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[Any, Any]:
    """Returns the last carry and the stacked results of `carry, y = f(carry, x)` along the first axis of `xs`.

    Args:
        f: a function of a carry and a slice of `xs`, which returns the new carry and a result; all are trees.
        init: the first carry, a tree; all later carries must have the same structure.
        xs: a tree of tensors; with None, `f` is called `length` times with `x` None.
        length: the number of calls; None is the length of the first axis of `xs`.
        reverse: whether to begin at the last `x`; each result is stacked at the position of its `x`.
        unroll: accepted for compatibility; it has no effect, because the loop is a Python loop.

    Raises:
        ShapeError: if lengths differ, or if they are 0, because the shape of the results is then unknown.
        ArgumentError: if neither `xs` nor `length` is given, or if the structure of the carry changes.

    See also: `associative_scan`, in parallel; `fori_loop`, without results; `map`, without a carry.

    Example:
        >>> total, sums = ops.scan(lambda total, x: 2 * (ops.add(total, x),), ops.array(0), ops.array([1, 2, 3]))
        >>> total.tolist(), sums.tolist()
        (6, [1, 3, 6])
    """
    trees.require_callable("scan", f)
    tensors, structure, slice_count = _scanned_tensors("scan", xs, length)
    carry, carry_structure = _tree_with_tensors(init), trees.flatten(init)[1]
    outputs = []
    for i in reversed(range(slice_count)) if reverse else range(slice_count):
        carry_and_output = f(carry, tree_unflatten(structure, [get_item(x, i) for x in tensors]))
        if not isinstance(carry_and_output, (tuple, list)) or len(carry_and_output) != 2:
            raise ArgumentTypeError(
                f"scan(): expected f to return a pair (carry, y), got {type(carry_and_output).__name__}; write "
                f"return carry, y, or return carry, None"
            )
        carry, y = carry_and_output
        if trees.flatten(carry)[1] != carry_structure:
            raise ArgumentError("scan(): f returns a carry with another tree structure than the carry it was given")
        outputs.append(y)
    return carry, _stack_trees("scan", outputs[::-1] if reverse else outputs)


@op
def map(f: Callable[[Any], Any], xs: Any) -> Any:
    """Returns the stacked results of `f` for each slice of the tree `xs` along the first axis.

    The calls run one after the other; `vectorized_map` computes them at once.

    Args:
        f: a function of one slice of `xs`, which returns a tree of tensors.
        xs: a tree of tensors whose first axes have one length.

    Raises:
        ShapeError: if lengths differ or are 0.

    See also: `vectorized_map`, at once; `scan`, with a carry.

    Example:
        >>> ops.map(ops.sum, ops.array([[1, 2], [3, 4]])).tolist()
        [3, 7]
    """
    trees.require_callable("map", f)
    tensors, structure, slice_count = _scanned_tensors("map", xs, None)
    return _stack_trees(
        "map", [f(tree_unflatten(structure, [get_item(x, i) for x in tensors])) for i in range(slice_count)]
    )


@op
def associative_scan(f: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """Returns the cumulative results of combining elements along an axis by an associative function.

    `f` combines two trees like `elems` of any length along the axis, slice by slice. The number of calls of `f` grows
    with the logarithm of the length.

    Args:
        f: a function of two trees like `elems`, for which `f(f(a, b), c)` is `f(a, f(b, c))`.
        elems: a tree of tensors that have one length along `axis`.
        reverse: whether elements are combined from the end of the axis; else from its beginning.
        axis: the axis along which elements are combined; by default the first.

    Raises:
        AxisError: for an axis that an element does not have.
        ShapeError: if lengths differ.

    See also: `scan`, with a carry; `cumsum`, of sums.

    Example:
        >>> ops.associative_scan(ops.add, ops.array([1, 2, 3, 4])).tolist()
        [1, 3, 6, 10]

    Source: Blelloch, "Prefix sums and their applications" (1990), in the form of JAX.
    """
    trees.require_callable("associative_scan", f)
    leaves, structure = trees.flatten(elems)
    tensors = [convert_to_tensor(leaf) for leaf in leaves]
    lengths = {x.shape[nonnegative_axes(operator.index(axis), len(x.shape))[0]] for x in tensors}
    if len(lengths) != 1:
        raise ShapeError(f"associative_scan(): the elements have lengths {sorted(lengths)} along axis {axis}")

    def combine(a: list[Any], b: list[Any]) -> list[Any]:
        leaves, result_structure = trees.flatten(f(tree_unflatten(structure, a), tree_unflatten(structure, b)))
        if result_structure != structure:
            raise ArgumentError("associative_scan(): f returns another tree structure than it is given")
        return [convert_to_tensor(leaf) for leaf in leaves]

    if reverse:
        tensors = [flip(x, axis) for x in tensors]
    scanned_tensors = _prefix_combinations(combine, tensors, axis)
    return tree_unflatten(structure, [flip(x, axis) for x in scanned_tensors] if reverse else scanned_tensors)


def _tree_with_tensors(tree: Any) -> Any:
    """Returns a tree whose NumPy arrays and cells are tensors, because native operators do not accept all of them."""
    leaves, structure = trees.flatten(tree)
    backend = selection.current()
    foreign_flags = [
        isinstance(x, Cell) or (hasattr(x, "__array__") and not isinstance(x, TensorProxy) and not backend.is_tensor(x))
        for x in leaves
    ]
    if not any(foreign_flags):
        return tree
    tensors = [convert_to_tensor(x) if is_foreign else x for x, is_foreign in zip(leaves, foreign_flags, strict=True)]
    return tree_unflatten(structure, tensors)


def _read_scalar(name: str, value: Any, kind: Callable[[Any], Any]) -> Any:
    """Returns a scalar as a Python number or boolean; None if a running transform hides its value."""
    value = value.value if isinstance(value, Cell) else value
    if tuple(getattr(value, "shape", ())) != ():
        raise ShapeError(f"{name}() expects a scalar to decide by, got shape {tuple(value.shape)}")
    try:
        return kind(value)
    except Exception as error:
        if selection.current().cannot_transform(error):
            return None
        raise


def _as_condition(condition: Any) -> bool:
    condition = condition.value if isinstance(condition, Cell) else condition
    if tuple(getattr(condition, "shape", ())) != ():
        raise ShapeError(f"while_loop() expects a scalar condition, got shape {tuple(condition.shape)}")
    return bool(condition)


def _select_tree(name: str, condition: Any, result: Any, otherwise: Any) -> Any:
    """Returns the tree `result` where a scalar condition is true, else the tree `otherwise`, tensor by tensor."""
    true_leaves, structure = trees.flatten(result)
    false_leaves, false_structure = trees.flatten(otherwise)
    if structure != false_structure:
        raise ArgumentError(
            f"{name}(): the branches must return the same tree structure, because all run and one result is selected"
        )
    selected_leaves = [
        where(condition, true_leaf, false_leaf) for true_leaf, false_leaf in zip(true_leaves, false_leaves, strict=True)
    ]
    return tree_unflatten(structure, selected_leaves)


def _scanned_tensors(name: str, xs: Any, length: int | None) -> tuple[list[Any], TreeDef, int]:
    """Returns the tensors of a tree, its structure, and their common length along the first axis, or `length`."""
    leaves, structure = trees.flatten(xs)
    tensors = [convert_to_tensor(leaf) for leaf in leaves]
    if any(tuple(x.shape) == () for x in tensors):
        raise ShapeError(f"{name}() loops along the first axis of xs, but xs holds a scalar, which has no axis")
    lengths = {int(x.shape[0]) for x in tensors} | (set() if length is None else {operator.index(length)})
    if not lengths:
        raise ArgumentError(f"{name}() takes xs or length" + ("" if xs is None else ", and this xs holds no tensor"))
    if len(lengths) != 1:
        raise ShapeError(f"{name}(): the lengths {sorted(lengths)} along the first axis differ")
    (common_length,) = lengths
    if common_length < 1:
        raise ShapeError(f"{name}() got an axis of length 0, so the shape of its results is unknown")
    return tensors, structure, common_length


def _stack_trees(name: str, results: list[Any]) -> Any:
    leaf_columns = []
    structure = trees.flatten(results[0])[1]
    for result in results:
        leaves, result_structure = trees.flatten(result)
        if result_structure != structure:
            raise ArgumentError(f"{name}(): f returns different trees for different slices")
        leaf_columns.append(leaves)
    return tree_unflatten(structure, [stack(list(leaf_column)) for leaf_column in zip(*leaf_columns, strict=True)])


def _prefix_combinations(combine: Callable[..., list[Any]], tensors: list[Any], axis: int) -> list[Any]:
    """Returns, for each place along the axis, the combination of all elements up to and including that place.

    Neighbours are combined into pairs, and the function calls itself on the half as long sequence of the pairs. Its
    results are those of the odd places; one more combination gives those of the even places.
    """
    element_count = tensors[0].shape[axis]
    if element_count < 2:
        return tensors
    pair_combinations = combine(
        _every_other_element(tensors, axis, 0, element_count - 1), _every_other_element(tensors, axis, 1, element_count)
    )
    odd_prefixes = _prefix_combinations(combine, pair_combinations, axis)
    first_elements = _every_other_element(tensors, axis, 0, 1)
    if element_count == 2:
        even_prefixes = first_elements
    else:
        paired_prefixes = (
            odd_prefixes
            if element_count % 2
            else [_slice_axis(x, axis, 0, element_count // 2 - 1, 1) for x in odd_prefixes]
        )
        later_even_prefixes = combine(paired_prefixes, _every_other_element(tensors, axis, 2, element_count))
        even_prefixes = [concatenate([a, b], axis) for a, b in zip(first_elements, later_even_prefixes, strict=True)]
    return [_interleave(a, b, axis) for a, b in zip(even_prefixes, odd_prefixes, strict=True)]


def _every_other_element(tensors: list[Any], axis: int, start: int, stop: int) -> list[Any]:
    return [_slice_axis(x, axis, start, stop, 2) for x in tensors]


def _slice_axis(x: Any, axis: int, start: int, stop: int, step: int) -> Any:
    axis_index = axis % len(x.shape)
    return get_item(x, (*[slice(None)] * axis_index, slice(start, stop, step)))


def _interleave(even: Any, odd: Any, axis: int) -> Any:
    """Returns e0, o0, e1, o1, …; there may be one even element more than there are odd ones."""
    axis_index, odd_count = axis % len(even.shape), odd.shape[axis]
    pairs = stack([_slice_axis(even, axis_index, 0, odd_count, 1), odd], axis_index + 1)
    shape = tuple(odd.shape)
    interleaved_elements = reshape(pairs, (*shape[:axis_index], 2 * odd_count, *shape[axis_index + 1 :]))
    if even.shape[axis] == odd_count:
        return interleaved_elements
    return concatenate([interleaved_elements, _slice_axis(even, axis_index, odd_count, odd_count + 1, 1)], axis_index)
