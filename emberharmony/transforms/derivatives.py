"""Derivatives of functions of trees for all backends, by means of `Backend.pullback` and `Backend.pushforward`."""

import functools
import math
import operator
from collections.abc import Iterator, Sequence
from typing import Any

from emberharmony.core import selection
from emberharmony.core.cells.blocks import Assignments, ReadCells, cells_of_open_blocks, newly_assigned_tensors
from emberharmony.core.cells.cell import Cell, accumulate_steps, clear_grad_steps, values_of
from emberharmony.core.code_flags import VARIADIC_KEYWORDS
from emberharmony.core.errors import ArgumentError, ArgumentTypeError, DTypeError, UnsupportedOpError
from emberharmony.core.state.commits import commit
from emberharmony.core.state.draws import OPEN, Draws, current_recording, refuse_effect
from emberharmony.core.trees.objects import instances_in
from emberharmony.core.trees.tree import LEAF, TreeDef, tree_flatten, tree_map, tree_unflatten
from emberharmony.transforms import parameterless
from emberharmony.transforms.trees import (
    Argnums,
    FlatFunction,
    Function,
    ResultTree,
    fill_leaf,
    flatten,
    require_callable,
)

_TRAINABLE = operator.attrgetter("trainable")


def gradient(op: str, fn: Function, argnums: int | Sequence[int], has_aux: bool, with_value: bool) -> Function:
    """Returns the function that computes the gradient of `fn`, and also its value if `with_value` is true."""
    require_callable(op, fn)
    has_aux, argnums_choice = bool(has_aux), Argnums(argnums)

    @functools.wraps(fn)
    def gradient_of(*args: Any, **kwargs: Any) -> Any:
        flat_function = FlatFunction(op, fn, args, kwargs, argnums_choice, has_aux)
        if flat_function.primals:
            outputs, gradients = flat_function.run(
                flat_function.backend.gradients, flat_function.loss, flat_function.primals
            )
        else:  # an empty tree, or no argnums
            outputs, gradients = flat_function.loss(), []
        gradient_tree = flat_function.unflatten_primals(gradients)
        if not with_value:
            return (gradient_tree, flat_function.aux(outputs)) if has_aux else gradient_tree
        value = flat_function.result(outputs)
        return ((value, flat_function.aux(outputs)), gradient_tree) if has_aux else (value, gradient_tree)

    return gradient_of


def run_vjp(op: str, fn: Function, primals: Sequence[Any], has_aux: bool) -> Any:
    """Returns the result of `fn`, the function from cotangents to a tuple of gradients and, with `has_aux`, the aux."""
    require_callable(op, fn)
    flat_function = FlatFunction(op, fn, primals, {}, Argnums(tuple(range(len(primals)))), has_aux)
    outputs, pull_cotangents = flat_function.run(flat_function.backend.pullback, flat_function, flat_function.primals)
    structure, result_count = flat_function.built, flat_function.width
    unused_cotangents = [None] * (len(outputs) - result_count)

    def vjp_function(cotangents: Any) -> Any:
        matching_cotangents = flat_function.matching_leaves(cotangents, structure, outputs[:result_count], "cotangent")
        return flat_function.unflatten_primals(
            flat_function.run(pull_cotangents, [*matching_cotangents, *unused_cotangents])
        )

    result = flat_function.result(outputs)
    return (result, vjp_function, flat_function.aux(outputs)) if has_aux else (result, vjp_function)


def run_jvp(op: str, fn: Function, primals: Any, tangents: Any, has_aux: bool) -> Any:
    """Returns the result of `fn`, the tangents of the result and, with `has_aux`, the aux."""
    require_callable(op, fn)
    for name, value in (("primals", primals), ("tangents", tangents)):
        if not isinstance(value, (tuple, list)):
            raise ArgumentTypeError(
                f"{op}() takes {name} as a tuple with one for each argument, not {type(value).__name__}"
            )
    flat_function = FlatFunction(op, fn, primals, {}, Argnums(tuple(range(len(primals)))), has_aux)
    matching_tangents = flat_function.tangents(tangents)
    outputs, output_tangents = flat_function.run(
        flat_function.backend.pushforward, flat_function, flat_function.primals, matching_tangents
    )
    result, result_tangents = flat_function.result(outputs), flat_function.result(output_tangents)
    return (result, result_tangents, flat_function.aux(outputs)) if has_aux else (result, result_tangents)


