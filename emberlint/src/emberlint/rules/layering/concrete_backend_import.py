"""EMB304: frontend code that imports one backend's modules."""

from collections.abc import Iterator

from emberlint.findings import Finding
from emberlint.rule import Example, Rule
from emberlint.source.local_imports import local_imports, place_of, role_of
from emberlint.source.source_file import SourceFile


class ConcreteBackendImport(Rule):
    """Finds imports of a backend's own modules in frontend code."""

    code = "EMB304"
    name = "concrete-backend-import"
    message = "{target} belongs to the {backend} backend; frontend code must use the namespace"
    why = (
        "A concrete backend returns tensors of its library, even if another backend is active. The same call "
        "through the namespace uses the active backend."
    )
    VALID = (
        Example("from library import ops\n"),
        Example("from library.backend import get_backend\n"),
        Example("from library.backend.torch import math_ops\n", path="tests/test_torch.py"),
        Example("from otherlib.backend.torch import math_ops\n"),
        Example("from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from library.backend.torch import Math\n"),
    )
    INVALID = (
        Example("from library.backend.torch import math_ops\n"),
        Example("from library.backend import numpy as backend\n"),
        Example("import library.backend.mlx.math_ops\n"),
        Example("def f(x):\n    from .backend.torch.math_ops import sin\n\n    return sin(x)\n"),
    )

    def check(self, file: SourceFile) -> Iterator[Finding]:
        """Yields a finding for each import of a concrete backend."""
        for import_node, imported_path in local_imports(file):
            backend = role_of(file, imported_path).backend
            if backend is not None:
                yield self.finding_at(
                    file.path, place_of(file, import_node), target=import_node.target, backend=backend
                )
