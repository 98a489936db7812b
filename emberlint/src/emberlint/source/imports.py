"""The imports of a module, as the layering contracts see them."""

import ast
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_BLOCKS = ("finalbody", "orelse", "cases", "handlers", "body")  # the last one first
_KINDS: tuple[type[ast.AST], ...] = (*ast.stmt.__subclasses__(), ast.ExceptHandler, ast.match_case)
_INSIDE = {kind: tuple(one for one in _BLOCKS if one in kind._fields) for kind in _KINDS}


class Import(NamedTuple):
    """One imported name with its absolute module and its place; the target of `from a import b` is `a.b`."""

    target: str
    line: int
    column: int
    end_line: int
    end_column: int
    typing_only: bool = False


def absolute_module(node: ast.ImportFrom, package: str) -> str:
    """Returns the absolute name of the module that a `from` import in a package names."""
    if not node.level:
        return node.module or ""
    segments = package.split(".") if package else []
    base = segments[: len(segments) - (node.level - 1)]
    return ".".join([*base, node.module] if node.module else base)


def origin_base(node: ast.ImportFrom, package: str) -> str:
    """Returns the dotted name of the module of a `from` import.

    In a file outside any package, `from .torch import f` means a neighbour: the name starts with a dot, so that it is
    not mistaken for the library.
    """
    base = absolute_module(node, package)
    return f".{base}" if node.level and base and base == node.module else base


def import_statements(tree: ast.Module) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """Yields every import statement of a module in source order, and whether only type checkers run it."""
    pending: list[tuple[ast.AST, bool]] = [(node, False) for node in reversed(tree.body)]
    while pending:
        node, typing_only = pending.pop()
        cls = type(node)
        if cls is ast.Import or cls is ast.ImportFrom:
            yield node, typing_only  # type: ignore[misc]
        for block in _INSIDE[cls]:
            block_statements = getattr(node, block)
            if block_statements:
                hidden = typing_only or (block == "body" and cls is ast.If and _is_typing_flag(node.test))  # type: ignore[attr-defined]
                pending.extend((statement, hidden) for statement in reversed(block_statements))


def imports(tree: ast.Module, module: str, is_package: bool) -> tuple[Import, ...]:
    """Returns every import of a module, including those inside functions."""
    return imported_names(import_statements(tree), module, is_package)


def imported_names(
    statements: Iterable[tuple[ast.Import | ast.ImportFrom, bool]], module: str, is_package: bool
) -> tuple[Import, ...]:
    """Returns the names that import statements import."""
    package = module if is_package else module.rpartition(".")[0]
    names: list[Import] = []
    for node, typing_only in statements:
        module_prefix = "" if isinstance(node, ast.Import) else f"{absolute_module(node, package)}."
        end_line, end = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
        span = (node.lineno, node.col_offset + 1, end_line, end + 1)
        names.extend(Import(f"{module_prefix}{alias.name}", *span, typing_only) for alias in node.names)
    return tuple(names)


def _is_typing_flag(test: ast.expr) -> bool:
    if isinstance(test, ast.Name):
        return test.id == "TYPE_CHECKING"
    return isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