def jacobian(op: str, fn: Function, argnums: int | Sequence[int], has_aux: bool, forward: bool) -> Function:
    """Returns the function that computes the Jacobian of `fn`: a tree like its result, with trees like the argument."""
    require_callable(op, fn)
    has_aux, argnums_choice = bool(has_aux), Argnums(argnums)

    @functools.wraps(fn)
    def jacobian_of(*args: Any, **kwargs: Any) -> Any:
        flat_function = FlatFunction(op, fn, args, kwargs, argnums_choice, has_aux)
        outputs, jacobian_rows = flat_function.run(_forward_rows if forward else _reverse_rows, flat_function)
        jacobian_tree = flat_function.result([flat_function.unflatten_primals(row) for row in jacobian_rows])
        return (jacobian_tree, flat_function.aux(outputs)) if has_aux else jacobian_tree

    return jacobian_of


def _reverse_rows(flat_function: FlatFunction) -> tuple[Sequence[Any], list[list[Any]]]:
    """Returns the outputs, and for each tensor of the result its derivatives with respect to each primal."""
    outputs, pull_cotangents = flat_function.backend.pullback(flat_function, flat_function.primals)
    output_count, result_count = len(outputs), flat_function.width
    _require_real(flat_function, [*flat_function.primals, *outputs[:result_count]])

    def pull_row(place: int, cotangent: Any) -> list[Any]:
        gradients: list[Any] = pull_cotangents([*[None] * place, cotangent, *[None] * (output_count - place - 1)])
        return gradients

    ops = flat_function.backend.bound
    jacobian_rows = []
    for i, output in enumerate(outputs[:result_count]):
        output_shape = tuple(output.shape)
        if output_shape == () or 0 in output_shape:
            # An empty output has no elements to differentiate, but one pull gives the dtypes of the empty derivatives.
            gradients = pull_row(i, ops.ones_like(output))
            derivative_shapes = [(*output_shape, *primal.shape) for primal in flat_function.primals]
            jacobian_rows.append(gradients if output_shape == () else _empty_tensors(ops, gradients, derivative_shapes))
            continue
        gradients = flat_function.backend.map_slices(
            functools.partial(pull_row, i), [_standard_basis(flat_function, output)], [0], same=True
        )
        jacobian_rows.append(
            [ops.reshape(g, (*output_shape, *p.shape)) for g, p in zip(gradients, flat_function.primals, strict=True)]
        )
    return outputs, jacobian_rows


def _forward_rows(flat_function: FlatFunction) -> tuple[Sequence[Any], list[list[Any]]]:
    """Returns the Jacobian's rows as `_reverse_rows` does, but with one tangent for each element of the primals."""
    _require_real(flat_function, flat_function.primals)
    ops, primals, draws = flat_function.backend.bound, flat_function.primals, Draws()
    zeros = [ops.zeros_like(primal) for primal in primals]
    push_tangents = flat_function.backend.linearize(flat_function, primals)

    def push_column(place: int, tangent: Any) -> list[Any]:
        with draws.next_run():
            outputs, output_tangents = push_tangents([*zeros[:place], tangent, *zeros[place + 1 :]])
        _require_real(flat_function, outputs[: flat_function.width])
        return [*output_tangents[: flat_function.width], *outputs]

    jacobian_columns = []
    outputs: list[Any] = []
    for i, primal in enumerate(primals):
        primal_shape = tuple(primal.shape)
        if primal_shape == () or 0 in primal_shape:
            tangents = push_column(i, ops.ones_like(primal))
            tangents, outputs = tangents[: flat_function.width], tangents[flat_function.width :]
            derivative_shapes = [(*tangent.shape, *primal_shape) for tangent in tangents]
            jacobian_columns.append(
                tangents if primal_shape == () else _empty_tensors(ops, tangents, derivative_shapes)
            )
            continue
        tangents = flat_function.backend.map_slices(
            functools.partial(push_column, i), [_standard_basis(flat_function, primal)], [0], same=True
        )
        outputs = [ops.take(output, 0, axis=0) for output in tangents[flat_function.width :]]
        jacobian_columns.append(
            [_move_elements_last(ops, tangent, primal_shape) for tangent in tangents[: flat_function.width]]
        )
    return outputs, [list(row) for row in zip(*jacobian_columns, strict=True)]


