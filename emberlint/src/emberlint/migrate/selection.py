"""Selects the statements that move together: the requested operations and what they use of their modules."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import libcst as cst

from emberlint.migrate.units import (
    Unit,
    members_of_class,
    needed_attributes,
    stored_attributes,
    units,
    units_by_bound_name,
)


@dataclass
class SourceModule:
    """One file of misplaced implementations and its target; its relative imports have been made absolute."""

    path: str
    module: str
    target_path: str
    target: str
    text: str
    moved: list[Unit] = field(default_factory=list)
    parts: dict[Unit, list[Unit]] = field(default_factory=dict)  # for a class that moves in part, the members that move

    @cached_property
    def tree(self) -> cst.Module:
        """The LibCST tree of the file."""
        return cst.parse_module(self.text)

    @cached_property
    def units(self) -> list[Unit]:
        """The top-level statements of the file as units."""
        return units(self.tree.body)

    @cached_property
    def definitions(self) -> dict[str, list[Unit]]:
        """The statements that define something, by name."""
        return units_by_bound_name(self.units, "definition")

    @cached_property
    def is_package(self) -> bool:
        """Whether this is an `__init__`."""
        return self.path.endswith("__init__.py")

    def import_target(self, name: str) -> tuple[str, str] | None:
        """Returns the module and the name in it that an import binds `name` to; the latter is empty for a module."""
        for unit in units_by_bound_name(self.units, "import").get(name, ()):
            import_tree = unit.tree
            for alias in import_tree.names if isinstance(import_tree, ast.Import | ast.ImportFrom) else ():
                if (alias.asname or alias.name) == name:
                    return (
                        (import_tree.module or "", alias.name)
                        if isinstance(import_tree, ast.ImportFrom)
                        else (alias.name, "")
                    )
        return None

    def star_imports(self) -> Iterator[str]:
        """Yields the modules of which all names are imported (`import *`)."""
        for unit in self.units:
            if isinstance(unit.tree, ast.ImportFrom) and unit.tree.names[0].name == "*":
                yield unit.tree.module or ""

    @property
    def names(self) -> frozenset[str]:
        """The names of this module whose definitions move as a whole."""
        return frozenset(name for unit in (*self.moved, *self.parts) for name in unit.binds)

    @property
    def operations(self) -> list[str]:
        """The names that move, including the members of a class that moves in part, as `Class.name`."""
        moved_names = [name for unit in self.moved for name in sorted(unit.binds)]
        for owner, taken_parts in self.parts.items():
            moved_names += [
                f"{next(iter(owner.binds))}.{name}" for taken_part in taken_parts for name in sorted(taken_part.binds)
            ]
        return moved_names

    @property
    def remaining_units(self) -> list[Unit]:
        """The statements that stay, including classes that move in part."""
        return [unit for unit in self.units if unit not in self.moved]

    @property
    def is_emptied(self) -> bool:
        """Whether only imports are left of the module."""
        return all(unit.kind in ("docstring", "future", "import", "all") for unit in self.remaining_units)

    @property
    def is_shim(self) -> bool:
        """Whether an earlier migration left only imports from the module's new place."""
        statement_trees = [unit.tree for unit in self.units if unit.kind != "docstring"]
        return bool(statement_trees) and all(
            isinstance(tree, ast.ImportFrom) and tree.module == self.target for tree in statement_trees
        )


def select_statements(modules: Mapping[str, SourceModule], operations: Sequence[str]) -> None:
    """Marks the statements that move: all, or the requested operations and what they use in the folder's modules."""
    if not operations:
        for module in modules.values():
            module.moved = [unit for unit in module.units if unit.kind in ("definition", "effect")]
        return
    move_closure = _Closure(modules)
    for name in operations:
        move_closure.select_operation(name)
    move_closure.finish_selection()


def find_movable_names(modules: Mapping[str, SourceModule]) -> list[str]:
    """Returns the public names that the modules and their classes define."""
    distinct_names: dict[str, None] = {}
    for module in modules.values():
        for unit in module.units:
            if isinstance(unit.node, cst.ClassDef):
                distinct_names.update(
                    dict.fromkeys(
                        name for member_unit in members_of_class(unit.node) for name in sorted(member_unit.binds)
                    )
                )
            elif unit.kind == "definition":
                distinct_names.update(dict.fromkeys(sorted(unit.binds)))
    return [name for name in distinct_names if not name.startswith("_")]


