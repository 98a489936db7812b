"""`emberharmony conformance` checks third-party backends: array-api-strict, from an installed plugin."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("array_api_strict")
PLUGIN = Path(__file__).parents[1] / "plugin"
PROGRAM = "from emberharmony.cli import main; main()"


def reported(folder: Path, backend: str, *options: str) -> dict[str, dict[str, Any]]:
    """Returns the entries of a report by op, after a command that found no failures."""
    file = folder / f"{backend}.json"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "conformance", "--backend", backend, "--json", str(file), "--quick", *options],
        env=os.environ | {"PYTHONPATH": str(PLUGIN)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return {entry["op"]: entry for entry in json.loads(file.read_text())["ops"]}


@pytest.mark.fresh_process
def test_ops_that_the_backend_has_pass(tmp_path: Path) -> None:
    found = reported(tmp_path, "strict", "--op", "s*max")
    assert {op: entry["status"] for op, entry in found.items()} == {
        "segment_max": "composite",
        "softmax": "composite",
        "sparsemax": "composite",
    }
    softmax = found["softmax"]
    assert softmax["checks"]["value"]["calls"] >= 4
    assert "float64" in softmax["dtypes"]
    assert "float16" not in softmax["dtypes"]


@pytest.mark.fresh_process
def test_ops_that_the_backend_lacks_are_unsupported_with_a_reason(tmp_path: Path) -> None:
    found = reported(tmp_path, "strict_lazy", "--op", "put_*")
    assert {op: entry["status"] for op, entry in found.items()} == {"put_along_axis": "unsupported"}
    # A composite is unsupported when one of its primitives is, and its reason names that primitive.
    reason = found["put_along_axis"]["reason"]
    assert "scatter_update() is unsupported by Strict_LazyBackend: its body reads tensors on the host" in reason