def _move_elements_last(bound: Any, tangent: Any, shape: tuple[int, ...]) -> Any:
    moved_tangent = bound.moveaxis(tangent, 0, -1)
    return bound.reshape(moved_tangent, (*moved_tangent.shape[:-1], *shape))


def _empty_tensors(bound: Any, tensors: Sequence[Any], shapes: Sequence[Any]) -> list[Any]:
    """Returns empty tensors with these shapes and with the dtypes of the given tensors."""
    tensor_shape_pairs = zip(tensors, shapes, strict=True)
    return [bound.reshape(bound.get_item(bound.reshape(x, -1), slice(0, 0)), shape) for x, shape in tensor_shape_pairs]


def _standard_basis(flat_function: FlatFunction, tensor: Any) -> Any:
    """Returns the standard basis for a tensor's shape and dtype, stacked along a new first axis."""
    shape, ops = tuple(tensor.shape), flat_function.backend.bound
    return ops.reshape(ops.diag(ops.ones_like(ops.reshape(tensor, -1))), (math.prod(shape), *shape))


def _require_real(flat_function: FlatFunction, tensors: Sequence[Any]) -> None:
    for tensor in tensors:
        if flat_function.backend.kind_of(tensor) != "float":
            dtype_name = flat_function.backend.dtype_of(tensor).name
            raise DTypeError(
                f"{flat_function.head}a Jacobian needs real floating tensors, not {dtype_name}; use vjp or jvp"
            )


