"""Repairs as changes of a line: of the text between a node's operands, and of dotted names.

Building a tree of LibCST takes a hundred times as long, so only the statements with other nodes go that way.
"""

import ast
import keyword
import re
from collections.abc import Iterator
from typing import NamedTuple

from emberlint.fixes.edits import AUGMENTED, BINARY, COMPARE, UNARY
from emberlint.source.source_file import SourceFile

Place = tuple[int, int, int, int]
_WRAPPED = (ast.Tuple, ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.GeneratorExp, ast.Starred, ast.Await)
_OPENING = re.compile(r"[ (]*\Z")
_CLOSING = re.compile(r"[ )]*\Z")
_OPS = {kind.__name__: op for table in (BINARY, UNARY, COMPARE, AUGMENTED) for kind, op in table.items()}
_BINARY = {
    ast.Add: "Add", ast.Sub: "Subtract", ast.Mult: "Multiply", ast.Div: "Divide", ast.FloorDiv: "FloorDivide",
    ast.Mod: "Modulo", ast.Pow: "Power", ast.MatMult: "MatrixMultiply", ast.BitAnd: "BitAnd", ast.BitOr: "BitOr",
    ast.BitXor: "BitXor", ast.LShift: "LeftShift", ast.RShift: "RightShift", ast.USub: "Minus", ast.UAdd: "Plus",
    ast.Invert: "BitInvert", ast.Eq: "Equal", ast.NotEq: "NotEqual", ast.Lt: "LessThan", ast.LtE: "LessThanEqual",
    ast.Gt: "GreaterThan", ast.GtE: "GreaterThanEqual"
}  # fmt: skip


SPACE = "$"  # the placeholder for the expression of the namespace of ops


class Change(NamedTuple):
    """A piece of one line to replace; `rank` orders the insertions at one place, outer ones first before a node."""

    line: int
    start: int
    end: int
    rank: int
    text: str


def operator_changes(file: SourceFile, node: ast.AST) -> list[Change] | None:
    """Returns the changes that replace an operator by an op of `SPACE`, or None if they are not that simple.

    There may be no comment and no line break between the operands.
    """
    if getattr(node, "lineno", 0) != getattr(node, "end_lineno", 1) or not isinstance(node, ast.expr):
        return None
    line = file.lines[node.lineno - 1]
    if not line.isascii():
        return None
    operands: list[ast.expr]
    operator: ast.AST
    if isinstance(node, ast.BinOp):
        operands, operator = [node.left, node.right], node.op
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        operands, operator = [node.left, node.comparators[0]], node.ops[0]
    elif isinstance(node, ast.UnaryOp):
        operands, operator = [node.operand], node.op
    else:
        return None
    op_name = _BINARY.get(type(operator), "")
    if op_name not in _OPS or any(isinstance(operand, _WRAPPED) for operand in operands) or _is_in_string(file, node):
        return None
    gap_edits = _gaps_around(line, node, operands)
    if gap_edits is None:
        return None
    start, end, depth = node.col_offset, node.end_col_offset or 0, len([*file.ancestors(node)])
    outer_start, outer_end = _place_with_parentheses(line, start, end)
    if outer_start != start and outer_start > 0 and (line[outer_start - 1].isalnum() or line[outer_start - 1] == "_"):
        outer_start, outer_end = start, end  # `return(x + 1)` keeps its parentheses, which separate the words
    needs_parentheses = start == outer_start and start > 0 and (line[start - 1].isalnum() or line[start - 1] == "_")
    opening_text = f"{'(' if needs_parentheses else ''}{SPACE}.{_OPS[op_name]}("
    line_number = node.lineno
    parenthesis_changes = (
        [Change(line_number, outer_start, start, depth, ""), Change(line_number, end, outer_end, -depth, "")]
        if outer_start != start
        else []
    )
    parenthesis_changes += [Change(line_number, gap_start, gap_end, 0, text) for gap_start, gap_end, text in gap_edits]
    return [
        *parenthesis_changes,
        Change(line_number, start, start, depth, opening_text),
        Change(line_number, end, end, -depth, "))" if needs_parentheses else ")"),
    ]


