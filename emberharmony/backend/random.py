"""The portable source of random numbers: drawn by NumPy on the host, so that every backend gets the same bits."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from emberharmony.backend.indices import as_shape
from emberharmony.core.errors import ArgumentError

Array = np.ndarray[Any, Any]


class Generator:
    """Draws the same numbers on every backend: a stream of its own, started by a seed.

    The bits are those of Philox, a counter-based generator; floating numbers are computed once, in NumPy, and moved. It
    may be drawn from by several threads at once, pickled (it goes on where it was), and split.

    Raises: ArgumentError if the seed is no non-negative integer.

    Example:
        >>> a, b = ops.random.Generator(0), ops.random.Generator(0)
        >>> bool(ops.array_equal(ops.random.normal(3, generator=a), ops.random.normal(3, generator=b)))
        True
    """

    def __init__(self, seed: int) -> None:
        if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
            raise ArgumentError(f"a seed is an integer from 0 on, not {seed!r}")
        self._start(np.random.SeedSequence(int(seed)))

    def _start(self, sequence: np.random.SeedSequence) -> None:
        self._sequence = sequence
        self._rng = np.random.Generator(np.random.Philox(sequence))

    def split(self, n: int = 2) -> list[Generator]:
        """Returns n generators whose streams are independent of each other and of this one."""
        children = []
        for sequence in self._sequence.spawn(n):
            child = Generator.__new__(Generator)
            child._start(sequence)
            children.append(child)
        return children

    def uniform(self, shape: Any) -> Array:
        """Returns float32 numbers from 0 up to and without 1, on a grid of 2**-24."""
        return np.asarray(self._rng.random(as_shape(shape), np.float32))

    def normal(self, shape: Any) -> Array:
        """Returns float32 numbers of mean 0 and variance 1."""
        return np.asarray(self._rng.standard_normal(as_shape(shape), np.float32))

    def integers(self, shape: Any, low: int, high: int) -> Array:
        """Returns int64 numbers from low up to and without high."""
        if low >= high:
            raise ArgumentError(f"there is no integer from {low} up to and without {high}")
        return np.asarray(self._rng.integers(low, high, as_shape(shape)))

    def draw(self, distribution: str, shape: Any, *parameters: Any) -> Array:
        """Returns numbers of a distribution of `numpy.random.Generator`; parameters broadcast to the shape."""
        try:
            return np.asarray(getattr(self._rng, distribution)(*parameters, size=as_shape(shape)))
        except ValueError as error:
            raise ArgumentError(str(error)) from error

    def permutation(self, n: int) -> Array:
        """Returns the integers from 0 to n - 1 in random order."""
        return self._rng.permutation(n)

    def choice(self, n: int, shape: Any, replace: bool, p: Sequence[float] | None) -> Array:
        """Returns indices from 0 to n - 1, each as likely as `p` says."""
        try:
            return np.asarray(self._rng.choice(n, as_shape(shape), replace, p))
        except ValueError as error:
            raise ArgumentError(str(error)) from error


class _Default:
    """Holds the process's generator for what has no native stream."""

    def __init__(self) -> None:
        self._generator: Generator | None = None

    @property
    def generator(self) -> Generator:
        """The generator, made on first use: `numpy.random` takes 15 ms to import."""
        if self._generator is None:
            self._generator = Generator(int.from_bytes(os.urandom(16)))
        return self._generator

    @generator.setter
    def generator(self, generator: Generator) -> None:
        self._generator = generator


DEFAULT = _Default()


def generator_of(seed: Any, generator: Generator | None) -> Generator | None:
    """Returns the generator that `seed` (a seed or a generator) or `generator` names; None for the default stream."""
    given = generator if generator is not None else seed
    return given if given is None or isinstance(given, Generator) else Generator(given)


def log_uniform(generator: Generator, shape: Any) -> Array:
    """Returns float64 numbers `-log(u)`, u uniform and never 0."""
    return generator.draw("standard_exponential", shape)


def truncated_normal(generator: Generator, shape: Any) -> Array:
    """Returns float32 normal numbers; those beyond two standard deviations are drawn again."""
    values = generator.normal(shape).copy()
    outside = np.abs(values) > 2
    while outside.any():
        values[outside] = generator.normal((int(outside.sum()),))
        outside = np.abs(values) > 2
    return values


def categorical(generator: Generator, logits: Array, n: int) -> Array:
    """Returns n int64 classes for each row of logits, by the Gumbel trick."""
    logits = np.asarray(logits, np.float64)
    if np.isnan(logits).any():
        raise ArgumentError("logits hold NaN")
    noise = -np.log(log_uniform(generator, (*logits.shape[:-1], n, logits.shape[-1])))
    return (logits[..., None, :] + noise).argmax(-1)
