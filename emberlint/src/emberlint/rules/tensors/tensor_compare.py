"""EMB202: comparisons of tensors."""

import ast
from collections.abc import Iterator

from emberlint.config.tiers import Tier
from emberlint.findings import Finding, Fix, Safety
from emberlint.rule import Example, Rule
from emberlint.source.operators import COMPARISONS, OPERATORS, call_text, safety
from emberlint.source.source_file import NoInference, SourceFile

USE = "from emberharmony import ops\n\n"
TYPED = "from emberharmony import ops\nfrom emberharmony.core.types import Tensor\n\n"


class TensorCompare(Rule):
    """Finds comparison operators on tensors, including chained ones."""

    code = "EMB202"
    name = "tensor-compare"
    message = "comparison `{symbol}` of a tensor: use {ops}"
    why = (
        "A comparison of native tensors follows the rules of their library: how it promotes the operands, how it "
        "treats a tensor of another library, and which error it raises for mismatched shapes. A chain `a < x < b` "
        "also takes the truth value of a tensor. The op means the same on every backend."
    )
    min_tier = Tier.C
    VALID = (
        Example(USE + "mask = ops.greater(ops.ones(3), 0)\n"),
        Example(USE + "x = ops.ones(3)\nflat = x.ndim == 1 and x.shape == (3,) and len(x) > 2\n"),
        Example(USE + "x = ops.ones(3)\nsame = x is not None and x.dtype == ops.float32\n"),
        Example(USE + "def f(x, mode):\n    return ops.exp(x) if mode == 'exp' else ops.log(x)\n"),
        Example(USE + "best = float('inf')\nbetter = 0.1 < best\nx = ops.ones(3)\n"),
    )
    INVALID = (
        Example(USE + "mask = ops.ones(3) > 0\n", fixed=USE + "mask = ops.greater(ops.ones(3), 0)\n"),
        Example(
            USE + "def f(n):\n    x = ops.ones(n)\n    return ops.where(x == 1, x, 0)\n",
            fixed=USE + "def f(n):\n    x = ops.ones(n)\n    return ops.where(ops.equal(x, 1), x, 0)\n",
        ),
        Example(USE + "x = ops.ones(3)\ninside = 0 < x < 1\n"),
        Example(
            TYPED + "def f(x: Tensor):\n    return x != 0\n",
            fixed=TYPED + "def f(x: Tensor):\n    return ops.not_equal(x, 0)\n",
        ),
    )

    def check(self, file: SourceFile) -> Iterator[Finding]:
        """Yields a finding for each comparison of a tensor."""
        if isinstance(file.inference, NoInference):
            return
        for node in file.index.nodes(ast.Compare):
            evidence = file.inference.evidence(node)
            if evidence is not None and not (
                file.settings.allow_safe_operators and file.inference.is_safe_operator(node)
            ):
                compared_operators = [OPERATORS[type(op)] for op in node.ops if type(op) in OPERATORS]
                is_chained = len(node.ops) > 1
                names_text = ", ".join(f"`ops.{operator.op}`" for operator in compared_operators)
                fix_title = f"combine {names_text} with `ops.logical_and`" if is_chained else f"call {names_text}"
                call_as_text = (
                    "" if is_chained else call_text(file, compared_operators[0].op, [node.left, *node.comparators])
                )
                fix = Fix(Safety.GUIDED if is_chained else safety(file, evidence), fix_title, call_as_text)
                symbols_text = " ".join(operator.symbol for operator in compared_operators)
                yield self.finding(
                    file, node, tier=evidence.tier, reason=evidence.reason, fix=fix, symbol=symbols_text, ops=names_text
                )
        if file.mentions("operator"):
            yield from self._findings_of_calls(file)

    def _findings_of_calls(self, file: SourceFile) -> Iterator[Finding]:
        for call in file.index.nodes(ast.Call):
            origin = file.names.origin(call.func) or ""
            op = COMPARISONS.get(origin.removeprefix("operator.")) if origin.startswith("operator.") else None
            evidence = file.inference.evidence(call) if op else None
            if evidence is not None and op is not None:
                fix = Fix(safety(file, evidence), f"call `ops.{op}`", call_text(file, op, call.args))
                yield self.finding(
                    file, call, tier=evidence.tier, reason=evidence.reason, fix=fix, symbol=origin, ops=f"`ops.{op}`"
                )
