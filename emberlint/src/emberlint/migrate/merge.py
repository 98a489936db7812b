"""Inserts moved statements into the file where they belong."""

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import libcst as cst

from emberlint.migrate.selection import SourceModule
from emberlint.migrate.units import BUILTINS, HEAD, Statement, Unit, all_names, members, units, units_by_bound_name

BLANK = cst.EmptyLine(indent=False)


@dataclass(frozen=True)
class Clash:
    """A name that is defined differently in the two files, with both bodies."""

    name: str
    where: tuple[str, str]
    bodies: tuple[str, str]

    def __str__(self) -> str:
        parts = [f"{self.name!r} is defined twice and differently:"]
        for place, body in zip(self.where, self.bodies, strict=True):
            parts += [f"--- {place}", body.strip("\n")]
        return "\n".join(parts)


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
    imports, future = _missing_imports(target)
    body = list(_merged_statements(target, imports, statements_before, statements_after))
    body = _with_dunder_all(target, body, is_new=text is None)
    start = _docstring_of_new(source, is_new=text is None or not target.units)
    if future:
        start.append(cst.parse_module("from __future__ import annotations\n").body[0])
    split = _header_end(body)
    final = [*body[:split], *start, *body[split:]] if target.units else [*start, *body]
    spaced_statements = _space_out(final, [unit.node for unit in target.units])
    return tree.with_changes(body=spaced_statements, has_trailing_newline=True).code, target.clashes


def _docstring_of_new(source: SourceModule, is_new: bool) -> list[Statement]:
    """Returns the docstring of a new file, in a list that is empty for an existing file."""
    return [unit.node for unit in source.units if unit.kind == "docstring"] if is_new else []


def _header_end(body: Sequence[Statement]) -> int:
    """Returns the index at which `from __future__` goes: after the docstring."""
    first_units = units(list(body[:1]))
    return 1 if first_units and first_units[0].kind == "docstring" else 0


def _statements_to_insert(target: _Target) -> tuple[list[Statement], list[Statement]]:
    """Returns the statements to insert before the classes that receive members, and those for the end of the file.

    The classes are changed in place.
    """
    source, units_by_name = target.source, units_by_bound_name(target.units, "definition", "import")
    statements_before: list[Statement] = []
    statements_after: list[Statement] = []
    has_met_class = False
    for unit in source.units:
        is_whole = unit in source.moved
        if not is_whole and unit not in source.parts:
            continue
        taken_parts = None if is_whole else source.parts[unit]
        equal_units = [
            known_unit
            for name in unit.binds
            for known_unit in units_by_name.get(name, ())
            if not _is_old_import(known_unit, source)
        ]
        if isinstance(unit.node, cst.ClassDef) and equal_units and isinstance(equal_units[0].node, cst.ClassDef):
            has_met_class = True
            _merge_into_class(target, unit, equal_units[0], members(unit.node) if taken_parts is None else taken_parts)
            continue
        if equal_units:
            if any(ast.dump(equal_unit.tree) != ast.dump(unit.tree) for equal_unit in equal_units):
                target.clashes.append(_clash_of_units(target, unit, equal_units[0]))
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
        (statements_after if has_met_class else statements_before).append(node)
    return (statements_before, statements_after) if has_met_class else ([], statements_before)


def _is_old_import(unit: Unit, source: SourceModule) -> bool:
    """Returns whether a statement imports from the module that held the definition until now."""
    tree = unit.tree
    return isinstance(tree, ast.ImportFrom) and tree.module in (source.module, source.module.rpartition(".")[0])


def _clash_of_units(target: _Target, unit: Unit, other: Unit, owner: str = "") -> Clash:
    source = target.source
    name = ", ".join(sorted(unit.binds))
    return Clash(f"{owner}.{name}" if owner else name, (source.path, source.target_path), (unit.code, other.code))


