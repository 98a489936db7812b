"""Inserts moved statements into the file where they belong."""

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import libcst as cst

from emberlint.migrate.selection import SourceModule
from emberlint.migrate.units import (
    BUILTINS,
    HEAD,
    Statement,
    Unit,
    all_names,
    members_of_class,
    units,
    units_by_bound_name,
)

BLANK = cst.EmptyLine(indent=False)


@dataclass(frozen=True)
class Clash:
    """A name that is defined differently in the two files, with both bodies."""

    name: str
    where: tuple[str, str]
    bodies: tuple[str, str]

    def __str__(self) -> str:
        text_parts = [f"{self.name!r} is defined twice and differently:"]
        for place, body in zip(self.where, self.bodies, strict=True):
            text_parts += [f"--- {place}", body.strip("\n")]
        return "\n".join(text_parts)


@dataclass
class _Target:
    """The file that receives the moved statements."""

    source: SourceModule
    tree: cst.Module
    units: list[Unit]
    clashes: list[Clash] = field(default_factory=list)
    added: list[str] = field(default_factory=list)


def merge(source: SourceModule, text: str | None) -> tuple[str, list[Clash]]:
    """Returns the receiving file with the moved statements, and the clashes that forbid the move."""
    tree = source.tree.with_changes(header=[], body=[], footer=[]) if text is None else cst.parse_module(text)
    target = _Target(source, tree, units(tree.body))
    statements_before, statements_after = _statements_to_insert(target)
    import_statements, needs_future_import = _missing_imports(target)
    merged_statements = list(_merged_statements(target, import_statements, statements_before, statements_after))
    merged_statements = _statements_with_all(target, merged_statements, is_new=text is None)
    docstring_statements = _docstring_of_new(source, is_new=text is None or not target.units)
    if needs_future_import:
        docstring_statements.append(cst.parse_module("from __future__ import annotations\n").body[0])
    header_end = _header_end(merged_statements)
    final_statements = (
        [*merged_statements[:header_end], *docstring_statements, *merged_statements[header_end:]]
        if target.units
        else [*docstring_statements, *merged_statements]
    )
    spaced_statements = _space_out(final_statements, [unit.node for unit in target.units])
    return tree.with_changes(body=spaced_statements, has_trailing_newline=True).code, target.clashes


def _docstring_of_new(source: SourceModule, is_new: bool) -> list[Statement]:
    """Returns the docstring of a new file, in a list that is empty for an existing file."""
    return [unit.node for unit in source.units if unit.kind == "docstring"] if is_new else []


def _header_end(body: Sequence[Statement]) -> int:
    """Returns the index at which `from __future__` goes: after the docstring."""
    first_statement_units = units(list(body[:1]))
    return 1 if first_statement_units and first_statement_units[0].kind == "docstring" else 0


def _statements_to_insert(target: _Target) -> tuple[list[Statement], list[Statement]]:
    """Returns the statements to insert before the classes that receive members, and those for the end of the file.

    The classes are changed in place.
    """
    source, units_by_name = target.source, units_by_bound_name(target.units, "definition", "import")
    statements_before: list[Statement] = []
    statements_after: list[Statement] = []
    is_class_reached = False
    for unit in source.units:
        moves_whole = unit in source.moved
        if not moves_whole and unit not in source.parts:
            continue
        taken_parts = None if moves_whole else source.parts[unit]
        namesakes = [
            known_unit
            for name in unit.binds
            for known_unit in units_by_name.get(name, ())
            if not _is_old_import(known_unit, source)
        ]
        if isinstance(unit.node, cst.ClassDef) and namesakes and isinstance(namesakes[0].node, cst.ClassDef):
            is_class_reached = True
            _merge_into_class(
                target, unit, namesakes[0], members_of_class(unit.node) if taken_parts is None else taken_parts
            )
            continue
        if namesakes:
            if any(ast.dump(equal_unit.tree) != ast.dump(unit.tree) for equal_unit in namesakes):
                target.clashes.append(_clash_of_units(target, unit, namesakes[0]))
            continue
        if unit.kind == "effect" and any(
            ast.dump(known_unit.tree) == ast.dump(unit.tree) for known_unit in target.units
        ):
            continue
        node = unit.node if taken_parts is None else _class_part(unit.node, taken_parts)
        target.added.extend(
            sorted(unit.binds)
            if taken_parts is None
            else [n for taken_part in taken_parts for n in sorted(taken_part.binds)]
        )
        (statements_after if is_class_reached else statements_before).append(node)
    return (statements_before, statements_after) if is_class_reached else ([], statements_before)


