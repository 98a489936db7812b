"""Finds the native names that a file uses: functions, dtypes, conversions, random numbers, devices, types."""

import ast
from collections.abc import Iterator

from emberlint.knowledge.native import MODULES, Use, kind_of
from emberlint.source.source_file import SourceFile


def native_uses(file: SourceFile) -> tuple[Use, ...]:
    """Returns each use of a foreign native name in a file, with its kind."""
    return file.compute_once(_uses_of_file)


def _uses_of_file(file: SourceFile) -> tuple[Use, ...]:
    return tuple(_find_native_uses(file))


def _find_native_uses(file: SourceFile) -> Iterator[Use]:
    """Yields each use of a native name once, as the longest dotted expression; imports are not uses."""
    if not file.mentions_native:
        return
    parent_by_node, may_have_origin, names_with_origin = (
        file.index.parents,
        file.names.may_have_origin,
        file.names.names_leading_to(file.foreign_libraries),
    )
    for node in file.index.nodes(ast.Attribute, ast.Name, ast.Call):
        node_type = type(node)
        if not (_is_getattr(node) if node_type is ast.Call else may_have_origin(node, names_with_origin)):  # type: ignore[arg-type]
            continue
        parent = parent_by_node[node]
        if type(parent) is ast.Attribute:
            continue  # a part of a longer expression, which is yielded instead
        if node_type is ast.Name and type(node.ctx) is not ast.Load:  # type: ignore[union-attr]
            continue
        origin = file.native_origin(node)
        if origin is None or not _is_name_in_module(file, node, origin) or _is_typing_only(file, node):
            continue
        is_called = isinstance(parent, ast.Call) and parent.func is node
        yield Use(node, origin, kind_of(origin, is_called))


def _is_getattr(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Name) and node.func.id == "getattr"


def _is_name_in_module(file: SourceFile, node: ast.expr, origin: str) -> bool:
    """Returns whether an expression names something inside a module; a bare module is not a use."""
    if "." not in origin:
        return False
    if isinstance(node, ast.Attribute):
        # After `self.limit = np.inf`, the assignment has the finding, not each `self.limit`.
        return file.native_origin(node.value) is not None or file.names.is_imported(node)
    if origin in MODULES:
        return False
    if not isinstance(node, ast.Name):
        return True
    aliases = [binding.node for binding in file.names.bindings(node) if isinstance(binding.node, ast.alias)]
    return bool(aliases) and not any(alias.name == origin for alias in aliases)


def _is_typing_only(file: SourceFile, node: ast.expr) -> bool:
    """Returns whether a name was imported for type checkers only, so that it never runs."""
    while isinstance(node, ast.Attribute):
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in file.compute_once(_typing_names):
        return False
    bindings = file.names.bindings(node)
    return bool(bindings) and all(file.names.is_typing_only(binding.node) for binding in bindings)


def _typing_names(file: SourceFile) -> frozenset[str]:
    """Returns the names bound by imports that only type checkers run."""
    import_aliases = (
        alias for statement, typing_only in file.import_statements if typing_only for alias in statement.names
    )
    return frozenset(alias.asname or alias.name.partition(".")[0] for alias in import_aliases)
