"""Common numerical programs give the same numbers on every backend."""

import numpy as np
import pytest

from emberharmony import ops

DATA = np.random.default_rng(0).standard_normal((6, 3)).astype(np.float32)


def test_a_standard_deviation_from_basic_ops_agrees_with_numpy(backend: str) -> None:
    x = ops.convert_to_tensor(DATA)
    mean = ops.mean(x, axis=0)
    deviation = ops.sqrt(ops.mean(ops.square(ops.subtract(x, mean)), axis=0))
    assert np.allclose(ops.to_numpy(deviation), DATA.astype(np.float64).std(0), rtol=1e-6)


def test_min_max_normalisation_gives_0_and_1(backend: str) -> None:
    x = ops.convert_to_tensor(DATA)
    low, high = ops.min(x, axis=0), ops.max(x, axis=0)
    scaled = ops.to_numpy(ops.divide(ops.subtract(x, low), ops.subtract(high, low)))
    assert scaled.min(0).tolist() == [0.0, 0.0, 0.0]
    assert scaled.max(0).tolist() == [1.0, 1.0, 1.0]


def test_pairwise_distances_agree_with_numpy(backend: str) -> None:
    x = ops.convert_to_tensor(DATA)
    off = ops.subtract(ops.expand_dims(x, 0), ops.expand_dims(x, 1))
    distances = ops.sqrt(ops.sum(ops.square(off), axis=-1))
    rows, columns = ops.triu_indices(6, k=1)
    pairs = ops.to_numpy(ops.get_item(distances, (rows, columns)))
    wanted = [np.linalg.norm(DATA[i] - DATA[j]) for i in range(6) for j in range(i + 1, 6)]
    assert np.allclose(pairs, wanted, rtol=1e-6)


def test_a_mean_squared_error_agrees_with_numpy(backend: str) -> None:
    loss = ops.mean(ops.square(ops.subtract(DATA, ops.zeros_like(DATA))))
    assert float(loss) == pytest.approx(float((DATA.astype(np.float64) ** 2).mean()), rel=1e-6)


def test_random_samples_can_be_moved_to_a_device(backend: str) -> None:
    samples = ops.random_normal((1000,), mean=5.0, stddev=2.0, seed=0)
    moved = ops.to_device(samples, "cpu")
    assert float(ops.mean(moved)) == pytest.approx(5.0, abs=0.3)
    assert ops.shape(ops.random_uniform((2, 3))) == ops.shape(ops.random_poisson((2, 3), 3.0)) == (2, 3)