def _merge_into_class(target: _Target, unit: Unit, receiver: Unit, parts: Sequence[Unit]) -> None:
    """Adds the moved members to the class of the same name."""
    node, body = receiver.node, receiver.node.body
    assert isinstance(node, cst.ClassDef)
    assert isinstance(unit.node, cst.ClassDef)
    units_by_name = units_by_bound_name(members(node), "definition")
    taken_parts: list[Statement] = []
    class_name = node.name.value
    for taken_part in parts:
        if taken_part.kind == "docstring" or (not taken_part.binds and taken_part.code.strip() in ("pass", "...")):
            continue
        equal_units = [known_unit for name in taken_part.binds for known_unit in units_by_name.get(name, ())]
        if any(ast.dump(unit.tree) != ast.dump(taken_part.tree) for unit in equal_units):
            target.clashes.append(_clash_of_units(target, taken_part, equal_units[0], class_name))
        elif not equal_units:
            taken_parts.append(taken_part.node)
            target.added.extend(sorted(taken_part.binds))
    old_members = list(body.body) if isinstance(body, cst.IndentedBlock) else []
    if taken_parts:
        old_members = [member for member in old_members if not _is_pass(member)]
        first_part = taken_parts[0].with_changes(
            leading_lines=_with_blank_lines(taken_parts[0].leading_lines, 1 if old_members else 0)
        )
        old_members += [first_part, *taken_parts[1:]]
    bases = [*node.bases, *(base for base in unit.node.bases if not _has_base(node, base))]
    block = body if isinstance(body, cst.IndentedBlock) else cst.IndentedBlock(body=[])
    new_node = node.with_changes(body=block.with_changes(body=old_members), bases=bases) if taken_parts else node
    target.tree = target.tree.with_changes(
        body=[new_node if statement is node else statement for statement in target.tree.body]
    )


def _has_base(node: cst.ClassDef, base: cst.Arg) -> bool:
    """Returns whether a class has a base already or is that base.

    The rest of a class that was split before inherits from `_Name`.
    """
    code = cst.Module([]).code_for_node(base.value)
    base_texts = {cst.Module([]).code_for_node(base.value) for base in node.bases}
    return code in base_texts or code in ("object", node.name.value, f"_{node.name.value}")


def _is_pass(node: cst.BaseStatement) -> bool:
    return isinstance(node, cst.SimpleStatementLine) and cst.Module([node]).code.strip() in ("pass", "...")


def _class_part(node: Statement, parts: Sequence[Unit]) -> Statement:
    """Returns a class with only some of its members, and its docstring."""
    assert isinstance(node, cst.ClassDef)
    kept_ids = {id(taken_part.node) for taken_part in parts} | {
        id(member.node) for member in members(node) if member.kind == "docstring"
    }
    assert isinstance(node.body, cst.IndentedBlock)
    body = [statement for statement in node.body.body if id(statement) in kept_ids]
    return node.with_changes(body=node.body.with_changes(body=body))


def _used_names(source: SourceModule) -> set[str]:
    """Returns the global names that the moved statements read."""
    used_names = {name for unit in source.moved for name in unit.uses}
    for owner, taken_parts in source.parts.items():
        used_names.update(name for taken_part in taken_parts for name in taken_part.uses)
        tree = owner.tree
        assert isinstance(tree, ast.ClassDef)
        header = [*tree.bases, *(word.value for word in tree.keywords), *tree.decorator_list]
        used_names.update(node.id for part in header for node in ast.walk(part) if isinstance(node, ast.Name))
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
    needed_imports: list[Statement] = []
    for unit in source.units:
        if unit.kind != "import" or unit.code.strip() in present_statements:
            continue
        tree = unit.tree
        if isinstance(tree, ast.ImportFrom) and tree.names[0].name == "*":
            if source.is_emptied and tree.module != source.target:
                needed_imports.append(unit.node)
        elif not isinstance(tree, ast.Import | ast.ImportFrom):
            if used_names & unit.binds - set(units_by_name):
                needed_imports.append(unit.node)
        else:
            needed_aliases = [
                alias for alias in tree.names if (alias.asname or alias.name.partition(".")[0]) in used_names
            ]
            missing_aliases = [alias for alias in needed_aliases if not _has_import(target, units_by_name, tree, alias)]
            if missing_aliases:
                needed_imports.append(_narrow_import(unit.node, tree, missing_aliases))
    has_future = any(unit.kind == "future" for unit in source.units) and bool(source.moved or source.parts)
    return needed_imports, has_future and not any(unit.kind == "future" for unit in target.units)


