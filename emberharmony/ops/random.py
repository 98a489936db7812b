"""Random numbers; this file is the namespace `ops.random` too, in which the names lack `random_`.

`seed=` takes an integer or a `Generator`, `generator=` a `Generator`: then every backend gives the same numbers to
the last bit. Without them numbers come from the default stream, native for `random_normal` and `random_uniform`,
which `seed` starts; it is repeatable on each backend. Dtype: the default float, or int64, unless `dtype` says
otherwise. Parameters that make no distribution raise `ArgumentError`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from emberharmony.backend.random import DEFAULT, Generator, generator_of
from emberharmony.backend.random import categorical as _categorical
from emberharmony.backend.random import truncated_normal as _truncated
from emberharmony.core.dispatch import op
from emberharmony.core.dtypes import default_float
from emberharmony.core.errors import ArgumentError
from emberharmony.core.types import DTypeLike, Shape, Tensor, TensorLike
from emberharmony.ops.comparison import less
from emberharmony.ops.indexing import take, where
from emberharmony.ops.math import add, divide, multiply
from emberharmony.ops.tensor import convert_to_tensor, to_numpy


@op
def random_seed(seed: int) -> None:
    """Starts the default stream of the active backend, and of what is drawn on the host, anew.

    Raises: ArgumentError if `seed` is no non-negative integer.
    """
    ...


@op
def standard_uniform(shape: Shape, dtype: DTypeLike | None = None) -> Tensor:
    """Returns numbers from 0 up to and without 1 of the backend's own default stream."""
    ...


@op
def standard_normal(shape: Shape, dtype: DTypeLike | None = None) -> Tensor:
    """Returns numbers of mean 0 and variance 1 of the backend's own default stream."""
    ...


