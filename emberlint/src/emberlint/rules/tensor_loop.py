"""EMB206: Python loops over tensors."""

import ast
from collections.abc import Iterator

from emberlint.config.tiers import Tier
from emberlint.findings import Finding, Fix, Safety
from emberlint.rule import Example, Rule
from emberlint.source.operators import is_builtin
from emberlint.source.source_file import Evidence, NoInference, SourceFile

ITERATING = frozenset(
    {"zip", "map", "enumerate", "reversed", "iter", "list", "tuple", "set", "sorted", "filter", "sum", "any", "all"}
)
USE = "from emberharmony import ops\n\n"
GUIDE = Fix(Safety.GUIDED, "work on the whole tensor at once: an op with `axis`, broadcasting, `ops.take`, `ops.where`")


class TensorLoop(Rule):
    """Finds for, comprehensions, zip, map, enumerate and reversed over a tensor, and `range(len(t))` with `t[i]`."""

    code = "EMB206"
    name = "tensor-loop"
    message = "`{how}` iterates over a tensor element by element"
    why = (
        "Each iteration creates a tensor and calls the library for it, so the loop runs at the speed of Python, not "
        "of the kernel; a trace unrolls the loop; and on PyTorch and MLX the elements are still tensors. An op with "
        "an axis does the same work in one call."
    )
    min_tier = Tier.B
    VALID = (
        Example(USE + "for part in ops.split(ops.ones(4), 2):\n    print(part)\n"),
        Example(USE + "x = ops.ones((2, 3))\nfor n in x.shape:\n    print(n)\nfor i in range(len(x)):\n    print(i)\n"),
        Example(USE + "weights = {'a': ops.ones(3)}\nfor name, w in weights.items():\n    print(name, w.shape)\n"),
        Example(USE + "layers = [ops.ones(3) for _ in range(2)]\nshapes = [w.shape for w in layers]\n"),
    )
    INVALID = (
        Example(USE + "for row in ops.ones((2, 3)):\n    print(row)\n"),
        Example(USE + "def f(n):\n    x = ops.ones(n)\n    return [ops.exp(v) for v in x]\n"),
        Example(USE + "x = ops.ones(3)\nfor i, v in enumerate(x):\n    print(i, v)\n"),
        Example(USE + "x = ops.ones(3)\nfor a, b in zip(x, [1, 2, 3]):\n    print(a, b)\n"),
        Example(USE + "x = ops.ones(3)\nfor i in range(len(x)):\n    print(x[i])\n"),
        Example(USE + "x = ops.ones(3)\ny = [*map(ops.exp, x)]\n"),
    )

    def check(self, file: SourceFile) -> Iterator[Finding]:
        """Yields a finding for each loop over a tensor."""
        if isinstance(file.inference, NoInference):
            return
        for loop in file.index.nodes(ast.For, ast.AsyncFor):
            yield from self._over(file, loop.iter, "for", loop.target, [*loop.body])
        for generator in file.index.nodes(ast.comprehension):
            above = file.parent(generator)
            held = [above] if above is not None else []
            yield from self._over(file, generator.iter, "comprehension", generator.target, [*held])
        for call in file.index.nodes(ast.Call):
            function = call.func
            if isinstance(function, ast.Name) and function.id in ITERATING and is_builtin(file, function):
                for argument in call.args:
                    yield from self._found(file, call, file.inference.evidence(argument), f"{function.id}()")
                    if file.inference.evidence(argument) is not None:
                        break

    def _over(
        self, file: SourceFile, values: ast.expr, how: str, target: ast.expr, body: list[ast.AST]
    ) -> Iterator[Finding]:
        yield from self._found(file, values, file.inference.evidence(values), how)
        tensor = _measured(values)
        if tensor is not None and isinstance(target, ast.Name) and is_builtin(file, values.func):  # type: ignore[attr-defined]
            evidence = file.inference.evidence(tensor)
            if evidence is not None and _indexed(tensor, target.id, body):
                yield from self._found(file, values, evidence, "range(len())")

    def _found(self, file: SourceFile, node: ast.AST, evidence: Evidence | None, how: str) -> Iterator[Finding]:
        if evidence is not None:
            yield self.finding(file, node, tier=evidence.tier, reason=evidence.reason, fix=GUIDE, how=how)


def _measured(values: ast.expr) -> ast.expr | None:
    """Returns the `t` of `range(len(t))` or `range(t.shape[0])`."""
    if not (isinstance(values, ast.Call) and isinstance(values.func, ast.Name) and values.func.id == "range"):
        return None
    for limit in values.args:
        if isinstance(limit, ast.Call) and isinstance(limit.func, ast.Name) and limit.func.id == "len" and limit.args:
            return limit.args[0]
        if isinstance(limit, ast.Subscript) and isinstance(limit.value, ast.Attribute) and limit.value.attr == "shape":
            leading = isinstance(limit.slice, ast.Constant) and limit.slice.value == 0
            return limit.value.value if leading else None
    return None


def _indexed(tensor: ast.expr, index: str, body: list[ast.AST]) -> bool:
    """Returns whether a body reads or writes `t[i]` or `t[i, ...]`."""
    wanted = ast.unparse(tensor)
    for part in body:
        for node in ast.walk(part):
            if isinstance(node, ast.Subscript) and ast.unparse(node.value) == wanted:
                first = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
                names = (one.id for one in ast.walk(first) if isinstance(one, ast.Name))
                if index in names:
                    return True
    return False
