"""EMB403: an op that the frontend's package does not export."""

from collections.abc import Iterator

from emberlint.findings import Finding, Fix, Safety
from emberlint.parity.current import current_matrix
from emberlint.rule import Example, ProjectRule
from emberlint.source.project import Project

PARITY = {"parity": {"frontend": "library/ops", "backend": "library/backend"}}
OP = "from library.core import op\n\n@op\ndef sin(x):\n    ...\n"
TORCH = {
    "library/backend/torch/math_ops.py": "import torch\n\nclass TorchMathOps:\n    sin = staticmethod(torch.sin)\n"
}
GUIDE = Fix(Safety.GUIDED, "re-export it: `from library.ops.math import sin as sin`, and in `__all__` if there is one")


class OpNotExported(ProjectRule):
    """Finds ops that the `__init__` of the frontend neither re-exports nor has in one of its namespaces."""

    code = "EMB403"
    name = "op-not-exported"
    message = "op {op!r} is not exported by {package}"
    why = "Users cannot reach an op through the documented import if the frontend's package does not export it."
    VALID = (
        Example(
            OP,
            "library/ops/math.py",
            files={**TORCH, "library/ops/__init__.py": "from library.ops.math import sin as sin\n"},
            settings=PARITY,
        ),
        Example(
            OP,
            "library/ops/waves.py",
            files={**TORCH, "library/ops/__init__.py": "from library.ops import waves as waves\n"},
            settings=PARITY,
        ),
        Example(
            OP,
            "library/ops/math.py",
            files={**TORCH, "library/ops/__init__.py": "from .math import *\n"},
            settings=PARITY,
        ),
        Example(
            OP,
            "library/ops/math.py",
            files={**TORCH, "library/ops/__init__.py": "def __getattr__(name):\n    return find(name)\n"},
            settings=PARITY,
        ),
    )
    INVALID = (
        Example(
            OP,
            "library/ops/math.py",
            files={**TORCH, "library/ops/__init__.py": "from library.ops.math import cos as cos\n"},
            settings=PARITY,
        ),
        Example(
            OP,
            "library/ops/math.py",
            files={**TORCH, "library/ops/__init__.py": "from library.ops.math import sin\n\n__all__ = ['cos']\n"},
            settings=PARITY,
        ),
    )

    def check(self, project: Project) -> Iterator[Finding]:
        """Yields a finding at each declaration that is not exported."""
        op_matrix = current_matrix(project)
        if op_matrix is None:
            return
        for row in op_matrix.rows:
            if row.declaration is not None and not row.exported:
                span = row.declaration.place
                yield self.finding_at(span.path, span[1:], fix=GUIDE, op=row.name, package=op_matrix.layout.frontend)
