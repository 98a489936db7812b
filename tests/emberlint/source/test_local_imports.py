"""The roles of imported modules."""

from pathlib import Path

import pytest

from emberlint.config.settings import Settings
from emberlint.run.check import check_text

CODES = frozenset({"EMB304", "EMB305"})


@pytest.mark.parametrize("source", ["", "src/"])
@pytest.mark.parametrize(
    "module, line, expected",
    [
        ("ops/numpy.py", "from library.ops.numpy import matmul", 0),
        ("ops/numpy.py", "from library.ops import numpy", 0),
        ("ops/numpy.py", "from .ops.numpy import matmul", 0),
        ("ops/numpy/math.py", "from library.ops.numpy import matmul", 1),
        ("backend/numpy.py", "from library.backend.numpy import matmul", 1),
    ],
)
def test_a_module_named_like_a_library_is_a_backend_only_in_a_folder_of_backends(
    tmp_path: Path, source: str, module: str, line: str, expected: int
) -> None:
    place = tmp_path / source / "library" / module
    place.parent.mkdir(parents=True)
    place.touch()
    result = check_text(f"{source}library/layers.py", f"{line}\n", Settings(root=tmp_path), CODES)
    assert len(result.findings) == expected
