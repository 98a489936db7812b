"""The methods of a project's own classes, whose names then tell nothing about the receiver of a call."""

import ast
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from emberlint.source.method_calls import is_of_imported_class
from emberlint.source.parsing import parse
from emberlint.source.reading import read_text
from emberlint.source.source_file import SourceFile

Methods = Mapping[str, tuple[ast.FunctionDef, ...]]


def own_methods(files: Iterable[Path], names: Collection[str]) -> Methods:
    """Returns the methods with some names of the classes in files, and in the packages that these belong to.

    A file that cannot be read or parsed counts for nothing.
    """
    definition_pattern = re.compile(rf"^[ \t]+def[ \t]+(?:{'|'.join(sorted(names))})\b", re.MULTILINE)
    methods_by_name: dict[str, tuple[ast.FunctionDef, ...]] = {}
    for path in _files_with_packages(files):
        try:
            text = read_text(path.read_bytes())
            tree = parse(text) if definition_pattern.search(text) else None
        except (OSError, SyntaxError, ValueError, RecursionError):
            continue
        for class_node in ast.walk(tree) if tree is not None else ():
            for statement in class_node.body if isinstance(class_node, ast.ClassDef) else ():
                if isinstance(statement, ast.FunctionDef) and statement.name in names:
                    methods_by_name[statement.name] = (*methods_by_name.get(statement.name, ()), statement)
    return methods_by_name


def _files_with_packages(files: Iterable[Path]) -> list[Path]:
    """Returns some files and all other Python files of their packages."""
    distinct_paths = {path.resolve(): None for path in files if path.suffix == ".py"}
    distinct_folders = {_top_package_folder(path): None for path in distinct_paths}
    for top_folder in distinct_folders:
        distinct_paths.update(dict.fromkeys(sorted(top_folder.rglob("*.py")) if top_folder is not None else ()))
    return [*distinct_paths]


def _top_package_folder(path: Path) -> Path | None:
    """Returns the folder of the outermost package of a file, or None if it is in none."""
    top_folder = None
    for folder in path.parents:
        if not (folder / "__init__.py").is_file():
            break
        top_folder = folder
    return top_folder


def is_own_method(file: SourceFile, call: ast.Call, function: ast.Attribute) -> bool:
    """Returns whether a method belongs to a class of this file, to a module, or to a value of another kind."""
    is_defined_here = any(
        node.name == function.attr and accepts_call(node, call) for node in file.index.nodes(ast.FunctionDef)
    )
    receiver = function.value
    is_self = isinstance(receiver, ast.Name) and receiver.id in ("self", "cls")
    is_super = isinstance(receiver, ast.Call) and isinstance(receiver.func, ast.Name) and receiver.func.id == "super"
    has_imported_origin = bool(file.names.origins(receiver))
    is_no_tensor = file.inference.is_no_tensor(receiver) or is_of_imported_class(file, receiver)
    return is_defined_here or is_self or is_super or has_imported_origin or is_no_tensor


def accepts_call(function: ast.FunctionDef, call: ast.Call) -> bool:
    """Returns whether a method of the file takes as many arguments as a call gives; `*` and `**` give any number."""
    parameters = function.args
    if any(isinstance(arg, ast.Starred) for arg in call.args) or any(keyword.arg is None for keyword in call.keywords):
        return True
    most_arguments = len(parameters.posonlyargs) + len(parameters.args) - 1
    argument_count = len(call.args) + len(call.keywords)
    return most_arguments - len(parameters.defaults) <= argument_count and (
        argument_count <= most_arguments or parameters.vararg is not None or bool(parameters.kwonlyargs)
    )
