"""In-place writes that stay in a ported file, because views of the tensor show them in some libraries only.

An element of a tensor of PyTorch is a view, one of NumPy a number; a part of a tensor is a view in both, and a copy in
MLX and JAX. So what was read from a tensor before a write changes with the write in some libraries only. Methods such
as `add_`, which only tensors of PyTorch have, stay too.
"""

import ast
import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

from emberlint.knowledge.methods import op_of
from emberlint.port.own_methods import is_own_method
from emberlint.source.source_file import SourceFile

OF_CONTAINERS = frozenset(name for kind in (list, dict, set) for name in dir(kind))
_WRITING = re.compile(r"[a-z][a-z0-9_]*[a-z0-9]_")
# Methods that fill a tensor with new numbers, or with those of another tensor.
_FILLING = frozenset({"bernoulli", "copy", "exponential", "fill", "normal", "random", "uniform", "zero"})
_LOOPS = ast.For | ast.AsyncFor | ast.While
_HOLDING = (
    *(ast.Tuple, ast.List, ast.Set, ast.Dict, ast.Starred, ast.IfExp),
    *(ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp),
)
_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_MAKING = frozenset({"__init__", "__post_init__", "__new__"})
_DEPTH = 4  # the longest chain of assignments to follow
_VIEW = "which is a view in some libraries and a copy in others"
Key = tuple[object, str]


class Write(NamedTuple):
    """An in-place write, why the libraries differ, and the way out."""

    node: ast.expr
    reason: str
    advice: str


def writes(file: SourceFile) -> Iterator[Write]:
    """Yields the in-place writes of a file that are visible through views in some libraries only."""
    targets_and_keys = [(node, _name_key(file, _root_of_subscripts(node))) for node in _write_targets(file)]
    written_keys = {key for _, key in targets_and_keys} - {None}
    reads_by_key: dict[Key | None, list[ast.Subscript]] = {}
    for read_node in file.index.nodes(ast.Subscript):
        if (
            isinstance(read_node.ctx, ast.Load)
            and _is_view(file, read_node)
            and not isinstance(file.parent(read_node), ast.Subscript)
        ):
            key = _name_key(file, _root_of_subscripts(read_node))
            if key in written_keys:
                reads_by_key.setdefault(key, []).append(read_node)
    for node, key in targets_and_keys:
        written_tensor = _written_tensor(file, node)
        shown_read = next(
            (
                read_node
                for read_node in reads_by_key.get(key, ())
                if _is_write_visible(file, read_node, read_node, node)
            ),
            None,
        )
        if written_tensor is not None:
            reason = f"it writes to a part of `{file.segment(written_tensor)}`, {_VIEW}"
            yield Write(node, reason, "write to the tensor itself, or take the part with ops.copy")
        elif shown_read is not None:
            read_text = file.segment(shown_read)
            reason = f"`{read_text}` is kept, {_VIEW}"
            yield Write(node, reason, f"keep ops.copy({read_text})")


def writing_method_calls(file: SourceFile, libraries: Collection[str]) -> Iterator[Write]:
    """Yields the calls of methods of PyTorch that write into their tensor: `x.add_(1)`, `x.zero_()`."""
    for call in file.index.nodes(ast.Call):
        function = call.func
        if not isinstance(function, ast.Attribute) or not _WRITING.fullmatch(function.attr):
            continue
        method_name = function.attr[:-1]
        replacing_op = op_of(method_name, len(call.args), [keyword.arg or "" for keyword in call.keywords], "torch")
        evidence = file.inference.evidence(function.value)
        is_writing_method = bool(replacing_op) or method_name in _FILLING
        if not is_writing_method and (evidence is None or evidence.tier.name == "C"):
            continue
        if evidence is not None or not (
            is_own_method(file, call, function) or {"torch", "emberharmony"}.isdisjoint(libraries)
        ):
            receiver_text = file.segment(function.value)
            advice_text = (
                f"{receiver_text} = ops.{replacing_op}({receiver_text}, ...)"
                if replacing_op
                else "assign the result of an op"
            )
            yield Write(call, "it writes into its tensor, which only tensors of PyTorch do", advice_text)


def _write_targets(file: SourceFile) -> Iterator[ast.expr]:
    """Yields the targets of in-place writes to what may be a tensor."""
    for target in file.index.nodes(ast.Subscript):
        if (
            isinstance(target.ctx, ast.Store)
            and _may_be_tensor(file, target.value)
            and not _is_text_constant(target.slice)
        ):
            yield target
    for statement in file.index.nodes(ast.AugAssign):
        write_target = statement.target
        if not isinstance(write_target, ast.Subscript) and file.inference.evidence(write_target) is not None:
            yield write_target


