"""Splits a module into movable units: its top-level statements, with the names each binds and uses."""

import ast
import builtins
import symtable
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import libcst as cst

BUILTINS = frozenset(dir(builtins)) | {"__file__", "__name__", "__doc__", "__package__", "__path__", "__spec__"}
HEAD = ("docstring", "future", "import")
Statement = cst.SimpleStatementLine | cst.BaseCompoundStatement


@dataclass(frozen=True, eq=False)
class Unit:
    """One top-level statement, or one statement of a class body."""

    node: Statement
    kind: str  # the kind: docstring, future, import, all, definition or effect
    binds: frozenset[str]
    uses: frozenset[str]

    @property
    def code(self) -> str:
        """The statement's source without the comments above it."""
        return statement_source(self.node)

    @cached_property
    def tree(self) -> ast.stmt:
        """The statement as parsed by Python's own parser."""
        return ast.parse(self.code).body[0]


def statement_source(node: Statement) -> str:
    """Returns a statement's source without the blank lines and comments above it."""
    return cst.Module(body=[node.with_changes(leading_lines=[])]).code


def units(statements: Sequence[Statement], top: bool = True) -> list[Unit]:
    """Returns the units of a module's (or, if not `top`, a class's) statements."""
    return [_unit_of(node, first=index == 0, top=top) for index, node in enumerate(statements)]


def _unit_of(node: Statement, first: bool, top: bool) -> Unit:
    source_text = statement_source(node)
    tree = ast.parse(source_text).body[0]
    if (
        first
        and isinstance(tree, ast.Expr)
        and isinstance(tree.value, ast.Constant)
        and isinstance(tree.value.value, str)
    ):
        return Unit(node, "docstring", frozenset(), frozenset())
    binds, uses = bound_and_read_names(source_text)
    return Unit(node, _unit_kind(tree, binds) if top else "definition" if binds else "effect", binds, uses)


def _unit_kind(tree: ast.stmt, binds: frozenset[str]) -> str:
    if isinstance(tree, ast.ImportFrom) and tree.module == "__future__":
        return "future"
    if isinstance(tree, ast.Import | ast.ImportFrom):
        return "import"
    if "__all__" in binds:
        return "all"
    if isinstance(tree, ast.If | ast.Try) and any(
        isinstance(node, ast.Import | ast.ImportFrom) for node in ast.walk(tree)
    ):
        return "import"  # a guarded import is copied and never removed
    return "definition" if binds else "effect"


def bound_and_read_names(code: str) -> tuple[frozenset[str], frozenset[str]]:
    """Returns the names that some source binds at the top level, and the global names that it reads at any depth."""
    module_table = symtable.symtable(code, "<unit>", "exec")
    bound_names = {
        symbol.get_name() for symbol in module_table.get_symbols() if symbol.is_assigned() or symbol.is_imported()
    }
    read_names = {symbol.get_name() for symbol in module_table.get_symbols() if symbol.is_referenced()}
    pending_tables = list(module_table.get_children())
    while pending_tables:
        table = pending_tables.pop()
        pending_tables.extend(table.get_children())
        read_names.update(symbol.get_name() for symbol in table.get_symbols() if symbol.is_global())
    read_names.update(_quoted_names(code))
    return frozenset(bound_names), frozenset(read_names)


def _quoted_names(code: str) -> Iterator[str]:
    """Yields the names in annotations written as strings."""
    for node in ast.walk(ast.parse(code)):
        annotation_root = getattr(node, "annotation", None) or getattr(node, "returns", None)
        for annotation_node in ast.walk(annotation_root) if isinstance(annotation_root, ast.expr) else ():
            if isinstance(annotation_node, ast.Constant) and isinstance(annotation_node.value, str):
                try:
                    quoted_tree = ast.parse(annotation_node.value, mode="eval")
                except SyntaxError:
                    continue  # a plain string, as in Literal["mean"]
                yield from (node.id for node in ast.walk(quoted_tree) if isinstance(node, ast.Name))


def members_of_class(node: cst.ClassDef) -> list[Unit]:
    """Returns the statements of a class body; empty for `class A: pass`."""
    if not isinstance(node.body, cst.IndentedBlock):
        return []
    return units([statement for statement in node.body.body if isinstance(statement, Statement)], top=False)


def needed_attributes(unit: Unit, owner: str) -> frozenset[str]:
    """Returns the attributes that a method reads from `self`, `cls` or its class by name."""
    attribute_names = {
        node.attr
        for node in ast.walk(unit.tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in ("self", "cls", owner)
    }
    return frozenset(attribute_names)


def stored_attributes(unit: Unit) -> frozenset[str]:
    """Returns the attributes of `self` that a method assigns."""
    attribute_names = {
        node.attr
        for node in ast.walk(unit.tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id in ("self", "cls")
    }
    return frozenset(attribute_names)


def units_by_bound_name(units: Iterable[Unit], *kinds: str) -> dict[str, list[Unit]]:
    """Returns the units of some kinds by the names they bind."""
    units_by_name: dict[str, list[Unit]] = {}
    for unit in units:
        if unit.kind in kinds:
            for name in unit.binds:
                units_by_name.setdefault(name, []).append(unit)
    return units_by_name


def all_names(statements: Iterable[Unit]) -> list[str] | None:
    """Returns the names in a literal `__all__`, or None if there is none or it is computed."""
    for unit in statements:
        if unit.kind == "all":
            assigned_value = getattr(unit.tree, "value", None)
            if not isinstance(unit.tree, ast.Assign | ast.AnnAssign) or not isinstance(
                assigned_value, ast.List | ast.Tuple
            ):
                return None
            return [
                elt.value for elt in assigned_value.elts if isinstance(elt, ast.Constant) and isinstance(elt.value, str)
            ]
    return None