def _has_import(
    target: _Target, units_by_name: dict[str, list[Unit]], tree: ast.Import | ast.ImportFrom, alias: ast.alias
) -> bool:
    """Returns whether the receiving file has an import; a different binding of the same name is a clash."""
    if isinstance(tree, ast.ImportFrom) and tree.module == target.source.target:
        return True  # the rest of a module that was split before imports the moved names back
    name = alias.asname or alias.name.partition(".")[0]
    equal_units = [
        known_unit for known_unit in units_by_name.get(name, ()) if not _is_old_import(known_unit, target.source)
    ]
    if not equal_units:
        return False
    if not any(_imports_same(unit.tree, tree, alias) for unit in equal_units):
        own_import = ast.Import([alias]) if isinstance(tree, ast.Import) else ast.ImportFrom(tree.module, [alias], 0)
        source_and_target = (target.source.path, target.source.target_path)
        target.clashes.append(Clash(name, source_and_target, (ast.unparse(own_import), equal_units[0].code)))
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
    smaller = ast.Import(aliases) if isinstance(tree, ast.Import) else ast.ImportFrom(tree.module, aliases, tree.level)
    statement = cst.parse_module(ast.unparse(smaller) + "\n").body[0]
    return statement.with_changes(leading_lines=[])


def _merged_statements(
    target: _Target, imports: Sequence[Statement], before: Sequence[Statement], after: Sequence[Statement]
) -> Iterator[Statement]:
    """Yields the statements of the receiving file merged with the new ones."""
    old_body = list(target.tree.body)
    unit_kinds = [unit.kind for unit in target.units]
    heads = [index for index, unit_kind in enumerate(unit_kinds) if unit_kind in HEAD]
    top = heads[-1] + 1 if heads and all(unit_kind != "definition" for unit_kind in unit_kinds[: heads[-1]]) else 0
    if not top:
        top = next((index for index, kind in enumerate(unit_kinds) if kind not in HEAD), len(old_body))
    # Names used while the file is imported must be bound above, because they were imports until now.
    has_old_import = any(_is_old_import(unit, target.source) for unit in target.units)
    first_class = next(
        (index for index, statement in enumerate(old_body) if statement not in [u.node for u in target.units]), top
    )
    end = next((index for index, statement in enumerate(old_body) if _is_guard(statement)), len(old_body))
    for index, child_statement in enumerate(old_body):
        if index == top:
            yield from imports
            if has_old_import:
                yield from after
        if index == first_class:
            yield from before
        if index == end and not has_old_import:
            yield from after
        yield child_statement
    if top >= len(old_body):
        yield from imports
    if first_class >= len(old_body):
        yield from before
    if (end >= len(old_body) and not has_old_import) or (has_old_import and top >= len(old_body)):
        yield from after


def _is_guard(node: cst.BaseStatement) -> bool:
    return isinstance(node, cst.If) and "__name__" in cst.Module([]).code_for_node(node.test)