def _is_old_import(unit: Unit, source: SourceModule) -> bool:
    """Returns whether a statement imports from the module that held the definition until now."""
    tree = unit.tree
    return isinstance(tree, ast.ImportFrom) and tree.module in (source.module, source.module.rpartition(".")[0])


def _clash_of_units(target: _Target, unit: Unit, other: Unit, owner: str = "") -> Clash:
    source = target.source
    names_text = ", ".join(sorted(unit.binds))
    return Clash(
        f"{owner}.{names_text}" if owner else names_text, (source.path, source.target_path), (unit.code, other.code)
    )


def _merge_into_class(target: _Target, unit: Unit, receiver: Unit, parts: Sequence[Unit]) -> None:
    """Merges moved members of a class into the class of the same name in the receiving file."""
    node, class_body = receiver.node, receiver.node.body
    assert isinstance(node, cst.ClassDef)
    assert isinstance(unit.node, cst.ClassDef)
    units_by_name = units_by_bound_name(members_of_class(node), "definition")
    taken_parts: list[Statement] = []
    class_name = node.name.value
    for taken_part in parts:
        if taken_part.kind == "docstring" or (not taken_part.binds and taken_part.code.strip() in ("pass", "...")):
            continue
        members_of_same_name = [known_unit for name in taken_part.binds for known_unit in units_by_name.get(name, ())]
        if any(ast.dump(unit.tree) != ast.dump(taken_part.tree) for unit in members_of_same_name):
            target.clashes.append(_clash_of_units(target, taken_part, members_of_same_name[0], class_name))
        elif not members_of_same_name:
            taken_parts.append(taken_part.node)
            target.added.extend(sorted(taken_part.binds))
    old_members = list(class_body.body) if isinstance(class_body, cst.IndentedBlock) else []
    if taken_parts:
        old_members = [member for member in old_members if not _is_pass(member)]
        first_part = taken_parts[0].with_changes(
            leading_lines=_with_blank_lines(taken_parts[0].leading_lines, 1 if old_members else 0)
        )
        old_members += [first_part, *taken_parts[1:]]
    joined_bases = [*node.bases, *(base for base in unit.node.bases if not _has_base(node, base))]
    class_block = class_body if isinstance(class_body, cst.IndentedBlock) else cst.IndentedBlock(body=[])
    new_node = (
        node.with_changes(body=class_block.with_changes(body=old_members), bases=joined_bases) if taken_parts else node
    )
    target.tree = target.tree.with_changes(
        body=[new_node if statement is node else statement for statement in target.tree.body]
    )


def _has_base(node: cst.ClassDef, base: cst.Arg) -> bool:
    """Returns whether a class has a given base class already, or is that base class.

    The rest of a class that was split before inherits from `_Name`.
    """
    base_text = cst.Module([]).code_for_node(base.value)
    base_texts = {cst.Module([]).code_for_node(base.value) for base in node.bases}
    return base_text in base_texts or base_text in ("object", node.name.value, f"_{node.name.value}")


def _is_pass(node: cst.BaseStatement) -> bool:
    return isinstance(node, cst.SimpleStatementLine) and cst.Module([node]).code.strip() in ("pass", "...")


