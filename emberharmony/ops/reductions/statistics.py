"""Statistics: averages, covariance, and reductions that ignore NaN.

Shape and dtype follow the reductions. If all elements are NaN, then means and extremes are NaN. Means of an empty
tensor are NaN too.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import op
from emberharmony.core.errors import DTypeError, ShapeError
from emberharmony.core.numeric.promotion import as_inexact
from emberharmony.core.options import is_number
from emberharmony.core.types import Axis, DTypeLike, Tensor, TensorLike, Varying
from emberharmony.ops.arrays.indexing import diagonal, where
from emberharmony.ops.arrays.shape import (
    broadcast_to,
    expand_dims,
    matrix_transpose,
    reshape,
    squeeze,
)
from emberharmony.ops.dtype import cast_option, widen
from emberharmony.ops.dtype import dtype as dtype_of
from emberharmony.ops.elementwise.complex_numbers import conj, real
from emberharmony.ops.logic.comparison import equal, greater, isnan, logical_not
from emberharmony.ops.math import clip, divide, multiply, sqrt, square, subtract
from emberharmony.ops.reductions.reduction import all, argmax, argmin, cumprod, cumsum, max, mean, min, prod, sum
from emberharmony.ops.tensor import cast

if TYPE_CHECKING:
    from emberharmony.ops.algebra import products
else:
    products = Deferred("emberharmony.ops.algebra.products")  # which imports modules beside this one


@op
def average(x: TensorLike, axis: Axis = None, weights: TensorLike | None = None, keepdims: bool = False) -> Tensor:
    """Returns the weighted mean over axes; NaN or infinite where the weights sum to 0.

    Args:
        weights: broadcast against `x`; a vector of weights applies along `axis`. None gives the plain mean.

    Raises:
        ShapeError: if the length of a vector of weights differs from that of `axis`.

    See also: `mean`, without weights.

    Example:
        >>> ops.average([1.0, 3.0], weights=[3.0, 1.0]).tolist()
        1.5
    """
    if weights is None:
        return mean(x, axis, keepdims)
    if len(weights.shape) == 1 and len(x.shape) > 1 and isinstance(axis, int):
        weights_shape = [1] * len(x.shape)
        weights_shape[axis] = -1
        weights = reshape(weights, weights_shape)
        if weights.shape[axis] != x.shape[axis]:
            raise ShapeError(f"expected {x.shape[axis]} weights for axis {axis}, got {weights.shape[axis]}")
    # Cast to float, because products of narrow integers would wrap.
    weights = cast(weights, as_inexact(dtype_of(weights)))
    return divide(sum(multiply(x, weights), axis, keepdims), sum(broadcast_to(weights, x.shape), axis, keepdims))


def _is_float(x: Tensor) -> bool:
    return bool(dtype_of(x).is_floating)


def _replace_nan(x: Tensor, instead: float) -> Tensor:
    return where(isnan(x), instead, x) if _is_float(x) or dtype_of(x).is_complex else x


def _cast_for_mean(x: Tensor, dtype: DTypeLike | None) -> Tensor:
    """Returns `x` in the dtype that a mean should have; None keeps that of `x`.

    Raises:
        DTypeError: if the dtype holds whole numbers only.
    """
    if dtype is None:
        return x
    cast_x = cast(x, dtype)
    if not (_is_float(cast_x) or dtype_of(cast_x).is_complex):
        raise DTypeError(f"a mean is floating, got dtype {dtype_of(cast_x).name}; cast the result (ops.cast)")
    return cast_x


@op
def nansum(x: TensorLike, axis: Axis = None, keepdims: bool = False, dtype: DTypeLike | None = None) -> Tensor:
    """Returns the sum over axes of the elements that are not NaN.

    See also: `sum`, which keeps NaN.

    Example:
        >>> ops.nansum([1.0, float("nan")]).tolist()
        1.0
    """
    return sum(_replace_nan(x, 0), axis, keepdims, dtype)


@op
def nanprod(x: TensorLike, axis: Axis = None, keepdims: bool = False, dtype: DTypeLike | None = None) -> Tensor:
    """Returns the product over axes of the elements that are not NaN.

    See also: `prod`, which keeps NaN.

    Example:
        >>> ops.nanprod([2.0, float("nan"), 3.0]).tolist()
        6.0
    """
    return prod(_replace_nan(x, 1), axis, keepdims, dtype)


@op
def nancumsum(x: TensorLike, axis: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """Returns the cumulative sum along an axis, where NaN counts as 0; otherwise like `cumsum`.

    See also: `cumsum`, which keeps NaN.

    Example:
        >>> ops.nancumsum([1.0, float("nan"), 3.0]).tolist()
        [1.0, 1.0, 4.0]
    """
    return cumsum(_replace_nan(x, 0), axis, dtype)


@op
def nancumprod(x: TensorLike, axis: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """Returns the cumulative product along an axis, where NaN counts as 1; otherwise like `cumprod`.

    See also: `cumprod`, which keeps NaN.

    Example:
        >>> ops.nancumprod([2.0, float("nan"), 3.0]).tolist()
        [2.0, 2.0, 6.0]
    """
    return cumprod(_replace_nan(x, 1), axis, dtype)


def _nanmean(x: Tensor, axis: Axis, keepdims: bool) -> tuple[Tensor, Tensor]:
    """Returns the mean of the elements that are not NaN, and their number."""
    number_count = sum(logical_not(isnan(x)), axis, keepdims)
    return divide(sum(_replace_nan(x, 0), axis, keepdims), number_count), number_count


def _nanvar(x: Tensor, axis: Axis, keepdims: bool, correction: Any) -> Tensor:
    x = widen(x)
    is_nan = isnan(x)
    mean_of_numbers, _ = _nanmean(x, axis, True)
    # Replace NaN by 0 before squaring, because the gradient of a masked NaN would be NaN.
    deviations = where(is_nan, 0.0, subtract(_replace_nan(x, 0), mean_of_numbers))
    number_count = cast(sum(logical_not(is_nan), axis, keepdims), dtype_of(x))
    degrees_of_freedom = subtract(number_count, cast_option("correction", correction, x))
    divisor = where(greater(degrees_of_freedom, 0.0), degrees_of_freedom, math.nan)
    return divide(sum(square(deviations), axis, keepdims), divisor)


@op
def nanmean(x: TensorLike, axis: Axis = None, keepdims: bool = False, dtype: DTypeLike | None = None) -> Tensor:
    """Returns the mean over axes of the elements that are not NaN.

    Args:
        dtype: the dtype of the result, to which `x` is cast first, floating or complex; None is that of `x`, and for
            integers the default float.

    Raises:
        DTypeError: if `dtype` is neither floating nor complex.

    See also: `mean`, which keeps NaN.

    Example:
        >>> ops.nanmean([1.0, 3.0, float("nan")]).tolist()
        2.0
    """
    x = _cast_for_mean(x, dtype)
    return cast(_nanmean(widen(x), axis, keepdims)[0], as_inexact(dtype_of(x)))


@op
def nanvar(
    x: TensorLike,
    axis: Axis = None,
    keepdims: bool = False,
    correction: Varying = 0,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Returns the variance over axes of the elements that are not NaN; for real tensors.

    Args:
        x: a tensor of any shape, not complex; integers become the default float.
        correction: subtracted from the number of elements in the divisor; 1 gives the unbiased estimate. It is a
            number, or a tensor without axes.
        dtype: the dtype of the result, to which `x` is cast first, floating; None is that of `x`, and for integers the
            default float.

    Raises:
        DTypeError: if `dtype` is neither floating nor complex.

    See also: `var`, which keeps NaN.

    Example:
        >>> ops.nanvar([1.0, 3.0, float("nan")]).tolist()
        1.0
    """
    x = _cast_for_mean(x, dtype)
    return cast(_nanvar(x, axis, keepdims, correction), as_inexact(dtype_of(x)))


