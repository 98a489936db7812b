"""Random numbers. In the namespace `ops.random` the names lack `random_`.

`seed=` takes an integer or a `Generator`, `generator=` a `Generator`: then every backend gives the same numbers to
the last bit. Without them numbers come from the default streams, which `seed` starts and which are repeatable on each
backend: uniform and normal numbers and what is made of them (`bernoulli`, `gumbel`, `categorical`, `dropout`) are drawn
by the backend, the others on the host. Dtype: the default float, or int64, unless `dtype` says otherwise.

Parameters are numbers, or tensors, NumPy arrays or lists that broadcast to the shape. Numbers that make no distribution
raise `ArgumentError`. Gradients flow through tensors that shift and scale (`mean`, `stddev`, `loc`, `scale`, `minval`,
`maxval`); their values are not read, nor those of `p` and `rate`. The values of other tensors are read on the host and
checked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from emberharmony.backend.shared.random import (
    CHANCE,
    FROM_ZERO,
    HOST,
    POSITIVE,
    Domain,
    Generator,
    below,
    check_between,
    check_bounds,
    check_fits_shape,
    floating,
    generator_of,
    integral,
    number,
    on_host,
    size_of,
    start_streams,
    trials,
)
from emberharmony.core.axes import normalized
from emberharmony.core.dispatch import op
from emberharmony.core.dtypes import DType, as_dtype, float32, float64, int64
from emberharmony.core.errors import ArgumentError, DTypeError
from emberharmony.core.limits import FloatInfo
from emberharmony.core.promotion import as_inexact
from emberharmony.core.types import DTypeLike, Shape, Tensor, TensorLike, Varying
from emberharmony.ops.comparison import greater_equal, less, logical_and
from emberharmony.ops.device import get_device, to_device
from emberharmony.ops.dtype import dtype as dtype_of
from emberharmony.ops.elementary import log
from emberharmony.ops.indexing import take, where
from emberharmony.ops.math import absolute, add, divide, maximum, minimum, multiply, negative, subtract
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
    mean: Varying = 0.0,
    stddev: Varying = 1.0,
    dtype: DTypeLike | None = None,
    seed: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Returns normal numbers.

    Args:
        mean, stddev: numbers, or tensors that broadcast to the shape.

    Raises: ArgumentError if a number is not finite, or `stddev` negative; ShapeError for a tensor that does not
    broadcast to the shape.

    Example:
        >>> ops.shape(ops.random_normal((2, 3), seed=0))
        (2, 3)
        >>> ops.round(ops.random_normal((2, 2), mean=[0.0, 1000.0], seed=0), -2).tolist()
        [[0.0, 1000.0], [0.0, 1000.0]]
    """
    loc, scale = number("mean", mean), number("stddev", stddev, FROM_ZERO)
    wanted, source = floating(dtype), generator_of(seed, generator)
    if loc is None or scale is None:
        values = standard_normal(shape, dtype) if source is None else _moved(source.normal(shape, wanted), wanted)
        return _scaled(values, mean=mean, stddev=stddev)
    if source is not None:
        return _moved(source.normal(shape, wanted) * scale + loc, wanted)
    values = standard_normal(shape, dtype)
    return values if loc == 0.0 and scale == 1.0 else add(multiply(values, scale), loc)