@op
def random_normal(
    shape: Shape,
    mean: float = 0.0,
    stddev: float = 1.0,
    dtype: DTypeLike | None = None,
    seed: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Returns normal numbers.

    Example:
        >>> ops.shape(ops.random_normal((2, 3), seed=0))
        (2, 3)
    """
    source = generator_of(seed, generator)
    values = standard_normal(shape, dtype) if source is None else _moved(source.normal(shape), dtype)
    return values if mean == 0.0 and stddev == 1.0 else add(multiply(values, float(stddev)), float(mean))


@op
def random_uniform(
    shape: Shape,
    minval: float = 0.0,
    maxval: float = 1.0,
    dtype: DTypeLike | None = None,
    seed: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Returns numbers evenly spread from `minval` up to and without `maxval`.

    Example:
        >>> ops.shape(ops.random_uniform((2, 3), seed=0))
        (2, 3)
    """
    source = generator_of(seed, generator)
    values = standard_uniform(shape, dtype) if source is None else _moved(source.uniform(shape), dtype)
    if minval == 0.0 and maxval == 1.0:
        return values
    return add(multiply(values, float(maxval - minval)), float(minval))


@op
def random_randint(
    shape: Shape,
    minval: int,
    maxval: int,
    dtype: DTypeLike | None = None,
    seed: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Returns integers evenly spread from `minval` up to and without `maxval`.

    Example:
        >>> ops.random_randint((2,), 7, 8).tolist()
        [7, 7]
    """
    return _integers(_source(seed, generator).integers(shape, minval, maxval), dtype)


@op
def random_poisson(
    shape: Shape, lam: float = 1.0, dtype: DTypeLike | None = None, seed: Any = None, generator: Generator | None = None
) -> Tensor:
    """Returns Poisson numbers of mean `lam`, as floats."""
    return _moved(_source(seed, generator).draw("poisson", shape, lam), dtype)


@op
def random_bernoulli(
    shape: Shape, p: float = 0.5, dtype: DTypeLike | None = None, seed: Any = None, generator: Generator | None = None
) -> Tensor:
    """Returns 1 with probability p, else 0, as floats."""
    values = _source(seed, generator).draw("binomial", shape, 1, p)
    return _moved(values, dtype)


@op
def random_binomial(
    shape: Shape,
    counts: float,
    probabilities: float,
    dtype: DTypeLike | None = None,
    seed: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Returns how many of `counts` trials succeed, as floats."""
    trials, chance = to_numpy(counts), to_numpy(probabilities)
    return _moved(_source(seed, generator).draw("binomial", shape, trials.astype("int64"), chance), dtype)


@op
def random_exponential(
    shape: Shape,
    scale: float = 1.0,
    dtype: DTypeLike | None = None,
    seed: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Returns exponential numbers of mean `scale`."""
    return _moved(_source(seed, generator).draw("exponential", shape, scale), dtype)


@op
def random_gamma(
    shape: Shape,
    alpha: float,
    scale: float = 1.0,
    dtype: DTypeLike | None = None,
    seed: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Returns gamma numbers of shape parameter `alpha`, mean `alpha * scale`."""
    return _moved(_source(seed, generator).draw("gamma", shape, alpha, scale), dtype)


@op
def random_beta(
    shape: Shape,
    alpha: float,
    beta: float,
    dtype: DTypeLike | None = None,
    seed: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Returns beta numbers, between 0 and 1, of mean `alpha / (alpha + beta)`."""
    return _moved(_source(seed, generator).draw("beta", shape, alpha, beta), dtype)


@op
def random_gumbel(
    shape: Shape,
    loc: float = 0.0,
    scale: float = 1.0,
    dtype: DTypeLike | None = None,
    seed: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Returns Gumbel numbers."""
    return _moved(_source(seed, generator).draw("gumbel", shape, loc, scale), dtype)


@op
def random_laplace(
    shape: Shape,
    loc: float = 0.0,
    scale: float = 1.0,
    dtype: DTypeLike | None = None,
    seed: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Returns Laplace numbers."""
    return _moved(_source(seed, generator).draw("laplace", shape, loc, scale), dtype)


@op
def random_truncated_normal(
    shape: Shape,
    mean: float = 0.0,
    stddev: float = 1.0,
    dtype: DTypeLike | None = None,
    seed: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Returns normal numbers, those beyond two standard deviations drawn again."""
    values = _moved(_truncated(_source(seed, generator), shape), dtype)
    return add(multiply(values, float(stddev)), float(mean))


@op
def random_categorical(
    logits: TensorLike,
    num_samples: int,
    dtype: DTypeLike | None = None,
    seed: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Returns classes, each with the probability that the softmax of its row of logits gives.

    Shape: (..., classes) to (..., num_samples).
    """
    return _integers(_categorical(_source(seed, generator), to_numpy(logits), num_samples), dtype)


@op
def random_permutation(n: int, seed: Any = None, generator: Generator | None = None) -> Tensor:
    """Returns the integers from 0 to n - 1 in random order."""
    return convert_to_tensor(_source(seed, generator).permutation(n))


@op
def random_shuffle(x: TensorLike, axis: int = 0, seed: Any = None, generator: Generator | None = None) -> Tensor:
    """Returns `x` with its slices along an axis in random order."""
    return take(x, _source(seed, generator).permutation(x.shape[axis]), axis)


@op
def random_choice(
    a: int,
    shape: Shape = (),
    replace: bool = True,
    p: Sequence[float] | None = None,
    seed: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Returns integers from 0 to a - 1, with or without putting back, each as likely as `p` says."""
    return convert_to_tensor(_source(seed, generator).choice(a, shape, replace, p))


@op
def dropout(x: TensorLike, rate: float, seed: Any = None, generator: Generator | None = None) -> Tensor:
    """Returns `x` with each element 0 with probability `rate`, the others divided by `1 - rate`.

    Raises: ArgumentError unless `0 <= rate < 1`.
    """
    if not 0 <= rate < 1:
        raise ArgumentError(f"rate is from 0 up to and without 1, not {rate}")
    kept = less(random_uniform(x.shape, seed=seed, generator=generator), 1.0 - rate)
    return where(kept, divide(x, 1.0 - rate), 0.0)


def _source(seed: Any, generator: Generator | None) -> Generator:
    return generator_of(seed, generator) or DEFAULT.generator


def _moved(values: Any, dtype: Any) -> Tensor:
    return convert_to_tensor(
        values.astype("float64" if values.dtype.kind != "f" else values.dtype), dtype or default_float()
    )


def _integers(values: Any, dtype: Any) -> Tensor:
    return convert_to_tensor(values, dtype)


seed = random_seed
normal = random_normal
uniform = random_uniform
randint = random_randint
poisson = random_poisson
bernoulli = random_bernoulli
binomial = random_binomial
exponential = random_exponential
gamma = random_gamma
beta = random_beta
gumbel = random_gumbel
laplace = random_laplace
truncated_normal = random_truncated_normal
categorical = random_categorical
permutation = random_permutation
shuffle = random_shuffle
choice = random_choice
SeedGenerator = Generator