def rename_changes(file: SourceFile, node: ast.AST, replacement: str) -> list[Change] | None:
    """Returns the change that replaces a dotted name, or None if it is written in another form."""
    if not isinstance(node, ast.Name | ast.Attribute) or node.lineno != node.end_lineno:
        return None
    line, start_column, end_column = file.lines[node.lineno - 1], node.col_offset, node.end_col_offset
    if not line.isascii() or line[start_column:end_column] != dotted_name(node) or _is_in_string(file, node):
        return None
    return [Change(node.lineno, start_column, end_column or start_column, 0, SPACE + replacement.removeprefix("ops"))]


def dotted_name(node: ast.AST) -> str:
    """Returns the dotted name, such as `np.sin`, that a node spells, or an empty string."""
    if isinstance(node, ast.Attribute):
        base_name = dotted_name(node.value)
        return base_name and f"{base_name}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def _is_in_string(file: SourceFile, node: ast.AST) -> bool:
    """Returns whether a node is in an f-string, where Python 3.11 reports other places."""
    return any(isinstance(ancestor, ast.JoinedStr) for ancestor in file.ancestors(node))


def op_of(node: ast.AST) -> str:
    """Returns the op that replaces the operator of a node, or an empty string."""
    operator = node.ops[0] if isinstance(node, ast.Compare) else getattr(node, "op", None)
    return _OPS.get(_BINARY.get(type(operator), ""), "") if isinstance(operator, ast.AST) else ""


def _gaps_around(line: str, node: ast.expr, operands: list[ast.expr]) -> Iterator[tuple[int, int, str]] | None:
    """Returns the texts before, between and after the operands, each with what replaces it."""
    start_column, end_column = node.col_offset, node.end_col_offset or 0
    first_operand, last_operand = operands[0], operands[-1]
    first_operand_end, last_operand_end = first_operand.end_col_offset or 0, last_operand.end_col_offset or 0
    head_text, tail_text = line[start_column : first_operand.col_offset], line[last_operand_end:end_column]
    if not _CLOSING.match(tail_text) or "\\" in line[start_column:end_column]:
        return None
    if len(operands) == 1:
        if head_text.count("(") != tail_text.count(")") or not _OPENING.match(head_text[1:]):
            return None
        return iter([(start_column, first_operand.col_offset, ""), (last_operand_end, end_column, "")])
    gap_text = line[first_operand_end : last_operand.col_offset]
    closing_count, opening_count = gap_text.count(")"), gap_text.count("(")
    if not _OPENING.match(head_text) or head_text.count("(") != closing_count or opening_count != tail_text.count(")"):
        return None
    return iter(
        [
            (start_column, first_operand.col_offset, ""),
            (first_operand_end, last_operand.col_offset, ", "),
            (last_operand_end, end_column, ""),
        ]
    )


def _place_with_parentheses(line: str, start: int, end: int) -> tuple[int, int]:
    """Returns the place of a node with one pair of parentheses around it that only groups, or its own place."""
    text_before, text_after = line[:start].rstrip(" "), line[end:].lstrip(" ")
    if not text_before.endswith("(") or not text_after.startswith(")"):
        return start, end
    before_parenthesis = text_before[:-1].rstrip(" ")
    word_match = re.search(r"\w+\Z", before_parenthesis)
    is_call = (
        before_parenthesis[-1:] in (")", "]", "}", '"', "'")
        if word_match is None
        else not keyword.iskeyword(word_match[0])
    )
    if is_call or (word_match is not None and word_match[0] in ("True", "False", "None")):
        return start, end
    return len(text_before) - 1, len(line) - len(text_after) + 1


def apply_changes(lines: list[str], replacements: list[Change]) -> None:
    """Applies changes to lines, in place."""
    changes_by_line: dict[int, list[Change]] = {}
    for change in replacements:
        changes_by_line.setdefault(change.line, []).append(change)
    for line_number, line_changes in changes_by_line.items():
        line, column, text_pieces = lines[line_number - 1], 0, []
        # At one place: first the closings of the nodes that end there, the inner ones first, then the openings of those
        # that begin there, the outer ones first, then what is replaced.
        for change in sorted(line_changes, key=lambda one: (one.start, one.end, one.rank)):
            text_pieces += [line[column : change.start], change.text]
            column = max(column, change.end)
        text_pieces.append(line[column:])
        lines[line_number - 1] = "".join(text_pieces)
