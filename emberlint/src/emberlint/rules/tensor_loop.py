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
ITERTOOLS = frozenset(
    f"itertools.{name}"
    for name in ("product", "chain", "zip_longest", "islice", "accumulate", "pairwise", "combinations", "permutations")
)
USE = "from emberharmony import ops\n\n"
GUIDE = Fix(Safety.GUIDED, "work on the whole tensor at once: an op with `axis`, broadcasting, `ops.take`, `ops.where`")


class TensorLoop(Rule):
    """Finds for, comprehensions, zip, map, itertools and unpacking of a tensor, and `range(len(t))` with `t[i]`."""

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
        Example(USE + "def f(pairs: list[tuple[int, str]]):\n    a, b = zip(*pairs)\n    return a, b, ops.ones(3)\n"),
        Example(USE + "x = ops.ones((2, 3))\nrows, columns = x.shape\na, b = ops.split(x, 2)\n"),
        Example(USE + "x = ops.ones(3)\ni = 0\nwhile i < len(x):\n    i += 1\n"),
        Example(USE + "layers = [ops.ones(3) for _ in range(2)]\nshapes = [w.shape for w in layers]\n"),
    )
    INVALID = (
        Example(USE + "for row in ops.ones((2, 3)):\n    print(row)\n"),
        Example(USE + "def f(n):\n    x = ops.ones(n)\n    return [ops.exp(v) for v in x]\n"),
        Example(USE + "x = ops.ones(3)\nfor i, v in enumerate(x):\n    print(i, v)\n"),
        Example(USE + "x = ops.ones(3)\nfor a, b in zip(x, [1, 2, 3]):\n    print(a, b)\n"),
        Example(USE + "x = ops.ones(3)\nfor i in range(len(x)):\n    print(x[i])\n"),
        Example(USE + "x = ops.ones(3)\ny = [*map(ops.exp, x)]\n"),
        Example(USE + "x = ops.ones(3)\nfor i in range(1, ops.shape(x)[0]):\n    print(x[i])\n"),
        Example(USE + "x = ops.ones(3)\ni = 0\nwhile i < len(x):\n    print(x[i])\n    i += 1\n"),
        Example(
            USE + "import itertools\n\nx = ops.ones(3)\nfor a, b in itertools.product(x, [1, 2]):\n    print(a, b)\n"
        ),
        Example(USE + "x = ops.ones(3)\na, b = x[:2]\n"),
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
        for while_ in file.index.nodes(ast.While):
            yield from self._while(file, while_)
        for assignment in file.index.nodes(ast.Assign):
            # A call may return a tuple although the inference takes it for a tensor, as `self.lstm(x)`.
            unpacks = any(isinstance(one, (ast.Tuple, ast.List)) for one in assignment.targets)
            if unpacks and isinstance(assignment.value, (ast.Name, ast.Attribute, ast.Subscript)):
                evidence = file.inference.evidence(assignment.value)
                yield from self._found(file, assignment.value, evidence, "unpacking")
        for call in file.index.nodes(ast.Call):
            name = _iterating(file, call.func)
            evidences = [file.inference.evidence(one) for one in call.args] if name else []
            yield from self._found(file, call, next((one for one in evidences if one is not None), None), f"{name}()")

    def _while(self, file: SourceFile, loop: ast.While) -> Iterator[Finding]:
        """Yields a finding for `while i < len(t)` with `t[i]`."""
        test = loop.test
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            for index, limit in ((test.left, test.comparators[0]), (test.comparators[0], test.left)):
                tensor = _length(limit)
                evidence = None if tensor is None else file.inference.evidence(tensor)
                if tensor is not None and isinstance(index, ast.Name) and _indexed(tensor, index.id, [*loop.body]):
                    yield from self._found(file, test, evidence, "while")

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


def _iterating(file: SourceFile, function: ast.expr) -> str:
    """Returns the name of a function that iterates over its arguments, or an empty string."""
    if isinstance(function, ast.Name) and function.id in ITERATING and is_builtin(file, function):
        return function.id
    origin = file.names.origin(function) if file.mentions("itertools") else None
    return origin if origin in ITERTOOLS else ""


def _measured(values: ast.expr) -> ast.expr | None:
    """Returns the `t` of `range(len(t))` or `range(t.shape[0])`."""
    if not (isinstance(values, ast.Call) and isinstance(values.func, ast.Name) and values.func.id == "range"):
        return None
    return next((tensor for limit in values.args if (tensor := _length(limit)) is not None), None)


def _length(limit: ast.expr) -> ast.expr | None:
    """Returns the `t` of `len(t)`, `t.shape[0]` or `ops.shape(t)[0]`."""
    if isinstance(limit, ast.Call) and isinstance(limit.func, ast.Name) and limit.func.id == "len" and limit.args:
        return limit.args[0]
    if not (isinstance(limit, ast.Subscript) and isinstance(limit.slice, ast.Constant) and limit.slice.value == 0):
        return None
    shape = limit.value
    if isinstance(shape, ast.Call) and isinstance(shape.func, ast.Attribute) and shape.func.attr == "shape":
        return shape.args[0] if shape.args else None
    return shape.value if isinstance(shape, ast.Attribute) and shape.attr == "shape" else None


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
