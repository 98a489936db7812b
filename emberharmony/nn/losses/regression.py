"""Losses of numbers: squared and absolute differences, and the likelihoods of normal and Poisson distributions."""

import math

from emberharmony import ops
from emberharmony.core.errors import ShapeError
from emberharmony.core.types import Tensor, TensorLike
from emberharmony.nn.locate import fault
from emberharmony.nn.losses.operands import (
    Reduction,
    convert_matching_operands,
    convert_operands,
    reduce_losses,
    require_option,
)


def mse(input: TensorLike, target: TensorLike, *, reduction: Reduction = "mean") -> Tensor:
    """Returns the squared differences `(input - target) ** 2`, by default their mean.

    Args:
        input, target: tensors of one shape; integers become the default float.
        reduction: "none" gives each loss, "mean" their mean, and "sum" their sum.

    Raises:
        ShapeError: if the shapes differ.

    Example:
        >>> from emberharmony import nn
        >>> nn.losses.mse([1.0, 4.0], [2.0, 1.0]).tolist()
        5.0

    Source: `torch.nn.functional.mse_loss`.
    """
    (x, y), result_dtype = convert_matching_operands("mse", input=input, target=target)
    return reduce_losses("mse", ops.square(ops.subtract(x, y)), reduction, result_dtype)


def l1(input: TensorLike, target: TensorLike, *, reduction: Reduction = "mean") -> Tensor:
    """Returns the absolute differences `abs(input - target)`, by default their mean; see `mse`.

    Args:
        input, target: tensors of one shape; integers become the default float.
        reduction: "none" gives each difference, "mean" and "sum" one number.

    Example:
        >>> from emberharmony import nn
        >>> nn.losses.l1([1.0, 4.0], [2.0, 1.0]).tolist()
        2.0

    Source: `torch.nn.functional.l1_loss`.
    """
    (x, y), result_dtype = convert_matching_operands("l1", input=input, target=target)
    return reduce_losses("l1", ops.absolute(ops.subtract(x, y)), reduction, result_dtype)


def huber(input: TensorLike, target: TensorLike, *, delta: float = 1.0, reduction: Reduction = "mean") -> Tensor:
    """Returns half the squared differences, continued linearly where they exceed `delta`, by default their mean.

    Args:
        input, target: tensors of one shape; integers become the default float.
        delta: the difference from which on the loss is linear.
        reduction: "none" gives each loss, "mean" their mean, and "sum" their sum.

    Raises:
        ArgumentError: if `delta` is not positive.
        ShapeError: if the shapes differ.

    Example:
        >>> from emberharmony import nn
        >>> nn.losses.huber([1.0, 4.0], [2.0, 1.0], reduction="none").tolist()
        [0.5, 2.5]

    Source: `torch.nn.functional.huber_loss`.
    """
    (x, y), result_dtype = convert_matching_operands("huber", input=input, target=target)
    require_option("huber", "delta", delta, delta > 0, "a number > 0")
    return reduce_losses("huber", _huber(x, y, delta), reduction, result_dtype)


def smooth_l1(input: TensorLike, target: TensorLike, *, beta: float = 1.0, reduction: Reduction = "mean") -> Tensor:
    """Returns `huber` divided by `beta`: the absolute differences less `beta / 2`, but squares below `beta`.

    For `beta=0` it is `l1`.

    Args:
        input, target: tensors of one shape; integers become the default float.
        beta: the difference from which on the loss is linear.
        reduction: "none" gives each loss, "mean" their mean, and "sum" their sum.

    Raises:
        ArgumentError: if `beta` is negative.
        ShapeError: if the shapes differ.

    Example:
        >>> from emberharmony import nn
        >>> nn.losses.smooth_l1([1.0, 4.0], [2.0, 1.0], beta=2.0, reduction="none").tolist()
        [0.25, 2.0]

    Source: `torch.nn.functional.smooth_l1_loss`.
    """
    (x, y), result_dtype = convert_matching_operands("smooth_l1", input=input, target=target)
    require_option("smooth_l1", "beta", beta, beta >= 0, "a number >= 0")
    loss = ops.divide(_huber(x, y, beta), beta) if beta else ops.absolute(ops.subtract(x, y))
    return reduce_losses("smooth_l1", loss, reduction, result_dtype)


def log_cosh(input: TensorLike, target: TensorLike, *, reduction: Reduction = "mean") -> Tensor:
    """Returns the logarithms of the hyperbolic cosine of the differences, by default their mean.

    The relative precision is full for small differences too, and large ones do not overflow.

    Args:
        input, target: tensors of one shape; integers become the default float.
        reduction: "none" gives each loss, "mean" their mean, and "sum" their sum.

    Raises:
        ShapeError: if the shapes differ.

    Example:
        >>> from emberharmony import nn
        >>> round(nn.losses.log_cosh([1.0], [0.0]).tolist(), 4)
        0.4338
    """
    (x, y), result_dtype = convert_matching_operands("log_cosh", input=input, target=target)
    magnitude = ops.absolute(ops.subtract(x, y))
    # For small x, log(cosh(x)) is computed as log1p(2 sinh(x / 2)**2), because the other form loses digits there.
    near_value = ops.log1p(ops.multiply(ops.square(ops.sinh(ops.multiply(ops.clip(magnitude, None, 1.0), 0.5))), 2.0))
    far_value = ops.subtract(ops.add(magnitude, ops.log1p(ops.exp(ops.multiply(magnitude, -2.0)))), math.log(2.0))
    return reduce_losses(
        "log_cosh", ops.where(ops.less(magnitude, 1.0), near_value, far_value), reduction, result_dtype
    )


