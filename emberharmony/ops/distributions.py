"""Distributions of random numbers, beyond the normal and the uniform. In `ops.random` the names lack `random_`.

`seed`, `generator`, dtypes and parameters work as in `random_ops`. Gradients flow through tensors that shift and scale
(`mean`, `cov`, `stddev`, `loc`, `scale`); the values of these (except for `cov`) and of `p` are not read. The values of
other tensors are read on the host and checked; a gradient by one of these, or by `p`, raises `UnsupportedOpError`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from emberharmony.backend.shared.random import Generator, generator_of
from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import op
from emberharmony.core.dtypes import float32, float64
from emberharmony.core.errors import ShapeError
from emberharmony.core.options import constant
from emberharmony.core.types import DTypeLike, Shape, Tensor, TensorLike, Varying
from emberharmony.ops.algebra.products import matmul
from emberharmony.ops.arrays.shape import broadcast_shapes, expand_dims, squeeze
from emberharmony.ops.device import get_device, to_device
from emberharmony.ops.elementwise.elementary import log
from emberharmony.ops.logic.comparison import less
from emberharmony.ops.math import add, multiply, negative
from emberharmony.ops.random_ops import (
    generator_for,
    parameter,
    random_normal,
    random_uniform,
    scale_and_shift,
    standard_uniform,
)
from emberharmony.ops.reductions.reduction import argmax
from emberharmony.ops.solver import cholesky
from emberharmony.ops.tensor import cast, convert_to_tensor, to_numpy

if TYPE_CHECKING:
    from emberharmony.backend.shared import random_parameters as checks
else:
    checks = Deferred("emberharmony.backend.shared.random_parameters")

_DISCRETE = "the draws are discrete"
_REASONS = {"poisson": _DISCRETE, "binomial": _DISCRETE}
"""By distribution, why its draws have no gradient."""
_IMPLICIT = "the derivative of the quantile function is not available"


@op
def random_multivariate_normal(
    mean: TensorLike,
    cov: TensorLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    seed: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Returns normal random vectors with the given mean and covariance: `mean + L @ z`, where `L = cholesky(cov)`.

    So the vectors have gradients by `mean` and `cov`. Only the lower half of `cov` is read. On MLX the Cholesky
    decomposition forces evaluation.

    Shape: mean (..., n) and cov (..., n, n) to (*shape, n).

    Args:
        mean: (..., n): the mean of each vector.
        cov: (..., n, n): covariance matrices, symmetric and positive-definite.
        shape: how many vectors to draw; the axes of `mean` and `cov` before the last ones broadcast to it. By default
            it is the shape of these axes.

    Raises:
        LinAlgError: if a covariance matrix is not positive-definite; add a small multiple of `ops.eye(n)`.
        ShapeError: if the shapes of `mean`, `cov` and `shape` do not fit.

    See also: `random_normal`, of numbers.

    Example:
        >>> ops.shape(ops.random_multivariate_normal([0.0, 5.0], [[1.0, 0.5], [0.5, 2.0]], (3,), seed=0))
        (3, 2)
    """
    float_dtype = checks.floating_dtype(dtype)
    mean_tensor, covariance = cast(mean, float_dtype), cast(cov, float_dtype)
    if not mean_tensor.shape or tuple(covariance.shape[-2:]) != (mean_tensor.shape[-1],) * 2:
        raise ShapeError(
            f"expected a mean of shape (..., n) and a covariance of shape (..., n, n), got {tuple(mean.shape)} and "
            f"{tuple(cov.shape)}"
        )
    batch_shape = broadcast_shapes(tuple(mean_tensor.shape[:-1]), tuple(covariance.shape[:-2]))
    draw_shape = batch_shape if shape is None else (shape,) if isinstance(shape, int) else tuple(shape)
    checks.check_fits_shape("the mean and the covariance", batch_shape, draw_shape)
    noise = random_normal((*draw_shape, mean_tensor.shape[-1]), 0.0, 1.0, float_dtype, seed, generator)
    noise = expand_dims(to_device(noise, get_device(covariance)), -1)
    return add(squeeze(matmul(cholesky(covariance), noise), -1), mean_tensor)


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
        p: a number from 0 to 1, or a tensor that broadcasts to the shape; in a tensor, values below 0 count as 0 and
            values above 1 as 1.

    Raises:
        ArgumentError: if `p` is a number outside [0, 1].
        ShapeError: if a tensor does not broadcast to the shape.

    See also: `random_binomial`, of several trials; `dropout`, as a mask.
    """
    probability: Any = checks.as_number("p", p, checks.CHANCE)
    uniform_draws = random_uniform(shape, seed=seed, generator=generator)
    if probability is None:
        probability = parameter("p", constant("p", p, _DISCRETE), uniform_draws.shape)
        uniform_draws = to_device(uniform_draws, get_device(probability))
    return cast(less(uniform_draws, probability), checks.floating_dtype(dtype))


@op
def random_poisson(
    shape: Shape,
    lam: Varying = 1.0,
    dtype: DTypeLike | None = None,
    seed: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Returns Poisson random numbers of mean `lam`, as floats.

    Args:
        lam: a number that is not negative, or a tensor that broadcasts to the shape.

    Raises:
        ArgumentError: if a mean is negative or not finite.

    See also: `random_exponential`, the times between.
    """
    return _draw_from_law("poisson", shape, dtype, seed, generator, lam=(lam, checks.FROM_ZERO))


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
        counts: the number of trials: whole numbers that are not negative, or a tensor of them that broadcasts to the
            shape.
        probabilities: the probability that a trial succeeds, from 0 to 1, or a tensor that broadcasts to the shape.

    Raises:
        ArgumentError: if a count or a probability is outside its range.

    See also: `random_bernoulli`, of one trial.
    """
    host_counts = checks.trial_counts(
        counts if isinstance(counts, int) else to_numpy(constant("counts", counts, _DISCRETE)), shape
    )
    return _draw_from_law(
        "binomial", shape, dtype, seed, generator, host_counts, probabilities=(probabilities, checks.CHANCE)
    )


@op
def random_exponential(
    shape: Shape,
    scale: Varying = 1.0,
    dtype: DTypeLike | None = None,
    seed: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Returns exponential random numbers of mean `scale`.

    Args:
        scale: a number that is not negative, or a tensor that broadcasts to the shape.

    Raises:
        ArgumentError: if a number is negative or not finite.

    See also: `random_poisson`, the counts; `random_gamma`, sums of them.
    """
    if checks.as_number("scale", scale, checks.FROM_ZERO) is None:
        return scale_and_shift(_draw_from_law("standard_exponential", shape, dtype, seed, generator), scale=scale)
    return _draw_from_law("exponential", shape, dtype, seed, generator, scale=(scale, checks.FROM_ZERO))


