"""Initial values of parameters that are computed on the host, so that they are equal on every backend."""

import math

import numpy as np

from emberharmony.backend.shared.elementwise import special_normal
from emberharmony.backend.shared.random import Generator
from emberharmony.backend.shared.random_parameters import Array
from emberharmony.core.dtypes import float64


def truncated_normal(rng: Generator, shape: tuple[int, ...], mean: float, std: float, low: float, high: float) -> Array:
    """Returns normal numbers restricted to [low, high], by the inverse of the distribution function."""
    lower_bound, upper_bound = (low - mean) / std, (high - mean) / std
    # The distribution function is precise below 0 alone, so an interval above 0 is reflected.
    sign = -1.0 if lower_bound > 0.0 else 1.0
    lower_bound, upper_bound = sorted((sign * lower_bound, sign * upper_bound))
    lower_probability, upper_probability = (0.5 * math.erfc(-x / math.sqrt(2.0)) for x in (lower_bound, upper_bound))
    cumulative_probability = lower_probability + rng.uniform(shape, float64) * (upper_probability - lower_probability)
    return (sign * special_normal.ndtri(np, cumulative_probability) * std + mean).clip(low, high)


def orthogonal_matrix(rng: Generator, rows: int, columns: int, gain: float) -> Array:
    """Returns a random matrix with orthonormal rows or columns, the shorter of the two, times the gain."""
    longer_length, shorter_length = max(rows, columns), min(rows, columns)
    q, r = np.linalg.qr(rng.normal((rows, columns), float64).reshape(longer_length, shorter_length))
    # These signs make the distribution of the orthogonal matrix uniform.
    q = q * np.where(np.diagonal(r) < 0.0, -1.0, 1.0)
    return gain * (q if rows >= columns else q.T)


def sparse_matrix(rng: Generator, rows: int, columns: int, sparsity: float, std: float) -> Array:
    """Returns a matrix of normal numbers in which a share of each column, rounded up, is 0."""
    weights = rng.normal((rows, columns), float64) * std
    sorting_indices = np.argsort(rng.uniform((rows, columns), float64), axis=0)
    np.put_along_axis(weights, sorting_indices[: math.ceil(sparsity * rows)], 0.0, 0)
    return weights


def dirac_kernel(shape: tuple[int, ...], groups: int) -> Array:
    """Returns a kernel (out, in, ...) with which each group of a convolution passes its channels through unchanged."""
    kernel = np.zeros(shape)
    group_outputs = shape[0] // groups
    centre_indices = tuple(length // 2 for length in shape[2:])
    for group in range(groups):
        for channel in range(min(group_outputs, shape[1])):
            kernel[(group * group_outputs + channel, channel, *centre_indices)] = 1.0
    return kernel
