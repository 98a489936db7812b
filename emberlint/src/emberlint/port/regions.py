"""The functions that stay native, because a compiler or autograd of a library runs them: their uses are not ported."""

import ast
from collections.abc import Collection, Iterator
from typing import NamedTuple

from emberlint.source.source_file import SourceFile

# The compilers of functions, such as `torch.jit.script`, which read the source and do not know ops.
FROM_SOURCE = ("numba.", "triton.", "torch.jit.", "taichi.", "pythran.")
# The transforms that call a function with traced values instead of tensors.
TRACING = ("jax.", "torch.", "mlx.core.", "tensorflow.")
TRANSFORMS = frozenset(
    {"compile", "custom_function", "custom_jvp", "custom_vjp", "function", "jit", "pallas_call", "pjit", "pmap"}
    | {"trace"}
)
IN_PYTHON = frozenset({"torch.jit.ignore", "torch.jit.unused", "torch.jit.is_scripting", "torch.jit.is_tracing"})
AUTOGRAD = frozenset({"torch.autograd.Function", "torch.autograd.function.Function"})
SOURCE = "it compiles the function, which stays native, from source, and knows no ops"
# The methods by which a function with gradients of its own is given the rules for them.
RULES = frozenset({"defjvp", "defjvps", "defvjp", "def_vmap", "jvp", "vjp", "vmap"})
RULE = "it is a rule of a function that stays native, which is given native tensors"
TRACED = "its function stays native too"
GRADIENT = "its methods are given native tensors and native gradients, so they stay native"
COMPILED = "use ops.compile, or move it to a backend folder"
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef


class Region(NamedTuple):
    """A function or class that stays native: where to mark it, what keeps it native, why, and the way out."""

    node: Definition
    mark: ast.expr | None  # the decorator or call to mark; None for a function that another region calls
    native: str
    reason: str
    advice: str


def regions(file: SourceFile, ported: Collection[ast.AST]) -> list[Region]:
    """Returns the functions and classes of a file that stay native; `ported` are the nodes that change."""
    native_regions = [
        found_region
        for found_region in (*_decorated_regions(file), *_regions_of_calls(file), *_gradient_regions(file))
        if found_region.mark not in ported
    ]
    native_regions += _gradient_rule_regions(file, native_regions)
    native_nodes = {region.node for region in native_regions}
    for region in native_regions:  # the loop extends the list that it iterates over
        if region.reason == SOURCE:
            for name in (node for node in ast.walk(region.node) if isinstance(node, ast.Name)):
                for node in _definitions_of(file, name):
                    if node not in native_nodes and isinstance(node, ast.FunctionDef):
                        native_nodes.add(node)
                        native_regions.append(Region(node, None, region.native, SOURCE, COMPILED))
    return native_regions


def is_inside(file: SourceFile, node: ast.AST, region: ast.AST) -> bool:
    """Returns whether a node is in a function or class, but not in its decorators or bases."""
    child = node
    for ancestor in file.ancestors(node):
        if ancestor is region:
            nodes_outside = [*getattr(ancestor, "decorator_list", ()), *getattr(ancestor, "bases", ())]
            return child not in nodes_outside
        child = ancestor
    return False


def _decorated_regions(file: SourceFile) -> Iterator[Region]:
    """Yields the functions with a decorator that compiles them."""
    for function in file.index.nodes(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef):
        for decorator in function.decorator_list:
            yield from _regions_compiled_by(file, decorator, [function])


def _regions_of_calls(file: SourceFile) -> Iterator[Region]:
    """Yields the functions that are given to a compiler: `torch.jit.script(f)`."""
    for call in file.index.nodes(ast.Call):
        if call.args and not isinstance(file.parent(call), ast.FunctionDef | ast.ClassDef):
            yield from _regions_compiled_by(file, call, [*_definitions_of(file, call.args[0])])