def gaussian_nll(
    input: TensorLike,
    target: TensorLike,
    var: TensorLike,
    *,
    full: bool = False,
    eps: float = 1e-6,
    reduction: Reduction = "mean",
) -> Tensor:
    """Returns the negative logarithms of the likelihood of normal distributions, by default their mean.

    Args:
        input: the means of the distributions.
        target: the samples, of the same shape.
        var: the variances: a number, or a tensor of the shape of `input`, in which one axis may have length 1, and the
            last may be left out.
        full: whether the constant `log(2 * pi) / 2` is added.
        eps: smaller variances count as this one; the gradient passes through unchanged.
        reduction: "none" gives each loss, "mean" their mean, and "sum" their sum.

    Raises:
        ArgumentError: if `eps` is not positive, or if `var` is a negative number; the values of a tensor are not read.
        ShapeError: if the shapes do not fit.

    Example:
        >>> from emberharmony import nn
        >>> nn.losses.gaussian_nll([1.0, 4.0], [2.0, 1.0], [1.0, 1.0]).tolist()
        2.5

    Source: `torch.nn.functional.gaussian_nll_loss`.
    """
    require_option("gaussian_nll", "eps", eps, eps > 0, "a number > 0")
    if isinstance(var, (int, float)):
        require_option("gaussian_nll", "var", var, var >= 0, "a number >= 0")
    (x, y), _ = convert_matching_operands("gaussian_nll", input=input, target=target)
    (x, y, variance), result_dtype = convert_operands("gaussian_nll", input, target, var)
    shape, own_shape = tuple(x.shape), tuple(variance.shape)
    if own_shape == shape[:-1] and own_shape != shape and shape:
        variance = ops.expand_dims(variance, -1)
    elif (
        own_shape
        and own_shape != shape
        and not (len(own_shape) == len(shape) and _broadcast_axes(own_shape, shape) == 1)
    ):
        raise fault(
            ShapeError(
                f"gaussian_nll(): var has shape {own_shape}, expected that of input, {shape}, without its last axis, "
                f"or with one axis of length 1"
            )
        )
    variance = ops.add(variance, ops.stop_gradient(ops.subtract(ops.clip(variance, eps, None), variance)))
    scaled_square = ops.divide(ops.square(ops.subtract(x, y)), variance)
    loss = ops.multiply(ops.add(ops.log(variance), scaled_square), 0.5)
    if full:
        loss = ops.add(loss, 0.5 * math.log(2.0 * math.pi))
    return reduce_losses("gaussian_nll", loss, reduction, result_dtype)


def poisson_nll(
    input: TensorLike,
    target: TensorLike,
    *,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    reduction: Reduction = "mean",
) -> Tensor:
    """Returns the negative logarithms of the likelihood of Poisson distributions, by default their mean.

    Args:
        input: the logarithms of the expected values, or these values.
        target: the counts, of the same shape.
        log_input: whether `input` holds logarithms.
        full: whether Stirling's approximation of `log(target!)` is added, where the target exceeds 1.
        eps: what is added to an expected value before its logarithm is taken.
        reduction: "none" gives each loss, "mean" their mean, and "sum" their sum.

    Raises:
        ShapeError: if the shapes differ.

    Example:
        >>> from emberharmony import nn
        >>> nn.losses.poisson_nll([0.0, 0.0], [1.0, 5.0]).tolist()
        1.0

    Source: `torch.nn.functional.poisson_nll_loss`.
    """
    (x, y), result_dtype = convert_matching_operands("poisson_nll", input=input, target=target)
    if log_input:
        loss = ops.subtract(ops.exp(x), ops.multiply(y, x))
    else:
        loss = ops.subtract(x, ops.multiply(y, ops.log(ops.add(x, eps))))
    if full:
        is_above_1 = ops.greater(y, 1.0)
        safe_y = ops.where(is_above_1, y, 1.0)
        log_y = ops.log(safe_y)
        log_roots = ops.multiply(ops.add(log_y, math.log(2.0 * math.pi)), 0.5)
        stirling_terms = ops.add(ops.subtract(ops.multiply(safe_y, log_y), safe_y), log_roots)
        loss = ops.add(loss, ops.where(is_above_1, stirling_terms, 0.0))
    return reduce_losses("poisson_nll", loss, reduction, result_dtype)


def _huber(x: Tensor, y: Tensor, delta: float) -> Tensor:
    magnitude = ops.absolute(ops.subtract(x, y))
    quadratic_part = ops.clip(magnitude, None, delta)
    linear_part = ops.subtract(magnitude, quadratic_part)
    return ops.add(ops.multiply(ops.square(quadratic_part), 0.5), ops.multiply(linear_part, delta))


def _broadcast_axes(own_shape: tuple[int, ...], shape: tuple[int, ...]) -> int:
    """Returns the number of axes of length 1 that are broadcast to a shape; 0 if another axis differs."""
    wrong_axes = [a for a, b in zip(own_shape, shape, strict=True) if a != b]
    return len(wrong_axes) if all(a == 1 for a in wrong_axes) else 0