def _class_part(node: Statement, parts: Sequence[Unit]) -> Statement:
    """Returns a class with only some of its members, and its docstring."""
    assert isinstance(node, cst.ClassDef)
    kept_ids = {id(taken_part.node) for taken_part in parts} | {
        id(member.node) for member in members_of_class(node) if member.kind == "docstring"
    }
    assert isinstance(node.body, cst.IndentedBlock)
    remaining_statements = [statement for statement in node.body.body if id(statement) in kept_ids]
    return node.with_changes(body=node.body.with_changes(body=remaining_statements))


def _used_names(source: SourceModule) -> set[str]:
    """Returns the global names that the moved statements read."""
    used_names = {name for unit in source.moved for name in unit.uses}
    for owner, taken_parts in source.parts.items():
        used_names.update(name for taken_part in taken_parts for name in taken_part.uses)
        tree = owner.tree
        assert isinstance(tree, ast.ClassDef)
        header_nodes = [*tree.bases, *(word.value for word in tree.keywords), *tree.decorator_list]
        used_names.update(
            node.id for header_node in header_nodes for node in ast.walk(header_node) if isinstance(node, ast.Name)
        )
    if source.is_package and source.is_emptied:
        # The imports of a package are part of its public names.
        used_names.update(name for unit in source.units if unit.kind == "import" for name in unit.binds)
    used_names.update(all_names(source.units) or () if source.is_emptied else ())
    return used_names


def _missing_imports(target: _Target) -> tuple[list[Statement], bool]:
    """Returns the imports that the receiving file lacks, and whether it needs `from __future__ import annotations`."""
    source, used_names = target.source, _used_names(target.source)
    units_by_name = units_by_bound_name(target.units, "import", "definition")
    present_statements = {unit.code.strip() for unit in target.units}
    import_statements: list[Statement] = []
    for unit in source.units:
        if unit.kind != "import" or unit.code.strip() in present_statements:
            continue
        tree = unit.tree
        if isinstance(tree, ast.ImportFrom) and tree.names[0].name == "*":
            if source.is_emptied and tree.module != source.target:
                import_statements.append(unit.node)
        elif not isinstance(tree, ast.Import | ast.ImportFrom):
            if used_names & unit.binds - set(units_by_name):
                import_statements.append(unit.node)
        else:
            needed_aliases = [
                alias for alias in tree.names if (alias.asname or alias.name.partition(".")[0]) in used_names
            ]
            missing_aliases = [alias for alias in needed_aliases if not _has_import(target, units_by_name, tree, alias)]
            if missing_aliases:
                import_statements.append(_narrow_import(unit.node, tree, missing_aliases))
    needs_future_import = any(unit.kind == "future" for unit in source.units) and bool(source.moved or source.parts)
    return import_statements, needs_future_import and not any(unit.kind == "future" for unit in target.units)


def _has_import(
    target: _Target, units_by_name: dict[str, list[Unit]], tree: ast.Import | ast.ImportFrom, alias: ast.alias
) -> bool:
    """Returns whether the receiving file has an import; a different binding of the same name is a clash."""
    if isinstance(tree, ast.ImportFrom) and tree.module == target.source.target:
        return True  # the rest of a module that was split before imports the moved names back
    bound_name = alias.asname or alias.name.partition(".")[0]
    units_of_same_name = [
        known_unit for known_unit in units_by_name.get(bound_name, ()) if not _is_old_import(known_unit, target.source)
    ]
    if not units_of_same_name:
        return False
    if not any(_imports_same(unit.tree, tree, alias) for unit in units_of_same_name):
        single_import = ast.Import([alias]) if isinstance(tree, ast.Import) else ast.ImportFrom(tree.module, [alias], 0)
        source_and_target = (target.source.path, target.source.target_path)
        target.clashes.append(
            Clash(bound_name, source_and_target, (ast.unparse(single_import), units_of_same_name[0].code))
        )
    return True