def _may_be_tensor(file: SourceFile, node: ast.expr) -> bool:
    """Returns whether an expression is a tensor, or a parameter without annotation that is nothing else."""
    if file.inference.evidence(node) is not None:
        return True
    if not isinstance(node, ast.Name) or file.inference.is_no_tensor(node):
        return False
    bindings = file.names.bindings(node)
    return bool(bindings) and all(
        isinstance(binding.node, ast.arg) and binding.node.annotation is None for binding in bindings
    )


def _is_text_constant(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _root_of_subscripts(node: ast.expr) -> ast.expr:
    """Returns the `x` of `x[i][j]`."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node


def _name_key(file: SourceFile, node: ast.expr) -> Key | None:
    """Returns a key that identifies a name in its scope, or an attribute of an instance."""
    if isinstance(node, ast.Name):
        scope_bindings = file.names.lookup(node)
        return None if scope_bindings is None else (scope_bindings[0], node.id)
    owner = file.names.owner(node) if isinstance(node, ast.Attribute) else None
    return None if owner is None else (owner, node.attr)  # type: ignore[attr-defined]


def _is_view(file: SourceFile, node: ast.Subscript) -> bool:
    """Returns whether the indices of a part are numbers and slices, so that some libraries give a view."""
    index_nodes = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    copying_types = ast.List | ast.ListComp | ast.Compare
    return not any(
        isinstance(index_node, copying_types)
        or _is_text_constant(index_node)
        or file.inference.is_shape(index_node)
        or _is_tensor(file, index_node)
        for index_node in index_nodes
    )


def _is_tensor(file: SourceFile, node: ast.expr) -> bool:
    return file.inference.evidence(node) is not None


def _written_tensor(file: SourceFile, node: ast.expr) -> ast.expr | None:
    """Returns the tensor that a write changes in part: `x` of `x[i][j] = v`, and of `y = x[i]` before `y += v`."""
    written_node = node.value if isinstance(node, ast.Subscript) else node
    if isinstance(written_node, ast.Subscript):
        return written_node.value if _is_tensor(file, written_node.value) and _is_view(file, written_node) else None
    scope_bindings = file.names.lookup(written_node) if isinstance(written_node, ast.Name) else None
    for binding in scope_bindings[1] if scope_bindings is not None else ():
        parent = file.parent(binding.node)
        if isinstance(parent, ast.For) and parent.target is binding.node and _is_tensor(file, parent.iter):
            return parent.iter
        bound_value = binding.value
        if not isinstance(bound_value, ast.Subscript) or _name_key(file, _root_of_subscripts(bound_value)) == _name_key(
            file, written_node
        ):
            continue  # also `x = x[1:]`, after which no other name has what was x
        if _is_tensor(file, bound_value.value) and _is_view(file, bound_value):
            return bound_value.value
    return None


def _is_write_visible(file: SourceFile, read: ast.expr, first: ast.expr, write: ast.expr, depth: int = 0) -> bool:
    """Returns whether a write may run between the read of a part of a tensor and the use of that part.

    Args:
        file: The file.
        read: The part, or a name that it is bound to.
        first: The part.
        write: The target of the write.
        depth: The number of names that were followed.
    """
    node: ast.AST = read
    parent = file.parent(node)
    is_in_container = False
    while isinstance(parent, _HOLDING) and node is not getattr(parent, "test", None):
        assigned_target = _paired_target(file, parent, node)
        if assigned_target is not None:
            return _is_write_visible_in(file, assigned_target, read, first, write, depth)
        is_in_container |= not isinstance(parent, ast.IfExp)
        node, parent = parent, file.parent(parent)
    if isinstance(parent, ast.Return):
        return _outlives_call(file, first) and not _is_initializing(file, write)
    if isinstance(parent, ast.Call):
        function = parent.func
        is_added = isinstance(function, ast.Attribute) and function.attr in OF_CONTAINERS and node is not function
        return is_added and not file.names.origins(function) and _may_follow(file, read, write)
    if isinstance(parent, ast.Yield):
        return _may_follow(file, read, write)
    if isinstance(parent, ast.Assign | ast.AnnAssign) and parent.value is node:
        targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
        return any(
            _is_write_visible_in(file, assigned_target, read, first, write, depth, is_in_container)
            for assigned_target in targets
        )
    return False


def _paired_target(file: SourceFile, node: ast.AST, part: ast.AST) -> ast.expr | None:
    """Returns the target of a part of the right side of `a, b = x, y`, or None."""
    parent = file.parent(node)
    if not isinstance(node, ast.Tuple | ast.List) or not isinstance(parent, ast.Assign) or len(parent.targets) != 1:
        return None
    target_tuple = parent.targets[0]
    if not isinstance(target_tuple, ast.Tuple | ast.List) or len(target_tuple.elts) != len(node.elts):
        return None
    has_stars = any(isinstance(elt, ast.Starred) for elt in (*target_tuple.elts, *node.elts))
    return None if has_stars else target_tuple.elts[node.elts.index(part)]  # type: ignore[arg-type]


def _is_write_visible_in(
    file: SourceFile,
    target: ast.expr,
    read: ast.expr,
    first: ast.expr,
    write: ast.expr,
    depth: int,
    is_held: bool = False,
) -> bool:
    """Returns whether a write is visible through the name to which a part of the tensor is assigned."""
    if isinstance(target, ast.Subscript) and _may_be_tensor(file, target.value):
        # `x[i], x[j] = x[j], x[i]` writes to `x[i]` before it reads what is left of the right side
        target_tuple = file.parent(target)
        earlier_targets = (
            target_tuple.elts[: target_tuple.elts.index(target)]
            if isinstance(target_tuple, ast.Tuple | ast.List)
            else []
        )
        return write in earlier_targets
    if not isinstance(target, ast.Name):
        return _may_follow(file, read, write)
    if _name_key(file, target) == _name_key(file, _root_of_subscripts(first)):
        return False  # `x = x[1:]`, after which no write reaches what was x
    later_loads = [load for load in _loads_of(file, target) if load is not read]
    if any(_is_write_between(file, read, write, load) for load in later_loads):
        return True
    return (
        depth < _DEPTH
        and not is_held
        and any(_is_write_visible(file, load, first, write, depth + 1) for load in later_loads)
    )


def _loads_of(file: SourceFile, target: ast.Name) -> Iterator[ast.Name]:
    name_key = _name_key(file, target)
    for node in file.index.nodes(ast.Name):
        if node.id == target.id and isinstance(node.ctx, ast.Load) and _name_key(file, node) == name_key:
            yield node


def _enclosing_function(file: SourceFile, node: ast.AST) -> ast.AST | None:
    return next((ancestor for ancestor in file.ancestors(node) if isinstance(ancestor, _FUNCTIONS)), None)


def _enclosing_loops(file: SourceFile, node: ast.AST) -> list[ast.AST]:
    """Returns the loops around an expression, in its function."""
    enclosing_loops: list[ast.AST] = []
    for ancestor in file.ancestors(node):
        if isinstance(ancestor, _FUNCTIONS):
            break
        enclosing_loops += [ancestor] if isinstance(ancestor, _LOOPS) else []
    return enclosing_loops


def _may_follow(file: SourceFile, read: ast.expr, write: ast.expr) -> bool:
    """Returns whether a write may run after a part was read."""
    if _enclosing_function(file, read) is not _enclosing_function(file, write):
        return not _is_initializing(file, write)
    return read.lineno <= write.lineno or not set(_enclosing_loops(file, read)).isdisjoint(
        _enclosing_loops(file, write)
    )


def _is_write_between(file: SourceFile, read: ast.expr, write: ast.expr, load: ast.expr) -> bool:
    """Returns whether a write may run between the read of a part and the load of the name that it is bound to."""
    if _enclosing_function(file, read) is not _enclosing_function(file, write):
        return False
    if read.lineno <= write.lineno < load.lineno:
        return True
    shared_loops = set(_enclosing_loops(file, write)) & set(_enclosing_loops(file, load)) - set(
        _enclosing_loops(file, read)
    )
    return any(read.lineno < getattr(loop, "lineno", 0) for loop in shared_loops)


def _outlives_call(file: SourceFile, node: ast.expr) -> bool:
    """Returns whether a tensor is an attribute or a name of the module, which later calls may write to."""
    root_node = _root_of_subscripts(node)
    scope_bindings = file.names.lookup(root_node) if isinstance(root_node, ast.Name) else None
    return isinstance(root_node, ast.Attribute) or (scope_bindings is not None and scope_bindings[0] is file.names.root)


def _is_initializing(file: SourceFile, node: ast.expr) -> bool:
    """Returns whether a write is in a constructor, or in the body of the module, which runs first."""
    function = _enclosing_function(file, node)
    return function is None or getattr(function, "name", "") in _MAKING
