"""EMB303: a backend that imports another backend."""

from collections.abc import Iterator

from emberlint.findings import Finding
from emberlint.rule import Example, Rule
from emberlint.source.local_imports import local_imports, place_of, role_of
from emberlint.source.source_file import SourceFile


class BackendCrossImport(Rule):
    """Finds imports of one backend's modules in another backend's folder."""

    code = "EMB303"
    name = "backend-cross-import"
    message = "the {mine} backend imports {target} of the {theirs} backend"
    why = (
        "A backend that imports another cannot be installed without it, and mixes the arrays of two libraries. Code "
        "that both need belongs in a module next to them."
    )
    roles = frozenset({"backend"})
    VALID = (
        Example("from library.backend.torch import dtypes\n", path="library/backend/torch/math_ops.py"),
        Example("from library.backend import base\n", path="library/backend/torch/math_ops.py"),
        Example("from library.backend.numpy import math_ops\n", path="library/backend/discovery.py"),
    )
    INVALID = (
        Example("from library.backend.numpy import math_ops\n", path="library/backend/torch/math_ops.py"),
        Example("from ..mlx import dtypes\n", path="library/backend/numpy/math_ops.py"),
        Example("from library.backend import torch\n", path="library/backend/mlx/math_ops.py"),
        Example("import library.backend.torch.dtypes as d\n", path="library/backend/mlx/math_ops.py"),
    )

    def check(self, file: SourceFile) -> Iterator[Finding]:
        """Yields a finding for each import of another backend's module."""
        own_backend = file.role.backend
        for import_node, imported_path in local_imports(file) if own_backend else ():
            imported_backend = role_of(file, imported_path).backend
            if imported_backend is not None and imported_backend != own_backend:
                yield self.finding_at(
                    file.path,
                    place_of(file, import_node),
                    mine=own_backend,
                    theirs=imported_backend,
                    target=import_node.target,
                )
