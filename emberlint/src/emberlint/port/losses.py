"""The statements that compute a loss, which become a function that ops differentiate."""

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from emberlint.knowledge.signatures import UntranslatableError
from emberlint.source.source_file import SourceFile

# Methods of tensors, and functions, that prepare data; a model is never called like them.
_OF_DATA = frozenset(
    {"cpu", "cuda", "detach", "float", "long", "reshape", "size", "squeeze", "to", "unsqueeze", "view"}
)
_BUILTINS = frozenset({"enumerate", "float", "int", "len", "next", "print", "range"})
_SIMPLE = ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Expr
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class Loss(NamedTuple):
    """The statements that compute a loss: their list, the first and the last that assigns it, and `backward`.

    `kept` are the names that they bind and that are read afterwards.
    """

    body: Sequence[ast.stmt]
    first: int
    last: int
    backward: int
    kept: tuple[str, ...] = ()

    @property
    def region(self) -> Sequence[ast.stmt]:
        """The statements of the loss, from the first to the last."""
        return self.body[self.first : self.last + 1]


def loss_of(file: SourceFile, call: ast.Call) -> Loss:
    """Returns the statements that compute the loss on which `backward` is called.

    Raises:
        UntranslatableError: if these are not known.
    """
    assert isinstance(call.func, ast.Attribute)
    receiver, statement = call.func.value, file.parent(call)
    block_statements = body_of(file, statement)
    if call.args or call.keywords or not isinstance(statement, ast.Expr) or block_statements is None:
        raise UntranslatableError("it is given a gradient or an option, or its result is used")
    if not isinstance(receiver, ast.Name) or call.lineno != call.end_lineno:
        raise UntranslatableError("the loss has no name")
    backward_index = block_statements.index(statement)
    assigning_indices = [
        i
        for i, earlier_statement in enumerate(block_statements[:backward_index])
        if receiver.id in _bound_names(earlier_statement)
    ]
    if not assigning_indices:
        raise UntranslatableError(f"`{receiver.id}` is computed in another block")
    last_index = assigning_indices[-1]
    first_index = _first_loss_index(file, block_statements, last_index)
    loss = Loss(block_statements, first_index, last_index, backward_index)
    return loss._replace(kept=_names_read_after(file, loss, receiver.id))


def _first_loss_index(file: SourceFile, body: Sequence[ast.stmt], last: int) -> int:
    """Returns the index of the first statement that calls a model to compute a value that the loss needs.

    Raises:
        UntranslatableError: if a name is computed with one before the block, in the same pass of its loop.
    """
    needed_names, first_index = _loaded_names(body[last]), last
    for index in range(last, -1, -1):
        loss_statement = body[index]
        if not needed_names & _bound_names(loss_statement):
            continue
        needed_names |= _loaded_names(loss_statement)
        if index == last or _may_call_model(file, loss_statement):
            first_index = index
    parent: ast.AST | None = file.parent(body[0])
    while parent is not None and not isinstance(parent, FUNCTIONS | ast.For | ast.AsyncFor | ast.While | ast.Module):
        sibling_statements = body_of(file, parent) or ()
        earlier_statements = (
            sibling_statements[: sibling_statements.index(parent)]
            if isinstance(parent, ast.stmt) and sibling_statements
            else ()
        )
        if any(
            needed_names & _bound_names(statement) and _may_call_model(file, statement)
            for statement in earlier_statements
        ):
            raise UntranslatableError("what it is computed from is computed in another block")
        parent = file.parent(parent)
    return first_index


def _may_call_model(file: SourceFile, statement: ast.stmt) -> bool:
    """Returns whether a statement may compute with parameters: it calls more than functions of libraries."""
    return any(isinstance(node, ast.Call) and not _calls_library(file, node) for node in ast.walk(statement))


def _calls_library(file: SourceFile, call: ast.Call) -> bool:
    function = call.func
    if isinstance(function, ast.Attribute):
        return file.native_origin(function) is not None or function.attr in _OF_DATA
    return file.native_origin(function) is not None or getattr(function, "id", "") in _BUILTINS