@op
def random_gamma(
    shape: Shape,
    alpha: Varying,
    dtype: DTypeLike | None = None,
    seed: Any = None,
    generator: Generator | None = None,
    scale: Varying = 1.0,
) -> Tensor:
    """Returns gamma random numbers of shape parameter `alpha` and mean `alpha * scale`.

    Args:
        alpha, scale: numbers that are not negative, or tensors that broadcast to the shape.

    Raises:
        ArgumentError: if a number, or a value of a tensor `alpha`, is negative or not finite.

    See also: `random_exponential`, of shape 1; `random_beta`, quotients of them.
    """
    if checks.as_number("scale", scale, checks.FROM_ZERO) is None:
        return scale_and_shift(
            _draw_from_law("standard_gamma", shape, dtype, seed, generator, alpha=(alpha, checks.FROM_ZERO)),
            scale=scale,
        )
    return _draw_from_law(
        "gamma", shape, dtype, seed, generator, alpha=(alpha, checks.FROM_ZERO), scale=(scale, checks.FROM_ZERO)
    )


@op
def random_beta(
    shape: Shape,
    alpha: Varying,
    beta: Varying,
    dtype: DTypeLike | None = None,
    seed: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Returns beta random numbers, between 0 and 1, of mean `alpha / (alpha + beta)`.

    Args:
        alpha, beta: positive numbers, or tensors of them that broadcast to the shape.

    Raises:
        ArgumentError: if a value is not positive or not finite.

    See also: `random_gamma`, by which it draws.
    """
    return _draw_from_law(
        "beta", shape, dtype, seed, generator, alpha=(alpha, checks.POSITIVE), beta=(beta, checks.POSITIVE)
    )


@op
def random_gumbel(
    shape: Shape,
    loc: Varying = 0.0,
    scale: Varying = 1.0,
    dtype: DTypeLike | None = None,
    seed: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Returns Gumbel random numbers: `loc - scale * log(-log(u))` for uniform `u`.

    Args:
        loc, scale: numbers, or tensors that broadcast to the shape.

    Raises:
        ArgumentError: if a number is not finite, or if `scale` is negative.
        ShapeError: if a tensor does not broadcast to the shape.

    See also: `random_categorical`, the largest of them.
    """
    loc_number, scale_number = checks.as_number("loc", loc), checks.as_number("scale", scale, checks.FROM_ZERO)
    if generator_of(seed, generator) is not None:
        if loc_number is None or scale_number is None:
            return scale_and_shift(_draw_from_law("gumbel", shape, dtype, seed, generator), loc=loc, scale=scale)
        return _draw_from_law(
            "gumbel",
            shape,
            dtype,
            seed,
            generator,
            loc=(loc_number, checks.Domain()),
            scale=(scale_number, checks.FROM_ZERO),
        )
    # Shift by 2**-60 so that log(0) cannot occur; float16 cannot hold 2**-60.
    float_dtype = checks.floating_dtype(dtype)
    uniform_draws = add(standard_uniform(shape, float64 if float_dtype is float64 else float32), 2.0**-60)
    negative_gumbel = cast(log(negative(log(uniform_draws))), float_dtype)
    if loc_number is None or scale_number is None:
        return scale_and_shift(negative(negative_gumbel), loc=loc, scale=scale)
    return add(multiply(negative_gumbel, -scale_number), loc_number)


@op
def random_laplace(
    shape: Shape,
    loc: Varying = 0.0,
    scale: Varying = 1.0,
    dtype: DTypeLike | None = None,
    seed: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Returns Laplace random numbers: `loc` plus or minus an exponential random number of mean `scale`.

    Args:
        loc, scale: numbers, or tensors that broadcast to the shape.

    Raises:
        ArgumentError: if a number is not finite, or if `scale` is negative.
        ShapeError: if a tensor does not broadcast to the shape.

    See also: `random_exponential`, of one sign.
    """
    if checks.as_number("loc", loc) is None or checks.as_number("scale", scale, checks.FROM_ZERO) is None:
        return scale_and_shift(_draw_from_law("laplace", shape, dtype, seed, generator), loc=loc, scale=scale)
    return _draw_from_law(
        "laplace", shape, dtype, seed, generator, loc=(loc, checks.Domain()), scale=(scale, checks.FROM_ZERO)
    )


@op
def random_truncated_normal(
    shape: Shape,
    mean: Varying = 0.0,
    stddev: Varying = 1.0,
    dtype: DTypeLike | None = None,
    seed: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Returns normal random numbers; those more than two standard deviations from the mean are drawn again.

    Args:
        mean, stddev: mean and standard deviation before truncation; numbers, or tensors that broadcast to the shape.

    Raises:
        ArgumentError: if a number is not finite, or if `stddev` is negative.
        ShapeError: if a tensor does not broadcast to the shape.

    See also: `random_normal`, with far ones.
    """
    mean_number, stddev_number = checks.as_number("mean", mean), checks.as_number("stddev", stddev, checks.FROM_ZERO)
    float_dtype = checks.floating_dtype(dtype)
    standard_draws = generator_for(seed, generator).truncated_normal(shape, float_dtype)
    if mean_number is None or stddev_number is None:
        return scale_and_shift(convert_to_tensor(standard_draws, float_dtype), mean=mean, stddev=stddev)
    return convert_to_tensor(standard_draws * stddev_number + mean_number, float_dtype)


@op
def random_categorical(
    logits: TensorLike,
    num_samples: int,
    dtype: DTypeLike | None = None,
    seed: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Returns random classes, each with the probability that the softmax of its row of logits gives.

    No value is read on the host. A row that holds NaN always gives the class of its first NaN.

    Shape: (..., classes) to (..., num_samples).

    Args:
        logits: (..., classes): the unnormalized logarithm of the probability of each class.
        num_samples: how many classes are drawn for each row.
        dtype: the dtype of the classes; None is int64.

    See also: `random_choice`, by probabilities; `random_gumbel`, by which it draws.

    Example:
        >>> ops.random_categorical([[0.0, -ops.inf], [-ops.inf, 0.0]], 2).tolist()
        [[0, 0], [1, 1]]
    """
    # The Gumbel-max trick. Noise is always float32, so that a generator gives the same classes on all backends.
    batch_shape, class_count = tuple(logits.shape[:-1]), logits.shape[-1]
    gumbel_noise = random_gumbel(
        (*batch_shape, num_samples, class_count), dtype=float32, seed=seed, generator=generator
    )
    drawn_classes = argmax(add(expand_dims(logits, -2), to_device(gumbel_noise, get_device(logits))), -1)
    return drawn_classes if dtype is None else cast(drawn_classes, dtype)


def _draw_from_law(
    law: str,
    shape: Shape,
    dtype: Any,
    seed: Any,
    generator: Generator | None,
    *leading_arguments: Any,
    **parameters: tuple[Any, checks.Domain],
) -> Tensor:
    """Returns random numbers of a distribution of `numpy.random.Generator`, drawn on the host.

    Args:
        leading_arguments: parameters that are read and checked already.
        parameters: other parameters by name, each with its domain.
    """
    float_dtype = checks.floating_dtype(dtype)
    host_parameters = [_read_parameter(law, name, value, shape, domain) for name, (value, domain) in parameters.items()]
    host_values = generator_for(seed, generator).draw(law, shape, *leading_arguments, *host_parameters)
    return convert_to_tensor(host_values.astype("float64" if float_dtype is float64 else "float32"), float_dtype)


def _read_parameter(law: str, name: str, value: Any, shape: Shape, domain: checks.Domain) -> Any:
    host_number = checks.as_number(name, value, domain)
    if host_number is not None:
        return host_number
    return checks.as_array(name, to_numpy(constant(name, value, _REASONS.get(law, _IMPLICIT))), shape, domain)
