"""Many normal numbers at once: their distribution, and bits that depend on nothing but the seed."""

import hashlib
import math

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.backend.shared import random_normal
from emberharmony.backend.shared.random import Generator


def words_of(count: int, seed: int = 0) -> np.ndarray:
    return np.random.Philox(seed).random_raw(count)


def by_definition(words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the same numbers in float64, from the logarithm, sine and cosine of NumPy, and the radius of each."""
    bits = words.view(np.uint32).astype(np.float64)
    first, second = bits[: len(words)], bits[len(words) :]
    radius = np.sqrt(-2 * np.log((first // 2 + 1) / 2.0**31))
    angle = np.where(second < 2.0**31, second, second - 2.0**32) / 2.0**31 * np.pi / 2
    sign = np.where(first % 2 == 1, -1.0, 1.0)
    return np.concatenate([sign * radius * np.cos(angle), radius * np.sin(angle)]), np.tile(radius, 2)


def test_the_numbers_are_those_of_the_definition() -> None:
    words = words_of(200_001)
    wanted, radius = by_definition(words)
    found = random_normal.normal(words.copy())
    assert found.dtype == np.float32
    # The second part comes from the rounding of a number near 1, whose logarithm gives the radius.
    assert (np.abs(found - wanted) <= 2e-6 + 2e-7 / radius).all()


def test_the_least_and_greatest_words_give_finite_numbers() -> None:
    edges = np.array([0, 1, 2, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1], np.uint32)
    pairs = np.stack([x.ravel() for x in np.meshgrid(edges, edges)])
    if pairs.shape[1] % 2:
        pairs = np.concatenate([pairs, pairs[:, :1]], 1)
    words = np.ascontiguousarray(pairs).reshape(-1).view(np.uint64)
    wanted, _ = by_definition(words)
    found = random_normal.normal(words.copy())
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-3)  # near u = 1 float32 has no number for the radius
    assert 6.5 < np.abs(found).max() < 6.6


@pytest.mark.parametrize("count", [1, 2, 999, 1000, 1001, 2500])
def test_blocks_do_not_matter(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = random_normal.normal(words_of(count))
    monkeypatch.setattr(random_normal, "BLOCK", 1000)
    assert random_normal.normal(words_of(count)).tobytes() == whole.tobytes()


def test_the_bits_are_those_that_were_recorded() -> None:
    found = random_normal.normal(words_of(50_000, 7)).astype("<f4")
    assert (
        hashlib.sha256(found.tobytes()).hexdigest()
        == "975364bb04322e7cb68a9dc0b7115e9e8c35ea09c287f34230aa5cde1b9a009d"
    )


def test_they_are_normal() -> None:
    x = np.asarray(Generator(1).normal((2_000_001,)), np.float64)
    assert x.shape == (2_000_001,)
    count = len(x)
    for power, wanted, spread in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96), (6, 15, 10170)):
        assert abs((x**power).mean() - wanted) < 4.5 * math.sqrt(spread / count), power
    probability = np.array([0.5 * math.erfc(-v / math.sqrt(2)) for v in np.sort(x)[:: count // 5000]])
    ranks = np.arange(len(probability)) * (count // 5000) / count
    assert np.abs(probability - ranks).max() < 2 / math.sqrt(count)  # a test of Kolmogorov and Smirnov
    half = count // 2
    assert abs(np.corrcoef(x[:half], x[half : 2 * half])[0, 1]) < 4.5 / math.sqrt(half)
    assert abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < 4.5 / math.sqrt(count)


def test_one_seed_gives_equal_bits_on_each_backend(backend: str) -> None:
    wanted = Generator(3).normal((130, 131), mean=2.0, stddev=0.5)
    found = ops.random.normal((130, 131), 2.0, 0.5, generator=Generator(3))
    assert ops.to_numpy(found).tobytes() == wanted.tobytes()


def test_a_generator_goes_on_after_many_numbers() -> None:
    one, other = Generator(5), Generator(5)
    one.normal((20_001,))
    state = one.state_dict()
    other.load_state_dict(state)
    assert one.normal((20_000,)).tobytes() == other.normal((20_000,)).tobytes()
    assert one.uniform((3,)).tobytes() == other.uniform((3,)).tobytes()
    assert not np.array_equal(one.normal((20_000,)), one.normal((20_000,)))


def test_truncated_numbers_are_drawn_so_too() -> None:
    x = Generator(2).truncated_normal((40_000,))
    assert np.abs(x).max() <= 2
    assert abs(float(x.std()) - 0.8796) < 0.01