@op
def nanstd(
    x: TensorLike,
    axis: Axis = None,
    keepdims: bool = False,
    correction: Varying = 0,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Returns the standard deviation over axes of the elements that are not NaN; for real tensors.

    Args:
        x: a tensor of any shape, not complex; integers become the default float.
        correction: subtracted from the number of elements in the divisor; 1 gives the unbiased variance. It is a
            number, or a tensor without axes.
        dtype: the dtype of the result, to which `x` is cast first, floating; None is that of `x`, and for integers the
            default float.

    Raises:
        DTypeError: if `dtype` is neither floating nor complex.

    See also: `std`, which keeps NaN.

    Example:
        >>> ops.nanstd([1.0, 3.0, float("nan")]).tolist()
        1.0
    """
    x = _cast_for_mean(x, dtype)
    variance = _nanvar(x, axis, keepdims, correction)
    # The derivative of sqrt at 0 is infinite and would make the gradient NaN, so take the root of 1 there instead.
    is_constant = equal(variance, 0)
    return cast(where(is_constant, 0.0, sqrt(where(is_constant, 1.0, variance))), as_inexact(dtype_of(x)))


@op
def nanmax(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Returns the largest element over axes that is not NaN; NaN where all are NaN.

    Args:
        x: a tensor of any shape; booleans, integers or floats.

    Raises:
        ShapeError: if there are no elements.

    See also: `max`, which keeps NaN.

    Example:
        >>> ops.nanmax([1.0, float("nan")]).tolist()
        1.0
    """
    if not _is_float(x):
        return max(x, axis, keepdims)
    largest = max(where(isnan(x), float("-inf"), x), axis, keepdims)
    return where(all(isnan(x), axis, keepdims), float("nan"), largest)


@op
def nanmin(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Returns the smallest element over axes that is not NaN; NaN where all are NaN.

    Args:
        x: a tensor of any shape; booleans, integers or floats.

    Raises:
        ShapeError: if there are no elements.

    See also: `min`, which keeps NaN.

    Example:
        >>> ops.nanmin([1.0, float("nan")]).tolist()
        1.0
    """
    if not _is_float(x):
        return min(x, axis, keepdims)
    smallest = min(where(isnan(x), float("inf"), x), axis, keepdims)
    return where(all(isnan(x), axis, keepdims), float("nan"), smallest)


@op
def nanargmax(x: TensorLike, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Returns the index of the first largest element along an axis that is not NaN; -1 where all are NaN.

    JAX returns -1 too. NumPy raises an error instead, but raising one would mean reading the values on the host.

    Args:
        x: a tensor of any shape; booleans, integers or floats. Of equal elements the first one counts.

    Raises:
        ShapeError: if there are no elements.

    See also: `argmax`, which finds NaN.

    Example:
        >>> ops.nanargmax([1.0, float("nan"), 3.0]).tolist()
        2
    """
    if not _is_float(x):
        return argmax(x, axis, keepdims)
    # If the maximum is -inf, argmax of `without_nan` could point to a NaN, so use the first element that is not NaN.
    is_nan = isnan(x)
    x_without_nan = where(is_nan, float("-inf"), x)
    first_number_index = argmax(logical_not(is_nan), axis, keepdims)
    is_infinite = equal(max(x_without_nan, axis, keepdims), float("-inf"))
    return where(
        all(is_nan, axis, keepdims), -1, where(is_infinite, first_number_index, argmax(x_without_nan, axis, keepdims))
    )


@op
def nanargmin(x: TensorLike, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Returns the index of the first smallest element along an axis that is not NaN; -1 where all are NaN.

    JAX returns -1 too. NumPy raises an error instead, but raising one would mean reading the values on the host.

    Args:
        x: a tensor of any shape; booleans, integers or floats. Of equal elements the first one counts.

    Raises:
        ShapeError: if there are no elements.

    See also: `argmin`, which finds NaN.

    Example:
        >>> ops.nanargmin([1.0, float("nan"), 3.0]).tolist()
        0
    """
    if not _is_float(x):
        return argmin(x, axis, keepdims)
    is_nan = isnan(x)
    x_without_nan = where(is_nan, float("inf"), x)
    first_number_index = argmax(logical_not(is_nan), axis, keepdims)
    is_infinite = equal(min(x_without_nan, axis, keepdims), float("inf"))
    return where(
        all(is_nan, axis, keepdims), -1, where(is_infinite, first_number_index, argmin(x_without_nan, axis, keepdims))
    )


@op
def cov(x: TensorLike, rowvar: bool = True, correction: Varying = 1) -> Tensor:
    """Returns the covariance matrix of variables, which are the rows of `x`, or the columns if `rowvar` is False.

    Args:
        x: a matrix of variables and observations, or a vector of the observations of one; integers become the default
            float.
        rowvar: whether the rows are the variables; else the columns are.
        correction: subtracted from the number of observations in the divisor; the result is NaN if nothing is left.

    Raises:
        ShapeError: if `x` has more than two axes.

    See also: `corrcoef`, scaled to 1.

    Example:
        >>> ops.cov([[1.0, 3.0], [3.0, 1.0]]).tolist()
        [[2.0, -2.0], [-2.0, 2.0]]
    """
    if len(x.shape) > 2:
        raise ShapeError(f"expected a vector or a matrix of variables, got shape {tuple(x.shape)}")
    result_dtype = as_inexact(dtype_of(x))
    rows = widen(reshape(x, (1, -1)) if len(x.shape) < 2 else x if rowvar else matrix_transpose(x))
    deviations = subtract(rows, mean(rows, 1, True))
    divisor: Any
    if is_number(correction):
        degrees_number = rows.shape[1] - correction
        divisor = float(degrees_number) if degrees_number > 0 else 0.0
    else:
        degrees_of_freedom = subtract(float(rows.shape[1]), cast_option("correction", correction, real(rows)))
        divisor = where(greater(degrees_of_freedom, 0.0), degrees_of_freedom, 0.0)
    covariance = divide(products.matmul(deviations, conj(matrix_transpose(deviations))), divisor)
    return cast(squeeze(covariance), result_dtype)


@op
def corrcoef(x: TensorLike, rowvar: bool = True) -> Tensor:
    """Returns the correlation coefficients of real variables: the rows of `x`, or the columns if `rowvar` is False.

    Args:
        x: a matrix of variables and observations, or a vector of the observations of one; not complex.
        rowvar: whether the rows are the variables; else the columns are.

    Raises:
        ShapeError: if `x` has more than two axes.

    See also: `cov`, in the units of the variables.

    Example:
        >>> ops.corrcoef([[1.0, 3.0], [3.0, 1.0]]).tolist()
        [[1.0, -1.0], [-1.0, 1.0]]
    """
    covariance = cov(widen(x), rowvar, 0)
    if len(covariance.shape) < 2:
        return cast(divide(covariance, covariance), as_inexact(dtype_of(x)))
    deviations = sqrt(diagonal(covariance))
    ratio = divide(divide(covariance, expand_dims(deviations, 1)), expand_dims(deviations, 0))
    return cast(clip(ratio, -1.0, 1.0), as_inexact(dtype_of(x)))
