"""Reads the frontend's declarations: functions under `@op`, or functions and abstract methods for backends."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from emberlint.parity.layout import Layout, category_of_path
from emberlint.parity.signature import Signature, signature
from emberlint.parity.syntax import (
    FunctionNode,
    Span,
    assigned_name_and_value,
    flat_statements,
    is_declaration_only,
    last_name,
    names_of_decorators,
    tree_of,
)
from emberlint.source.project import Project

ABSTRACT = frozenset({"ABC", "Protocol"})


@dataclass(frozen=True)
class Declaration:
    """One op as the frontend declares it; `signature` is None if it cannot be read."""

    name: str
    category: str
    composite: bool
    signature: Signature | None
    place: Span
    aliases: tuple[str, ...] = ()


def declarations(project: Project, layout: Layout) -> dict[str, Declaration]:
    """Returns the declarations of the frontend, by name.

    If any function is under `@op`, only such functions are declarations. Otherwise an op is every abstract method, and
    every function that passes its work to something of its own name (`return backend().sin(x)`) or has no body.
    """
    tree_by_path = {path: tree_of(project, path) for path in layout.frontend_files(project)}
    candidate_declarations = list(_decorated_ops(tree_by_path)) or [
        *_delegating_functions(tree_by_path),
        *_abstract_methods(tree_by_path),
    ]
    declaration_by_name: dict[str, Declaration] = {}
    for candidate in candidate_declarations:
        first_declaration = declaration_by_name.get(candidate.name)
        if first_declaration is None or (first_declaration.signature is None and candidate.signature is not None):
            declaration_by_name[candidate.name] = candidate
    for name, target in _aliases_of_ops(tree_by_path, declaration_by_name):
        first_declaration = declaration_by_name[target]
        if name not in (*first_declaration.aliases, target):
            declaration_by_name[target] = replace(first_declaration, aliases=(*first_declaration.aliases, name))
    return declaration_by_name


def _decorated_ops(trees: dict[str, ast.Module]) -> Iterator[Declaration]:
    for path, tree in trees.items():
        for node in flat_statements(tree.body):
            if isinstance(node, FunctionNode) and "op" in names_of_decorators(node):
                is_composite = not is_declaration_only(node)
                yield Declaration(
                    node.name, category_of_path(path), is_composite, signature(node.args), Span.from_node(path, node)
                )


def _delegating_functions(trees: dict[str, ast.Module]) -> Iterator[Declaration]:
    for path, tree in trees.items():
        for node in flat_statements(tree.body):
            if isinstance(node, FunctionNode) and not node.name.startswith("_"):
                if is_declaration_only(node) or _delegates_to(node, node.name):
                    yield Declaration(
                        node.name, category_of_path(path), False, signature(node.args), Span.from_node(path, node)
                    )
            else:
                name_and_value = assigned_name_and_value(node)
                if name_and_value and _is_delegation(name_and_value[1], name_and_value[0]):
                    yield Declaration(
                        name_and_value[0],
                        category_of_path(path),
                        False,
                        _lambda_signature(name_and_value[1]),
                        Span.from_node(path, node),
                    )


def _is_delegation(value: ast.expr, name: str) -> bool:
    """Returns whether `name = value` delegates to that name, as `sin = lambda x: backend().sin(x)` does."""
    if isinstance(value, ast.Lambda):
        return _delegates_to(value.body, name)
    return isinstance(value, ast.Attribute) and value.attr == name


def _lambda_signature(value: ast.expr) -> Signature | None:
    """Returns the signature of a lambda, or None if it accepts any arguments."""
    own_signature = signature(value.args) if isinstance(value, ast.Lambda) else ()
    return None if all(parameter.kind.startswith("*") for parameter in own_signature) else own_signature


def _delegates_to(node: ast.AST, name: str) -> bool:
    """Returns whether a body calls an attribute of this name, or looks one up by this name."""
    for inner_node in ast.walk(node):
        if isinstance(inner_node, ast.Call):
            if isinstance(inner_node.func, ast.Attribute) and inner_node.func.attr == name:
                return True
            if any(isinstance(argument, ast.Constant) and argument.value == name for argument in inner_node.args):
                return True
    return False


def _abstract_methods(trees: dict[str, ast.Module]) -> Iterator[Declaration]:
    for path, tree in trees.items():
        for node in tree.body:
            if not isinstance(node, ast.ClassDef):
                continue
            base_names = {last_name(base) for base in node.bases} | {
                last_name(keyword.value) for keyword in node.keywords
            }
            if not base_names & {*ABSTRACT, "ABCMeta"}:
                continue
            for method in node.body:
                if isinstance(method, FunctionNode) and not method.name.startswith("_") and is_declaration_only(method):
                    own_signature = signature(method.args, bound="staticmethod" not in names_of_decorators(method))
                    yield Declaration(
                        method.name, category_of_path(path), False, own_signature, Span.from_node(path, method)
                    )


def _aliases_of_ops(trees: dict[str, ast.Module], declared: dict[str, Declaration]) -> Iterator[tuple[str, str]]:
    """Yields the alias and the op of `asin = alias("asin", arcsin)` and of `asin = arcsin`."""
    for tree in trees.values():
        for node in flat_statements(tree.body):
            name_and_value = assigned_name_and_value(node)
            if name_and_value is None or name_and_value[0] in declared:
                continue
            aliased_value = name_and_value[1]
            if isinstance(aliased_value, ast.Call) and last_name(aliased_value) == "alias" and aliased_value.args:
                aliased_value = aliased_value.args[-1]
            if isinstance(aliased_value, ast.Name) and aliased_value.id in declared:
                yield name_and_value[0], aliased_value.id


def exported_names(project: Project, layout: Layout) -> frozenset[str] | None:
    """Returns the names exported by the frontend's `__init__` and its namespaces (`linalg.*`), or None.

    The result is None if the names are computed. A name counts if it is imported or defined there and, if there is an
    `__all__`, listed in it.
    """
    init_path = f"{layout.frontend}/__init__.py"
    if layout.frontend.endswith(".py") or init_path not in project.files(layout.frontend):
        return None
    frontend_files = layout.frontend_files(project)
    offered_names: set[str] = set()
    dunder_all_names: set[str] | None = None
    for node in flat_statements(tree_of(project, init_path).body):
        if isinstance(node, FunctionNode) and node.name == "__getattr__":
            return None
        if isinstance(node, ast.AugAssign) or (isinstance(node, ast.Expr) and "globals" in ast.dump(node)):
            return None
        name_and_value = assigned_name_and_value(node)
        if name_and_value and name_and_value[0] == "__all__":
            dunder_all_names = _strings_of_list(name_and_value[1])
            if dunder_all_names is None:
                return None
        else:
            offered_names.update(_offered_names(project, frontend_files, node))
    return frozenset(
        offered_names
        if dunder_all_names is None
        else offered_names & dunder_all_names | {name for name in offered_names if name.endswith(".*")}
    )


def _strings_of_list(node: ast.expr) -> set[str] | None:
    if not isinstance(node, ast.List | ast.Tuple):
        return None
    string_values = [elt.value for elt in node.elts if isinstance(elt, ast.Constant) and isinstance(elt.value, str)]
    return set(string_values) if len(string_values) == len(node.elts) else None


def _offered_names(project: Project, files: list[str], node: ast.stmt) -> Iterator[str]:
    module_names = {path.rpartition("/")[2].removesuffix(".py") for path in files}
    if isinstance(node, ast.ImportFrom):
        module_stem = (node.module or "").rpartition(".")[2]
        for alias in node.names:
            if alias.name == "*":
                yield from _exported_names(project, [path for path in files if path.endswith(f"/{module_stem}.py")])
            else:
                yield alias.asname or alias.name
                if alias.name in module_names:
                    yield f"{category_of_path(alias.name + '.py')}.*"
    elif isinstance(node, FunctionNode | ast.ClassDef):
        yield node.name
    elif name_and_value := assigned_name_and_value(node):
        yield name_and_value[0]


def _exported_names(project: Project, paths: list[str]) -> Iterator[str]:
    """Returns the names that `from module import *` imports."""
    for path in paths:
        exported_names: set[str] = set()
        for node in flat_statements(tree_of(project, path).body):
            name_and_value = assigned_name_and_value(node)
            if name_and_value and name_and_value[0] == "__all__":
                exported_names = _strings_of_list(name_and_value[1]) or exported_names
                break
            if isinstance(node, FunctionNode):
                exported_names.add(node.name)
            elif name_and_value:
                exported_names.add(name_and_value[0])
        yield from (name for name in exported_names if not name.startswith("_"))
