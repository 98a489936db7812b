"""Adapters, by which libraries that have backends of their own run over ops, give the results of those libraries."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ADAPTERS = Path(__file__).parents[2] / "examples" / "adapters"
KIND = {"numpy": "ndarray", "torch": "Tensor", "mlx": "array"}
PARITY = """
import sys

import numpy as np
import tensorly as tl
from tensorly import decomposition as d
from tensorly_backend import EmberBackend

tl.set_backend("numpy")
x = tl.random.random_cp((6, 5, 4), rank=3, full=True, random_state=0)


def results(x):
    yield tl.cp_to_tensor(d.parafac(x, rank=2, n_iter_max=20, init="random", random_state=1))
    yield tl.cp_to_tensor(d.non_negative_parafac(x, rank=2, n_iter_max=20, init="random", random_state=1))
    yield tl.tucker_to_tensor(d.tucker(x, rank=[2, 2, 2], n_iter_max=20))
    yield tl.tt_to_tensor(d.tensor_train(x, rank=[1, 3, 3, 1]))


wanted = list(results(x))
tl.set_backend(EmberBackend())
for result, expected in zip(results(tl.tensor(x)), wanted, strict=True):
    np.testing.assert_allclose(tl.to_numpy(result), expected, rtol=1e-4, atol=1e-4)
"""


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


@pytest.mark.fresh_process
def test_the_decompositions_are_those_of_tensorly_with_its_own_backend(backend: str) -> None:
    pytest.importorskip("tensorly")
    run(backend, "-c", PARITY)
