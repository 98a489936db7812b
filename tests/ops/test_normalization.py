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
    wanted = off / np.sqrt((off**2).mean(axis, keepdims=True) + 1e-7) * 2.0 + np.arange(4.0)
    got = ops.layer_normalization(x, np.float32([2.0]), np.arange(4, dtype=np.int32), axis)
    assert np.allclose(ops.to_numpy(got), wanted, atol=1e-5)


def test_layer_normalization_of_long_rows_is_precise(backend: str) -> None:
    x = (np.sin(np.arange(40000.0)) + 1000.0).astype(np.float32).reshape(2, -1)
    wide = x.astype(np.float64)
    off = wide - wide.mean(-1, keepdims=True)
    wanted = off / np.sqrt((off**2).mean(-1, keepdims=True) + 1e-7)
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


def test_weights_of_the_normalised_axes_belong_to_them(backend: str) -> None:
    x = np.sin(np.arange(27.0)).reshape(3, 3, 3)
    gamma, beta = np.array([1.0, 2.0, 3.0]), np.array([0.5, -0.5, 0.0])
    off = x - x.mean(1, keepdims=True)
    wanted = off / np.sqrt((off**2).mean(1, keepdims=True) + 0.1) * gamma[:, None] + beta[:, None]
    assert np.allclose(ops.to_numpy(ops.layer_normalization(x, gamma, beta, 1, 0.1)), wanted, atol=1e-6)
    two = ops.layer_normalization(x, np.arange(9.0).reshape(3, 3), axis=(1, 0), epsilon=0.1)
    off = x - x.mean((0, 1), keepdims=True)
    wanted = off / np.sqrt((off**2).mean((0, 1), keepdims=True) + 0.1) * np.arange(9.0).reshape(3, 3, 1)
    assert np.allclose(ops.to_numpy(two), wanted, atol=1e-6)


def test_rms_scaling_keeps_the_mean_and_ignores_beta(backend: str) -> None:
    x = np.array([[1.0, 3.0, 8.0], [2.0, 2.5, 2.0]])
    wanted = x / np.sqrt(x.var(-1, keepdims=True) + 1e-7) * 2.0
    found = ops.layer_normalization(x, np.full(3, 2.0), np.ones(3), rms_scaling=True)
    assert np.allclose(ops.to_numpy(found), wanted, rtol=1e-5)