def _with_dunder_all(target: _Target, body: list[Statement], is_new: bool) -> list[Statement]:
    """Returns the statements with the new names added to `__all__`."""
    source_names, own_names = all_names(target.source.units), all_names(target.units)
    has_all = any(unit.kind == "all" for unit in target.units)
    taken_names = set(target.added) | target.source.names
    if target.source.is_emptied:
        taken_names |= set(source_names or ())
    names = [name for name in (source_names or ()) if name in taken_names]
    if source_names is None:
        names = sorted(name for name in target.source.names if not name.startswith("_")) if has_all else []
    if (has_all and own_names is None) or not names:
        return body
    if has_all:
        public_names = [*(own_names or ()), *(name for name in names if name not in (own_names or ()))]
    else:
        defined_names = {name for unit in target.units if unit.kind == "definition" for name in unit.binds}
        public_names = [
            *sorted(name for name in defined_names if not name.startswith("_") and name not in names),
            *names,
        ]
    if public_names == own_names:
        return body
    statement = _all_statement(public_names)
    if not has_all:
        position = next((i for i, unit in enumerate(units(body)) if unit.kind in ("definition", "effect")), len(body))
        return [*body[:position], statement, *body[position:]]
    old_node = next(unit.node for unit in target.units if unit.kind == "all")
    return [
        statement.with_changes(leading_lines=old_node.leading_lines) if old_statement is old_node else old_statement
        for old_statement in body
    ]


def _all_statement(names: Iterable[str]) -> Statement:
    quoted_names = [f'"{name}"' for name in names]
    line = f"__all__ = [{', '.join(quoted_names)}]\n"
    if len(line) > 100:
        line = "__all__ = [\n" + "".join(f"    {name},\n" for name in quoted_names) + "]\n"
    return cst.parse_module(line).body[0]


def _space_out(body: Sequence[Statement], old: Sequence[Statement]) -> list[Statement]:
    """Returns the statements with blank lines around the new ones.

    Two blank lines surround functions and classes, one separates imports from the code after them.
    """
    old_ids = {id(statement) for statement in old}
    spaced_statements: list[Statement] = []
    for index, own_statement in enumerate(body):
        blank_lines = 0
        if index:
            previous_statement = body[index - 1]
            needs_space = isinstance(own_statement, cst.FunctionDef | cst.ClassDef) or isinstance(
                previous_statement, cst.FunctionDef | cst.ClassDef
            )
            blank_lines = (
                2
                if needs_space
                else 0
                if _is_import(own_statement) == _is_import(previous_statement) and not _is_future(previous_statement)
                else 1
            )
        blank_count = sum(1 for line in own_statement.leading_lines if line.comment is None)
        if index and id(own_statement) in old_ids and id(body[index - 1]) in old_ids:
            spaced_statements.append(own_statement)
        elif index == 0:
            lines = list(own_statement.leading_lines)
            while lines and lines[0].comment is None:
                del lines[0]
            spaced_statements.append(own_statement.with_changes(leading_lines=lines))
        elif blank_count < blank_lines and not any(line.comment for line in own_statement.leading_lines[:blank_count]):
            spaced_statements.append(
                own_statement.with_changes(leading_lines=_with_blank_lines(own_statement.leading_lines, blank_lines))
            )
        else:
            spaced_statements.append(own_statement)
    return spaced_statements


def _is_import(node: Statement) -> bool:
    return isinstance(node, cst.SimpleStatementLine) and isinstance(node.body[0], cst.Import | cst.ImportFrom)


def _is_future(node: Statement) -> bool:
    return units([node])[0].kind == "future"


def _with_blank_lines(lines: Sequence[cst.EmptyLine], wanted: int) -> list[cst.EmptyLine]:
    kept_lines = list(lines)
    while kept_lines and kept_lines[0].comment is None:
        del kept_lines[0]
    return [*[BLANK] * wanted, *kept_lines]


def unresolved_names(text: str) -> set[str]:
    """Returns the names that a module reads but does not bind; empty if the module has a star import."""
    statements = units(cst.parse_module(text).body)
    if any(
        isinstance(statement.tree, ast.ImportFrom) and statement.tree.names[0].name == "*" for statement in statements
    ):
        return set()
    bound_names = {name for statement in statements for name in statement.binds} | BUILTINS
    assigned_names = {
        name
        for statement in statements
        for node in ast.walk(statement.tree)
        if isinstance(node, ast.Global)
        for name in node.names
    }
    return {name for statement in statements for name in statement.uses} - bound_names - assigned_names
