"""Finds the places where a program tests whether a value has a native type."""

import ast
from collections.abc import Iterator

from emberlint.source.native_uses import native_uses
from emberlint.source.source_file import SourceFile

MARKS = frozenset(
    {"numpy", "detach", "cuda", "is_cuda", "requires_grad", "__cuda_array_interface__", "__array_interface__"}
    | {"__torch_function__", "__array_function__", "__array_ufunc__", "__jax_array__"}
)
TESTS = frozenset({"isinstance", "issubclass", "hasattr"})
TYPE_NAMES = frozenset({"ndarray", "Tensor", "EagerTensor", "ArrayImpl", "DeviceArray"})


def type_tests(file: SourceFile) -> tuple[tuple[ast.AST, str], ...]:
    """Returns the node of each test and the type it tests for."""
    return file.compute_once(_tests_of_file)


def _tests_of_file(file: SourceFile) -> tuple[tuple[ast.AST, str], ...]:
    if not file.mentions_native and not any(file.mentions(word) for word in (*MARKS, *TYPE_NAMES)):
        return ()
    return tuple(_find_tests(file))


def _find_tests(file: SourceFile) -> Iterator[tuple[ast.AST, str]]:
    for call in file.index.nodes(ast.Call):
        yield from _call_tests(file, call)
    for comparison in file.index.nodes(ast.Compare):
        yield from _comparison_tests(file, comparison)
    for pattern in file.index.nodes(ast.MatchClass):
        origin = file.native_origin(pattern.cls)
        if origin is not None:
            yield pattern, origin
    for function in file.index.nodes(ast.FunctionDef, ast.AsyncFunctionDef):
        yield from _registration_tests(file, function)


def _call_tests(file: SourceFile, call: ast.Call) -> Iterator[tuple[ast.AST, str]]:
    function = call.func
    if isinstance(function, ast.Name):
        if function.id not in TESTS or len(call.args) != 2 or file.names.lookup(function) is not None:
            return
        if function.id != "hasattr":
            yield from ((call, origin) for origin in _first_item(_native_types(file, call.args[1])))
        elif file.names.origin(call.args[0]) is None:
            attribute_name = file.names.constant(call.args[1])
            if attribute_name in MARKS:
                yield call, repr(attribute_name)
    elif isinstance(function, ast.Attribute):
        if function.attr == "register" and call.args:
            yield from ((call, origin) for origin in _first_item(_native_types(file, call.args[0])))
        elif function.attr in ("startswith", "endswith") and call.args and _is_type_name(function.value):
            yield from ((call, repr(word)) for word in _first_item(_type_words(file, call.args[0])))


def _comparison_tests(file: SourceFile, comparison: ast.Compare) -> Iterator[tuple[ast.AST, str]]:
    compared_nodes = (comparison.left, *comparison.comparators)
    if any(_is_type_of_value(compared_node) for compared_node in compared_nodes):
        yield from (
            (comparison, origin)
            for origin in _first_item(
                native_type for compared_node in compared_nodes for native_type in _native_types(file, compared_node)
            )
        )
    elif any(_is_type_name(compared_node) for compared_node in compared_nodes):
        type_names = (word for compared_node in compared_nodes for word in _type_words(file, compared_node))
        yield from ((comparison, repr(word)) for word in _first_item(type_names))


def _registration_tests(
    file: SourceFile, function: ast.FunctionDef | ast.AsyncFunctionDef
) -> Iterator[tuple[ast.AST, str]]:
    """Yields the tests made by `@f.register`, which dispatches on the annotation of the first parameter."""
    if not any(
        isinstance(decorator, ast.Attribute) and decorator.attr == "register" for decorator in function.decorator_list
    ):
        return
    parameters = [*function.args.posonlyargs, *function.args.args]
    # The first parameter of a method is its instance, so look at the second too.
    for parameter in parameters[:2]:
        if parameter.annotation is not None:
            yield from ((parameter, origin) for origin in _first_item(_native_types(file, parameter.annotation)))
            return


def _native_types(file: SourceFile, node: ast.expr, depth: int = 0) -> Iterator[str]:
    """Yields the native types in `T`, `(T, U)`, `T | U`, `{T: …}`, or in a name bound to one of those."""
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        for elt in node.elts:
            yield from _native_types(file, elt, depth)
    elif isinstance(node, ast.BinOp):
        yield from _native_types(file, node.left, depth)
        yield from _native_types(file, node.right, depth)
    elif isinstance(node, ast.Starred):
        yield from _native_types(file, node.value, depth)
    else:
        origin = file.native_origin(node) if isinstance(node, (ast.Name, ast.Attribute)) else None
        if origin is not None and "." in origin:
            yield origin
        elif isinstance(node, ast.Name) and depth < 3:
            for binding in file.names.bindings(node):
                if binding.value is not None and isinstance(binding.value, (ast.Tuple, ast.BinOp)):
                    yield from _native_types(file, binding.value, depth + 1)


def _first_item(words: Iterator[str]) -> Iterator[str]:
    for word in words:
        yield word
        return


def _is_type_of_value(node: ast.expr) -> bool:
    """Returns whether an expression is `type(x)` or `x.__class__`."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "type" and len(node.args) == 1
    return isinstance(node, ast.Attribute) and node.attr == "__class__"


def _is_type_name(node: ast.expr) -> bool:
    """Returns whether an expression is the name or module of a type, such as `type(x).__module__`."""
    while isinstance(node, (ast.Subscript, ast.Call)) and not _is_type_of_value(node):
        type_node = node.value if isinstance(node, ast.Subscript) else node.func
        node = type_node.value if isinstance(type_node, ast.Attribute) and isinstance(node, ast.Call) else type_node
    is_name_attribute = isinstance(node, ast.Attribute) and node.attr in ("__module__", "__name__", "__qualname__")
    return is_name_attribute and isinstance(node, ast.Attribute) and _is_type_of_value(node.value)


def _type_words(file: SourceFile, node: ast.expr) -> Iterator[str]:
    for element in node.elts if isinstance(node, (ast.Tuple, ast.List, ast.Set)) else (node,):
        type_name = file.names.constant(element)
        if type_name is not None and (type_name in TYPE_NAMES or type_name.partition(".")[0] in file.foreign_libraries):
            yield type_name


def tested_nodes(file: SourceFile) -> frozenset[ast.AST]:
    """Returns every node inside a test of a native type. EMB104 reports the test, so other rules skip these nodes."""
    return file.compute_once(_find_tested_nodes)


def _find_tested_nodes(file: SourceFile) -> frozenset[ast.AST]:
    """Returns every node inside a test of a native type, computed anew."""
    if not native_uses(file):
        return frozenset()
    covered_nodes: set[ast.AST] = set()
    for test_node, _ in type_tests(file):
        if isinstance(test_node, ast.Call) and isinstance(test_node.func, ast.Name):
            covered_nodes.update(node for arg in test_node.args[1:] for node in ast.walk(arg))
        elif isinstance(test_node, ast.Call):
            covered_nodes.update(node for arg in test_node.args[:1] for node in ast.walk(arg))
        elif isinstance(test_node, ast.Compare):
            compared_nodes = (test_node.left, *test_node.comparators)
            covered_nodes.update(
                node
                for compared_node in compared_nodes
                if not _is_type_of_value(compared_node)
                for node in ast.walk(compared_node)
            )
        else:
            covered_nodes.update(ast.walk(test_node))
    return frozenset(covered_nodes)