@op
def random_uniform(
    shape: Shape,
    minval: Varying = 0.0,
    maxval: Varying = 1.0,
    dtype: DTypeLike | None = None,
    seed: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Returns numbers evenly spread from `minval` up to and without `maxval`.

    Args:
        minval, maxval: numbers, or tensors that broadcast to the shape; where tensors give no finite range, NaN.

    Raises: ArgumentError if a number is not finite, or `minval` above `maxval`; RangeError if the dtype does not hold
    them; ShapeError for a tensor that does not broadcast to the shape.

    Example:
        >>> ops.shape(ops.random_uniform((2, 3), seed=0))
        (2, 3)
        >>> ops.floor(ops.random_uniform((2, 2), [0.0, 7.0], [1.0, 8.0], seed=0)).tolist()
        [[0.0, 7.0], [0.0, 7.0]]
    """
    low, high = number("minval", minval), number("maxval", maxval)
    wanted, source = floating(dtype), generator_of(seed, generator)
    if low is None or high is None:
        values = standard_uniform(shape, dtype) if source is None else _moved(source.uniform(shape, wanted), wanted)
        return _between(values, minval, maxval)
    if source is None and low == 0.0 and high == 1.0:
        return standard_uniform(shape, dtype)
    check_bounds(low, high, wanted)
    # What rounds to `maxval` is moved below it.
    limit = max(low, below(high, wanted))
    if source is not None:
        drawn = source.uniform(shape, wanted)
        # The width of a range may be more than the dtype holds; half of it never is.
        half = drawn * (high / 2 - low / 2)
        wide = high - low > FloatInfo.of(float64 if wanted is float64 else float32).max
        return _moved((half + low + half if wide else drawn * (high - low) + low).clip(max=limit), wanted)
    values = standard_uniform(shape, dtype)
    if high - low > FloatInfo.of(wanted).max:
        step = multiply(values, high / 2 - low / 2)
        return minimum(add(add(step, low), step), limit)
    return minimum(add(multiply(values, high - low), low), limit)


@op
def random_randint(
    shape: Shape,
    minval: int | Sequence[Any] | Tensor,
    maxval: int | Sequence[Any] | Tensor,
    dtype: DTypeLike | None = None,
    seed: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Returns integers evenly spread from `minval` up to and without `maxval`.

    Args:
        minval, maxval: integers, or tensors of them that broadcast to the shape.

    Raises: ArgumentError if there is no integer between them; RangeError if the dtype does not hold what is; DTypeError
    for a dtype that is no integer; ArgumentTypeError for bounds that are none.

    Example:
        >>> ops.random_randint((2,), 7, 8).tolist()
        [7, 7]
    """
    wanted = int64 if dtype is None else as_dtype(dtype)
    low, high = (
        integral(name, value if isinstance(value, int) else to_numpy(value), shape)
        for name, value in (("minval", minval), ("maxval", maxval))
    )
    check_between(low, high, wanted)
    return convert_to_tensor(_source(seed, generator).integers(shape, low, high, wanted), wanted)


@op
def random_bernoulli(
    shape: Shape,
    p: Varying = 0.5,
    dtype: DTypeLike | None = None,
    seed: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Returns 1 with probability p, else 0, as floats.

    Args:
        p: from 0 to 1, or a tensor that broadcasts to the shape, in which what is below counts as 0, above as 1.

    Raises: ArgumentError for a number outside; ShapeError for a tensor that does not broadcast to the shape.
    """
    chance, uniform = number("p", p, CHANCE), random_uniform(shape, seed=seed, generator=generator)
    if chance is None:
        chance = _parameter("p", p, uniform.shape)
        uniform = to_device(uniform, get_device(chance))
    return cast(less(uniform, chance), floating(dtype))


@op
def random_poisson(
    shape: Shape,
    lam: Varying = 1.0,
    dtype: DTypeLike | None = None,
    seed: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Returns Poisson numbers of mean `lam`, as floats.

    Args:
        lam: from 0 on, or a tensor that broadcasts to the shape.

    Raises: ArgumentError for a mean that is negative or not finite.
    """
    return _drawn("poisson", shape, dtype, seed, generator, lam=(lam, FROM_ZERO))


@op
def random_binomial(
    shape: Shape,
    counts: int | Sequence[Any] | Tensor,
    probabilities: Varying,
    dtype: DTypeLike | None = None,
    seed: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Returns how many of `counts` trials succeed, as floats.

    Args:
        counts: whole numbers from 0 on.
        probabilities: from 0 to 1. Both may be tensors that broadcast to the shape.

    Raises: ArgumentError for others.
    """
    known = trials(counts if isinstance(counts, int) else to_numpy(counts), shape)
    return _drawn("binomial", shape, dtype, seed, generator, known, probabilities=(probabilities, CHANCE))


@op
def random_exponential(
    shape: Shape,
    scale: Varying = 1.0,
    dtype: DTypeLike | None = None,
    seed: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Returns exponential numbers of mean `scale`.

    Args:
        scale: from 0 on, or a tensor that broadcasts to the shape.

    Raises: ArgumentError for a number that is negative or not finite.
    """
    if number("scale", scale, FROM_ZERO) is None:
        return _scaled(_drawn("standard_exponential", shape, dtype, seed, generator), scale=scale)
    return _drawn("exponential", shape, dtype, seed, generator, scale=(scale, FROM_ZERO))


@op
def random_gamma(
    shape: Shape,
    alpha: Varying,
    dtype: DTypeLike | None = None,
    seed: Any = None,
    generator: Generator | None = None,
    scale: Varying = 1.0,
) -> Tensor:
    """Returns gamma numbers of shape parameter `alpha`, mean `alpha * scale`.

    Args:
        alpha, scale: from 0 on, or tensors that broadcast to the shape.

    Raises: ArgumentError for numbers, and values of `alpha`, that are negative or not finite.
    """
    if number("scale", scale, FROM_ZERO) is None:
        return _scaled(_drawn("standard_gamma", shape, dtype, seed, generator, alpha=(alpha, FROM_ZERO)), scale=scale)
    return _drawn("gamma", shape, dtype, seed, generator, alpha=(alpha, FROM_ZERO), scale=(scale, FROM_ZERO))


@op
def random_beta(
    shape: Shape,
    alpha: Varying,
    beta: Varying,
    dtype: DTypeLike | None = None,
    seed: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Returns beta numbers, between 0 and 1, of mean `alpha / (alpha + beta)`.

    Args:
        alpha, beta: above 0, or tensors that broadcast to the shape.

    Raises: ArgumentError for others.
    """
    return _drawn("beta", shape, dtype, seed, generator, alpha=(alpha, POSITIVE), beta=(beta, POSITIVE))


@op
def random_gumbel(
    shape: Shape,
    loc: Varying = 0.0,
    scale: Varying = 1.0,
    dtype: DTypeLike | None = None,
    seed: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Returns Gumbel numbers: `loc - scale * log(-log(u))` of uniform `u`.

    Args:
        loc, scale: numbers, or tensors that broadcast to the shape.

    Raises: ArgumentError if a number is not finite, or `scale` negative; ShapeError for a tensor that does not
    broadcast to the shape.
    """
    shift, factor = number("loc", loc), number("scale", scale, FROM_ZERO)
    if generator_of(seed, generator) is not None:
        if shift is None or factor is None:
            return _scaled(_drawn("gumbel", shape, dtype, seed, generator), loc=loc, scale=scale)
        return _drawn("gumbel", shape, dtype, seed, generator, loc=(shift, Domain()), scale=(factor, FROM_ZERO))
    # Of 0 the logarithm is a number that is never reached; float16 does not hold it.
    wanted = floating(dtype)
    uniform = add(standard_uniform(shape, float64 if wanted is float64 else float32), 2.0**-60)
    logarithms = cast(log(negative(log(uniform))), wanted)
    if shift is None or factor is None:
        return _scaled(negative(logarithms), loc=loc, scale=scale)
    return add(multiply(logarithms, -factor), shift)


@op
def random_laplace(
    shape: Shape,
    loc: Varying = 0.0,
    scale: Varying = 1.0,
    dtype: DTypeLike | None = None,
    seed: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Returns Laplace numbers: exponential ones of mean `scale`, of either sign, about `loc`.

    Args:
        loc, scale: numbers, or tensors that broadcast to the shape.

    Raises: ArgumentError if a number is not finite, or `scale` negative; ShapeError for a tensor that does not
    broadcast to the shape.
    """
    if number("loc", loc) is None or number("scale", scale, FROM_ZERO) is None:
        return _scaled(_drawn("laplace", shape, dtype, seed, generator), loc=loc, scale=scale)
    return _drawn("laplace", shape, dtype, seed, generator, loc=(loc, Domain()), scale=(scale, FROM_ZERO))


@op
def random_truncated_normal(
    shape: Shape,
    mean: Varying = 0.0,
    stddev: Varying = 1.0,
    dtype: DTypeLike | None = None,
    seed: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Returns normal numbers, those beyond two standard deviations drawn again.

    Args:
        mean, stddev: numbers, or tensors that broadcast to the shape.

    Raises: ArgumentError if a number is not finite, or `stddev` negative; ShapeError for a tensor that does not
    broadcast to the shape.
    """
    loc, scale, wanted = number("mean", mean), number("stddev", stddev, FROM_ZERO), floating(dtype)
    values = _source(seed, generator).truncated_normal(shape, wanted)
    if loc is None or scale is None:
        return _scaled(_moved(values, wanted), mean=mean, stddev=stddev)
    return _moved(values * scale + loc, wanted)


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

    Raises: ArgumentError for a negative number; AxisError for an axis that the tensor does not have.

    Example:
        >>> sorted(ops.random_permutation(4).tolist())
        [0, 1, 2, 3]
    """
    n = size_of(x)
    if n is not None:
        return convert_to_tensor(_source(seed, generator).permutation(n))
    return random_shuffle(x, axis, seed, generator)


@op
def random_shuffle(x: TensorLike, axis: int = 0, seed: Any = None, generator: Generator | None = None) -> Tensor:
    """Returns `x` with its slices along an axis in random order.

    Raises: AxisError for an axis that the tensor does not have.
    """
    (along,) = normalized(axis, len(x.shape))
    return take(x, _source(seed, generator).permutation(x.shape[along]), along)


@op
def random_choice(
    a: Any,
    shape: Shape = (),
    replace: bool = True,
    p: Sequence[float] | Tensor | None = None,
    seed: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Returns integers from 0 to a - 1, or, of a tensor, slices of its first axis, each as likely as `p` says.

    Args:
        replace: whether what was drawn may be drawn again.
        p: one probability for each, which add up to 1.

    Raises: ArgumentError if there is nothing to draw, or too little, or `p` are no probabilities.
    """
    n = size_of(a)
    pool = None
    if n is None:
        pool = convert_to_tensor(a)
        normalized(0, len(pool.shape))
        n = pool.shape[0]
    weights = None if p is None else on_host("p", to_numpy(p), n, CHANCE)
    drawn = _source(seed, generator).choice(n, shape, replace, weights)
    return convert_to_tensor(drawn) if pool is None else take(pool, drawn, 0)


@op
def dropout(
    x: TensorLike,
    rate: Varying,
    noise_shape: Shape | None = None,
    seed: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Returns `x` with each element 0 with probability `rate`, the others divided by `1 - rate`.

    Args:
        rate: from 0 up to and without 1, or a tensor of such that broadcasts to the shape of `x`.
        noise_shape: what is drawn, to be broadcast to the shape of `x`: an axis of length 1 is dropped as a whole.

    Raises: ArgumentError for another number; ShapeError for what does not broadcast to the shape of `x`.
    """
    dropped = number("rate", rate)
    if dropped is not None and not 0.0 <= dropped < 1.0:
        raise ArgumentError(f"rate is from 0 up to and without 1, not {rate}")
    kept = subtract(1.0, _parameter("rate", rate, x.shape)) if dropped is None else 1.0 - dropped
    noise = random_uniform(x.shape if noise_shape is None else noise_shape, seed=seed, generator=generator)
    if noise_shape is not None:
        check_fits_shape("noise_shape", noise.shape, x.shape)
    divisor = cast(kept, as_inexact(dtype_of(x))) if dropped is None else kept
    return where(less(to_device(noise, get_device(x)), kept), divide(x, divisor), 0.0)


def _source(seed: Any, generator: Generator | None) -> Generator:
    return generator_of(seed, generator) or HOST.get()


def _parameter(name: str, value: Any, shape: Any, dtype: DType | None = None) -> Tensor:
    """Returns a parameter that varies as a tensor, of that dtype if there is one.

    Raises: DTypeError for complex numbers; ShapeError if it does not broadcast to the shape.
    """
    tensor = convert_to_tensor(value)
    own = dtype_of(tensor)
    if own.is_complex:
        raise DTypeError(f"{name} is real, not {own.name}")
    check_fits_shape(name, tensor.shape, shape)
    return tensor if dtype is None else convert_to_tensor(value, dtype)


def _scaled(values: Tensor, **parameters: Any) -> Tensor:
    """Returns numbers multiplied by the last parameter and, if there are two, moved by the first."""
    found = []
    for name, value in parameters.items():
        known = number(name, value)
        if known is None:
            tensor = _parameter(name, value, values.shape, dtype_of(values))
            values = to_device(values, get_device(tensor))
            found.append(tensor)
        else:
            found.append(known)
    *shift, scale = found
    scaled = multiply(values, scale)
    return add(scaled, shift[0]) if shift else scaled


def _between(values: Tensor, minval: Any, maxval: Any) -> Tensor:
    """Returns numbers from 0 up to and without 1 spread between two bounds, NaN where these are none."""
    own = dtype_of(values)
    low, high = (_parameter(name, bound, values.shape, own) for name, bound in (("minval", minval), ("maxval", maxval)))
    limits = FloatInfo.of(own)
    # The width of a range may be more than the dtype holds; half of it never is.
    half = subtract(multiply(high, 0.5), multiply(low, 0.5))
    step = multiply(to_device(values, get_device(half)), half)
    under = subtract(high, maximum(multiply(absolute(high), limits.eps), limits.smallest_normal))
    inside = minimum(add(add(low, step), step), maximum(low, under))
    return where(logical_and(greater_equal(half, 0.0), less(half, math.inf)), inside, math.nan)


def _drawn(
    law: str,
    shape: Shape,
    dtype: Any,
    seed: Any,
    generator: Generator | None,
    *known: Any,
    **parameters: tuple[Any, Domain],
) -> Tensor:
    """Returns numbers of a distribution of `numpy.random.Generator`, drawn on the host.

    Args:
        known: parameters that are read and checked already.
        parameters: others, each with what it may be.
    """
    wanted = floating(dtype)
    host = [_read(name, value, shape, domain) for name, (value, domain) in parameters.items()]
    values = _source(seed, generator).draw(law, shape, *known, *host)
    return _moved(values.astype("float64" if wanted is float64 else "float32"), wanted)


def _read(name: str, value: Any, shape: Shape, domain: Domain) -> Any:
    known = number(name, value, domain)
    return on_host(name, to_numpy(value), shape, domain) if known is None else known


def _moved(values: Any, dtype: DType) -> Tensor:
    return convert_to_tensor(values, dtype)
