"""Every op on JAX and Dask, by a quick profile; `tests/backend` has the whole ones.

Each runs in a process of its own, because JAX reads the options of its compiler once, when it starts.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from emberharmony.testing.samples import all_samples
from tests.sampling import XLA_FLAGS, portion

ROOT = Path(__file__).parents[2]


def reported(backend: str, part: int, parts: int) -> dict[str, Any]:
    """Returns the report of a run of the quick profile."""
    environment = os.environ | {"JAX_ENABLE_X64": "1", "XLA_FLAGS": XLA_FLAGS}
    command = [sys.executable, "-m", "tests.conformance.quick_profile", backend, str(part), str(parts)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.fresh_process
@pytest.mark.parametrize(
    ("backend", "part", "parts", "gradients"),
    # All ops take a minute of processor time on JAX, and 20 s on Dask, so a run tries a part, by its seed.
    [
        *portion([("jax", part, 12, 20) for part in range(12)], 12),
        *portion([("dask", 0, 4, 50), *(("dask", part, 4, 0) for part in range(1, 4))], 4),
    ],
)
def test_every_op_passes_the_quick_profile(backend: str, part: int, parts: int, gradients: int) -> None:
    pytest.importorskip(backend)
    report = reported(backend, part, parts)
    assert not report["failures"], "\n".join(report["failures"])
    assert not report["left out"], "no call tries these ops: add a program to tests/conformance/uncased.py"
    assert report["ops"] == len(range(part, len(all_samples()), parts))
    assert report["gradients"] >= gradients
