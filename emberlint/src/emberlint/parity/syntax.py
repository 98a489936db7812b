"""Functions on syntax trees that the readers of declarations and of definitions share."""

import ast
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

from emberlint.source.project import Project

FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


class Span(NamedTuple):
    """A span of a file; lines and columns count from 1, the end is exclusive."""

    path: str
    line: int
    column: int
    end_line: int
    end_column: int

    @classmethod
    def from_node(cls, path: str, node: ast.stmt) -> "Span":
        """Returns the place of a statement; for a function, the first line of its header."""
        if isinstance(node, FunctionNode):
            end_offset = node.col_offset + len("def ") + len(node.name)
            return cls(path, node.lineno, node.col_offset + 1, node.lineno, end_offset + 1)
        return cls(
            path, node.lineno, node.col_offset + 1, node.end_lineno or node.lineno, (node.end_col_offset or 0) + 1
        )


def tree_of(project: Project, path: str) -> ast.Module:
    """Returns a file's tree, or an empty tree if it does not parse; EMB000 reports such a file."""
    return project.tree(path) or ast.Module(body=[], type_ignores=[])


def last_name(node: ast.expr) -> str:
    """Returns the last part of a dotted name: `op` for `op`, `core.op` and `core.op(...)`."""
    if isinstance(node, ast.Call):
        return last_name(node.func)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def names_of_decorators(node: FunctionNode) -> set[str]:
    """Returns the last names of a function's decorators."""
    return {last_name(decorator) for decorator in node.decorator_list}


def flat_statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yields the statements of a block and of the conditional blocks inside it, in source order."""
    for statement in body:
        yield statement
        for block_name in ("body", "orelse", "finalbody"):
            if isinstance(statement, ast.If | ast.Try | ast.With):
                yield from flat_statements(getattr(statement, block_name, []))


def without_docstring(node: FunctionNode) -> list[ast.stmt]:
    """Returns the statements of a function's body after its docstring."""
    return node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body


def refusal_message(node: FunctionNode) -> str | None:
    """Returns the message of a body that only raises `NotImplementedError` or a similar error, or None."""
    body_statements = without_docstring(node)
    if len(body_statements) != 1 or not isinstance(body_statements[0], ast.Raise) or body_statements[0].exc is None:
        return None
    raised_expression = body_statements[0].exc
    if not last_name(raised_expression).startswith(("NotImplemented", "Unsupported")):
        return None
    message_node = (
        raised_expression.args[0] if isinstance(raised_expression, ast.Call) and raised_expression.args else None
    )
    if message_node is None:
        return ""
    return str(message_node.value) if isinstance(message_node, ast.Constant) else ast.unparse(message_node)


def is_declaration_only(node: FunctionNode) -> bool:
    """Returns whether a function is only a declaration: its body is `...`, `pass`, a docstring, or a refusal."""
    body_statements = without_docstring(node)
    if refusal_message(node) is not None:
        return True
    return all(
        isinstance(statement, ast.Pass)
        or (
            isinstance(statement, ast.Expr)
            and isinstance(statement.value, ast.Constant)
            and statement.value.value is ...
        )
        for statement in body_statements
    )


def assigned_name_and_value(node: ast.stmt) -> tuple[str, ast.expr] | None:
    """Returns the name and value of `name = value`, annotated or not."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id, node.value
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
        return node.target.id, node.value
    return None
