"""The conditions under which a native call equals that of its op: what its arguments may be."""

import ast
from collections.abc import Iterator, Mapping

from emberlint.knowledge.replacements import NEUTRAL, neutral_dtype
from emberlint.knowledge.signatures import Signature
from emberlint.source.source_file import SourceFile

# The parameters of ops that take tensors; numbers alone in their place get another dtype than NumPy gives them.
DATA = frozenset({"x", "x1", "x2", "a", "b", "y", "xs", "arrays", "operands", "xi", "array"})
BUILTINS = {"float": "float64", "int": "int64", "bool": "bool_"}  # as NumPy and PyTorch read them
_INTEGRAL = frozenset({"size", "ndim"})


def reason_against(file: SourceFile, found: Signature, given: Mapping[str, ast.expr]) -> str | None:
    """Returns why a call with these arguments, by the op's parameters, may differ from that of the op, or None."""
    dtype = given.get("dtype")
    if dtype is not None and not is_dtype(file, dtype):
        return f"`{file.segment(dtype)}` may be a native dtype: pass a neutral one such as ops.float32"
    if found.when == "integers" and dtype is None and not all(_is_integer(one) for one in given.values()):
        return f"ops.{found.op} gives float32 for Python floats: name the dtype"
    if found.when == "dtype" and dtype is None:
        if found.native in ("numpy.array", "torch.tensor"):
            return f"`{found.native}` copies, and ops.{found.op} may choose another dtype: name the dtype"
        data = next(iter(given.values()), None)
        if data is None or file.inference.evidence(data) is None:
            return f"ops.{found.op} may choose another dtype for Python numbers: name the dtype"
    data_given = [one for name, one in given.items() if name in DATA and found.when != "dtype"]
    if data_given and all(_is_number(file, one) for one in data_given):
        return f"ops.{found.op} gives float32 for Python numbers, where {found.native.partition('.')[0]} may not"
    return None


def is_dtype(file: SourceFile, node: ast.expr) -> bool:
    """Returns whether an argument is a dtype that has a neutral form, or the dtype of a tensor."""
    if isinstance(node, ast.Constant):
        return node.value in NEUTRAL
    origin = file.native(node)
    if origin is not None:
        return neutral_dtype(origin) is not None
    if isinstance(node, ast.Name):
        return node.id in BUILTINS and file.names.lookup(node) is None
    return isinstance(node, ast.Attribute) and (
        node.attr == "dtype" or f"{file.names.origin(node)}".startswith(file.settings.namespaces)
    )


def _is_integer(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return type(node.value) is int
    if isinstance(node, ast.UnaryOp):
        return _is_integer(node.operand)
    if isinstance(node, ast.BinOp):
        return not isinstance(node.op, ast.Div | ast.Pow) and _is_integer(node.left) and _is_integer(node.right)
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in ("len", "int")
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
    return isinstance(node, ast.Attribute) and node.attr in _INTEGRAL


def _is_number(file: SourceFile, node: ast.expr) -> bool:
    """Returns whether an argument is a Python number or a sequence of nothing but numbers."""
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.List | ast.Tuple):
        return all(_is_number(file, one) for one in node.elts)
    if isinstance(node, ast.ListComp | ast.GeneratorExp):
        return _is_number(file, node.elt)
    if isinstance(node, ast.Starred) or file.inference.evidence(node) is not None:
        return False
    return file.inference.is_other(node) and not any(_tensors(file, node))


def _tensors(file: SourceFile, node: ast.expr) -> Iterator[bool]:
    """Yields whether each element of a container, where it is bound to a literal, is a tensor."""
    bindings = file.names.bindings(node) if isinstance(node, ast.Name) else []
    for one in bindings:
        if isinstance(one.value, ast.List | ast.Tuple):
            yield from (file.inference.evidence(item) is not None for item in one.value.elts)
        elif not isinstance(one.value, ast.Constant | ast.BinOp | ast.Call):
            yield True