def _imports_same(other_import: ast.stmt, tree: ast.Import | ast.ImportFrom, alias: ast.alias) -> bool:
    if not isinstance(other_import, ast.Import | ast.ImportFrom):
        return any(
            _imports_same(node, tree, alias)
            for node in ast.iter_child_nodes(other_import)
            if isinstance(node, ast.stmt)
        )
    if type(other_import) is not type(tree) or getattr(other_import, "module", None) != getattr(tree, "module", None):
        return False
    return any(
        (name.name, name.asname or name.name) == (alias.name, alias.asname or alias.name) for name in other_import.names
    )


def _narrow_import(node: Statement, tree: ast.Import | ast.ImportFrom, aliases: list[ast.alias]) -> Statement:
    """Returns an import reduced to some of its names, or the unchanged statement if it needs all of them."""
    if len(aliases) == len(tree.names):
        return node
    narrowed_import = (
        ast.Import(aliases) if isinstance(tree, ast.Import) else ast.ImportFrom(tree.module, aliases, tree.level)
    )
    statement = cst.parse_module(ast.unparse(narrowed_import) + "\n").body[0]
    return statement.with_changes(leading_lines=[])


def _merged_statements(
    target: _Target, imports: Sequence[Statement], before: Sequence[Statement], after: Sequence[Statement]
) -> Iterator[Statement]:
    """Yields the statements of the receiving file merged with the new ones."""
    old_body = list(target.tree.body)
    unit_kinds = [unit.kind for unit in target.units]
    head_indices = [index for index, unit_kind in enumerate(unit_kinds) if unit_kind in HEAD]
    import_index = (
        head_indices[-1] + 1
        if head_indices and all(unit_kind != "definition" for unit_kind in unit_kinds[: head_indices[-1]])
        else 0
    )
    if not import_index:
        import_index = next((index for index, kind in enumerate(unit_kinds) if kind not in HEAD), len(old_body))
    # Names used while the file is imported must be bound above, because they were imports until now.
    has_old_import = any(_is_old_import(unit, target.source) for unit in target.units)
    first_class_index = next(
        (index for index, statement in enumerate(old_body) if statement not in [unit.node for unit in target.units]),
        import_index,
    )
    guard_index = next((index for index, statement in enumerate(old_body) if _is_guard(statement)), len(old_body))
    for index, child_statement in enumerate(old_body):
        if index == import_index:
            yield from imports
            if has_old_import:
                yield from after
        if index == first_class_index:
            yield from before
        if index == guard_index and not has_old_import:
            yield from after
        yield child_statement
    if import_index >= len(old_body):
        yield from imports
    if first_class_index >= len(old_body):
        yield from before
    if (guard_index >= len(old_body) and not has_old_import) or (has_old_import and import_index >= len(old_body)):
        yield from after


def _is_guard(node: cst.BaseStatement) -> bool:
    return isinstance(node, cst.If) and "__name__" in cst.Module([]).code_for_node(node.test)


def _statements_with_all(target: _Target, body: list[Statement], is_new: bool) -> list[Statement]:
    """Returns the statements with the new names added to `__all__`."""
    source_names, target_names = all_names(target.source.units), all_names(target.units)
    has_all = any(unit.kind == "all" for unit in target.units)
    moved_names = set(target.added) | target.source.names
    if target.source.is_emptied:
        moved_names |= set(source_names or ())
    names_to_add = [name for name in (source_names or ()) if name in moved_names]
    if source_names is None:
        names_to_add = sorted(name for name in target.source.names if not name.startswith("_")) if has_all else []
    if (has_all and target_names is None) or not names_to_add:
        return body
    if has_all:
        public_names = [*(target_names or ()), *(name for name in names_to_add if name not in (target_names or ()))]
    else:
        defined_names = {name for unit in target.units if unit.kind == "definition" for name in unit.binds}
        public_names = [
            *sorted(name for name in defined_names if not name.startswith("_") and name not in names_to_add),
            *names_to_add,
        ]
    if public_names == target_names:
        return body
    all_statement = _all_statement(public_names)
    if not has_all:
        insertion_index = next(
            (i for i, unit in enumerate(units(body)) if unit.kind in ("definition", "effect")), len(body)
        )
        return [*body[:insertion_index], all_statement, *body[insertion_index:]]
    old_node = next(unit.node for unit in target.units if unit.kind == "all")
    return [
        all_statement.with_changes(leading_lines=old_node.leading_lines) if old_statement is old_node else old_statement
        for old_statement in body
    ]


