"""EMB201: Python's arithmetic operators on tensors."""

import ast
from collections.abc import Iterator

from emberlint.config.tiers import Tier
from emberlint.findings import Finding, Fix, Safety
from emberlint.rule import Example, Rule
from emberlint.source.operators import ARITHMETIC, OPERATORS, call_text, is_builtin, safety
from emberlint.source.source_file import NoInference, SourceFile

BUILTINS = {"abs": "absolute", "pow": "power", "round": "round", "divmod": "floor_divide"}
IN_PLACE = {"iadd": "add", "isub": "subtract", "imul": "multiply", "itruediv": "divide"}
USE = "from emberharmony import ops\n\n"
TYPED = "from emberharmony import ops\nfrom emberharmony.core.types import Tensor\n\n"
LAYER = (
    "import keras\nfrom keras import ops\n\nclass Scale(keras.layers.Layer):\n    def build(self, shape):\n"
    "        self.w = self.add_weight(shape=(shape[-1],))\n\n"
)


class TensorOperator(Rule):
    """Finds arithmetic, matrix, bitwise, unary and augmented operators on tensors."""

    code = "EMB201"
    name = "tensor-operator"
    message = "operator `{symbol}` on a tensor: `ops.{op}` means the same on every backend"
    why = (
        "An operator on native tensors follows the rules of their library instead of the namespace's: int / int is "
        "float64 on NumPy and float32 elsewhere, operands of two libraries mix silently, errors have no type, and "
        "neither checked mode nor the gradient tape sees a plain array. The op promotes, checks and fails in the "
        "same way on every backend. An augmented operator changes the tensor in place, so every other name for it sees "
        "the change, on PyTorch and MLX even if the tensor is 0-d, as in `n += ops.prod(shape)`; use `math.prod` "
        "there, which returns a Python number."
    )
    min_tier = Tier.C
    VALID = (
        Example(USE + "x = ops.add(ops.ones(3), 1)\n"),
        Example(USE + "def rows(x):\n    y = ops.exp(x)\n    return y.shape[0] * y.shape[1] + len(y) - y.ndim\n"),
        Example(USE + "def f(n: int, rate: float = 0.5):\n    return ops.ones(n * 2), rate * 0.9 ** n\n"),
        Example(USE + "parts = [ops.ones(3)] * 2 + [ops.zeros(3)]\n"),
        Example(USE + "text = 'mean %s' % ops.mean(ops.ones(3))\n"),
        Example(
            USE + "class Money:\n    def __init__(self, cents):\n        self.cents = cents\n"
            "\n    def __add__(self, other):\n        return Money(self.cents + other.cents)\n"
            "\ntotal = Money(1) + Money(2)\nx = ops.ones(total.cents)\n"
        ),
        Example(USE + "def f(x):\n    if isinstance(x, float):\n        return x * 2\n    return ops.multiply(x, 2)\n"),
        Example(
            USE + "def steps(np):\n    return np * 2 + np.size\n\ny = ops.ones(steps(3))\n",
        ),
    )
    INVALID = (
        Example(USE + "y = ops.ones(3) + 1\n", fixed=USE + "y = ops.add(ops.ones(3), 1)\n"),
        Example(
            USE + "def f(n):\n    x = ops.ones(n)\n    return -x\n",
            fixed=USE + "def f(n):\n    x = ops.ones(n)\n    return ops.negative(x)\n",
        ),
        Example(
            TYPED + "def f(x: Tensor, w: Tensor | None = None):\n    return x @ w\n",
            fixed=TYPED + "def f(x: Tensor, w: Tensor | None = None):\n    return ops.matmul(x, w)\n",
        ),
        Example(
            USE + "total = 0.0\nfor part in ops.split(ops.ones(4), 2):\n    total += part\n",
            fixed=USE + "total = 0.0\nfor part in ops.split(ops.ones(4), 2):\n    total = ops.add(total, part)\n",
            unsafe=True,
        ),
        Example(
            USE + "n = 0\nfor shape in ((2, 3), (4,)):\n    n += ops.prod(shape)\n",
            fixed=USE + "n = 0\nfor shape in ((2, 3), (4,)):\n    n = ops.add(n, ops.prod(shape))\n",
            unsafe=True,
        ),
        Example(
            LAYER + "    def call(self, inputs):\n        return inputs * self.w\n",
            fixed=LAYER + "    def call(self, inputs):\n        return ops.multiply(inputs, self.w)\n",
        ),
        Example(
            USE + "def gelu(x):\n    return 0.5 * x * ops.erf(x)\n",
            count=2,
            fixed=USE + "def gelu(x):\n    return ops.multiply(ops.multiply(0.5, x), ops.erf(x))\n",
            unsafe=True,
        ),
        Example(
            "import torch\n" + USE + "def f(x: torch.Tensor):\n    return x + 1\n",
            fixed="import torch\n" + USE + "def f(x: torch.Tensor):\n    return ops.add(x, 1)\n",
            unsafe=True,
        ),
        Example(USE + "y = abs(ops.ones(3))\n", fixed=USE + "y = ops.absolute(ops.ones(3))\n"),
        Example(
            USE + "import operator\nfrom functools import reduce\n\ny = operator.add(ops.ones(3), 2)\n",
            fixed=USE + "import operator\nfrom functools import reduce\n\ny = ops.add(ops.ones(3), 2)\n",
        ),
    )

    def check(self, file: SourceFile) -> Iterator[Finding]:
        """Yields a finding for each operator on a tensor."""
        if isinstance(file.inference, NoInference):
            return
        for node in file.index.nodes(ast.BinOp):
            yield from self._findings_of_operator(file, node, node, node.op, [node.left, node.right])
        for unary_operation in file.index.nodes(ast.UnaryOp):
            if not isinstance(unary_operation.op, ast.Not):
                yield from self._findings_of_operator(
                    file, unary_operation, unary_operation, unary_operation.op, [unary_operation.operand]
                )
        for statement in file.index.nodes(ast.AugAssign):
            target = statement.target
            # EMB205 reports writes into a tensor
            if not (isinstance(target, ast.Subscript) and file.inference.evidence(target.value)):
                yield from self._findings_of_operator(file, statement, target, statement.op, [target, statement.value])
        for call in file.index.nodes(ast.Call):
            yield from self._findings_of_call(file, call)

    def _findings_of_operator(
        self,
        file: SourceFile,
        node: ast.AST,
        result: ast.expr,
        operator: ast.operator | ast.unaryop,
        operands: list[ast.expr],
    ) -> Iterator[Finding]:
        evidence = file.inference.evidence(result)
        is_allowed = (
            file.settings.allow_safe_operators and isinstance(node, ast.expr) and file.inference.is_safe_operator(node)
        )
        if evidence is not None and not is_allowed:
            symbol, op, _ = OPERATORS[type(operator)]
            is_augmented = isinstance(node, ast.AugAssign)
            fix = Fix(
                Safety.UNSAFE if is_augmented else safety(file, evidence),
                f"call `ops.{op}`",
                "" if is_augmented else call_text(file, op, operands),
            )
            symbol += "=" if is_augmented else ""
            yield self.finding(file, node, tier=evidence.tier, reason=evidence.reason, fix=fix, symbol=symbol, op=op)

    def _findings_of_call(self, file: SourceFile, call: ast.Call) -> Iterator[Finding]:
        function = call.func
        if isinstance(function, ast.Name) and function.id in BUILTINS and is_builtin(file, function):
            function_name, op = function.id, BUILTINS[function.id]
        elif file.mentions("operator") and (file.names.origin(function) or "").startswith("operator."):
            function_name = (file.names.origin(function) or "").removeprefix("operator.")
            op = ARITHMETIC.get(function_name) or IN_PLACE.get(function_name, "")
        else:
            return
        evidence = file.inference.evidence(call)
        if function_name == "divmod" and call.args:
            evidence = file.inference.evidence(call.args[0])
        if file.settings.allow_safe_operators and file.inference.is_safe_operator(call):
            return
        if evidence is not None and op:
            fix = Fix(
                Safety.GUIDED if function_name == "divmod" else safety(file, evidence),
                f"call `ops.{op}`",
                call_text(file, op, call.args),
            )
            yield self.finding(
                file, call, tier=evidence.tier, reason=evidence.reason, fix=fix, symbol=function_name, op=op
            )
