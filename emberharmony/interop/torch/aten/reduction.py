"""Operators of ATen that reduce, accumulate and sort, computed by ops."""

from collections.abc import Callable, Sequence
from typing import Any

from emberharmony import ops
from emberharmony.interop.torch.aten.table import aten

Dims = int | Sequence[int] | None


def axis_argument(dim: Dims) -> int | tuple[int, ...] | None:
    """Converts PyTorch's `dim` to an axis argument of ops; an empty list means all axes, as None."""
    if dim is None or isinstance(dim, int):
        return dim
    return tuple(dim) or None


def _axes_of(x: Any, dim: Dims) -> int | tuple[int, ...] | None:
    """Returns the axis argument of ops for PyTorch's `dim`; None for a tensor without axes."""
    return axis_argument(dim) if len(x.shape) else None


@aten("sum", "sum.dim_IntList")
def sum_(x: Any, dim: Dims = None, keepdim: bool = False, dtype: Any = None) -> Any:
    """Returns the sums along axes."""
    return ops.sum(x, _axes_of(x, dim), keepdim, dtype)


@aten("nansum")
def nansum(x: Any, dim: Dims = None, keepdim: bool = False, dtype: Any = None) -> Any:
    """Returns the sums along axes of the elements that are not NaN."""
    return sum_(ops.where(ops.isnan(x), 0, x), dim, keepdim, dtype)


@aten("mean", "mean.dim")
def mean(x: Any, dim: Dims = None, keepdim: bool = False, dtype: Any = None) -> Any:
    """Returns the means along axes."""
    return ops.mean(x if dtype is None else ops.cast(x, dtype), _axes_of(x, dim), keepdim)


@aten("nanmean")
def nanmean(x: Any, dim: Dims = None, keepdim: bool = False, dtype: Any = None) -> Any:
    """Returns the means along axes of the elements that are not NaN."""
    return ops.nanmean(x if dtype is None else ops.cast(x, dtype), _axes_of(x, dim), keepdim)


@aten("prod", "prod.dim_int")
def prod(x: Any, dim: Dims = None, keepdim: bool = False, dtype: Any = None) -> Any:
    """Returns the products along axes."""
    return ops.prod(x, _axes_of(x, dim), keepdim, dtype)


@aten("prod.default")
def prod_of_all(x: Any, dtype: Any = None) -> Any:
    """Returns the product of all elements."""
    return ops.prod(x, dtype=dtype)


@aten("sum.default")
def sum_of_all(x: Any, dtype: Any = None) -> Any:
    """Returns the sum of all elements."""
    return ops.sum(x, dtype=dtype)


@aten("mean.default")
def mean_of_all(x: Any, dtype: Any = None) -> Any:
    """Returns the mean of all elements."""
    return mean(x, dtype=dtype)


@aten("amax")
def amax(x: Any, dim: Dims = (), keepdim: bool = False) -> Any:
    """Returns the largest elements along axes; equal ones share the gradient."""
    return ops.max(x, _axes_of(x, dim), keepdim)


@aten("amin")
def amin(x: Any, dim: Dims = (), keepdim: bool = False) -> Any:
    """Returns the smallest elements along axes; equal ones share the gradient."""
    return ops.min(x, _axes_of(x, dim), keepdim)


aten("aminmax")(lambda x, dim=None, keepdim=False: (amin(x, dim, keepdim), amax(x, dim, keepdim)))
aten("max.default")(lambda x: ops.max(x))
aten("min.default")(lambda x: ops.min(x))


def _extreme_and_index(function: Callable[..., Any], x: Any, dim: int, keepdim: bool) -> tuple[Any, Any]:
    """Returns the extremes along an axis and their indices; of equal extremes one gets the gradient."""
    values_and_indices: tuple[Any, Any] = function(x, dim, keepdim) if len(x.shape) else (x, ops.zeros((), "int64"))
    return values_and_indices