def _names_read_after(file: SourceFile, loss: Loss, name: str) -> tuple[str, ...]:
    """Returns the names that the statements of a loss bind and that are read after it, if they can be moved.

    Raises:
        UntranslatableError: if a name is read between them and `backward`, or a statement is of another form.
    """
    region, region_lines = loss.region, range(loss.region[0].lineno, (loss.region[-1].end_lineno or 0) + 1)
    region_names = frozenset().union(*map(_bound_names, region))
    last_statement = region[-1]
    if isinstance(last_statement, ast.Assign) and not (
        len(last_statement.targets) == 1 and isinstance(last_statement.targets[0], ast.Name)
    ):
        raise UntranslatableError("the loss is one of several targets")
    bound_so_far: set[str] = set()
    for region_statement in region:
        if not _is_movable(file, region_statement):
            raise UntranslatableError("a statement between the model and the loss is no assignment")
        early_names = (_loaded_names(region_statement) & region_names) - bound_so_far
        if early_names:
            raise UntranslatableError(f"`{min(early_names)}` is assigned from itself")
        bound_so_far |= _bound_names(region_statement)
    for region_statement in loss.body[loss.last + 1 : loss.backward]:
        if _loaded_names(region_statement) & region_names or not isinstance(region_statement, ast.Expr):
            raise UntranslatableError("the loss is used before the gradients are computed")
    read_names: dict[str, None] = {}
    for node in file.index.nodes(ast.Name):
        is_read = (
            node.id in region_names - {name} and isinstance(node.ctx, ast.Load) and node.lineno not in region_lines
        )
        if is_read and not _is_bound_before(file, node):
            if function_of(file, node) is function_of(file, last_statement):
                read_names[node.id] = None
            elif function_of(file, last_statement) is None:
                raise UntranslatableError(f"`{node.id}` is used in a function too")
    backward_calls = [call for call in calls_of_file(file) if is_method_call(call, "backward")]
    loss_function = function_of(file, last_statement)
    if read_names and len([call for call in backward_calls if function_of(file, call) is loss_function]) > 1:
        raise UntranslatableError(f"`{min(read_names)}` is used after the gradients are computed, and there are others")
    return tuple(read_names)


def _is_movable(file: SourceFile, statement: ast.stmt) -> bool:
    """Returns whether a statement does the same in a function with more indentation, and begins its line."""
    start_column = file.column(statement.lineno, statement.col_offset) - 1
    if file.lines[statement.lineno - 1][:start_column].strip() or not isinstance(statement, _SIMPLE):
        return False
    if not all(isinstance(target, ast.Name) for target in _assignment_targets(statement)):
        return False
    for node in ast.walk(statement):
        if isinstance(node, ast.Yield | ast.YieldFrom | ast.Await | ast.NamedExpr):
            return False
        is_string = isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
        if is_string and getattr(node, "lineno", 0) != getattr(node, "end_lineno", 0):
            return False
    return not any(_calls_method(statement, name) for name in ("zero_grad", "step"))


def _calls_method(node: ast.AST, name: str) -> bool:
    return any(isinstance(node, ast.Call) and is_method_call(node, name) for node in ast.walk(node))


def _is_bound_before(file: SourceFile, node: ast.Name) -> bool:
    """Returns whether a statement before a name in its own block, or a loop around it, binds it."""
    child: ast.AST = node
    for ancestor in file.ancestors(node):
        if isinstance(ancestor, FUNCTIONS | ast.Module):
            return False
        block_statements = body_of(file, child) if isinstance(child, ast.stmt) else None
        if block_statements is not None:
            earlier_statements = block_statements[: block_statements.index(child)]
            if any(
                node.id in _bound_names(statement) and not _is_loss_region(file, statement)
                for statement in earlier_statements
            ):
                return True
        if isinstance(ancestor, ast.For | ast.AsyncFor) and node.id in _stored_names(ancestor.target):
            return True
        child = ancestor
    return False


def _is_loss_region(file: SourceFile, statement: ast.stmt) -> bool:
    """Returns whether `backward` is called after a statement, in its block."""
    block_statements = body_of(file, statement) or ()
    return any(
        isinstance(later_statement, ast.Expr) and is_method_call(later_statement.value, "backward")
        for later_statement in block_statements[block_statements.index(statement) :]
    )


def function_of(file: SourceFile, node: ast.AST) -> ast.AST | None:
    """Returns the function around a node, or None."""
    return next((ancestor for ancestor in file.ancestors(node) if isinstance(ancestor, FUNCTIONS)), None)


def _assignment_targets(statement: ast.stmt) -> Iterator[ast.expr]:
    """Yields the targets of an assignment, those of a tuple one by one."""
    target_nodes = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    for node in target_nodes:
        if isinstance(node, ast.Tuple | ast.List):
            yield from node.elts
        elif node is not None:
            yield node


def _stored_names(node: ast.AST) -> frozenset[str]:
    return frozenset(
        node.id for node in ast.walk(node) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    )


def _bound_names(statement: ast.stmt) -> frozenset[str]:
    """Returns the names that a statement binds."""
    return _stored_names(statement)


def _loaded_names(statement: ast.stmt) -> frozenset[str]:
    """Returns the names that a statement reads; `x += 1` reads x."""
    loaded_names = {
        node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        loaded_names.add(statement.target.id)
    return frozenset(loaded_names)


def body_of(file: SourceFile, statement: ast.AST | None) -> Sequence[ast.stmt] | None:
    """Returns the list of statements that a statement is in."""
    parent = file.parent(statement) if statement is not None else None
    for block_name in ("body", "orelse", "finalbody"):
        block = getattr(parent, block_name, None)
        if isinstance(block, list) and statement in block:
            return block
    return None


def calls_of_file(file: SourceFile) -> Iterator[ast.Call]:
    """Yields all call expressions of a file."""
    return iter(file.index.nodes(ast.Call))


def is_method_call(node: ast.expr, name: str) -> bool:
    """Returns whether an expression is a call of a method with a name."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == name
