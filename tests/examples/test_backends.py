"""The example that makes a backend of a library of the array API standard: ndonnx, whose arrays are ONNX graphs."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emberharmony import nn, ops
from emberharmony.errors import TracedTensorError

EXAMPLE = Path(__file__).parents[2] / "examples" / "backends" / "onnx_backend.py"
X = np.linspace(-1.0, 1.0, 12, dtype=np.float32).reshape(3, 4)


@pytest.fixture
def onnx_backend(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    pytest.importorskip("ndonnx")
    pytest.importorskip("onnxruntime")
    monkeypatch.syspath_prepend(EXAMPLE.parent)
    with ops.use_backend("numpy"):
        yield __import__("onnx_backend")
    sys.modules.pop("onnx_backend")


def test_the_example_is_short() -> None:
    assert len(EXAMPLE.read_text(encoding="utf-8").splitlines()) <= 150


def test_ops_compute_on_values(onnx_backend: Any) -> None:
    with ops.use_backend(onnx_backend.BACKEND):
        assert ops.to_numpy(ops.cumsum(X, 1)) == pytest.approx(np.cumsum(X, 1), abs=1e-6)
        assert ops.to_numpy(ops.sort(X, 1, descending=True)).tolist() == X[:, ::-1].tolist()
        assert ops.to_numpy(ops.grad(lambda x: ops.sum(ops.square(x)))(ops.asarray(X))).tolist() == (2 * X).tolist()


def test_a_network_and_its_gradient_become_models(onnx_backend: Any) -> None:
    rng = nn.Rngs(0)
    network = nn.Sequential(nn.Linear(4, 8, rng=rng), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 2, rng=rng))
    slope = ops.grad(lambda x: ops.sum(ops.softmax(network(x))[:, 0]))
    for function in (network, slope):
        (found,) = onnx_backend.run(onnx_backend.export(function, X), X)
        np.testing.assert_allclose(found, ops.to_numpy(function(ops.asarray(X))), atol=1e-6)


def test_a_model_that_depends_on_values_is_refused(onnx_backend: Any) -> None:
    with pytest.raises(TracedTensorError, match="ONNX graph has none"):
        onnx_backend.export(lambda x: ops.to_numpy(x), X)
