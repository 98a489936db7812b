"""Adapters, by which libraries that have backends of their own run over ops, run there on every backend."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ADAPTERS = Path(__file__).parents[2] / "examples" / "adapters"
KIND = {"numpy": "ndarray", "torch": "Tensor", "mlx": "array"}


def run(backend: str, *arguments: str) -> str:
    environment = os.environ | {"EMBERHARMONY_BACKEND": backend}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, env=environment, cwd=ADAPTERS, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_adapter_has_at_most_50_lines() -> None:
    assert all(len(file.read_text(encoding="utf-8").splitlines()) <= 50 for file in ADAPTERS.glob("*.py"))


@pytest.mark.fresh_process
def test_the_backend_of_tensorly_decomposes_a_tensor(backend: str) -> None:
    pytest.importorskip("tensorly")
    form = rf"{backend}: {KIND[backend]} of shape \(6, 5, 4\), relative error ([\d.e-]+)\n"
    found = re.fullmatch(form, run(backend, "tensorly_backend.py"))
    assert found is not None
    assert float(found[1]) < 1e-5
