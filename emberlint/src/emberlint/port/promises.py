"""The types that functions promise to return, by their annotations or docstrings.

NumPy's reductions, and its functions of numbers, return scalars, which are Python numbers too; the ops return tensors
of no axis, which `round` and `isinstance(x, float)` refuse. A call whose result a function returns as a number is left.
"""

import ast
import re
from collections.abc import Iterator

from emberlint.source.source_file import SourceFile

_NUMBER = re.compile(r"\b(?:float|int|bool|complex|scalar|number)\b", re.IGNORECASE)
_ARRAY = re.compile(r"array|tensor|matrix|list|vector|sequence|dict", re.IGNORECASE)
# The type after `Returns` in the styles of NumPy (`name : type` or `type`, below a line of dashes), Google and Sphinx.
_NUMPY = re.compile(r"^[ \t]*(?:Returns|Yields)[ \t]*\n[ \t]*-{3,}[ \t]*\n[ \t]*(.*)", re.MULTILINE)
_GOOGLE = re.compile(r"^[ \t]*(?:Returns|Yields):[ \t]*\n?[ \t]*([^\n:]*):", re.MULTILINE)
_SPHINX = re.compile(r"^[ \t]*:rtype:[ \t]*(.*)", re.MULTILINE)


def function_promising_number(file: SourceFile, call: ast.Call) -> str:
    """Returns the name of the function around a call that promises to return its result as a number, else ""."""
    enclosing_functions = (
        ancestor for ancestor in file.ancestors(call) if isinstance(ancestor, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    function = next(enclosing_functions, None)
    if function is None or not _promises_number(file, function):
        return ""
    parent = file.parent(call)
    assigned_target = parent.targets[0] if isinstance(parent, ast.Assign) else None
    returned_values = (
        node.value for node in ast.walk(function) if isinstance(node, ast.Return) and node.value is not None
    )
    for value_part in (value_part for value in returned_values for value_part in _value_parts(value)):
        if value_part is call or (
            isinstance(value_part, ast.Name)
            and isinstance(assigned_target, ast.Name)
            and value_part.id == assigned_target.id
        ):
            return function.name
    return ""


def _value_parts(node: ast.expr) -> Iterator[ast.expr]:
    """Yields the parts of a returned expression: elements of a tuple and branches of a condition, or itself."""
    if isinstance(node, ast.Tuple | ast.IfExp):
        for subnode in node.elts if isinstance(node, ast.Tuple) else (node.body, node.orelse):
            yield from _value_parts(subnode)
    else:
        yield node


def _promises_number(file: SourceFile, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Returns whether a function says that it returns a number or a tuple of numbers, but no array."""
    if function.returns is not None:
        annotation_text = file.segment(function.returns)
    else:
        docstring = ast.get_docstring(function, clean=False) or ""
        returns_section = _NUMPY.search(docstring) or _GOOGLE.search(docstring) or _SPHINX.search(docstring)
        if returns_section is None:
            return False
        text_before_colon, colon, description = returns_section[1].partition(":")
        annotation_text = description if colon else text_before_colon
    return bool(_NUMBER.search(annotation_text)) and not _ARRAY.search(annotation_text)
