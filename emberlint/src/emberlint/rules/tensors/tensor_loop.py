"""EMB206: Python loops over tensors."""

import ast
from collections.abc import Iterator

from emberlint.config.tiers import Tier
from emberlint.findings import Finding, Fix, Safety
from emberlint.rule import Example, Rule
from emberlint.source.lengths import is_indexed, lengths, loop_lengths
from emberlint.source.operators import is_builtin
from emberlint.source.source_file import Evidence, NoInference, SourceFile

ITERATING = frozenset(
    {"zip", "map", "enumerate", "reversed", "iter", "list", "tuple", "set", "sorted", "filter", "sum", "any", "all"}
)
ITERTOOLS = frozenset(
    f"itertools.{name}"
    for name in ("product", "chain", "zip_longest", "islice", "accumulate", "pairwise", "combinations", "permutations")
)
SETTABLE = frozenset({"shape", "dtype", "strides", "data", "real", "imag", "flat", "grad", "requires_grad", "names"})
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
        Example(USE + "x = ops.ones(9)\nfor i in range(0, len(x), 3):\n    print(x[i : i + 3])\n"),
        Example(USE + "x = ops.ones((2, 3))\nfor n in x.shape:\n    print(n)\nfor i in range(len(x)):\n    print(i)\n"),
        Example(USE + "weights = {'a': ops.ones(3)}\nfor name, w in weights.items():\n    print(name, w.shape)\n"),
        Example(USE + "def f(pairs: list[tuple[int, str]]):\n    a, b = zip(*pairs)\n    return a, b, ops.ones(3)\n"),
        Example(
            USE
            + "import numpy as np\n\ndef f(axes: np.ndarray):\n    for one in axes.flat:\n        one.plot([1], [2])\n"
        ),
        Example(
            USE + "import numpy as np\n\nclass Path:\n    def __init__(self, entities=None):\n"
            "        self.entities = np.array([]) if entities is None else np.asanyarray(entities)\n\n"
            "    def paint(self, color):\n        for one in self.entities:\n            one.color = color\n"
        ),
        Example(USE + "x = ops.ones((2, 3))\nrows, columns = x.shape\na, b = ops.split(x, 2)\n"),
        Example(USE + "x = ops.ones(3)\ni = 0\nwhile i < len(x):\n    i += 1\n"),
        Example(USE + "layers = [ops.ones(3) for _ in range(2)]\nshapes = [w.shape for w in layers]\n"),
    )
    INVALID = (
        Example(USE + "for row in ops.ones((2, 3)):\n    print(row)\n"),
        Example(USE + "def f(n):\n    x = ops.ones(n)\n    return [ops.exp(v) for v in x]\n"),
        Example(USE + "for v in ops.ones(3):\n    v.requires_grad = True\n"),
        Example(USE + "x = ops.ones(3)\nfor i, v in enumerate(x):\n    print(i, v)\n"),
        Example(USE + "x = ops.ones(3)\nfor a, b in zip(x, [1, 2, 3]):\n    print(a, b)\n"),
        Example(USE + "x = ops.ones(3)\nfor i in range(len(x)):\n    print(x[i])\n"),
        Example(USE + "x = ops.ones(3)\ny = [*map(ops.exp, x)]\n"),
        Example(USE + "x = ops.ones(3)\nfor i in range(1, ops.shape(x)[0]):\n    print(x[i])\n"),
        Example(USE + "x = ops.ones(3)\ni = 0\nwhile i < len(x):\n    print(x[i])\n    i += 1\n"),
        Example(USE + "def f(n):\n    x = ops.ones((n, 3))\n    return print(*x)\n"),
        Example(USE + "def f(n):\n    x = ops.ones((n, 3))\n    yield from x\n"),
        Example(
            USE + "def f(n):\n    x = ops.ones((n, 3))\n    rows, columns = x.shape\n"
            "    for j in range(columns - 1):\n        print(x[:, j + 1])\n"
        ),
        Example(
            USE + "import itertools\n\nx = ops.ones(3)\nfor a, b in itertools.product(x, [1, 2]):\n    print(a, b)\n"
        ),
        Example(USE + "x = ops.ones(3)\na, b = x[:2]\n"),
        Example(USE + "import numpy as np\n\nx = ops.ones(3)\nfor at in np.ndindex(x.shape):\n    print(x[at])\n"),
    )

    def check(self, file: SourceFile) -> Iterator[Finding]:
        """Yields a finding for each loop over a tensor."""
        if isinstance(file.inference, NoInference):
            return
        for loop in file.index.nodes(ast.For, ast.AsyncFor):
            yield from self._findings_of_loop(file, loop.iter, "for", loop.target, [*loop.body])
        for generator in file.index.nodes(ast.comprehension):
            parent = file.parent(generator)
            loop_nodes = [parent] if parent is not None else []
            yield from self._findings_of_loop(file, generator.iter, "comprehension", generator.target, [*loop_nodes])
        for while_ in file.index.nodes(ast.While):
            yield from self._findings_of_while(file, while_)
        for value, iteration_kind in _unpacked_values(file):
            yield from self._findings_at(file, value, file.inference.evidence(value), iteration_kind)
        for call in file.index.nodes(ast.Call):
            iterating_function = _iterating_function_name(file, call.func)
            evidences = [file.inference.evidence(arg) for arg in call.args] if iterating_function else []
            yield from self._findings_at(
                file,
                call,
                next((evidence for evidence in evidences if evidence is not None), None),
                f"{iterating_function}()",
            )

    def _findings_of_while(self, file: SourceFile, loop: ast.While) -> Iterator[Finding]:
        """Yields a finding for `while i < len(t)` with `t[i]`."""
        loop_test = loop.test
        if isinstance(loop_test, ast.Compare) and len(loop_test.ops) == 1:
            for index, limit in (
                (loop_test.left, loop_test.comparators[0]),
                (loop_test.comparators[0], loop_test.left),
            ):
                for length in lengths(file, limit):
                    evidence = file.inference.evidence(length.tensor)
                    if (
                        evidence is not None
                        and isinstance(index, ast.Name)
                        and is_indexed(length, index.id, [*loop.body])
                    ):
                        yield from self._findings_at(file, loop_test, evidence, "while")

    def _findings_of_loop(
        self, file: SourceFile, values: ast.expr, how: str, target: ast.expr, body: list[ast.AST]
    ) -> Iterator[Finding]:
        if not _holds_objects(values, target, body):
            yield from self._findings_at(file, values, file.inference.evidence(values), how)
        if not isinstance(target, ast.Name):
            return
        for length in loop_lengths(file, values):
            evidence = file.inference.evidence(length.tensor)
            if evidence is not None and is_indexed(length, target.id, body):
                yield from self._findings_at(file, values, evidence, "range(len())")
                return

    def _findings_at(self, file: SourceFile, node: ast.AST, evidence: Evidence | None, how: str) -> Iterator[Finding]:
        if evidence is not None:
            yield self.finding(file, node, tier=evidence.tier, reason=evidence.reason, fix=GUIDE, how=how)


