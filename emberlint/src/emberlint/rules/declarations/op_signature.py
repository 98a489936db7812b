"""EMB402: an op whose definition cannot be called as declared."""

from collections.abc import Iterator

from emberlint.findings import Finding, Fix, Safety
from emberlint.parity.current import current_matrix
from emberlint.parity.matrix import Status
from emberlint.rule import Example, ProjectRule
from emberlint.source.project import Project

PARITY = {"parity": {"frontend": "library/ops", "backend": "library/backend"}}
DECLARED = {
    "library/ops/math.py": "from library.core import op\n\n@op\ndef total(x, axis=None, *, dtype=None):\n    ...\n"
}
PATH = "library/backend/torch/math_ops.py"
GUIDE = Fix(Safety.GUIDED, "use the declared names, order, kinds and defaults")


class OpSignature(ProjectRule):
    """Finds definitions that differ from the declaration in names, order, kinds or defaults."""

    code = "EMB402"
    name = "op-signature"
    message = "{op}{defined} is declared as {op}{declared}: {how}"
    why = (
        "A call that works on one backend raises a TypeError on another or, if only a default differs, silently "
        "computes something else."
    )
    roles = frozenset({"frontend", "backend"})
    VALID = (
        Example(
            "class TorchMathOps:\n    @staticmethod\n    def total(x, axis=None, *, dtype=None):\n        return x\n",
            PATH,
            files=DECLARED,
            settings=PARITY,
        ),
        Example(
            "import torch\n\nclass TorchMathOps:\n    total = staticmethod(torch.sum)\n",
            PATH,
            files=DECLARED,
            settings=PARITY,
        ),
        Example(
            "class TorchMathOps:\n    def total(self, x, *args, **kwargs):\n        return x\n",
            PATH,
            files=DECLARED,
            settings=PARITY,
        ),
    )
    INVALID = (
        Example(
            "class TorchMathOps:\n    def total(self, x, dim=None, *, dtype=None):\n        return x\n",
            PATH,
            files=DECLARED,
            settings=PARITY,
        ),
        Example(
            "class TorchMathOps:\n    @staticmethod\n    def total(x, axis=0, *, dtype=None):\n        return x\n",
            PATH,
            files=DECLARED,
            settings=PARITY,
        ),
        Example(
            "class TorchMathOps:\n    total = staticmethod(lambda x, axis=None: x)\n",
            PATH,
            files=DECLARED,
            settings=PARITY,
        ),
    )

    def check(self, project: Project) -> Iterator[Finding]:
        """Yields a finding at each definition that differs."""
        op_matrix = current_matrix(project)
        for row, _, cell in op_matrix.gaps() if op_matrix is not None else ():
            if cell.status is Status.DIFFERS and cell.definition is not None:
                span, declared_signature, defined_signature = cell.definition.place, cell.declared, cell.defined
                difference_text = cell.detail
                yield self.finding_at(
                    span.path,
                    span[1:],
                    fix=GUIDE,
                    op=row.name,
                    declared=declared_signature,
                    defined=defined_signature,
                    how=difference_text,
                )
