"""What each repair makes of the node it is given; comments and line breaks inside the node stay."""

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
# What is no argument without the parentheses around it.
WRAPPED = (cst.Tuple, cst.NamedExpr, cst.Yield, cst.GeneratorExp)
Space = cst.BaseParenthesizableWhitespace
NONE = cst.SimpleWhitespace("")
ONE = cst.SimpleWhitespace(" ")


class RefusedError(Exception):
    """A repair would change more than it may."""


def binary(space: str, node: cst.BinaryOperation) -> cst.BaseExpression:
    """Return `ops.add(x, y)` for `x + y`."""
    return _call(space, BINARY[type(node.operator)], node, [node.left, node.right], *_gaps(node.operator))


def unary(space: str, node: cst.UnaryOperation) -> cst.BaseExpression:
    """Return `ops.negative(x)` for `-x`."""
    op = UNARY.get(type(node.operator))
    if op is None:
        raise RefusedError("`not` asks for the truth of a tensor; there is no op that a person need not choose")
    return _call(space, op, node, [node.expression], node.operator.whitespace_after)


def comparison(space: str, node: cst.Comparison) -> cst.BaseExpression:
    """Return `ops.less(x, y)` for `x < y`."""
    if len(node.comparisons) != 1:
        raise RefusedError("a chain evaluates its middle once and stops early; combine the parts by hand")
    target = node.comparisons[0]
    op = COMPARE.get(type(target.operator))
    if op is None:
        raise RefusedError("no op stands for this comparison")
    return _call(space, op, node, [node.left, target.comparator], *_gaps(target.operator))


def augmented(space: str, node: cst.AugAssign) -> cst.Assign:
    """Return `x = ops.add(x, y)` for `x += y`."""
    if not isinstance(node.target, cst.Name | cst.Attribute) or _has_call(node.target):
        raise RefusedError("the target would be evaluated twice")
    value = node.value
    if isinstance(value, cst.Yield | cst.Tuple) and not value.lpar:
        value = value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    call = _call(space, AUGMENTED[type(node.operator)], value, [node.target.deep_clone(), value])
    before, after = _gaps(node.operator)
    return cst.Assign([cst.AssignTarget(node.target, before, after)], call.with_changes(lpar=[], rpar=[]))


def _gaps(operator: cst.CSTNode) -> tuple[Any, Any]:
    """The white space before and after an operator; LibCST's base classes do not declare that all have it."""
    return operator.whitespace_before, operator.whitespace_after  # type: ignore[attr-defined]


def _has_call(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Call | cst.Subscript) or any(_has_call(child) for child in node.children)


def called(space: str, node: cst.Call) -> cst.BaseExpression:
    """Return `ops.absolute(x)` for `abs(x)`, and `ops.add(x, y)` for `operator.add(x, y)`."""
    name = get_full_name_for_node(node.func) or ""
    function = name.rpartition(".")[2]
    op = CALLS.get(name) or ARITHMETIC.get(function) or COMPARISONS.get(function)
    if op is None:
        raise RefusedError(f"no op takes the arguments of `{name}`")
    if name == "pow" and len(node.args) != 2:
        raise RefusedError("`pow` with a modulus has no op")
    return node.with_changes(func=_dotted(f"{space}.{op}"))


def renamed(replacement: str) -> cst.BaseExpression:
    """Return the op that stands in for a native function."""
    return _dotted(replacement)


def _dotted(name: str) -> cst.BaseExpression:
    return cst.parse_expression(name)


def _call(
    space: str,
    op: str,
    node: cst.BaseExpression,
    operands: Sequence[cst.BaseExpression],
    *gaps: Space,
) -> cst.Call:
    """A call of an op; `gaps` is the white space around the operator, kept where it holds lines or comments."""
    values = [_bare(one) for one in operands]
    kept = [gap for gap in gaps if not isinstance(gap, cst.SimpleWhitespace) or "\\" in gap.value]
    if len(values) == 1:
        args, lead = [cst.Arg(values[0])], kept[0] if kept else NONE
    else:
        after: Space = kept[-1] if kept else ONE
        comma = cst.Comma(whitespace_before=kept[0] if len(kept) == 2 else NONE, whitespace_after=after)
        args, lead = [cst.Arg(values[0], comma=comma), cst.Arg(values[1])], NONE
    needed = _holds_lines(node)
    parentheses = (node.lpar, node.rpar) if needed else (node.lpar[1:], node.rpar[1:])
    return cst.Call(
        func=_dotted(f"{space}.{op}"),
        args=args,
        whitespace_before_args=lead,
        lpar=parentheses[0],
        rpar=parentheses[1],
    )


def _holds_lines(node: cst.BaseExpression) -> bool:
    """Whether the parentheses around an expression hold comments or line breaks of their own."""
    inside = [one.whitespace_after for one in node.lpar] + [one.whitespace_before for one in node.rpar]
    return any(not isinstance(one, cst.SimpleWhitespace) for one in inside)


def _bare(node: cst.BaseExpression) -> cst.BaseExpression:
    """An operand without the parentheses that an argument does not need."""
    if not node.lpar or isinstance(node, WRAPPED) or _holds_lines(node):
        return node
    return node.with_changes(lpar=[], rpar=[])
