"""EMB305: an implementation for one backend in the frontend's folder."""

from collections.abc import Iterator

from emberlint.config.settings import matches
from emberlint.findings import Finding, Fix, Safety
from emberlint.rule import Example, Rule
from emberlint.source.source_file import SourceFile

GUIDE = Fix(Safety.GUIDED, "`python utils/analyze_backend_operations.py --migrate` moves it")


class MisplacedImplementation(Rule):
    """Finds folders such as `ops/torch/`, which hold a backend in the frontend."""

    code = "EMB305"
    name = "misplaced-implementation"
    message = "{folder} holds an implementation for {backend}; it belongs in the backend's folder"
    why = (
        "If declarations and implementations share a folder, they import each other in cycles, and no layering "
        "contract can check that the frontend is free of array libraries."
    )
    roles = frozenset({"frontend", "backend"})
    VALID = (
        Example("x = 1\n", path="library/backend/torch/math_ops.py"),
        Example("x = 1\n", path="library/ops/math.py"),
        Example("x = 1\n", path="library/examples/torch/train.py"),
    )
    INVALID = (
        Example("x = 1\n", path="library/ops/torch/math_ops.py"),
        Example("import numpy\n", path="library/frontend/numpy/__init__.py"),
        Example("x = 1\n", path="library/layers/mlx/dense.py", settings={"frontends": ["**/layers"]}),
    )

    def check(self, file: SourceFile) -> Iterator[Finding]:
        """Yields one finding for a file in such a folder."""
        folder_names = file.path.split("/")[:-1]
        for depth, name in enumerate(folder_names):
            parent_folder = "/".join(folder_names[:depth])
            if (
                depth
                and name in file.settings.backends
                and any(_matches_exactly(parent_folder, frontend) for frontend in file.settings.frontends)
            ):
                implementation_folder = f"{parent_folder}/{name}/"
                yield self.finding_at(file.path, (1, 1, 1, 1), folder=implementation_folder, backend=name, fix=GUIDE)
                return


def _matches_exactly(folder: str, pattern: str) -> bool:
    """Returns whether the pattern matches the folder itself, not a folder above it."""
    return matches(folder, pattern) and not matches(folder.rpartition("/")[0], pattern)
