"""Random numbers. In the namespace `ops.random` the names lack `random_`.

`seed=` takes an integer or a `Generator`, `generator=` a `Generator`: then every backend gives the same numbers to
the last bit. Without them numbers come from the default streams, which `seed` starts and which are repeatable on each
backend: uniform and normal numbers and what is made of them (`bernoulli`, `gumbel`, `categorical`, `dropout`) are drawn
by the backend, the others on the host. Dtype: the default float, or int64, unless `dtype` says otherwise. Parameters
that make no distribution raise `ArgumentError`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from emberharmony.backend.shared.random import HOST, Generator, below, floating, generator_of, start_streams
from emberharmony.core.dispatch import op
from emberharmony.core.dtypes import float32, float64
from emberharmony.core.errors import ArgumentError
from emberharmony.core.options import number
from emberharmony.core.types import DTypeLike, Shape, Tensor, TensorLike
from emberharmony.ops.comparison import less
from emberharmony.ops.device import get_device, to_device
from emberharmony.ops.elementary import log
from emberharmony.ops.indexing import take, where
from emberharmony.ops.math import add, divide, minimum, multiply, negative
from emberharmony.ops.reduction import argmax
from emberharmony.ops.shape import expand_dims
from emberharmony.ops.tensor import cast, convert_to_tensor, to_numpy


@op
def random_seed(seed: int) -> None:
    """Starts the default streams of all backends anew.

    Raises: ArgumentError if `seed` is no non-negative integer.
    """
    start_streams(seed)


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
    centre, spread = number("mean", mean), number("stddev", stddev)
    if source is not None:
        return _moved(source.normal(shape, floating(dtype)) * spread + centre, dtype)
    values = standard_normal(shape, dtype)
    return values if centre == 0.0 and spread == 1.0 else add(multiply(values, spread), centre)


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
    low, high, source = number("minval", minval), number("maxval", maxval), generator_of(seed, generator)
    if not low <= high:
        raise ArgumentError(f"there are no numbers from {low} up to {high}")
    if source is None and (low, high) == (0.0, 1.0):
        return standard_uniform(shape, dtype)
    # What rounds to `maxval` is moved below it.
    wanted = floating(dtype)
    limit = max(low, below(high, wanted))
    if source is not None:
        return _moved((source.uniform(shape, wanted) * (high - low) + low).clip(max=limit), dtype)
    return minimum(add(multiply(standard_uniform(shape, dtype), high - low), low), limit)


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
    return convert_to_tensor(_source(seed, generator).integers(shape, minval, maxval), dtype)


@op
def random_bernoulli(
    shape: Shape, p: float = 0.5, dtype: DTypeLike | None = None, seed: Any = None, generator: Generator | None = None
) -> Tensor:
    """Returns 1 with probability p, else 0, as floats.

    Args:
        p: from 0 to 1; a tensor broadcasts to the shape.
    """
    if not hasattr(p, "shape") and not 0.0 <= p <= 1.0:
        raise ArgumentError(f"a probability is from 0 to 1, not {p}")
    return cast(less(random_uniform(shape, seed=seed, generator=generator), p), floating(dtype))


@op
def random_poisson(
    shape: Shape, lam: float = 1.0, dtype: DTypeLike | None = None, seed: Any = None, generator: Generator | None = None
) -> Tensor:
    """Returns Poisson numbers of mean `lam`, as floats."""
    return _drawn("poisson", shape, dtype, seed, generator, lam)


@op
def random_binomial(
    shape: Shape,
    counts: int,
    probabilities: float,
    dtype: DTypeLike | None = None,
    seed: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Returns how many of `counts` trials succeed, as floats."""
    return _drawn("binomial", shape, dtype, seed, generator, to_numpy(counts).astype("int64"), probabilities)


