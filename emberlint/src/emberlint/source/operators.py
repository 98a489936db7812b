"""Python's operators: how each is written, the op that does the same, and the special method behind it."""

import ast
import keyword
from typing import NamedTuple

from emberlint.config.tiers import Tier
from emberlint.findings import Safety
from emberlint.source.source_file import Evidence, SourceFile

_SHOWN = 100


class Operator(NamedTuple):
    """One operator."""

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


def _functions(comparing: bool) -> dict[str, str]:
    methods = {
        operator.method.strip("_"): operator.op
        for node, operator in OPERATORS.items()
        if issubclass(node, ast.cmpop) is comparing
    }
    return {f"{name}_" if keyword.iskeyword(name) else name: op for name, op in methods.items()}


COMPARISONS = _functions(comparing=True)
"""The comparing functions of the module `operator`, each with the op that does the same."""

ARITHMETIC = _functions(comparing=False) | {"abs": "absolute", "inv": "bitwise_not"}
"""The others of that module that take and give tensors."""


def is_builtin(file: SourceFile, name: ast.Name) -> bool:
    """Return whether a name means the builtin: nothing in the file binds it."""
    return not file.names.bindings(name)


def safety(file: SourceFile, evidence: Evidence) -> Safety:
    """Return whether an op in place of an operator is sure to give the same.

    It is not where a tensor is one by convention alone, nor where one library made it, whichever backend is active.
    """
    native = any(f"`{library}." in evidence.reason for library in file.settings.backends)
    return Safety.UNSAFE if native or evidence.tier is Tier.C else Safety.SAFE


def shown(file: SourceFile, op: str, operands: list[ast.expr]) -> str:
    """Return the call of an op, where it is short enough to show."""
    text = f"ops.{op}({', '.join(file.segment(one) for one in operands)})"
    return text if len(text) <= _SHOWN and "\n" not in text else ""
