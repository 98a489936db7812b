"""EMB203: truth values of tensors."""

import ast
from collections.abc import Iterator

from emberlint.config.tiers import Tier
from emberlint.findings import Finding, Fix, Safety
from emberlint.rule import Example, Rule
from emberlint.source.source_file import NoInference, SourceFile

USE = "from emberharmony import ops\n\n"
GUIDE = Fix(
    Safety.GUIDED,
    "use `ops.where` or `ops.logical_and`/`or`/`not`; test absence with `is None`, emptiness with `.shape`",
)


class TensorTruth(Rule):
    """Finds `if t`, `not t`, `and`, `or`, `assert t`, `while t`."""

    code = "EMB203"
    name = "tensor-truth"
    message = "`{how}` takes the truth value of a tensor"
    why = (
        "A tensor of more than one element has no truth value and raises an error; for an empty tensor the "
        "libraries differ. The value must be computed and copied to the host, which ends a trace or a compiled "
        "graph. To test whether a tensor was given, compare with None."
    )
    min_tier = Tier.C
    VALID = (
        Example(
            USE + "def f(x, mask=None):\n    y = ops.exp(x)\n    return y if mask is None else ops.where(mask, y, 0)\n"
        ),
        Example(USE + "parts = ops.split(ops.ones(4), 2)\nif parts:\n    first = parts[0]\n"),
        Example(USE + "x = ops.ones(3)\nif x.shape and len(x) and not x.ndim > 1:\n    pass\n"),
        Example(USE + "def f(x, training=False):\n    return ops.dropout(x, 0.1) if training else ops.abs(x)\n"),
    )
    INVALID = (
        Example(USE + "x = ops.ones(3)\nif ops.any(x):\n    pass\n"),
        Example(USE + "def f(n):\n    x = ops.ones(n)\n    assert not x\n"),
        Example(USE + "x = ops.ones(())\nwhile ops.less(x, 3):\n    x = ops.add(x, 1)\n"),
        Example(USE + "def f(weights=None):\n    w = ops.sum(ops.ones(3))\n    return w or weights\n"),
        Example(USE + "rows = [r for r in range(3) if ops.isnan(ops.ones(()))]\n"),
        Example(USE + "x = ops.ones(())\ny = 1 if x else 2\n"),
    )

    def check(self, file: SourceFile) -> Iterator[Finding]:
        """Yields a finding for each tensor whose truth value is taken."""
        if isinstance(file.inference, NoInference):
            return
        for node, test_kind in _truth_tests(file):
            evidence = file.inference.evidence(node)
            if evidence is not None:
                yield self.finding(file, node, tier=evidence.tier, reason=evidence.reason, fix=GUIDE, how=test_kind)


def _truth_tests(file: SourceFile) -> Iterator[tuple[ast.expr, str]]:
    tree_index = file.index
    for branch in tree_index.nodes(ast.If, ast.IfExp):
        yield from _tested_operands(branch.test, "if")
    for loop in tree_index.nodes(ast.While):
        yield from _tested_operands(loop.test, "while")
    for assertion in tree_index.nodes(ast.Assert):
        yield from _tested_operands(assertion.test, "assert")
    for generator in tree_index.nodes(ast.comprehension):
        for test in generator.ifs:
            yield from _tested_operands(test, "if")
    for case in tree_index.nodes(ast.match_case):
        if case.guard is not None:
            yield from _tested_operands(case.guard, "if")
    for unary_operation in tree_index.nodes(ast.UnaryOp):
        if isinstance(unary_operation.op, ast.Not):
            yield from _tested_operands(unary_operation.operand, "not")
    for bool_op in tree_index.nodes(ast.BoolOp):
        operator_word = "and" if isinstance(bool_op.op, ast.And) else "or"
        for value in bool_op.values[:-1]:
            yield from _tested_operands(value, operator_word)
        if _is_truth_taken(file, bool_op):
            yield from _tested_operands(bool_op.values[-1], operator_word)


def _tested_operands(node: ast.expr, how: str) -> Iterator[tuple[ast.expr, str]]:
    """Yields an operand, unless it is itself `not`, `and` or `or`, whose own operands are examined instead."""
    if not isinstance(node, ast.BoolOp) and not (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
        yield node, how


def _is_truth_taken(file: SourceFile, node: ast.BoolOp) -> bool:
    """Returns whether the truth value of an `and` or `or` is taken, and so that of its last operand."""
    parent, child = file.parent(node), node
    if isinstance(parent, ast.BoolOp):
        return child is not parent.values[-1] or _is_truth_taken(file, parent)
    if isinstance(parent, ast.UnaryOp):
        return isinstance(parent.op, ast.Not)
    if isinstance(parent, (ast.If, ast.IfExp, ast.While, ast.Assert)):
        return child is parent.test
    return isinstance(parent, ast.comprehension) and child in parent.ifs