aten("max.dim", "nanmax.dim")(lambda x, dim, keepdim=False: _extreme_and_index(ops.max_and_argmax, x, dim, keepdim))
aten("min.dim")(lambda x, dim, keepdim=False: _extreme_and_index(ops.min_and_argmin, x, dim, keepdim))


@aten("argmax")
def argmax(x: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """Returns the indices of the largest elements along an axis, or in the flattened tensor."""
    return _index_of_extreme(ops.argmax, x, dim, keepdim)


@aten("argmin")
def argmin(x: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """Returns the indices of the smallest elements along an axis, or in the flattened tensor."""
    return _index_of_extreme(ops.argmin, x, dim, keepdim)


def _index_of_extreme(function: Callable[..., Any], x: Any, dim: int | None, keepdim: bool) -> Any:
    if not len(x.shape):
        return ops.zeros((), "int64")
    return function(x, axis=dim, keepdims=keepdim)


@aten("any", "any.dim", "any.dims")
def any_(x: Any, dim: Dims = None, keepdim: bool = False) -> Any:
    """Returns whether any element along axes is true."""
    return ops.any(x, _axes_of(x, dim), keepdim)


@aten("all", "all.dim", "all.dims")
def all_(x: Any, dim: Dims = None, keepdim: bool = False) -> Any:
    """Returns whether all elements along axes are true."""
    return ops.all(x, _axes_of(x, dim), keepdim)


@aten("count_nonzero")
def count_nonzero(x: Any, dim: Dims = None) -> Any:
    """Returns the number of elements along axes that are not 0."""
    return ops.count_nonzero(x, _axes_of(x, dim))


def _correction_number(correction: float | None) -> float:
    return 1 if correction is None else correction


@aten("var.correction")
def var(x: Any, dim: Dims = None, correction: float | None = None, keepdim: bool = False) -> Any:
    """Returns the variances along axes."""
    return ops.var(x, _axes_of(x, dim), keepdim, _correction_number(correction))


@aten("std.correction")
def std(x: Any, dim: Dims = None, correction: float | None = None, keepdim: bool = False) -> Any:
    """Returns the standard deviations along axes."""
    return ops.std(x, _axes_of(x, dim), keepdim, _correction_number(correction))


@aten("var_mean.correction")
def var_mean(x: Any, dim: Dims = None, correction: float | None = None, keepdim: bool = False) -> Any:
    """Returns the variances and the means along axes."""
    return var(x, dim, correction, keepdim), mean(x, dim, keepdim)


@aten("std_mean.correction")
def std_mean(x: Any, dim: Dims = None, correction: float | None = None, keepdim: bool = False) -> Any:
    """Returns the standard deviations and the means along axes."""
    return std(x, dim, correction, keepdim), mean(x, dim, keepdim)


@aten("var_mean.dim", "var_mean.default")
def var_mean_unbiased(x: Any, dim: Dims = None, unbiased: bool = True, keepdim: bool = False) -> Any:
    """Returns the variances along axes, unbiased if the flag says so, and the means."""
    reduced_axes, unbiased = (None, dim) if isinstance(dim, bool) else (dim, unbiased)
    return var(x, reduced_axes, int(unbiased), keepdim), mean(x, reduced_axes, keepdim)


@aten("std_mean.dim", "std_mean.default")
def std_mean_unbiased(x: Any, dim: Dims = None, unbiased: bool = True, keepdim: bool = False) -> Any:
    """Returns the standard deviations along axes, unbiased if the flag says so, and the means."""
    reduced_axes, unbiased = (None, dim) if isinstance(dim, bool) else (dim, unbiased)
    return std(x, reduced_axes, int(unbiased), keepdim), mean(x, reduced_axes, keepdim)


@aten("var.dim", "var.default")
def var_unbiased(x: Any, dim: Dims = None, unbiased: bool = True, keepdim: bool = False) -> Any:
    """Returns the variances along axes, with Bessel's correction if the flag `unbiased` is set."""
    dim, unbiased = (None, dim) if isinstance(dim, bool) else (dim, unbiased)
    return var(x, dim, int(unbiased), keepdim)


@aten("std.dim", "std.default")
def std_unbiased(x: Any, dim: Dims = None, unbiased: bool = True, keepdim: bool = False) -> Any:
    """Returns the standard deviations along axes, with Bessel's correction if the flag `unbiased` is set."""
    dim, unbiased = (None, dim) if isinstance(dim, bool) else (dim, unbiased)
    return std(x, dim, int(unbiased), keepdim)


@aten("linalg_vector_norm")
def vector_norm(x: Any, ord: float = 2, dim: Dims = None, keepdim: bool = False, dtype: Any = None) -> Any:
    """Returns the norms of vectors along axes."""
    return _norm(x if dtype is None else ops.cast(x, dtype), ord, dim, keepdim)


def _norm(x: Any, ord: float, dim: Dims, keepdim: bool) -> Any:
    if ord == 2 and ops.isdtype(ops.dtype(x), "real floating"):  # the derivative at a vector of zeros is 0
        sums_of_squares = ops.sum(ops.square(x), axis_argument(dim) if len(x.shape) else None, keepdim)
        is_zero = ops.equal(sums_of_squares, 0)
        return ops.where(is_zero, 0, ops.sqrt(ops.where(is_zero, 1, sums_of_squares)))
    norms = ops.vector_norm(x if len(x.shape) else ops.reshape(x, (1,)), axis_argument(dim), keepdim, ord)
    return norms if len(x.shape) else ops.reshape(norms, ())


@aten("norm.ScalarOpt_dim", "norm.ScalarOpt_dim_dtype")
def norm(x: Any, p: float | None, dim: Dims = None, keepdim: bool = False, dtype: Any = None) -> Any:
    """Returns the norms of vectors along axes."""
    return vector_norm(x, 2 if p is None else p, dim, keepdim, dtype)


@aten("norm.Scalar")
def norm_of_all(x: Any, p: float = 2) -> Any:
    """Returns the norm of all elements."""
    return vector_norm(x, p)


@aten("dist")
def dist(x: Any, other: Any, p: float = 2) -> Any:
    """Returns the p-norm of the difference of two tensors."""
    return vector_norm(ops.subtract(x, other), p)


@aten("pdist", "_pdist_forward")
def pdist(x: Any, p: float = 2) -> Any:
    """Returns the distances of all pairs of rows of a matrix, as a vector."""
    first_indices, second_indices = ops.triu_indices(x.shape[0], 1)
    return _norm(ops.subtract(ops.take(x, first_indices, axis=0), ops.take(x, second_indices, axis=0)), p, -1, False)


@aten("logsumexp", "special_logsumexp")
def logsumexp(x: Any, dim: Dims, keepdim: bool = False) -> Any:
    """Returns the logarithms of the sums of exponentials along axes."""
    return ops.logsumexp(x, _axes_of(x, dim), keepdim)


def _apply_along_axis(function: Callable[..., Any], x: Any, dim: int, **options: Any) -> Any:
    """Applies a function along an axis, also to a tensor without axes, which gets an axis meanwhile."""
    if len(x.shape):
        return function(x, axis=dim, **options)
    return ops.reshape(function(ops.reshape(x, (1,)), axis=0, **options), ())


@aten("cumsum")
def cumsum(x: Any, dim: int, dtype: Any = None) -> Any:
    """Returns cumulative sums."""
    return _apply_along_axis(ops.cumsum, x, dim, dtype=dtype)


@aten("cumprod")
def cumprod(x: Any, dim: int, dtype: Any = None) -> Any:
    """Returns cumulative products."""
    return _apply_along_axis(ops.cumprod, x, dim, dtype=dtype)


@aten("logcumsumexp")
def logcumsumexp(x: Any, dim: int) -> Any:
    """Returns the logarithms of cumulative sums of exponentials."""
    return _apply_along_axis(ops.logcumsumexp, x, dim)


def _cumulative_extremes(best: Callable[..., Any], x: Any, dim: int) -> tuple[Any, Any]:
    """Returns the cumulative extremes along an axis, and the last index of each extreme."""
    if not len(x.shape):
        return x, ops.zeros((), "int64")
    extremes = best(x, axis=dim)
    positions_shape = [1] * len(x.shape)
    positions_shape[dim] = -1
    positions = ops.reshape(ops.arange(x.shape[dim], dtype="int64"), tuple(positions_shape))
    reached_positions = ops.where(ops.logical_or(ops.equal(x, extremes), ops.isnan(x)), positions, 0)
    last_places = ops.cummax(reached_positions, axis=dim)
    return ops.take_along_axis(x, last_places, axis=dim), last_places


aten("cummax")(lambda x, dim: _cumulative_extremes(ops.cummax, x, dim))
aten("cummin")(lambda x, dim: _cumulative_extremes(ops.cummin, x, dim))


@aten("diff")
def diff(x: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """Returns the n-th differences of neighbouring elements along an axis."""
    tensors_to_join = [tensor for tensor in (prepend, x, append) if tensor is not None]
    return ops.diff(ops.concatenate(tensors_to_join, axis=dim) if len(tensors_to_join) > 1 else x, n, axis=dim)


@aten("trace")
def trace(x: Any) -> Any:
    """Returns the sum of the diagonal of a matrix."""
    return ops.sum(ops.diagonal(x))


@aten("msort")
def msort(x: Any) -> Any:
    """Returns the elements sorted along the first axis."""
    return ops.sort(x, 0) if len(x.shape) else x


@aten("sort")
def sort(x: Any, dim: int = -1, descending: bool = False) -> Any:
    """Returns the elements sorted along an axis, and their original indices."""
    return sort_stable(x, None, dim, descending)


@aten("sort.stable")
def sort_stable(x: Any, stable: bool | None = None, dim: int = -1, descending: bool = False) -> Any:
    """Returns the elements sorted along an axis, and their indices; equal elements keep their order."""
    if not len(x.shape):
        return x, ops.zeros((), "int64")
    sorting_indices = ops.argsort(x, dim, descending)
    return ops.take_along_axis(x, sorting_indices, axis=dim), sorting_indices


@aten("argsort")
def argsort(x: Any, dim: int = -1, descending: bool = False) -> Any:
    """Returns the indices that sort the elements along an axis."""
    return sort_stable(x, None, dim, descending)[1]


@aten("argsort.stable")
def argsort_stable(x: Any, stable: bool, dim: int = -1, descending: bool = False) -> Any:
    """Returns the indices that sort the elements along an axis; equal elements keep their order."""
    return sort_stable(x, stable, dim, descending)[1]


@aten("topk")
def topk(x: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """Returns the `k` largest or smallest elements along an axis, and their indices."""
    if not len(x.shape):
        return x, ops.zeros((), "int64")
    is_moved = dim not in (-1, len(x.shape) - 1)
    rows = ops.moveaxis(x, dim, -1) if is_moved else x
    top_indices = ops.top_k(rows, k)[1] if largest else ops.get_item(ops.argsort(rows, axis=-1), (..., slice(0, k)))
    top_values = ops.take_along_axis(rows, top_indices, axis=-1)
    return (
        (ops.moveaxis(top_values, -1, dim), ops.moveaxis(top_indices, -1, dim))
        if is_moved
        else (top_values, top_indices)
    )


@aten("kthvalue")
def kthvalue(x: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """Returns the k-th smallest elements along an axis, and their indices."""
    if not len(x.shape):
        return x, ops.zeros((), "int64")
    slice_key = (..., slice(k - 1, k))
    kth_values, kth_indices = (
        ops.moveaxis(ops.moveaxis(y, dim, -1)[slice_key], -1, dim) for y in sort_stable(x, True, dim)
    )
    return (kth_values, kth_indices) if keepdim else (ops.squeeze(kth_values, dim), ops.squeeze(kth_indices, dim))


@aten("median.dim")
def median(x: Any, dim: int = -1, keepdim: bool = False) -> Any:
    """Returns the medians along an axis, of two middle elements the lower one, and their indices."""
    return kthvalue(x, (x.shape[dim] + 1) // 2 if len(x.shape) else 1, dim, keepdim)


@aten("median.default")
def median_of_all(x: Any) -> Any:
    """Returns the median of all elements, of two middle elements the lower one."""
    return median(ops.ravel(x), 0)[0]


@aten("histc")
def histc(x: Any, bins: int = 100, min: Any = 0, max: Any = 0) -> Any:
    """Returns the histogram of the elements in `bins` equal intervals from `min` to `max`."""
    if min == max == 0:
        min, max = ops.min(x), ops.max(x)
        is_empty_range = ops.cast(ops.equal(min, max), ops.dtype(x))
        min, max = ops.subtract(min, is_empty_range), ops.add(max, is_empty_range)
    range_width = ops.subtract(max, min)
    bin_numbers = ops.floor(ops.multiply(ops.divide(ops.subtract(x, min), range_width), bins))
    is_inside = ops.logical_and(ops.greater_equal(x, min), ops.less_equal(x, max))
    bin_numbers = ops.cast(ops.clip(ops.where(is_inside, bin_numbers, 0), 0, bins - 1), "int64")
    return ops.segment_sum(ops.cast(ops.ravel(is_inside), ops.dtype(x)), ops.ravel(bin_numbers), bins)


@aten("bincount")
def bincount(x: Any, weights: Any = None, minlength: int = 0) -> Any:
    """Returns for each integer from 0 on how often it occurs, or the sum of its weights."""
    return ops.bincount(x, weights, minlength)


@aten("_unique2")
def unique2(x: Any, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False) -> Any:
    """Returns the distinct elements, the index of each element among them, and their counts."""
    unique_results = ops.unique_all(x)
    return unique_results.values, unique_results.inverse_indices, unique_results.counts


@aten("trapezoid.x", "trapz.x")
def trapezoid(y: Any, x: Any, dim: int = -1) -> Any:
    """Returns integrals along an axis by the trapezoidal rule."""
    return ops.trapezoid(y, x, axis=dim)


@aten("renorm")
def renorm(x: Any, p: float, dim: int, maxnorm: float) -> Any:
    """Returns a tensor whose slices along an axis are scaled down to at most the norm `maxnorm`."""
    other_axes = tuple(axis for axis in range(len(x.shape)) if axis != dim % len(x.shape))
    norms = ops.vector_norm(x, other_axes, True, p)
    factor = ops.where(ops.greater(norms, maxnorm), ops.divide(maxnorm, ops.add(norms, 1e-7)), 1)
    return ops.multiply(x, factor)


@aten("linalg_norm")
def linalg_norm(x: Any, ord: float | None = None, dim: Dims = None, keepdim: bool = False, dtype: Any = None) -> Any:
    """Returns the norms of vectors, or of matrices."""
    is_vector_norm = ord is None or (isinstance(dim, Sequence) and len(dim) == 1) or len(x.shape) < 2
    return (
        vector_norm(x, 2 if ord is None else ord, dim, keepdim, dtype)
        if is_vector_norm
        else _matrix_norm(x, ord, dim, keepdim)
    )


def _matrix_norm(x: Any, ord: Any, dim: Dims, keepdim: bool) -> Any:
    first_axis, second_axis = dim if isinstance(dim, Sequence) else (-2, -1)
    norms = ops.matrix_norm(ops.moveaxis(x, (first_axis, second_axis), (-2, -1)), ord, keepdim)
    return ops.moveaxis(norms, (-2, -1), (first_axis, second_axis)) if keepdim else norms
