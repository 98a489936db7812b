"""The functions of the ops for any Python: each op is compiled from its source and keeps its code.

An op asks at each call which backend is active, as its looked-up source says. This is slower than exchanged codes (see
`code_swap`) and depends on nothing but `ast` and `exec`.
"""

import ast
from collections.abc import Mapping
from types import FunctionType
from typing import Any

from emberharmony.core import op_globals
from emberharmony.core.op_code.op_source import (
    OP_NAME,
    compiled_source,
    forwarded_arguments,
    guarded_source,
    looked_up_source,
    native_names,
    parameter_names,
    role_free_shape,
    signature_text,
    source_arguments,
)
from emberharmony.core.registry import OpSpec


def looked_up_op(spec: OpSpec) -> FunctionType:
    """Returns an op that asks at each call which backend is active."""
    return _compile_function(looked_up_source(role_free_shape(spec)), spec, {"native_op": spec.name})


def compile_op(spec: OpSpec, backend: Any) -> FunctionType:
    """Returns the function of an op, compiled from its source for one backend."""
    return _compile_function(compiled_source(*source_arguments(spec, backend)), spec, native_names(spec, backend))


def source_of(spec: OpSpec, backend: Any = None, guarded: bool = False) -> str:
    """Returns the source of an op for people to read: for a backend, or, without one, as it asks for the active one."""
    signature_shape = role_free_shape(spec)
    if backend is None:
        tree = _fill_placeholders(looked_up_source(signature_shape), spec, {"native_op": spec.name})
    else:
        source = compiled_source(*source_arguments(spec, backend))
        tree = _fill_placeholders(
            guarded_source(signature_shape, source) if guarded else source, spec, native_names(spec, backend)
        )
    return ast.unparse(_fill_parameters(tree, spec)) + "\n"


def _compile_function(source: str, spec: OpSpec, names: Mapping[str, str]) -> FunctionType:
    tree = _fill_placeholders(source, spec, names)
    used_names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    if used_names.isdisjoint(parameter_names(spec)):
        op_function = _execute_definition(_fill_parameters(tree, spec), spec, spec.name)
    else:
        op_function = _function_without_clash(tree, spec)
    op_function.__defaults__, op_function.__kwdefaults__ = spec.declared.__defaults__, spec.declared.__kwdefaults__
    op_function.__qualname__ = spec.declared.__qualname__
    return op_function


def _fill_placeholders(source: str, spec: OpSpec, names: Mapping[str, str]) -> ast.Module:
    """Returns the tree of a source with all placeholders replaced but those of the parameters."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.name = spec.name
        elif isinstance(node, ast.Name):
            node.id = names.get(node.id, node.id)
        elif isinstance(node, ast.Attribute):
            node.attr = names.get(node.attr, node.attr)
        elif isinstance(node, ast.Constant) and node.value == OP_NAME:
            node.value = spec.name
    return tree


def _fill_parameters(tree: ast.Module, spec: OpSpec, *, is_inner: bool = True, calls: bool = True) -> ast.Module:
    """Replaces the placeholders of the parameters: inside of the function, and as keywords of the calls it makes."""
    name_by_placeholder = {f"p{i}": name for i, name in enumerate(parameter_names(spec))}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and is_inner:
            node.id = name_by_placeholder.get(node.id, node.id)
        elif isinstance(node, ast.arg) and is_inner:
            node.arg = name_by_placeholder.get(node.arg, node.arg)
        elif isinstance(node, ast.keyword) and calls:
            node.arg = name_by_placeholder.get(node.arg or "", node.arg)
    return tree


def _function_without_clash(tree: ast.Module, spec: OpSpec) -> FunctionType:
    """Returns the function of an op with a parameter that has the name of a global or local of the source.

    The function with the names of the parameters calls one that keeps the placeholders, as in

        def bind(inner_):
            def residual(error):
                return inner_(error)
            return residual
    """
    inner_function = _execute_definition(_fill_parameters(tree, spec, is_inner=False), spec, spec.name)
    signature_shape = role_free_shape(spec)
    inner_name = "inner" + "_" * max(map(len, parameter_names(spec)))  # longer than every parameter
    definition_text = (
        f"def {spec.name}({signature_text(signature_shape)}):\n"
        f"  return {inner_name}({forwarded_arguments(signature_shape)})"
    )
    source = f"def bind({inner_name}):\n {definition_text}\n return {spec.name}"
    outer_tree = _fill_parameters(ast.parse(source), spec, calls=False)
    function: FunctionType = _execute_definition(outer_tree, spec, "bind")(inner_function)
    return function


def _execute_definition(tree: ast.Module, spec: OpSpec, name: str) -> FunctionType:
    """Returns the function of a definition, with the ops' globals and the declaration's file and line."""
    declared_code = spec.declared.__code__
    decorator_line = declared_code.co_firstlineno
    for node in ast.walk(tree):
        if "lineno" in node._attributes:
            located_node: Any = node
            # `inspect.getsource` wants the function at its decorator, tracebacks its calls on the line of `def`.
            located_node.lineno = decorator_line if isinstance(node, ast.FunctionDef) else decorator_line + 1
            located_node.end_lineno = decorator_line + 1
            # The columns are left out: those of the source are not those of the file.
            located_node.col_offset = located_node.end_col_offset = -1
    definition_by_name: dict[str, FunctionType] = {}
    exec(compile(tree, declared_code.co_filename, "exec", dont_inherit=True), op_globals.__dict__, definition_by_name)
    return definition_by_name[name]
