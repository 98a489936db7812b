"""Finds calls of methods whose names reveal a library, on values that may be tensors."""

import ast
import re
from collections.abc import Iterator

from emberlint.source.source_file import SourceFile

# Classes whose instances may be tensors, and what annotations name besides classes.
_MAYBE_TENSOR = re.compile(
    r"^(?:numpy|torch|mlx|jax|emberharmony|typing|typing_extensions)\.|[Tt]ensor|[Aa]rray|Variable"
)
_CLASS = re.compile(r"(?:^|\.)_*[A-Z]\w*$")


class MethodCall(ast.Call):
    """A call whose function is an attribute (for type checkers only)."""

    func: ast.Attribute


def method_calls(file: SourceFile, methods: frozenset[str]) -> Iterator[tuple[MethodCall, str]]:
    """Yields the calls `value.method(...)` whose `value` may be a tensor.

    It cannot be one if it is a module, an instance of a class of this file that defines the method, or known as another
    value.
    """
    if not file.calls_method(methods):
        return
    calls = file.compute_once(_calls_by_name)
    for method in sorted(methods & calls.keys()):
        yield from ((call, method) for call in calls[method] if _may_be_tensor(file, call.func))


def _calls_by_name(file: SourceFile) -> dict[str, list[MethodCall]]:
    """Returns the calls of methods by the name of the method."""
    calls_by_name: dict[str, list[MethodCall]] = {}
    for call in file.index.nodes(ast.Call):
        if type(call.func) is ast.Attribute:
            calls_by_name.setdefault(call.func.attr, []).append(call)  # type: ignore[arg-type]
    return calls_by_name


def _may_be_tensor(file: SourceFile, function: ast.Attribute) -> bool:
    receiver = function.value
    if file.names.origin(receiver) is not None:
        return False
    if file.inference.evidence(receiver) is not None:
        return True
    return not (file.inference.is_no_tensor(receiver) or _defines_method(file, receiver, function.attr))


def _defines_method(file: SourceFile, receiver: ast.expr, method: str) -> bool:
    """Returns whether the receiver is an instance, created here, of a class of this file that has the method."""
    receiver_class: ast.AST | None = None
    if isinstance(receiver, ast.Name) and receiver.id in ("self", "cls"):
        receiver_class = next(
            (ancestor for ancestor in file.ancestors(receiver) if isinstance(ancestor, ast.ClassDef)), None
        )
    elif isinstance(receiver, ast.Call) and isinstance(receiver.func, ast.Name):
        bindings = file.names.bindings(receiver.func)
        receiver_class = next((binding.node for binding in bindings if isinstance(binding.node, ast.ClassDef)), None)
    elif isinstance(receiver, ast.Name):
        bound_values = (binding.value for binding in file.names.bindings(receiver) if binding.value is not None)
        return any(isinstance(value, ast.Call) and _defines_method(file, value, method) for value in bound_values)
    return isinstance(receiver_class, ast.ClassDef) and any(
        isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)) and statement.name == method
        for statement in receiver_class.body
    )


def is_of_imported_class(file: SourceFile, receiver: ast.expr) -> bool:
    """Returns whether a name is annotated with, or made by, a class of another file whose name tells of no tensor."""
    if isinstance(receiver, ast.Call):
        return _is_class(file, receiver.func)
    bindings = file.names.bindings(receiver) if isinstance(receiver, ast.Name) else []
    return bool(bindings) and all(
        _is_class(file, binding.node.annotation)
        if isinstance(binding.node, ast.arg)
        else isinstance(binding.value, ast.Call) and _is_class(file, binding.value.func)
        for binding in bindings
    )


def _is_class(file: SourceFile, node: ast.expr | None) -> bool:
    origins = file.names.origins(node) if isinstance(node, (ast.Name, ast.Attribute)) else ()
    return bool(origins) and all(_CLASS.search(origin) and not _MAYBE_TENSOR.search(origin) for origin in origins)