def _holds_objects(values: ast.expr, target: ast.expr, body: list[ast.AST]) -> bool:
    """Returns whether a loop uses its elements as no tensor can be used, so that the array holds objects.

    It sets their attributes, reads private ones, or calls methods of the elements of `a.flat`, as of a figure's axes.
    """
    if not isinstance(target, ast.Name):
        return False
    body_nodes = [node for statement in body for node in ast.walk(statement)]
    target_attributes = [
        node for node in body_nodes if isinstance(node, ast.Attribute) and _is_named(node.value, target.id)
    ]
    if any(
        (attribute.attr.startswith("_") and not attribute.attr.startswith("__"))
        or (_is_stored(attribute) and attribute.attr not in SETTABLE)
        for attribute in target_attributes
    ):
        return True
    is_flat_iterator = isinstance(values, ast.Attribute) and values.attr == "flat"
    return is_flat_iterator and any(
        isinstance(node, ast.Call) and node.func in target_attributes for node in body_nodes
    )


def _is_named(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_stored(node: ast.Attribute) -> bool:
    return isinstance(node.ctx, ast.Store)


def _unpacked_values(file: SourceFile) -> Iterator[tuple[ast.expr, str]]:
    """Yields what `a, b = t`, `f(*t)` and `yield from t` iterate over.

    A call may return a tuple although the inference takes it for a tensor, as `self.lstm(x)`, so calls do not count.
    """
    nodes_of = file.index.nodes
    values_and_targets = ((node.value, target) for node in nodes_of(ast.Assign) for target in node.targets)
    iterated_values = [
        (value, "unpacking") for value, target in values_and_targets if isinstance(target, (ast.Tuple, ast.List))
    ]
    iterated_values += [(node.value, "unpacking") for node in nodes_of(ast.Starred) if isinstance(node.ctx, ast.Load)]
    iterated_values += [(node.value, "yield from") for node in nodes_of(ast.YieldFrom)]
    for value, iteration_kind in iterated_values:
        if isinstance(value, (ast.Name, ast.Attribute, ast.Subscript)):
            yield value, iteration_kind


def _iterating_function_name(file: SourceFile, function: ast.expr) -> str:
    """Returns the name of a function that iterates over its arguments, or an empty string."""
    if isinstance(function, ast.Name) and function.id in ITERATING and is_builtin(file, function):
        return function.id
    origin = file.names.origin(function) if file.mentions("itertools") else None
    return origin if origin in ITERTOOLS else ""
