"""EMB205: tensors changed in place."""

import ast
from collections.abc import Iterator

from emberlint.config.tiers import Tier
from emberlint.findings import Finding, Fix, Safety
from emberlint.rule import Example, Rule
from emberlint.source.source_file import Evidence, NoInference, SourceFile

USE = "from emberharmony import ops\n\n"
GUIDE = Fix(Safety.GUIDED, "create a new tensor: `ops.set_item`, `ops.scatter_update`, `ops.where`")


class InplaceMutation(Rule):
    """Finds `t[i] = v`, `t[i] += v`, `t.f_()`, `t.data = v` and `out=`."""

    code = "EMB205"
    name = "inplace-mutation"
    message = "{what} changes a tensor in place"
    why = (
        "JAX arrays are immutable, and MLX views do not share memory with their array. So a write that is visible "
        "through every reference to a NumPy or PyTorch tensor fails or stays invisible there. A write can also "
        "overwrite values that the gradient needs. An op that returns a new tensor means the same on every backend."
    )
    min_tier = Tier.C
    VALID = (
        Example(USE + "x = ops.slice_update(ops.zeros(3), (0,), ops.ones(1))\n"),
        Example(USE + "parts = [ops.ones(3)] * 2\nparts[0] = ops.zeros(3)\ncache = {}\ncache['x'] = ops.ones(3)\n"),
        Example(USE + "class Box:\n    def __init__(self):\n        self.data = ops.ones(3)\n"),
        Example("from numpy.testing import assert_\n\nassert_(1 < 2)\n"),
        Example(USE + "shape = [*ops.ones((2, 3)).shape]\nshape[0] = 4\n"),
    )
    INVALID = (
        Example(USE + "x = ops.zeros(3)\nx[0] = 1\n"),
        Example(USE + "def f(n):\n    x = ops.zeros(n)\n    for i in range(n):\n        x[i] += i\n    return x\n"),
        Example("from emberharmony.core.types import Tensor\n\ndef f(x: Tensor):\n    x.add_(1)\n"),
        Example("from emberharmony.core.types import Tensor\n\ndef f(x: Tensor, y: Tensor):\n    x.data = y\n"),
        Example(USE + "x = ops.zeros(3)\nops.add(x, 1, out=x)\n"),
    )

    def check(self, file: SourceFile) -> Iterator[Finding]:
        """Yields a finding for each write into a tensor."""
        if isinstance(file.inference, NoInference):
            return
        for target in file.index.nodes(ast.Subscript):
            if isinstance(target.ctx, ast.Store):
                is_augmented = isinstance(file.parent(target), ast.AugAssign)
                yield from self._findings_of_write(
                    file, target, target.value, "`t[i] += v`" if is_augmented else "`t[i] = v`"
                )
        for attribute in file.index.nodes(ast.Attribute):
            if attribute.attr == "data" and isinstance(attribute.ctx, ast.Store):
                yield from self._findings_of_write(file, attribute, attribute.value, "`.data = `")
        for call in file.index.nodes(ast.Call):
            yield from self._findings_of_method(file, call)
            for keyword in call.keywords:
                if keyword.arg == "out" and not (isinstance(keyword.value, ast.Constant)):
                    yield from self._findings_of_out(file, call, keyword)

    def _findings_of_write(self, file: SourceFile, node: ast.AST, tensor: ast.expr, what: str) -> Iterator[Finding]:
        yield from self._findings_at(file, node, file.inference.evidence(tensor), what)

    def _findings_at(self, file: SourceFile, node: ast.AST, evidence: Evidence | None, what: str) -> Iterator[Finding]:
        if evidence is not None:
            yield self.finding(file, node, tier=evidence.tier, reason=evidence.reason, fix=GUIDE, what=what)

    def _findings_of_method(self, file: SourceFile, call: ast.Call) -> Iterator[Finding]:
        """Yields a finding for `t.add_(1)`, and for `init.zeros_(t)` of a native library."""
        function = call.func
        method_name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        if not method_name.endswith("_") or method_name.endswith("__") or method_name.startswith("assert"):
            return
        evidence = file.inference.evidence(function.value) if isinstance(function, ast.Attribute) else None
        origin = file.native_origin(function)
        if evidence is None and origin is not None and call.args:
            evidence = file.inference.evidence(call.args[0]) or Evidence(Tier.B, f"`{origin}` writes into its argument")
        yield from self._findings_at(file, call, evidence, f"`{method_name}()`")

    def _findings_of_out(self, file: SourceFile, call: ast.Call, keyword: ast.keyword) -> Iterator[Finding]:
        evidence = file.inference.evidence(keyword.value)
        if evidence is None and file.inference.evidence(call) is not None:
            origin = file.names.origin(call.func)
            evidence = None if origin is None else Evidence(Tier.B, f"`{origin}` writes into `out`")
        yield from self._findings_at(file, keyword.value, evidence, "`out=`")
