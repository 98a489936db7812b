"""Every example runs on every backend, as a user runs it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("name", sorted(file.name for file in EXAMPLES.glob("*.py")))
def test_example_runs(name: str, backend: str) -> None:
    environment = os.environ | {"EMBERHARMONY_BACKEND": backend}
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name)], env=environment, capture_output=True, text=True, check=True
    )
    found = re.fullmatch(rf"{backend}: loss (\S+), accuracy (\S+) on 397 held-out images\n", done.stdout)
    assert found is not None, done.stdout
    assert float(found[1]) < 0.15
    assert float(found[2]) > 0.95
