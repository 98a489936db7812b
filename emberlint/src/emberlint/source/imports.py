"""The imports of a module, as the layering contracts see them."""

import ast
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_BLOCKS = ("finalbody", "orelse", "cases", "handlers", "body")  # fields with statements, the last one first
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
    base_segments = segments[: len(segments) - (node.level - 1)]
    return ".".join([*base_segments, node.module] if node.module else base_segments)


def origin_base(node: ast.ImportFrom, package: str) -> str:
    """Returns the dotted name of the module of a `from` import.

    In a file outside any package, `from .torch import f` means a neighbour: the name starts with a dot, so that it is
    not mistaken for the library.
    """
    module_name = absolute_module(node, package)
    return f".{module_name}" if node.level and module_name and module_name == node.module else module_name


def import_statements(tree: ast.Module) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """Yields every import statement of a module in source order, and whether only type checkers run it."""
    pending_nodes: list[tuple[ast.AST, bool]] = [(node, False) for node in reversed(tree.body)]
    while pending_nodes:
        node, typing_only = pending_nodes.pop()
        node_type = type(node)
        if node_type is ast.Import or node_type is ast.ImportFrom:
            yield node, typing_only  # type: ignore[misc]
        for field in _INSIDE[node_type]:
            block_statements = getattr(node, field)
            if block_statements:
                for_typing = typing_only or (field == "body" and node_type is ast.If and _is_typing_flag(node.test))  # type: ignore[attr-defined]
                pending_nodes.extend((statement, for_typing) for statement in reversed(block_statements))


def imports(tree: ast.Module, module: str, is_package: bool) -> tuple[Import, ...]:
    """Returns every import of a module, including those inside functions."""
    return imported_names(import_statements(tree), module, is_package)


def imported_names(
    statements: Iterable[tuple[ast.Import | ast.ImportFrom, bool]], module: str, is_package: bool
) -> tuple[Import, ...]:
    """Returns the names that import statements import."""
    package = module if is_package else module.rpartition(".")[0]
    imports_of_statements: list[Import] = []
    for node, typing_only in statements:
        module_prefix = "" if isinstance(node, ast.Import) else f"{absolute_module(node, package)}."
        end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
        import_place = (node.lineno, node.col_offset + 1, end_line, end_column + 1)
        imports_of_statements.extend(
            Import(f"{module_prefix}{alias.name}", *import_place, typing_only) for alias in node.names
        )
    return tuple(imports_of_statements)


def _is_typing_flag(test: ast.expr) -> bool:
    if isinstance(test, ast.Name):
        return test.id == "TYPE_CHECKING"
    return isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
