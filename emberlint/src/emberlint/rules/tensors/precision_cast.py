"""EMB204: tensors converted to Python numbers."""

import ast
from collections.abc import Iterator

from emberlint.config.tiers import Tier
from emberlint.findings import Finding, Fix, Safety
from emberlint.rule import Example, Rule
from emberlint.source.operators import is_builtin
from emberlint.source.source_file import NoInference, SourceFile

CASTS = frozenset({"float", "int", "bool", "complex"})
METHODS = frozenset({"item", "tolist", "__float__", "__int__", "__bool__", "__complex__", "__index__"})
LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
USE = "from emberharmony import ops\n\n"
GUIDE = Fix(Safety.GUIDED, "keep the tensor: `ops.cast` changes its dtype; use `ops.to_numpy` only at the end")


class PrecisionCast(Rule):
    """Finds `float(t)`, `int(t)`, `bool(t)`, `complex(t)`, `.item()`, `.tolist()` and `math.f(t)`."""

    code = "EMB204"
    name = "precision-cast"
    message = "`{cast}` converts a tensor to a Python number{where}"
    why = (
        "A Python number loses the dtype of the tensor: float32 and bfloat16 become double precision, and the next "
        "op chooses a dtype anew. The conversion must compute the value and copy it to the host, which stalls the "
        "device and breaks traces and gradients. Inside a loop that happens in every iteration."
    )
    min_tier = Tier.C
    VALID = (
        Example(USE + "x = ops.ones(3)\nn = int(x.shape[0]) + float(len(x))\n"),
        Example("import math\n" + USE + "x = ops.multiply(ops.ones(3), math.sqrt(2.0))\n"),
        Example(USE + "def f(text):\n    return ops.full((3,), float(text.strip()))\n"),
        Example(USE + "y = ops.cast(ops.ones(3), 'int32')\nhost = ops.to_numpy(y).tolist()\n"),
    )
    INVALID = (
        Example(USE + "loss = float(ops.mean(ops.ones(3)))\n"),
        Example(USE + "def f(n):\n    x = ops.ones(n)\n    return x.sum().item()\n"),
        Example("import math\n" + USE + "norm = math.sqrt(ops.sum(ops.ones(3)))\n"),
        Example(USE + "values = [int(i) for i in ops.split(ops.arange(4), 4)]\n"),
        Example("from emberharmony.core.types import Tensor\n\ndef f(x: Tensor):\n    return x.tolist()\n"),
    )

    def check(self, file: SourceFile) -> Iterator[Finding]:
        """Yields a finding for each cast of a tensor."""
        if isinstance(file.inference, NoInference):
            return
        has_math = file.mentions("math")
        for call in file.index.nodes(ast.Call):
            function = call.func
            if isinstance(function, ast.Name) and function.id in CASTS:
                if call.args and is_builtin(file, function):
                    yield from self._findings_of_cast(file, call, call.args[0], f"{function.id}()")
            elif isinstance(function, ast.Attribute) and function.attr in METHODS:
                yield from self._findings_of_cast(file, call, function.value, f".{function.attr}()")
            elif has_math and call.args and (file.names.origin(function) or "").startswith(("math.", "cmath.")):
                function_name = (file.names.origin(function) or "").rpartition(".")[2]
                tensor_arguments = [arg for arg in call.args if file.inference.evidence(arg) is not None]
                if tensor_arguments:
                    yield from self._findings_of_cast(file, call, tensor_arguments[0], f"math.{function_name}()")

    def _findings_of_cast(self, file: SourceFile, call: ast.Call, operand: ast.expr, cast: str) -> Iterator[Finding]:
        evidence = file.inference.evidence(operand)
        if evidence is not None:
            loop_depth = _loop_depth(file, call)
            loop_text = ", inside a loop" if loop_depth else ""
            tier, reason = evidence
            yield self.finding(
                file, call, tier=tier, reason=reason, fix=GUIDE, rank=loop_depth, cast=cast, where=loop_text
            )


def _loop_depth(file: SourceFile, node: ast.AST) -> int:
    """Returns the number of loops around a node within its function."""
    loop_count = 0
    for ancestor in file.ancestors(node):
        if isinstance(ancestor, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            break
        loop_count += isinstance(ancestor, LOOPS)
    return loop_count
