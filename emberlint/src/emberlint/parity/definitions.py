"""Reads the definitions of a backend: members of its `…Ops` classes, or functions of its `*_ops.py` files."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from emberlint.parity.layout import Layout, category_of_path
from emberlint.parity.signature import Signature, signature
from emberlint.parity.syntax import (
    FunctionNode,
    Span,
    assigned_name_and_value,
    flat_statements,
    last_name,
    names_of_decorators,
    refusal_message,
    tree_of,
)
from emberlint.source.project import Project

MODULES = ("ops.py", "operations.py", "_backend.py")
CLASSES = ("Ops", "Operations", "Backend")
DECLARES_NOTHING = frozenset({"unsupported", "Unsupported", "not_implemented"})
PLAIN_VALUES = (ast.Constant, ast.Tuple, ast.List, ast.Dict, ast.Set, ast.JoinedStr)


@dataclass(frozen=True)
class Definition:
    """One op as a backend defines it; `signature` is None if it cannot be read, as in `staticmethod(torch.sin)`."""

    name: str
    category: str
    signature: Signature | None
    place: Span
    source: str
    unsupported: str | None = None  # the reason given for not supporting the op


def definitions(project: Project, layout: Layout, paths: list[str]) -> dict[str, Definition]:
    """Returns the definitions in a backend's files, by name, including inherited ones."""
    class_by_name: dict[str, tuple[str, ast.ClassDef]] = {}
    shared_files = project.files(layout.backend) if layout.backend else ()
    for path in (*shared_files, *paths):
        for node in flat_statements(tree_of(project, path).body):
            if isinstance(node, ast.ClassDef):
                class_by_name[node.name] = path, node
    definition_by_name: dict[str, Definition] = {}
    backend_modules = {f"{layout.backend}/{name}.py" for name in layout.names}  # backends that consist of one file
    module_paths = [
        path for path in paths if path.endswith(MODULES) or path in backend_modules or _is_in_ops(path)
    ] or paths
    for path in paths:
        classes_of_ops = [
            node for node in flat_statements(tree_of(project, path).body) if isinstance(node, ast.ClassDef)
        ]
        classes_of_ops = [node for node in classes_of_ops if _is_class_of_ops(node)]
        for definition in _definitions_of_classes(project, path, classes_of_ops, class_by_name):
            definition_by_name.setdefault(definition.name, definition)
        if path in module_paths or path.endswith("__init__.py"):
            # A module may hold functions beside a class of ops, as during a migration from one form to the other; a
            # helper beside the class is private by its name or by `__all__`.
            for definition in _definitions_of_module(path, tree_of(project, path)):
                definition_by_name.setdefault(definition.name, definition)
    return definition_by_name


def has_made_class(project: Project, paths: list[str]) -> bool:
    """Returns whether a backend makes a class of ops by a call, as in `MathOps = type("MathOps", (), found)`.

    Which ops it has is then not to be read.
    """
    assignments = (
        assigned_name_and_value(node) for path in paths for node in flat_statements(tree_of(project, path).body)
    )
    return any(
        name_and_value is not None
        and name_and_value[0].endswith(CLASSES)
        and isinstance(name_and_value[1], ast.Call)
        and last_name(name_and_value[1]) == "type"
        for name_and_value in assignments
    )


def _is_in_ops(path: str) -> bool:
    """Returns whether a file is in a folder named ops of its backend: `backend/torch/tensor/ops/casting.py`."""
    return path.rpartition("/")[0].endswith("/ops")


def _definitions_of_classes(
    project: Project, path: str, holders: list[ast.ClassDef], classes: dict[str, tuple[str, ast.ClassDef]]
) -> Iterator[Definition]:
    for class_of_ops in holders:
        for class_path, node in _with_bases(path, class_of_ops, classes, set()):
            function_by_name = _functions_by_name(tree_of(project, class_path))
            for statement in flat_statements(node.body):
                definition = _definition_of_node(class_path, statement, function_by_name, in_class=True)
                if definition is not None:
                    yield definition