def _all_statement(names: Iterable[str]) -> Statement:
    quoted_names = [f'"{name}"' for name in names]
    assignment_text = f"__all__ = [{', '.join(quoted_names)}]\n"
    if len(assignment_text) > 100:
        assignment_text = "__all__ = [\n" + "".join(f"    {name},\n" for name in quoted_names) + "]\n"
    return cst.parse_module(assignment_text).body[0]


def _space_out(body: Sequence[Statement], old: Sequence[Statement]) -> list[Statement]:
    """Returns the statements with blank lines around the new ones.

    Two blank lines surround functions and classes, one separates imports from the code after them.
    """
    old_ids = {id(statement) for statement in old}
    spaced_statements: list[Statement] = []
    for index, current_statement in enumerate(body):
        blank_line_count = 0
        if index:
            previous_statement = body[index - 1]
            needs_space = isinstance(current_statement, cst.FunctionDef | cst.ClassDef) or isinstance(
                previous_statement, cst.FunctionDef | cst.ClassDef
            )
            blank_line_count = (
                2
                if needs_space
                else 0
                if _is_import(current_statement) == _is_import(previous_statement)
                and not _is_future_import(previous_statement)
                else 1
            )
        blank_count = sum(1 for line in current_statement.leading_lines if line.comment is None)
        if index and id(current_statement) in old_ids and id(body[index - 1]) in old_ids:
            spaced_statements.append(current_statement)
        elif index == 0:
            leading_lines = list(current_statement.leading_lines)
            while leading_lines and leading_lines[0].comment is None:
                del leading_lines[0]
            spaced_statements.append(current_statement.with_changes(leading_lines=leading_lines))
        elif blank_count < blank_line_count and not any(
            line.comment for line in current_statement.leading_lines[:blank_count]
        ):
            spaced_statements.append(
                current_statement.with_changes(
                    leading_lines=_with_blank_lines(current_statement.leading_lines, blank_line_count)
                )
            )
        else:
            spaced_statements.append(current_statement)
    return spaced_statements


def _is_import(node: Statement) -> bool:
    return isinstance(node, cst.SimpleStatementLine) and isinstance(node.body[0], cst.Import | cst.ImportFrom)


def _is_future_import(node: Statement) -> bool:
    return units([node])[0].kind == "future"


def _with_blank_lines(lines: Sequence[cst.EmptyLine], wanted: int) -> list[cst.EmptyLine]:
    kept_lines = list(lines)
    while kept_lines and kept_lines[0].comment is None:
        del kept_lines[0]
    return [*[BLANK] * wanted, *kept_lines]


def unresolved_names(text: str) -> set[str]:
    """Returns the names that a module reads but does not bind; empty if the module has a star import."""
    module_units = units(cst.parse_module(text).body)
    if any(
        isinstance(statement.tree, ast.ImportFrom) and statement.tree.names[0].name == "*" for statement in module_units
    ):
        return set()
    bound_names = {name for statement in module_units for name in statement.binds} | BUILTINS
    assigned_names = {
        name
        for statement in module_units
        for node in ast.walk(statement.tree)
        if isinstance(node, ast.Global)
        for name in node.names
    }
    return {name for statement in module_units for name in statement.uses} - bound_names - assigned_names
