"""Normalisations: half precision, other axes, long rows, and the GPU kernels."""

from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.backend.discovery import is_installed


@pytest.mark.parametrize("normalize", [ops.layer_normalization, ops.rms_normalization])
def test_half_precision_does_not_overflow(normalize: object, backend: str) -> None:
    x = np.array([[-6e4, 6e4, 1e4]], np.float16)
    values = ops.to_numpy(normalize(x))  # type: ignore[operator]
    assert values.dtype == np.float16
    assert np.isfinite(values).all()
    assert (np.abs(values) > 0.1).all()


@pytest.mark.parametrize("axis", [-1, 0, (0, 1)])
def test_layer_normalization_accepts_other_axes_and_broadcast_weights(axis: Any, backend: str) -> None:
    x = np.sin(np.arange(12.0, dtype=np.float32)).reshape(3, 4)
    off = x - x.mean(axis, keepdims=True)
    wanted = off / np.sqrt((off**2).mean(axis, keepdims=True) + 1e-3) * 2.0 + np.arange(4.0)
    got = ops.layer_normalization(x, np.float32([2.0]), np.arange(4, dtype=np.int32), axis)
    assert np.allclose(ops.to_numpy(got), wanted, atol=1e-5)


def test_layer_normalization_of_long_rows_is_precise(backend: str) -> None:
    x = (np.sin(np.arange(40000.0)) + 1000.0).astype(np.float32).reshape(2, -1)
    wide = x.astype(np.float64)
    off = wide - wide.mean(-1, keepdims=True)
    wanted = off / np.sqrt((off**2).mean(-1, keepdims=True) + 1e-3)
    assert np.abs(ops.to_numpy(ops.layer_normalization(x)) - wanted).max() < 2e-4


@pytest.mark.skipif(not is_installed("mlx"), reason="mlx is not installed")
def test_the_gpu_kernels_of_mlx_agree_with_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    from emberharmony.backend.mlx import normalization_ops

    monkeypatch.setattr(normalization_ops, "on_cpu", lambda: False)
    x, w = np.sin(np.arange(12.0, dtype=np.float32)).reshape(3, 4), np.arange(4, dtype=np.float32)
    with ops.use_backend("mlx"):
        for name, arguments in (("layer_normalization", (x, w, w)), ("rms_normalization", (x, w))):
            got = getattr(ops, name)(*arguments)
            with ops.use_backend("numpy"):
                wanted = getattr(ops, name)(*arguments)
            assert np.allclose(ops.to_numpy(got), wanted, atol=1e-5), name
