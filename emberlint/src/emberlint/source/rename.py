"""Suggests the replacement of a native function or dtype."""

import ast

from emberlint.findings import Fix, Safety
from emberlint.knowledge.arguments import takes_arguments
from emberlint.knowledge.native import Use
from emberlint.knowledge.replacements import PACKAGE, neutral_dtype, program_name, replacement
from emberlint.source.source_file import SourceFile


def is_plain_rename(file: SourceFile, use: Use) -> bool:
    """Returns whether replacing the native name by the name of the op is enough, with nothing else to change."""
    if neutral_dtype(use.origin) is not None:
        return _may_be_neutral(file, use.node)
    substitute = replacement(use.origin)
    parent = file.parent(use.node)
    if substitute is None or not substitute.is_rename:
        return False
    return not (isinstance(parent, ast.Call) and parent.func is use.node) or takes_arguments(
        parent, substitute.op, use.origin
    )


def replacement_fix(file: SourceFile, use: Use) -> Fix:
    """Returns the suggested replacement of a native function."""
    substitute = replacement(use.origin)
    if substitute is None:
        return Fix(Safety.GUIDED, "no op does this: compose it from ops, or move it to a backend folder")
    op_name = program_name(substitute.op)
    if substitute.op.startswith(PACKAGE):
        return Fix(Safety.GUIDED, f"{op_name} of emberharmony, see `emberlint port`", op_name)
    if is_plain_rename(file, use):
        return Fix(Safety.UNSAFE, f"{op_name}, with the same arguments", op_name)
    return Fix(Safety.GUIDED, f"{op_name}, whose arguments differ: see its docstring", op_name)


def dtype_fix(file: SourceFile, use: Use) -> Fix:
    """Returns the neutral dtype with the same meaning; only as advice if a native function would receive it."""
    neutral_name = neutral_dtype(use.origin)
    if neutral_name is None:
        return Fix(Safety.GUIDED, "a neutral dtype of the namespace such as ops.float32, or its name as a string")
    fix_safety = Safety.UNSAFE if _may_be_neutral(file, use.node) else Safety.GUIDED
    return Fix(fix_safety, f"the neutral dtype ops.{neutral_name}", f"ops.{neutral_name}")


def _may_be_neutral(file: SourceFile, node: ast.expr) -> bool:
    """Returns whether a neutral dtype may stand here: not called, not compared, not passed to a native function."""
    parent = file.parent(node)
    call = file.parent(parent) if isinstance(parent, ast.keyword) else parent
    if isinstance(parent, (ast.Compare, ast.Attribute)) or (isinstance(call, ast.Call) and call.func is node):
        return False
    if not isinstance(call, ast.Call):
        return True
    origin = file.names.origin(call.func) or ""
    if file.native_origin(call.func) is not None:
        substitute = replacement(origin)
        return substitute is not None and substitute.is_rename and takes_arguments(call, substitute.op, origin)
    return not isinstance(call.func, ast.Attribute) or origin.startswith(file.settings.namespaces)
