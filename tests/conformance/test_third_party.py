"""`emberharmony conformance` checks a third-party backend: array-api-strict, from an installed plugin."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PLUGIN = Path(__file__).parents[1] / "plugin"
PROGRAM = "from emberharmony.cli import main; main()"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    file = tmp_path_factory.mktemp("strict") / "report.json"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "conformance", "--backend", "strict", "--json", str(file), "--quick"],
        env=os.environ | {"PYTHONPATH": str(PLUGIN)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(file.read_text())


@pytest.mark.fresh_process
def test_ops_that_the_backend_has_pass(report: dict[str, Any]) -> None:
    offered = [entry for entry in report["ops"] if entry["status"] != "unsupported"]
    assert {entry["op"] for entry in offered} >= {"add", "exp", "where", "sum", "softmax", "hypot", "reshape"}
    assert {entry["status"] for entry in offered} == {"native", "composite"}
    softmax = next(entry for entry in offered if entry["op"] == "softmax")
    assert softmax["status"] == "composite"
    assert softmax["checks"]["value"]["calls"] >= 4
    assert "float64" in softmax["dtypes"]
    assert "float16" not in softmax["dtypes"]


@pytest.mark.fresh_process
def test_ops_that_the_backend_lacks_are_unsupported_with_a_reason(report: dict[str, Any]) -> None:
    lacking = {entry["op"]: entry["reason"] for entry in report["ops"] if entry["status"] == "unsupported"}
    assert lacking["sort"] == "this test plugin binds a part of the array API standard"
    # A composite is unsupported when one of its primitives is, and its reason names that primitive.
    assert "argsort() is unsupported by StrictBackend: this test plugin" in lacking["argpartition"]
    assert all("binds a part of the array API standard" in reason for reason in lacking.values())
