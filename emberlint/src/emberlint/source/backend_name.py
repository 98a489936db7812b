"""Finds the expressions that hold the name of the active backend, by following names, attributes and functions."""

import ast
from functools import cached_property

from emberlint.source.source_file import SourceFile

GETTERS = frozenset({"get_backend", "current_backend", "active_backend", "get_backend_name", "backend_name"})
KERAS = frozenset({"keras.backend.backend", "keras.config.backend", "keras.src.backend.backend"})
OBJECTS = frozenset({"current", "get_backend_object"})  # they return the backend object, whose `.name` is the name
VARIABLES = frozenset({"EMBERHARMONY_BACKEND", "KERAS_BACKEND", "EMBER_ML_BACKEND"})
STRING_METHODS = frozenset(
    {"lower", "upper", "strip", "casefold", "title", "capitalize", "removesuffix", "removeprefix"}
)


class BackendNames:
    """Recognises the expressions of a file whose value is the active backend's name."""

    def __init__(self, file: SourceFile) -> None:
        self.file = file
        self.names = file.names
        top_packages = {namespace.partition(".")[0] for namespace in file.settings.namespaces}
        self.tops = top_packages | {file.module.partition(".")[0]}
        self._memo: dict[ast.AST, bool] = {}

    def is_backend_name(self, node: ast.expr) -> bool:
        """Returns whether the value of an expression is the active backend's name."""
        memoized_result = self._memo.get(node)
        if memoized_result is None:
            self._memo[node] = False  # ends the recursion when a name is defined by itself
            memoized_result = self._memo[node] = self._computes_backend_name(node)
        return memoized_result

    def _computes_backend_name(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Call):
            return self._call_returns_name(node)
        if isinstance(node, ast.Name):
            return any(
                binding.value is not None and self.is_backend_name(binding.value)
                for binding in self.names.bindings(node)
            )
        if isinstance(node, ast.Attribute):
            return self._is_name_attribute(node)
        if isinstance(node, ast.NamedExpr):
            return self.is_backend_name(node.value)
        if isinstance(node, ast.IfExp):
            return self.is_backend_name(node.body) or self.is_backend_name(node.orelse)
        if isinstance(node, ast.BoolOp):
            return any(self.is_backend_name(value) for value in node.values)
        if isinstance(node, ast.Subscript):
            return self.is_backend_name(node.value) or (
                self.names.origin(node.value) == "os.environ" and self.names.constant(node.slice) in VARIABLES
            )
        return False

    def _call_returns_name(self, call: ast.Call) -> bool:
        function = call.func
        if self._is_getter(function):
            return True
        if isinstance(function, ast.Name) and function.id == "str" and len(call.args) == 1:
            return self.is_backend_name(call.args[0])
        if isinstance(function, ast.Attribute) and function.attr in STRING_METHODS:
            return self.is_backend_name(function.value)
        if self.names.origin(function) in ("os.getenv", "os.environ.get") and call.args:
            return self.names.constant(call.args[0]) in VARIABLES
        return any(self._returns_backend_name(definition) for definition in self._definitions(function))

    def _is_getter(self, function: ast.expr) -> bool:
        if not isinstance(function, (ast.Name, ast.Attribute)):
            return False
        origin = self.names.origin(function)
        if origin is None:
            receiver = function.value if isinstance(function, ast.Attribute) else None
            is_ops_name = isinstance(receiver, ast.Name) and receiver.id == "ops"
            return is_ops_name and isinstance(function, ast.Attribute) and function.attr in GETTERS
        # matplotlib and torch.distributed have a function named get_backend too, so the origin decides.
        top_package, name = origin.partition(".")[0], origin.rpartition(".")[2]
        return origin in KERAS or (name in GETTERS and top_package in self.tops)

    def _is_name_attribute(self, node: ast.Attribute) -> bool:
        if node.attr in ("name", "__name__") and self._is_backend(node.value):
            return True
        if any(self.is_backend_name(value) for value in self.names.stored_attribute(node)):
            return True
        owner = self.names.owner(node)
        if owner is not None:
            return any(
                self._returns_backend_name(method)
                for method in _methods_named(owner, node.attr)
                if _is_property(method)
            )
        # An assignment `config.backend = ops.get_backend()` makes `config.backend` hold the name in the same file.
        attribute_text = ast.unparse(node)
        return any(self.is_backend_name(value) for value in self._stored_values.get(attribute_text, ()))

    def _is_backend(self, node: ast.expr) -> bool:
        """Returns whether the value of an expression is the active backend's object."""
        if isinstance(node, ast.Name):
            return any(
                binding.value is not None and self._is_backend(binding.value) for binding in self.names.bindings(node)
            )
        if not isinstance(node, ast.Call):
            return False
        origin = self.names.origin(node.func) or ""
        return origin.rpartition(".")[2] in OBJECTS and ".backend." in origin and origin.partition(".")[0] in self.tops

    def _definitions(self, function: ast.expr) -> list[ast.FunctionDef]:
        if isinstance(function, ast.Name):
            bound_nodes = [binding.node for binding in self.names.bindings(function)]
            return [node for node in bound_nodes if isinstance(node, ast.FunctionDef)]
        owner = self.names.owner(function) if isinstance(function, ast.Attribute) else None
        return [] if owner is None or not isinstance(function, ast.Attribute) else _methods_named(owner, function.attr)

    def _returns_backend_name(self, function: ast.FunctionDef) -> bool:
        """Returns whether a function returns the active backend's name."""
        if function in self._memo:
            return self._memo[function]
        self._memo[function] = False
        inner_nodes = (node for statement in function.body for node in ast.walk(statement))
        returned_nodes = [node.value for node in inner_nodes if isinstance(node, ast.Return) and node.value is not None]
        self._memo[function] = any(self.is_backend_name(value) for value in returned_nodes)
        return self._memo[function]

    @cached_property
    def _stored_values(self) -> dict[str, list[ast.expr]]:
        values_by_name: dict[str, list[ast.expr]] = {}
        for assignment in self.file.index.nodes(ast.Assign):
            for target in assignment.targets:
                if isinstance(target, ast.Attribute):
                    values_by_name.setdefault(ast.unparse(target), []).append(assignment.value)
        return values_by_name


def _methods_named(owner: ast.ClassDef, name: str) -> list[ast.FunctionDef]:
    return [statement for statement in owner.body if isinstance(statement, ast.FunctionDef) and statement.name == name]


def _is_property(function: ast.FunctionDef) -> bool:
    return any(ast.unparse(decorator).endswith("property") for decorator in function.decorator_list)
