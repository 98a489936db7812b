"""The text of a file from which some statements have moved away."""

import ast
from collections.abc import Sequence, Set

import libcst as cst

from emberlint.migrate.imports import name_expression
from emberlint.migrate.selection import SourceModule
from emberlint.migrate.units import HEAD, Statement, Unit, all_names, members_of_class, units, units_by_bound_name


def source_without_moved(source: SourceModule, reached_names: Set[str] = frozenset()) -> str | None:
    """Returns the new text of a file whose statements moved elsewhere, or None if it holds nothing but imports.

    The file imports the moved public names from their new place, so that `module.name` still works in other code. It
    does the same for the private names in `reached`, which other code uses in this way.
    """
    if source.is_emptied:
        return None
    if not source.moved and not source.parts:
        return source.text
    remaining_units = [_remaining_statement(unit, source) for unit in source.remaining_units]
    used_names = {name for unit in units(remaining_units) for name in unit.uses} | reached_names
    imported_back_names = sorted(
        name for unit in source.moved for name in unit.binds if not name.startswith("_") or name in used_names
    )
    import_aliases = [_import_alias(name, None) for name in imported_back_names]
    import_aliases += [_import_alias(name, f"_{name}") for unit in source.parts for name in sorted(unit.binds)]
    names_used_by_moved = {name for unit in source.moved for name in unit.uses} | {
        name for taken_parts in source.parts.values() for taken_part in taken_parts for name in taken_part.uses
    }
    exported_names = set(all_names(source.units) or ()) | used_names
    pruned_nodes = [
        pruned_node
        for pruned_node in (_prune_import(node, names_used_by_moved - exported_names) for node in remaining_units)
        if pruned_node is not None
    ]
    import_index = _import_index(pruned_nodes)
    import_line = cst.SimpleStatementLine([cst.ImportFrom(module=name_expression(source.target), names=import_aliases)])
    body = [*pruned_nodes[:import_index], *([import_line] if import_aliases else []), *pruned_nodes[import_index:]]
    return source.tree.with_changes(body=body).code


def _import_alias(name: str, other: str | None) -> cst.ImportAlias:
    return cst.ImportAlias(cst.Name(name), asname=None if other is None else cst.AsName(cst.Name(other)))


def _remaining_statement(unit: Unit, source: SourceModule) -> Statement:
    """Returns a statement that stays; a class of which a part moved inherits from the moved part."""
    if unit not in source.parts:
        return unit.node
    node, moved_names = unit.node, {name for taken_part in source.parts[unit] for name in taken_part.binds}
    assert isinstance(node, cst.ClassDef)
    assert isinstance(node.body, cst.IndentedBlock)
    moved_ids = {id(member.node) for member in members_of_class(node) if member.binds & moved_names}
    remaining_statements = [statement for statement in node.body.body if id(statement) not in moved_ids]
    moved_base = cst.Arg(cst.Name(f"_{node.name.value}"))
    return node.with_changes(
        bases=[moved_base],
        lpar=cst.LeftParen(),
        rpar=cst.RightParen(),
        body=node.body.with_changes(body=remaining_statements),
    )


def _prune_import(node: Statement, unused: set[str]) -> Statement | None:
    """Returns an import without the names that only the moved statements used."""
    unit = units([node])[0]
    tree = unit.tree
    if not unit.binds & unused or not isinstance(tree, ast.Import | ast.ImportFrom) or unit.kind != "import":
        return node
    kept_aliases = [alias for alias in tree.names if (alias.asname or alias.name.partition(".")[0]) not in unused]
    if not kept_aliases:
        return None
    pruned_import = (
        ast.Import(kept_aliases)
        if isinstance(tree, ast.Import)
        else ast.ImportFrom(tree.module, kept_aliases, tree.level)
    )
    return cst.parse_module(ast.unparse(pruned_import) + "\n").body[0].with_changes(leading_lines=node.leading_lines)


def _import_index(body: Sequence[Statement]) -> int:
    """Returns the index for a new import: after the imports at the top."""
    unit_kinds = [unit.kind for unit in units(body)]
    return next((index for index, unit_kind in enumerate(unit_kinds) if unit_kind not in HEAD), len(body))


def _names_imported_back(source: SourceModule) -> set[str]:
    """Returns the names that a module imports back, because an earlier migration moved them."""
    import_trees = [unit.tree for unit in source.units if isinstance(unit.tree, ast.ImportFrom)]
    aliases = [alias for tree in import_trees if tree.module == source.target for alias in tree.names]
    return {alias.name for alias in aliases if alias.asname in (None, alias.name)}


def shim_text(source: SourceModule, submodules: Sequence[str]) -> str:
    """Returns a file that re-exports the moved names under the old module name, for imports by a composed name."""
    unit_kinds = ("definition", "import") if source.is_package else ("definition",)
    exported_names = sorted(
        {*units_by_bound_name(source.units, *unit_kinds), *_names_imported_back(source)} - {*submodules}
    )
    shim_lines = [f'"""Kept for imports by a computed name; the implementations are in {source.target}."""', ""]
    if exported_names:
        shim_lines += [f"from {source.target} import (", *(f"    {name} as {name}," for name in exported_names), ")"]
    shim_lines += [f"from {source.target} import {name} as {name}" for name in submodules]
    if any(True for _ in source.star_imports()):
        shim_lines.append(f"from {source.target} import *")
    return "\n".join(shim_lines) + "\n"
