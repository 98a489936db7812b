"""Python's operators: the symbol, the equivalent op, and the special method of each."""

import ast
import keyword
from typing import NamedTuple

from emberlint.config.tiers import Tier
from emberlint.findings import Safety
from emberlint.source.source_file import Evidence, SourceFile

_SHOWN = 100


class Operator(NamedTuple):
    """An operator's symbol, the op that computes the same, and its special method."""

    symbol: str
    op: str
    method: str


OPERATORS: dict[type[ast.AST], Operator] = {
    ast.Add: Operator("+", "add", "__add__"),
    ast.Sub: Operator("-", "subtract", "__sub__"),
    ast.Mult: Operator("*", "multiply", "__mul__"),
    ast.Div: Operator("/", "divide", "__truediv__"),
    ast.FloorDiv: Operator("//", "floor_divide", "__floordiv__"),
    ast.Mod: Operator("%", "mod", "__mod__"),
    ast.Pow: Operator("**", "power", "__pow__"),
    ast.MatMult: Operator("@", "matmul", "__matmul__"),
    ast.BitAnd: Operator("&", "bitwise_and", "__and__"),
    ast.BitOr: Operator("|", "bitwise_or", "__or__"),
    ast.BitXor: Operator("^", "bitwise_xor", "__xor__"),
    ast.LShift: Operator("<<", "bitwise_left_shift", "__lshift__"),
    ast.RShift: Operator(">>", "bitwise_right_shift", "__rshift__"),
    ast.USub: Operator("-", "negative", "__neg__"),
    ast.UAdd: Operator("+", "positive", "__pos__"),
    ast.Invert: Operator("~", "bitwise_not", "__invert__"),
    ast.Eq: Operator("==", "equal", "__eq__"),
    ast.NotEq: Operator("!=", "not_equal", "__ne__"),
    ast.Lt: Operator("<", "less", "__lt__"),
    ast.LtE: Operator("<=", "less_equal", "__le__"),
    ast.Gt: Operator(">", "greater", "__gt__"),
    ast.GtE: Operator(">=", "greater_equal", "__ge__"),
}


def _ops_by_name(comparing: bool) -> dict[str, str]:
    op_by_method = {
        operator.method.strip("_"): operator.op
        for node, operator in OPERATORS.items()
        if issubclass(node, ast.cmpop) is comparing
    }
    return {f"{name}_" if keyword.iskeyword(name) else name: op for name, op in op_by_method.items()}


COMPARISONS = _ops_by_name(comparing=True)
"""The comparison functions of the module `operator`, each with the equivalent op."""

ARITHMETIC = _ops_by_name(comparing=False) | {"abs": "absolute", "inv": "bitwise_not"}
"""The arithmetic functions of the module `operator`, each with the equivalent op."""


def is_builtin(file: SourceFile, name: ast.Name) -> bool:
    """Returns whether a name refers to the builtin, because nothing in the file binds it."""
    return not file.names.bindings(name)


def safety(file: SourceFile, evidence: Evidence) -> Safety:
    """Returns whether an op in place of an operator is sure to give the same result.

    It is not sure if the operand is a tensor by convention only, or if one library made it regardless of the active
    backend.
    """
    is_native = any(
        f"`{library}." in evidence.reason or f"`{library}`" in evidence.reason for library in file.settings.backends
    )
    return Safety.UNSAFE if is_native or evidence.tier is Tier.C else Safety.SAFE


def call_text(file: SourceFile, op: str, operands: list[ast.expr]) -> str:
    """Returns the call of an op as text, or an empty string if it is too long to show."""
    call_source = f"ops.{op}({', '.join(file.segment(operand) for operand in operands)})"
    return call_source if len(call_source) <= _SHOWN and "\n" not in call_source else ""