@op
def random_exponential(
    shape: Shape,
    scale: float = 1.0,
    dtype: DTypeLike | None = None,
    seed: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Returns exponential numbers of mean `scale`."""
    return _drawn("exponential", shape, dtype, seed, generator, scale)


@op
def random_gamma(
    shape: Shape,
    alpha: float,
    dtype: DTypeLike | None = None,
    seed: Any = None,
    generator: Generator | None = None,
    scale: float = 1.0,
) -> Tensor:
    """Returns gamma numbers of shape parameter `alpha`, mean `alpha * scale`."""
    return _drawn("gamma", shape, dtype, seed, generator, alpha, scale)


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
    return _drawn("beta", shape, dtype, seed, generator, alpha, beta)


@op
def random_gumbel(
    shape: Shape,
    loc: float = 0.0,
    scale: float = 1.0,
    dtype: DTypeLike | None = None,
    seed: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Returns Gumbel numbers: `loc - scale * log(-log(u))` of uniform `u`."""
    if generator_of(seed, generator) is not None:
        return _drawn("gumbel", shape, dtype, seed, generator, loc, scale)
    # Of 0 the logarithm is a number that is never reached.
    uniform = add(standard_uniform(shape, dtype), 2.0**-60)
    return add(multiply(log(negative(log(uniform))), -number("scale", scale)), number("loc", loc))


@op
def random_laplace(
    shape: Shape,
    loc: float = 0.0,
    scale: float = 1.0,
    dtype: DTypeLike | None = None,
    seed: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Returns Laplace numbers: exponential ones of mean `scale`, of either sign, about `loc`."""
    return _drawn("laplace", shape, dtype, seed, generator, loc, scale)


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
    values = _source(seed, generator).truncated_normal(shape, floating(dtype))
    return _moved(values * number("stddev", stddev) + number("mean", mean), dtype)


@op
def random_categorical(
    logits: TensorLike,
    num_samples: int,
    dtype: DTypeLike | None = None,
    seed: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Returns classes, each with the probability that the softmax of its row of logits gives.

    No value is read on the host; a row that holds NaN gives the class of its first one.

    Shape: (..., classes) to (..., num_samples).

    Example:
        >>> ops.random_categorical([[0.0, -ops.inf], [-ops.inf, 0.0]], 2).tolist()
        [[0, 0], [1, 1]]
    """
    # The largest of logits with Gumbel noise. Noise of one dtype, so that a generator's is the same on all backends.
    rows, classes = tuple(logits.shape[:-1]), logits.shape[-1]
    noise = random_gumbel((*rows, num_samples, classes), dtype=float32, seed=seed, generator=generator)
    drawn = argmax(add(expand_dims(logits, -2), to_device(noise, get_device(logits))), -1)
    return drawn if dtype is None else cast(drawn, dtype)


@op
def random_permutation(x: Any, axis: int = 0, seed: Any = None, generator: Generator | None = None) -> Tensor:
    """Returns the integers from 0 to x - 1 in random order, or, of a tensor, its slices along an axis.

    Example:
        >>> sorted(ops.random_permutation(4).tolist())
        [0, 1, 2, 3]
    """
    if isinstance(x, int):
        return convert_to_tensor(_source(seed, generator).permutation(x))
    return random_shuffle(x, axis, seed, generator)


@op
def random_shuffle(x: TensorLike, axis: int = 0, seed: Any = None, generator: Generator | None = None) -> Tensor:
    """Returns `x` with its slices along an axis in random order."""
    return take(x, _source(seed, generator).permutation(x.shape[axis]), axis)


@op
def random_choice(
    a: Any,
    shape: Shape = (),
    replace: bool = True,
    p: Sequence[float] | None = None,
    seed: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Returns integers from 0 to a - 1, or, of a tensor, slices of its first axis, each as likely as `p` says.

    Args:
        replace: whether what was drawn may be drawn again.
    """
    pool = None if isinstance(a, int) else convert_to_tensor(a)
    n = a if pool is None else pool.shape[0]
    drawn = _source(seed, generator).choice(n, shape, replace, None if p is None else to_numpy(p).astype("float64"))
    return convert_to_tensor(drawn) if pool is None else take(pool, drawn, 0)


@op
def dropout(
    x: TensorLike,
    rate: float,
    noise_shape: Shape | None = None,
    seed: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Returns `x` with each element 0 with probability `rate`, the others divided by `1 - rate`.

    Args:
        noise_shape: what is drawn, to be broadcast to the shape of `x`: an axis of length 1 is dropped as a whole.

    Raises: ArgumentError unless `0 <= rate < 1`.
    """
    if not 0 <= rate < 1:
        raise ArgumentError(f"rate is from 0 up to and without 1, not {rate}")
    shape = x.shape if noise_shape is None else noise_shape
    noise = to_device(random_uniform(shape, seed=seed, generator=generator), get_device(x))
    kept = less(noise, 1.0 - rate)
    return where(kept, divide(x, 1.0 - rate), 0.0)


def _source(seed: Any, generator: Generator | None) -> Generator:
    return generator_of(seed, generator) or HOST.get()


def _drawn(name: str, shape: Shape, dtype: Any, seed: Any, generator: Generator | None, *parameters: Any) -> Tensor:
    wanted = floating(dtype)
    host = [to_numpy(parameter) for parameter in parameters]
    values = _source(seed, generator).draw(name, shape, *host)
    return _moved(values.astype("float64" if wanted is float64 else "float32"), wanted)


def _moved(values: Any, dtype: Any) -> Tensor:
    return convert_to_tensor(values, floating(dtype))