def _definitions_of_module(path: str, tree: ast.Module) -> Iterator[Definition]:
    function_by_name = _functions_by_name(tree)
    for statement in flat_statements(tree.body):
        definition = _definition_of_node(path, statement, function_by_name, in_class=False)
        if definition is not None:
            yield definition


def _is_class_of_ops(node: ast.ClassDef) -> bool:
    return any(name.endswith(CLASSES) for name in (node.name, *map(last_name, node.bases)))


def _with_bases(
    path: str, node: ast.ClassDef, classes: dict[str, tuple[str, ast.ClassDef]], seen_classes: set[str]
) -> Iterator[tuple[str, ast.ClassDef]]:
    """Yields a class and its bases, the nearest first."""
    yield path, node
    seen_classes.add(node.name)
    for base in map(last_name, node.bases):
        if base in classes and base not in seen_classes:
            yield from _with_bases(*classes[base], classes, seen_classes)


def _functions_by_name(tree: ast.Module) -> dict[str, FunctionNode]:
    return {node.name: node for node in flat_statements(tree.body) if isinstance(node, FunctionNode)}


def _definition_of_node(
    path: str, node: ast.stmt, functions: Mapping[str, FunctionNode], in_class: bool
) -> Definition | None:
    span, category = Span.from_node(path, node), category_of_path(path)
    if isinstance(node, FunctionNode):
        decorator_names = names_of_decorators(node)
        if node.name.startswith("_") or decorator_names & {"overload", "setter"}:
            return None
        own_signature = signature(node.args, bound=in_class and "staticmethod" not in decorator_names)
        return Definition(node.name, category, own_signature, span, ast.unparse(node), refusal_message(node))
    name_and_value = assigned_name_and_value(node)
    if name_and_value is None or name_and_value[0].startswith("_") or isinstance(name_and_value[1], PLAIN_VALUES):
        return None
    name, assigned_value = name_and_value
    if isinstance(assigned_value, ast.Call) and last_name(assigned_value) in DECLARES_NOTHING:
        reason_node = assigned_value.args[0] if assigned_value.args else None
        reason_text = (
            str(reason_node.value)
            if isinstance(reason_node, ast.Constant)
            else ast.unparse(reason_node)
            if reason_node
            else ""
        )
        return Definition(name, category, None, span, ast.unparse(node), reason_text)
    return Definition(name, category, _signature_of_value(assigned_value, functions, in_class), span, ast.unparse(node))


def _signature_of_value(value: ast.expr, functions: Mapping[str, FunctionNode], bound: bool) -> Signature | None:
    """Returns the signature of an assigned value: a lambda, a function of the module, or the result of a factory."""
    if isinstance(value, ast.Call) and last_name(value) in ("staticmethod", "classmethod") and value.args:
        return _signature_of_value(value.args[0], functions, last_name(value) == "classmethod")
    if isinstance(value, ast.Lambda):
        return signature(value.args, bound)
    if isinstance(value, ast.Name) and value.id in functions:
        return signature(functions[value.id].args, bound)
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in functions:
        returned_arguments = _returned_arguments(functions[value.func.id])
        return None if returned_arguments is None else signature(returned_arguments, bound)
    return None


def _returned_arguments(factory: FunctionNode) -> ast.arguments | None:
    """Returns the arguments of the single function that a factory defines and returns."""
    arguments_by_function = {
        node.name: node.args for node in flat_statements(factory.body) if isinstance(node, FunctionNode)
    }
    returned_values = [node.value for node in flat_statements(factory.body) if isinstance(node, ast.Return)]
    if len(returned_values) != 1:
        return None
    if isinstance(returned_values[0], ast.Lambda):
        return returned_values[0].args
    return arguments_by_function.get(returned_values[0].id) if isinstance(returned_values[0], ast.Name) else None
