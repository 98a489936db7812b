"""Expressions that measure a tensor: `len(t)`, `t.shape[1]`, and names bound to them."""

import ast
from collections.abc import Iterator
from typing import NamedTuple

from emberlint.source.operators import is_builtin
from emberlint.source.source_file import SourceFile

_DEPTH = 3  # the longest chain of assignments `a = b`, `b = c` to follow


class Length(NamedTuple):
    """The length of an axis of something that may be a tensor; the axis is None where an index goes over all axes."""

    tensor: ast.expr
    axis: int | None


def loop_lengths(file: SourceFile, values: ast.expr) -> Iterator[Length]:
    """Yields the tensors and axes whose lengths bound a loop, as in `range(len(t))` or `range(1, t.shape[1] - 1)`.

    Those of `np.ndindex(t.shape)` and of `reversed` count too.
    """
    if not isinstance(values, ast.Call):
        return
    function_name = values.func.attr if isinstance(values.func, ast.Attribute) else getattr(values.func, "id", "")
    if function_name == "ndindex" and len(values.args) == 1:
        argument = values.args[0]
        tensor = _tensor_of_shape(argument.value if isinstance(argument, ast.Starred) else argument)
        if tensor is not None:
            yield Length(tensor, None)
    elif not isinstance(values.func, ast.Name) or not is_builtin(file, values.func):
        return
    elif function_name == "reversed" and values.args:
        yield from loop_lengths(file, values.args[0])
    elif function_name == "range" and all(
        _is_unit_step(step) for step in values.args[2:]
    ):  # other steps cut a tensor into pieces
        for limit in values.args[:2]:
            yield from lengths(file, limit)


def _is_unit_step(step: ast.expr) -> bool:
    """Returns whether a step goes through each index: 1 or -1."""
    return ast.unparse(step) in ("1", "-1")


def lengths(file: SourceFile, limit: ast.expr, depth: int = 0) -> Iterator[Length]:
    """Yields the lengths that an expression is computed from."""
    if isinstance(limit, ast.BinOp):
        yield from lengths(file, limit.left, depth)
        yield from lengths(file, limit.right, depth)
    elif isinstance(limit, ast.Name) and depth < _DEPTH:
        for binding in file.names.bindings(limit):
            if binding.value is not None:
                yield from lengths(file, binding.value, depth + 1)
            elif isinstance(binding.node, ast.Name):
                yield from _unpacked_length(file, binding.node)
    elif isinstance(limit, ast.Subscript) and isinstance(limit.slice, ast.Constant):
        tensor = _tensor_of_shape(limit.value)
        if tensor is not None and isinstance(limit.slice.value, int):
            yield Length(tensor, limit.slice.value)
    elif isinstance(limit, ast.Call) and limit.args and not limit.keywords:
        function = limit.func
        if isinstance(function, ast.Name) and function.id == "len":
            yield Length(limit.args[0], 0)
        elif isinstance(function, ast.Attribute) and function.attr == "size":
            axis_node = limit.args[0]
            is_axis = isinstance(axis_node, ast.Constant) and isinstance(axis_node.value, int)
            yield Length(function.value, axis_node.value) if is_axis else Length(axis_node, 0)  # type: ignore[attr-defined]


def _unpacked_length(file: SourceFile, name: ast.Name) -> Iterator[Length]:
    """Yields the length that `rows, columns = t.shape` binds to a name."""
    target_tuple = file.parent(name)
    assignment = None if target_tuple is None else file.parent(target_tuple)
    if isinstance(target_tuple, (ast.Tuple, ast.List)) and isinstance(assignment, ast.Assign):
        tensor = _tensor_of_shape(assignment.value)
        if tensor is not None and not any(isinstance(elt, ast.Starred) for elt in target_tuple.elts):
            yield Length(tensor, target_tuple.elts.index(name))


def _tensor_of_shape(node: ast.expr) -> ast.expr | None:
    """Returns the `t` of `t.shape` or `ops.shape(t)`, or None."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "shape":
        return node.args[0] if node.args else None
    return node.value if isinstance(node, ast.Attribute) and node.attr == "shape" else None


def is_indexed(length: Length, index: str, body: list[ast.AST]) -> bool:
    """Returns whether a body reads or writes the tensor at an index of the measured axis: `t[i]` or `t[:, i, ...]`."""
    tensor_text = ast.unparse(length.tensor)
    subscripts = (node for statement in body for node in ast.walk(statement) if isinstance(node, ast.Subscript))
    return any(
        _subscript_has_name(subscript.slice, length.axis, index)
        for subscript in subscripts
        if ast.unparse(subscript.value) == tensor_text
    )


def _subscript_has_name(subscript_index: ast.expr, axis: int | None, index: str) -> bool:
    """Returns whether the part of a subscript for an axis contains a name."""
    index_nodes = subscript_index.elts if isinstance(subscript_index, ast.Tuple) else [subscript_index]
    if axis is not None:
        axis_position = axis if axis >= 0 else len(index_nodes) + axis
        index_nodes = index_nodes[axis_position : axis_position + 1]
    return any(
        isinstance(node, ast.Name) and node.id == index for index_node in index_nodes for node in ast.walk(index_node)
    )
