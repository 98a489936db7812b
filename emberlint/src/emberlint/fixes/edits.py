"""The edits of LibCST nodes: each returns the repaired node, with its comments and line breaks."""

from collections.abc import Sequence
from typing import Any

import libcst as cst
from libcst.helpers import get_full_name_for_node

from emberlint.source.operators import ARITHMETIC, COMPARISONS

BINARY: dict[type[cst.CSTNode], str] = {
    cst.Add: "add",
    cst.Subtract: "subtract",
    cst.Multiply: "multiply",
    cst.Divide: "divide",
    cst.FloorDivide: "floor_divide",
    cst.Modulo: "mod",
    cst.Power: "power",
    cst.MatrixMultiply: "matmul",
    cst.BitAnd: "bitwise_and",
    cst.BitOr: "bitwise_or",
    cst.BitXor: "bitwise_xor",
    cst.LeftShift: "bitwise_left_shift",
    cst.RightShift: "bitwise_right_shift",
}
UNARY: dict[type[cst.CSTNode], str] = {cst.Minus: "negative", cst.Plus: "positive", cst.BitInvert: "bitwise_not"}
COMPARE: dict[type[cst.CSTNode], str] = {
    cst.Equal: "equal",
    cst.NotEqual: "not_equal",
    cst.LessThan: "less",
    cst.LessThanEqual: "less_equal",
    cst.GreaterThan: "greater",
    cst.GreaterThanEqual: "greater_equal",
}
AUGMENTED: dict[type[cst.CSTNode], str] = {
    cst.AddAssign: "add",
    cst.SubtractAssign: "subtract",
    cst.MultiplyAssign: "multiply",
    cst.DivideAssign: "divide",
    cst.FloorDivideAssign: "floor_divide",
    cst.ModuloAssign: "mod",
    cst.PowerAssign: "power",
    cst.MatrixMultiplyAssign: "matmul",
    cst.BitAndAssign: "bitwise_and",
    cst.BitOrAssign: "bitwise_or",
    cst.BitXorAssign: "bitwise_xor",
    cst.LeftShiftAssign: "bitwise_left_shift",
    cst.RightShiftAssign: "bitwise_right_shift",
}
CALLS = {"abs": "absolute", "pow": "power", "round": "round"}
# The expressions that need parentheses as an argument of a call.
WRAPPED = (cst.Tuple, cst.NamedExpr, cst.Yield, cst.GeneratorExp)
Space = cst.BaseParenthesizableWhitespace
NONE = cst.SimpleWhitespace("")
ONE = cst.SimpleWhitespace(" ")


class RefusedError(Exception):
    """Raised when a repair would change more than it may."""


def binary_call(space: str, node: cst.BinaryOperation) -> cst.BaseExpression:
    """Returns `ops.add(x, y)` for `x + y`."""
    return _op_call(
        space, BINARY[type(node.operator)], node, [node.left, node.right], *_whitespace_around(node.operator)
    )


def unary_call(space: str, node: cst.UnaryOperation) -> cst.BaseExpression:
    """Returns `ops.negative(x)` for `-x`."""
    op = UNARY.get(type(node.operator))
    if op is None:
        raise RefusedError("`not` needs the truth value of a tensor: use ops.logical_not, or test its shape")
    return _op_call(space, op, node, [node.expression], node.operator.whitespace_after)


def comparison_call(space: str, node: cst.Comparison) -> cst.BaseExpression:
    """Returns `ops.less(x, y)` for `x < y`."""
    if len(node.comparisons) != 1:
        raise RefusedError("a chained comparison evaluates its middle once and stops early; combine the parts by hand")
    comparison_target = node.comparisons[0]
    op = COMPARE.get(type(comparison_target.operator))
    if op is None:
        raise RefusedError("no op is equivalent to this comparison")
    return _op_call(
        space, op, node, [node.left, comparison_target.comparator], *_whitespace_around(comparison_target.operator)
    )


