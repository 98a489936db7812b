"""EMB401: an op that a backend lacks."""

from collections.abc import Iterator

from emberlint.findings import Finding, Fix, Safety
from emberlint.parity.current import current_matrix
from emberlint.parity.matrix import Status
from emberlint.rule import Example, ProjectRule
from emberlint.source.project import Project

PARITY = {"parity": {"frontend": "library/ops", "backend": "library/backend"}}
OP = "from library.core import op\n\n@op\ndef sin(x):\n    ...\n"
TORCH = "import torch\n\nclass TorchMathOps:\n    sin = staticmethod(torch.sin)\n"
WRITE = Fix(Safety.GUIDED, 'define it, or declare the gap: `name = unsupported("reason")`')
MOVE = Fix(Safety.GUIDED, "`python utils/analyze_backend_operations.py --migrate` moves it")


class OpMissing(ProjectRule):
    """Finds primitive ops that a backend neither defines nor declares unsupported."""

    code = "EMB401"
    name = "op-missing"
    message = "op {op!r} is missing from backend {backend!r}{where}"
    why = (
        "A program that runs on one backend fails on another with an AttributeError, long after the op was added. "
        "Declare an intended gap with its reason; the matrix of ops then shows it, and a call raises a typed error."
    )
    VALID = (
        Example(OP, "library/ops/math.py", files={"library/backend/torch/math_ops.py": TORCH}, settings=PARITY),
        Example(
            OP,
            "library/ops/math.py",
            files={
                "library/backend/torch/math_ops.py": "class TorchMathOps:\n    sin = unsupported('no kernel')\n",
            },
            settings=PARITY,
        ),
        Example(
            "from library.core import op\n\n@op\ndef twice(x):\n    return add(x, x)\n",
            "library/ops/math.py",
            files={"library/backend/torch/math_ops.py": TORCH},
            settings=PARITY,
        ),
    )
    INVALID = (
        Example(
            OP,
            "library/ops/math.py",
            count=2,
            files={
                "library/backend/torch/math_ops.py": TORCH,
                "library/backend/mlx/math_ops.py": "class MLXMathOps:\n    pass\n",
                "library/backend/numpy/math_ops.py": "class NumpyMathOps:\n    cos = None\n",
            },
            settings=PARITY,
        ),
        Example(
            "def sin(x):\n    return backend().sin(x)\n",
            "library/ops/math.py",
            files={
                "library/ops/torch/math_ops.py": "import torch\n\ndef sin(x):\n    return torch.sin(x)\n",
                "library/backend/torch/__init__.py": "",
            },
            settings=PARITY,
        ),
    )

    def check(self, project: Project) -> Iterator[Finding]:
        """Yields a finding at the declaration for each backend that lacks the op."""
        op_matrix = current_matrix(project)
        for row, backend, cell in op_matrix.gaps() if op_matrix is not None else ():
            if row.declaration is None or cell.status is Status.DIFFERS:
                continue
            is_misplaced = cell.status is Status.MISPLACED
            place_text = f": it is only in {cell.detail}" if is_misplaced else ""
            span = row.declaration.place
            fix = MOVE if is_misplaced else WRITE
            yield self.finding_at(span.path, span[1:], fix=fix, op=row.name, backend=backend, where=place_text)