def with_custom_gradient(op: str, fn: Function) -> Function:
    """Returns a function with a custom gradient: `fn` returns a pair of the result and the gradient function."""
    require_callable(op, fn)

    @functools.wraps(fn)
    def call_with_gradient(*args: Any, **kwargs: Any) -> Any:
        call = _CallWithGradient(op, args)

        def forward(*leaves: Any) -> list[Any]:
            return call.tensors(call.require_pair(fn(*call.fill_arguments(leaves), **kwargs))[0])

        def backward(primals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
            arguments = call.fill_arguments(primals)
            result, gradient_function = call.require_pair(fn(*arguments, **kwargs))
            call.tensors(result)  # for its side effect: call.result needs the structure of this result
            _require_upstream(call.head, gradient_function)
            return call.gradients(gradient_function(*arguments, upstream=call.result(cotangents)), primals)

        return call.run_twice(forward, backward)

    return call_with_gradient


def call_on_host(op: str, fn: Function, args: tuple[Any, ...], vjp: Function | None) -> Any:
    """Returns the result of `fn` for its arguments as NumPy arrays; `vjp`, if given, computes the gradients."""
    require_callable(op, fn)
    host_call = _CallWithGradient(op, args)
    if vjp is not None:
        _require_upstream(host_call.head, vjp)
    tensors = [leaf for leaf in host_call.leaves if host_call.is_tensor(leaf)]
    device = host_call.backend.bound.get_device(tensors[0]) if tensors else None

    def forward(*leaves: Any) -> list[Any]:
        arrays = tree_map(lambda leaf: _read_only_array(host_call, leaf), host_call.fill_arguments(leaves))
        returned_leaves, structure = flatten(fn(*arrays))
        tensors = [host_call.tensor_from_host(value, device) for value in returned_leaves]
        return host_call.tensors(tree_unflatten(structure, tensors))

    def backward(primals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        if vjp is None:
            function_name = getattr(fn, "__name__", type(fn).__name__)
            raise UnsupportedOpError(
                f"{host_call.head}a gradient reaches the result of {function_name!r}, and no derivative was given: "
                "pass vjp=... or ops.stop_gradient of its arguments"
            )
        arrays = host_call.fill_arguments(primals)
        return host_call.gradients(vjp(*arrays, upstream=host_call.result(cotangents)), primals)

    return host_call.run_twice(forward, backward)


def _read_only_array(call: "_CallWithGradient", leaf: Any) -> Any:
    """Returns a tensor as a read-only NumPy array, and any other leaf unchanged."""
    if isinstance(leaf, Cell):
        leaf = leaf.tensor_on(call.backend.bound)
    if not call.is_tensor(leaf):
        return leaf
    array = call.backend.bound.to_numpy(leaf).view()
    array.flags.writeable = False
    return array


def _require_upstream(head: str, function: Any) -> None:
    """Checks that the user's gradient function takes `upstream` by name.

    Raises:
        ArgumentTypeError: if it does not.
    """
    expected_text = f"{head}the gradient function is called as gradient(*args, upstream=cotangent)"
    if not callable(function):
        raise ArgumentTypeError(f"{expected_text}, but this is not a function: {type(function).__name__}")
    code = getattr(function, "__code__", None)
    if code is None:  # a callable object or a C function, whose parameters are not known
        return
    parameter_names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    if "upstream" not in parameter_names[code.co_posonlyargcount :] and not code.co_flags & VARIADIC_KEYWORDS:
        raise ArgumentTypeError(
            f"{expected_text}, but this one takes ({', '.join(parameter_names)}): name a parameter upstream, last"
        )
    if parameter_names[:1] == ("upstream",) and code.co_argcount:
        raise ArgumentTypeError(f"{expected_text}, but this one takes upstream first: put the arguments before it")


def checkpoint(op: str, fn: Function) -> Function:
    """Returns a function that keeps only its arguments for the derivative, and then runs `fn` again."""
    require_callable(op, fn)

    @functools.wraps(fn)
    def call_checkpointed(*args: Any, **kwargs: Any) -> Any:
        call, read_cell_list, draws = _CallWithGradient(op, args), cells_of_open_blocks(), Draws()

        def run_function(*leaves: Any) -> list[Any]:
            return call.tensors(fn(*call.fill_arguments(leaves), **kwargs))

        def run_with_cells(*leaves: Any) -> list[Any]:
            leaf_count = len(leaves) - len(read_cell_list)
            with Assignments(dict(zip(read_cell_list, leaves[leaf_count:], strict=True))):
                return run_function(*leaves[:leaf_count])

        def backward(primals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
            with draws.later_run():
                gradients: list[Any] = call.backend.pullback(
                    run_with_cells if read_cell_list else run_function, primals
                )[1](cotangents)
            return gradients

        if not read_cell_list:
            return call.run_twice(run_function, backward)
        # `fn` may read parameters of `ops.backward` that are not among its arguments. Only a run tells which.
        ops, open_cells = call.backend.bound, read_cell_list
        with draws.first_run(), ReadCells() as read_cells:
            constant_by_cell = {cell: ops.stop_gradient(cell.tensor_on(ops)) for cell in open_cells}
            read_cells.clear()
            with Assignments(constant_by_cell) as assigned_values:
                value_by_cell_before = dict(assigned_values)
                outputs = run_function(*map(ops.stop_gradient, call.primals))
                value_by_changed_cell = newly_assigned_tensors(assigned_values, value_by_cell_before)
        for cell, tensor in value_by_changed_cell.items():
            cell.value = tensor
        read_cell_list = [cell for cell in open_cells if cell in read_cells]
        call.primals += [cell.tensor_on(ops) for cell in read_cell_list]
        return call.run_twice(lambda *_: outputs, backward)

    return call_checkpointed


class _CallWithGradient(ResultTree):
    """A call with a custom derivative; its primals are the floating and complex tensors anywhere in its arguments."""

    def __init__(self, op: str, args: tuple[Any, ...]) -> None:
        super().__init__(op)
        self.given, self.structure = flatten(args)
        ops = self.backend.bound
        self.leaves = [leaf.tensor_on(ops) if isinstance(leaf, Cell) else leaf for leaf in self.given]
        self.places = [i for i, x in enumerate(self.leaves) if self.is_tensor(x) and self.is_inexact(x)]
        self.primals = [self.leaves[i] for i in self.places]

    def run_twice(self, forward: Function, backward: Function) -> Any:
        """Returns the result of `forward`, with gradients from `backward`, which runs the same function again.

        The second run draws the same random numbers, and has the same backend active even if it is in another thread.
        """
        draws = Draws()

        def run_first(*leaves: Any) -> Any:
            with draws.first_run():
                return forward(*leaves)

        def pull_again(primals: Sequence[Any], cotangents: Sequence[Any]) -> Any:
            if selection.current() is not self.backend:
                with selection.Override(self.backend):
                    return pull_again(primals, cotangents)
            with draws.later_run():
                return backward(primals, cotangents)

        return self.result(self.backend.bound.custom_vjp(run_first, pull_again, self.primals))

    def tensor_from_host(self, value: Any, device: Any) -> Any:
        """Returns the result of a host function as a tensor that does not share its memory.

        Raises:
            EmberError: if it cannot be converted; the message says that it is the function's result.
        """
        tensor = self.tensor(value, "the function's result")
        return self.backend.bound.convert_to_tensor(tensor, device=device, copy=True)

    def fill_arguments(self, primals: Sequence[Any]) -> tuple[Any, ...]:
        """Returns the arguments with these tensors in the places of the primals."""
        leaves = list(self.given)
        for i, primal in zip(self.places, primals, strict=True):
            leaves[i] = fill_leaf(leaves[i], primal)
        args: tuple[Any, ...] = tree_unflatten(self.structure, leaves)
        return args

    def require_pair(self, returned_value: Any) -> tuple[Any, Any]:
        """Returns the pair (result, gradient function) that the user's function returned.

        Raises:
            ArgumentTypeError: if it returned anything else.
        """
        if not isinstance(returned_value, (tuple, list)) or len(returned_value) != 2 or not callable(returned_value[1]):
            raise ArgumentTypeError(
                f"{self.head}the function must return a pair (result, gradient function), as in return y, lambda x, "
                f"upstream: upstream * slope"
            )
        return returned_value[0], returned_value[1]

    def gradients(self, gradients_given: Any, primals: Sequence[Any]) -> list[Any]:
        """Returns the gradients of the primals from the result of the user's gradient function.

        Args:
            gradients_given: a tuple with one tree for each argument, with None for zeros in the place of any part of
                it; for a single argument the tuple may be omitted.

        Raises:
            ArgumentError: if the number or the structure of the trees is wrong.
            ShapeError: if a gradient does not have the shape of its primal.
            DTypeError: if a gradient does not have the dtype of its primal.
        """
        argument_structures = self.structure.children
        is_bare_gradient = len(argument_structures) == 1 and not (
            isinstance(gradients_given, (tuple, list)) and len(gradients_given) == 1
        )
        gradient_trees = (gradients_given,) if is_bare_gradient else gradients_given
        if not isinstance(gradient_trees, (tuple, list)) or len(gradient_trees) != len(argument_structures):
            raise ArgumentError(
                f"{self.head}the gradient function must return a tuple with one gradient for each argument"
            )
        tree_structure_pairs = zip(gradient_trees, argument_structures, strict=True)
        gradient_leaves = [
            leaf for tree, structure in tree_structure_pairs for leaf in self._gradients_of_leaves(tree, structure)
        ]
        zeros_like = self.backend.bound.zeros_like
        return [
            zeros_like(primal)
            if gradient_leaves[i] is None
            else self.match_leaf(gradient_leaves[i], primal, "gradient")
            for i, primal in zip(self.places, primals, strict=True)
        ]

    def _gradients_of_leaves(self, tree: Any, structure: TreeDef) -> list[Any]:
        """Returns a gradient's leaves in the places of the leaves of its argument, None for zeros.

        Raises:
            ArgumentError: if the structure of a part that is not None is another one.
        """
        if tree is None:
            return [None] * structure.leaves
        entries, gradient_structure = (
            flatten(tree) if structure == LEAF else tree_flatten(tree, lambda node: node is not tree)
        )
        if gradient_structure[:2] != structure[:2] or len(gradient_structure.children) != len(structure.children):
            raise ArgumentError(
                f"{self.head}a gradient must have the same tree structure as its argument, or None in the place of a "
                f"part that has none"
            )
        if structure == LEAF:
            return entries
        entry_structure_pairs = zip(entries, structure.children, strict=True)
        return [leaf for entry, child in entry_structure_pairs for leaf in self._gradients_of_leaves(entry, child)]


def accumulate_gradients(op: str, loss_fn: Function, params: Any) -> Any:
    """Returns the loss, and adds its gradients to the `grad` of the trainable parameters in a tree."""
    require_callable(op, loss_fn)
    result_tree = ResultTree(op)
    parameters = parameters_of(params)
    trained_parameters = list(filter(_TRAINABLE, parameters))
    if not trained_parameters:
        raise ArgumentError(
            f"{result_tree.head}there is no trainable Parameter in params{parameterless.advice_text(params)}"
        )
    if OPEN and current_recording() is None:
        refuse_effect("gradients would be accumulated")
    parameter_values = values_of(trained_parameters)
    if {*map(type, parameter_values)} != {result_tree.backend.tensor_type} or not result_tree.are_inexact(
        parameter_values
    ):
        parameter_values = [_trained_value(result_tree, parameter) for parameter in trained_parameters]
    changed_cells: list[Cell] = []

    def loss(*tensors: Any) -> list[Any]:
        with Assignments(dict(zip(trained_parameters, tensors, strict=True))) as assigned_values:
            value_by_cell_before = dict(assigned_values)
            outputs = result_tree.tensors(loss_fn())
            result_tree.require_scalar(outputs)
            # The loss may also set other cells, such as running statistics. They are returned as outputs, because only
            # an output is a plain tensor after the transform.
            new_value_by_cell = newly_assigned_tensors(assigned_values, value_by_cell_before, trained_parameters)
            changed_cells[:] = new_value_by_cell
            if new_value_by_cell:
                outputs += [result_tree.tensor(tensor, "a parameter's value") for tensor in new_value_by_cell.values()]
            return outputs

    outputs, gradients = result_tree.run(result_tree.backend.gradients, loss, parameter_values, True)
    commit(accumulate_steps(trained_parameters, gradients))
    for cell, value in zip(changed_cells, outputs[1:], strict=True):
        cell.value = value
    return outputs[0]


def parameters_of(params: Any) -> list[Cell]:
    """Returns the parameters and buffers in a tree, or in the attributes of objects in it, without duplicates."""
    # An iterator, such as `module.named_parameters()`, can be read once. The first test is a look-up; the second
    # calls the machinery of `abc`.
    if hasattr(params, "__next__") and isinstance(params, Iterator):
        params = list(params)
    return instances_in(params, Cell)


def clear_gradients(params: Any) -> None:
    """Sets the gradients of all parameters in a tree to None."""
    commit(clear_grad_steps(parameters_of(params)))


def _trained_value(result_tree: ResultTree, parameter: Cell) -> Any:
    """Returns the value of a parameter as a tensor.

    Raises:
        DTypeError: if it has no derivative.
    """
    tensor = parameter.value
    if tensor.__class__ is result_tree.backend.tensor_type and result_tree.is_inexact(tensor):
        return tensor
    value_text = f"the value of parameter {parameter.name!r}" if parameter.name else "the value of a parameter"
    tensor = result_tree.tensor(tensor, value_text)
    if not result_tree.is_inexact(tensor):
        raise DTypeError(
            f"{result_tree.head}{value_text} has dtype {result_tree.backend.dtype_of(tensor).name}, which has no "
            "derivative; "
            f"cast it, or make the parameter trainable=False"
        )
    return tensor