class _Closure:
    def __init__(self, modules: Mapping[str, SourceModule]) -> None:
        self.modules = modules
        self.bodies = {
            unit: members_of_class(unit.node)
            for module in modules.values()
            for unit in module.units
            if isinstance(unit.node, cst.ClassDef)
        }

    def select_operation(self, name: str) -> None:
        for module in self.modules.values():
            for unit in list(module.units):
                if unit in self.bodies:
                    for member_unit in self.bodies[unit]:
                        if name in member_unit.binds:
                            self.select_member(module, unit, member_unit)
                elif unit.kind == "definition" and name in unit.binds:
                    self.select_unit(module, unit)

    def select_unit(self, module: SourceModule, unit: Unit) -> None:
        """Selects a statement of a module, and everything that it uses."""
        if unit in module.moved:
            return
        module.moved.append(unit)
        module.parts.pop(unit, None)
        for name in sorted(unit.uses):
            self.select_name(module, name)

    def select_member(self, module: SourceModule, owner: Unit, member: Unit) -> None:
        """Selects a member of a class, and everything it uses of the class and of the module."""
        taken_parts = module.parts.setdefault(owner, [])
        if owner in module.moved or member in taken_parts:
            return
        taken_parts.append(member)
        class_members = self.bodies[owner]
        needed_names = needed_attributes(member, next(iter(owner.binds)))
        for other_member in class_members:
            if other_member.binds & (needed_names | member.uses) or (
                other_member is not member and stored_attributes(other_member) & needed_names
            ):
                self.select_member(module, owner, other_member)
        for name in sorted(member.uses | _header_names(owner)):
            if not any(name in other_member.binds for other_member in class_members):
                self.select_name(module, name)

    def select_name(self, source_module: SourceModule, name: str) -> None:
        """Selects the statements that bind a name in a module, or in a sibling from which the module imports it."""
        for unit in source_module.definitions.get(name, ()):
            self.select_unit(source_module, unit)
        module_and_name = source_module.import_target(name)
        if module_and_name is not None:
            module, attribute = module_and_name
            imported_module = self.modules.get(f"{module}.{attribute}" if attribute else module)
            if imported_module is not None:
                for unit in imported_module.units:
                    if unit.kind in ("definition", "effect"):
                        self.select_unit(imported_module, unit)
            elif attribute and module in self.modules:
                self.select_name(self.modules[module], attribute)
        elif name not in source_module.definitions:
            for module in source_module.star_imports():
                if module in self.modules and self.modules[module] is not source_module:
                    self.select_name(self.modules[module], name)

    def finish_selection(self) -> None:
        """Completes the selection: sorts it, joins classes that move whole, and adds statements that act on them."""
        for module in self.modules.values():
            for owner, taken_parts in list(module.parts.items()):
                class_members = self.bodies[owner]
                if all(member_unit in taken_parts or not member_unit.binds for member_unit in class_members):
                    del module.parts[owner]
                    module.moved.append(owner)
                else:
                    module.parts[owner] = [
                        class_member for class_member in class_members if class_member in taken_parts
                    ]
            for unit in module.units:
                names_used_here = unit.uses & frozenset(module.definitions)
                if (
                    unit.kind == "effect"
                    and names_used_here
                    and names_used_here <= module.names
                    and not set(module.parts) & set(_owners_of_names(module, names_used_here))
                ):
                    module.moved.append(unit)
            module.moved = [unit for unit in module.units if unit in module.moved]


def _owners_of_names(source_module: SourceModule, names: frozenset[str]) -> Iterator[Unit]:
    for name in names:
        yield from source_module.definitions.get(name, ())


def _header_names(owner: Unit) -> frozenset[str]:
    """Returns the names in a class's bases and decorators."""
    tree = owner.tree
    assert isinstance(tree, ast.ClassDef)
    header_nodes = [*tree.bases, *(word.value for word in tree.keywords), *tree.decorator_list]
    return frozenset(
        node.id for header_node in header_nodes for node in ast.walk(header_node) if isinstance(node, ast.Name)
    )
