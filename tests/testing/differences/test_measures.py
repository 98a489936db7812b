"""Tests how far apart two tensors are."""

import math

import numpy as np
import pytest

from emberharmony.testing.differences.measures import PART, Distance, distance
from emberharmony.testing.differences.records import Host


def measured(x, y, source=None):
    """Returns how far apart two arrays are; a warning of NumPy is an error."""
    with np.errstate(all="raise"):
        hosts = Host(x, x.dtype.name), Host(y, y.dtype.name)
        found = distance(*hosts, True, source)
        return found.share, found.most, found.relative_gap(*hosts)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("size", [1, 300, PART + 7])
def test_the_largest_differences(dtype, size):
    rng = np.random.default_rng(0)
    x = rng.uniform(1, 2, size).astype(dtype)
    y = (x * (1 + 0.01 * rng.standard_normal(size))).astype(dtype)
    wide = np.complex128 if dtype == "complex64" else np.float64
    off, most = np.abs(x.astype(wide) - y.astype(wide)), np.abs(x.astype(wide)).max()
    assert measured(x, y) == pytest.approx((off.max() / most, off.max(), (off / np.abs(x.astype(wide))).max()), 0.02)


@pytest.mark.parametrize(
    ("x", "y", "wanted"),
    [
        ([0.0, 2.0, 4.0], [0.0, 2.5, 4.0], (0.125, 0.5, 0.25)),  # zeros on both sides are equal
        ([0.0, 4.0], [1.0, 4.0], (0.25, 1.0, 1.0)),
        ([math.nan, math.inf, 2.0], [math.nan, math.inf, 3.0], (0.5, 1.0, 0.5)),
        ([math.nan, math.inf, 2.0], [math.nan, math.inf, 2.0], (0.0, 0.0, 0.0)),
        ([1.0, 2.0], [math.nan, 2.0], (math.inf, math.inf, math.inf)),
        ([1.0, 2.0], [1.0, -math.inf], (math.inf, math.inf, math.inf)),
        ([3e38, 1.0], [-3e38, 1.0], (math.inf, math.inf, math.inf)),  # the difference overflows
        ([0.0, 0.0], [0.0, 2.0**-149], (math.inf, 2.0**-149, 1.0)),
    ],
)
def test_numbers_at_the_edges(x, y, wanted):
    assert measured(np.array(x, np.float32), np.array(y, np.float32)) == pytest.approx(wanted, 1e-6, 0.0)


def test_moved_elements_differ_as_the_elements_did():
    x = np.arange(1.0, 7.0, dtype=np.float32).reshape(2, 3)
    y = x.copy()
    y[1, 1] += 0.5
    source = Distance(0.5 / 6, 0.5, 0.1)
    assert measured(x.T, y.T, source) == (source.share, 0.5, 0.1)
    y[0, 0] += 1
    assert measured(x.T, y.T, source) == pytest.approx((1 / 6, 1.0, 1.0))
