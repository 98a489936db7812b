"""EMB301: an import against the order of the layers."""

from collections.abc import Iterator, Mapping

from emberlint.contracts import breaches
from emberlint.findings import Finding
from emberlint.rule import Example, ProjectRule
from emberlint.source.project import Project

LAYERS: Mapping[str, object] = {
    "contracts": [
        {"name": "floors", "type": "layers", "layers": ["library.nn | library.optim", "library.ops", "library.core"]}
    ]
}
APART: Mapping[str, object] = {
    "contracts": [{"name": "apart", "type": "independence", "modules": ["library.lint", "library.core"]}]
}
GROUPED: Mapping[str, object] = {
    "contracts": [{"name": "apart", "type": "independence", "modules": ["library.lint", "library.ops : library.core"]}]
}
INNER: Mapping[str, object] = {
    "contracts": [
        {"name": "inner", "type": "protected", "modules": ["library.core.raw"], "allowed": ["library.backend"]}
    ]
}
OPS = {"library/__init__.py": "", "library/ops.py": "", "library/nn.py": "", "library/optim.py": ""}
CORE = {"library/__init__.py": "", "library/core/__init__.py": "", "library/core/raw.py": ""}


class LayerOrder(ProjectRule):
    """Finds imports that break a contract: layers, independence, protected modules."""

    code = "EMB301"
    name = "layer-order"
    message = "this import breaks the contract {contract!r}: {chain}"
    why = (
        "Each layer imports only from those below it. One import upwards, even through a third module, creates an "
        "import cycle, and then no layer can be used or tested without the others. The contracts are listed in "
        "`[[tool.emberlint.contracts]]`."
    )
    roles = frozenset({"frontend", "backend", "script", "test"})
    VALID = (
        Example("from library import ops\n", path="library/nn.py", files=OPS, settings=LAYERS),
        Example("import library.core\n", path="library/ops.py", files={**CORE, **OPS}, settings=LAYERS),
        Example(
            "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from library import nn\n",
            path="library/core/types.py",
            files={**CORE, **OPS},
            settings=LAYERS,
        ),
        Example("from library import core\n", path="library/ops.py", files={**CORE, **OPS}, settings=GROUPED),
        Example("from library.core import raw\n", path="library/backend/base.py", files=CORE, settings=INNER),
        Example("from library.core import errors\n", path="library/nn.py", files=CORE, settings=INNER),
    )
    INVALID = (
        Example("from library import ops\n", path="library/core/types.py", files={**CORE, **OPS}, settings=LAYERS),
        Example("from library import nn\n", path="library/optim.py", files={"library/nn.py": ""}, settings=LAYERS),
        Example(
            "from library import helpers\n",
            path="library/core/types.py",
            files={**CORE, **OPS, "library/helpers.py": "def f():\n    import library.nn\n"},
            settings=LAYERS,
        ),
        Example("from ..core import raw\n", path="library/lint/names.py", files=CORE, settings=APART),
        Example("from .core import raw\n", path="library/lint.py", files=CORE, settings=GROUPED),
        Example("import library.lint\n", path="library/ops.py", files={"library/lint.py": ""}, settings=GROUPED),
        Example("from library.core.raw import read\n", path="library/nn.py", files=CORE, settings=INNER),
    )

    def check(self, project: Project) -> Iterator[Finding]:
        """Yields a finding for each import that starts a forbidden chain."""
        for breach in breaches(project):
            import_statement = breach.at
            span = (
                import_statement.line,
                import_statement.column,
                import_statement.end_line,
                import_statement.end_column,
            )
            yield self.finding_at(breach.path, span, contract=breach.contract, chain=" -> ".join(breach.chain))