def augmented_assignment(space: str, node: cst.AugAssign) -> cst.Assign:
    """Returns `x = ops.add(x, y)` for `x += y`."""
    if not isinstance(node.target, cst.Name | cst.Attribute) or _has_call(node.target):
        raise RefusedError("the repair would evaluate the target twice")
    right_operand = node.value
    if isinstance(right_operand, cst.Yield | cst.Tuple) and not right_operand.lpar:
        right_operand = right_operand.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    op_call = _op_call(space, AUGMENTED[type(node.operator)], right_operand, [node.target.deep_clone(), right_operand])
    gap_before, gap_after = _whitespace_around(node.operator)
    return cst.Assign([cst.AssignTarget(node.target, gap_before, gap_after)], op_call.with_changes(lpar=[], rpar=[]))


def _whitespace_around(operator: cst.CSTNode) -> tuple[Any, Any]:
    """Returns the whitespace before and after an operator; the types of LibCST's base classes do not declare it."""
    return operator.whitespace_before, operator.whitespace_after  # type: ignore[attr-defined]


def _has_call(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Call | cst.Subscript) or any(_has_call(child) for child in node.children)


def function_call(space: str, node: cst.Call) -> cst.BaseExpression:
    """Returns `ops.absolute(x)` for `abs(x)`, and `ops.add(x, y)` for `operator.add(x, y)`."""
    full_name = get_full_name_for_node(node.func) or ""
    function_name = full_name.rpartition(".")[2]
    op = CALLS.get(full_name) or ARITHMETIC.get(function_name) or COMPARISONS.get(function_name)
    if op is None:
        raise RefusedError(f"the op does not take these arguments of `{full_name}`")
    if full_name == "pow" and len(node.args) != 2:
        raise RefusedError("`pow` with a modulus has no op")
    return node.with_changes(func=_parse_name(f"{space}.{op}"))


def op_reference(replacement: str) -> cst.BaseExpression:
    """Returns the op that replaces a native function."""
    return _parse_name(replacement)


def _parse_name(name: str) -> cst.BaseExpression:
    return cst.parse_expression(name)


def _op_call(
    space: str,
    op: str,
    node: cst.BaseExpression,
    operands: Sequence[cst.BaseExpression],
    *gaps: Space,
) -> cst.Call:
    """Returns a call of an op; `gaps` is the whitespace around the operator, kept if it holds lines or comments."""
    bare_operands = [_without_parentheses(operand) for operand in operands]
    kept_gaps = [gap for gap in gaps if not isinstance(gap, cst.SimpleWhitespace) or "\\" in gap.value]
    if len(bare_operands) == 1:
        arguments, leading_gap = [cst.Arg(bare_operands[0])], kept_gaps[0] if kept_gaps else NONE
    else:
        last_gap: Space = kept_gaps[-1] if kept_gaps else ONE
        comma = cst.Comma(whitespace_before=kept_gaps[0] if len(kept_gaps) == 2 else NONE, whitespace_after=last_gap)
        arguments, leading_gap = [cst.Arg(bare_operands[0], comma=comma), cst.Arg(bare_operands[1])], NONE
    needs_parentheses = _holds_lines(node)
    parentheses = (node.lpar, node.rpar) if needs_parentheses else (node.lpar[1:], node.rpar[1:])
    return cst.Call(
        func=_parse_name(f"{space}.{op}"),
        args=arguments,
        whitespace_before_args=leading_gap,
        lpar=parentheses[0],
        rpar=parentheses[1],
    )


def _holds_lines(node: cst.BaseExpression) -> bool:
    """Returns whether the parentheses around an expression contain comments or line breaks."""
    inner_gaps = [parenthesis.whitespace_after for parenthesis in node.lpar] + [
        parenthesis.whitespace_before for parenthesis in node.rpar
    ]
    return any(not isinstance(gap, cst.SimpleWhitespace) for gap in inner_gaps)


def _without_parentheses(node: cst.BaseExpression) -> cst.BaseExpression:
    """Returns an operand without parentheses that an argument does not need."""
    if not node.lpar or isinstance(node, WRAPPED) or _holds_lines(node):
        return node
    return node.with_changes(lpar=[], rpar=[])
