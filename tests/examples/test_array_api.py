"""The example of other libraries on the arrays of `emberharmony.xp` runs on every backend."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "array_api" / "scikit_learn.py"


@pytest.mark.fresh_process
@pytest.mark.sampled(3, everywhere=True)
def test_scikit_learn_and_scipy_run_on_a_backend(backend: str) -> None:
    pytest.importorskip("sklearn")
    if backend not in ("numpy", "torch", "mlx"):
        pytest.skip("the example is written for arrays that compute at once")
    environment = os.environ | {"EMBERHARMONY_BACKEND": backend}
    done = subprocess.run([sys.executable, str(EXAMPLE)], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{backend}: 100.0% in the right group; the root of t**3 = 8 moves by 0.08333\n"