def _regions_compiled_by(file: SourceFile, node: ast.expr, definitions: list[Definition]) -> Iterator[Region]:
    """Yields the functions that a decorator or a call compiles; none if it is no compiler."""
    function = node.func if isinstance(node, ast.Call) else node
    if isinstance(node, ast.Call) and file.names.origin(function) == "functools.partial" and node.args:
        function = node.args[0]
    origin = file.names.origin(function) or ""
    if origin in IN_PYTHON:
        return
    if origin.startswith(TRACING) and origin.rpartition(".")[2] in TRANSFORMS:
        compiled_functions = (definition for definition in definitions if not isinstance(definition, ast.ClassDef))
        yield from (
            Region(traced_function, _step_node(node, function), origin, TRACED, COMPILED)
            for traced_function in compiled_functions
        )
    elif origin.startswith(FROM_SOURCE):
        yield from (
            Region(definition, _step_node(node, function), origin, SOURCE, COMPILED) for definition in definitions
        )


def _gradient_rule_regions(file: SourceFile, native_regions: list[Region]) -> Iterator[Region]:
    """Yields the functions that are rules of functions with gradients of their own: `f.defvjp(forward, backward)`."""
    region_by_node = {
        region.node: region for region in native_regions if region.native.rpartition(".")[2].startswith("custom")
    }
    if not region_by_node:
        return
    for method in file.index.nodes(ast.Attribute):
        function_with_gradient = next(
            (
                region_by_node[definition]
                for definition in _functions_of_name(file, method.value)
                if definition in region_by_node
            ),
            None,
        )
        if method.attr not in RULES or function_with_gradient is None:
            continue
        parent = file.parent(method)
        backward_arguments: list[ast.expr] = []
        if isinstance(parent, ast.Call) and parent.func is method:
            backward_arguments = [*parent.args, *(keyword.value for keyword in parent.keywords)]
            method_call = file.parent(parent)
        else:
            method_call = parent
        rule_functions = [definition for node in backward_arguments for definition in _definitions_of(file, node)]
        if isinstance(method_call, ast.FunctionDef) and method_call not in rule_functions:
            rule_functions += (
                [method_call] if parent in method_call.decorator_list or method in method_call.decorator_list else []
            )
        yield from (
            Region(function, None, function_with_gradient.native, RULE, "ops.custom_gradient")
            for function in rule_functions
        )


def _functions_of_name(file: SourceFile, node: ast.expr) -> Iterator[Definition]:
    """Yields the functions that a name is bound to, also through a call: `f = jax.custom_vjp(g)`."""
    yield from _definitions_of(file, node)
    for binding in file.names.bindings(node) if isinstance(node, ast.Name) else ():
        if isinstance(binding.value, ast.Call) and binding.value.args:
            yield from _definitions_of(file, binding.value.args[0])


def _step_node(node: ast.expr, function: ast.expr) -> ast.expr:
    """Returns the node of the step of a use: the call, or the function that is not called."""
    return node if isinstance(node, ast.Call) and node.func is function else function


def _gradient_regions(file: SourceFile) -> Iterator[Region]:
    """Yields the subclasses of `torch.autograd.Function`."""
    for class_node in file.index.nodes(ast.ClassDef):
        for base in class_node.bases:
            if file.names.origin(base) in AUTOGRAD:
                yield Region(class_node, base, "torch.autograd.Function", GRADIENT, "ops.custom_gradient")


def _definitions_of(file: SourceFile, node: ast.expr) -> Iterator[Definition]:
    """Yields the functions and classes of the file that an expression may be, or an instance of."""
    if isinstance(node, ast.Lambda):
        yield node
    elif isinstance(node, ast.Call):
        yield from _definitions_of(file, node.func)
    elif isinstance(node, ast.Name):
        for binding in file.names.bindings(node):
            if isinstance(binding.node, Definition):
                yield binding.node
            elif isinstance(binding.value, ast.Call | ast.Lambda):
                yield from _definitions_of(file, binding.value)
