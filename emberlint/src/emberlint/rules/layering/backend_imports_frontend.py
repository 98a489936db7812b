"""EMB302: a backend that imports the namespace built on it."""

from collections.abc import Iterator

from emberlint.findings import Finding
from emberlint.rule import Example, Rule
from emberlint.source.local_imports import is_frontend, local_imports, place_of, role_of
from emberlint.source.source_file import SourceFile


class BackendImportsFrontend(Rule):
    """Finds imports of the frontend's folders in a backend's folder."""

    code = "EMB302"
    name = "backend-imports-frontend"
    message = "a backend imports {target}, which is built on it"
    why = (
        "The frontend dispatches to the backends, so a backend that imports the frontend creates an import cycle, "
        "and the ops it calls run on whichever backend is active at that time. The key `frontends` names the "
        "folders of the frontend."
    )
    roles = frozenset({"backend"})
    VALID = (
        Example("from library.core import errors\n", path="library/backend/torch/math_ops.py"),
        Example("from library import ops\n", path="library/nn/layers.py"),
        Example("import torch.ops\n", path="library/backend/torch/math_ops.py"),
        Example(
            "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from library import ops\n",
            path="library/backend/torch/math_ops.py",
        ),
    )
    INVALID = (
        Example("from library import ops\n", path="library/backend/torch/math_ops.py"),
        Example("from ...ops import math\n", path="library/backend/torch/math_ops.py"),
        Example("import library.ops.math\n", path="library/backend/base.py"),
        Example(
            "def f():\n    from library.ops import sin\n\n    return sin\n", path="src/library/backend/mlx/math_ops.py"
        ),
    )

    def check(self, file: SourceFile) -> Iterator[Finding]:
        """Yields a finding for each import of the frontend."""
        if is_frontend(file, file.module.replace(".", "/")):
            return  # EMB305 reports such a file as misplaced
        for import_node, imported_path in local_imports(file):
            if is_frontend(file, imported_path) and role_of(file, imported_path).backend is None:
                yield self.finding_at(file.path, place_of(file, import_node), target=import_node.target)
