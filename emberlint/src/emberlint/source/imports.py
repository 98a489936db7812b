"""The imports of a module, as the layering contracts see them."""

import ast
from collections.abc import Iterator
from typing import NamedTuple


class Import(NamedTuple):
    """One imported name with its absolute module and its place; the target of `from a import b` is `a.b`."""

    target: str
    line: int
    column: int
    end_line: int
    end_column: int
    typing_only: bool = False


def absolute(node: ast.ImportFrom, package: str) -> str:
    """Returns the absolute name of the module that a `from` import in a package names."""
    if not node.level:
        return node.module or ""
    parts = package.split(".") if package else []
    base = parts[: len(parts) - (node.level - 1)]
    return ".".join([*base, node.module] if node.module else base)


def origin_base(node: ast.ImportFrom, package: str) -> str:
    """Returns the dotted name of the module of a `from` import.

    In a file outside any package, `from .torch import f` means a neighbour: the name starts with a dot, so that it is
    not mistaken for the library.
    """
    base = absolute(node, package)
    return f".{base}" if node.level and base and base == node.module else base


def imports(tree: ast.Module, module: str, is_package: bool) -> tuple[Import, ...]:
    """Returns every import of a module, including those inside functions."""
    package = module if is_package else module.rpartition(".")[0]
    return tuple(_walk(tree.body, package, typing_only=False))


def _walk(body: list[ast.stmt], package: str, typing_only: bool) -> Iterator[Import]:
    for node in body:
        if isinstance(node, ast.Import):
            yield from (_import(node, alias.name, typing_only) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = absolute(node, package)
            yield from (_import(node, f"{base}.{alias.name}", typing_only) for alias in node.names)
        else:
            hidden = typing_only or (isinstance(node, ast.If) and _is_typing_flag(node.test))
            for block in ("body", "orelse", "finalbody"):
                inside = getattr(node, block, None)
                if isinstance(inside, list):
                    yield from _walk(inside, package, hidden if block == "body" else typing_only)
            for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
                yield from _walk(part.body, package, typing_only)


def _import(node: ast.stmt, target: str, typing_only: bool) -> Import:
    end_line, end = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
    return Import(target, node.lineno, node.col_offset + 1, end_line, end + 1, typing_only)


def _is_typing_flag(test: ast.expr) -> bool:
    if isinstance(test, ast.Name):
        return test.id == "TYPE_CHECKING"
    return isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
