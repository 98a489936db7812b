"""Gradient rules of the ops in `ops/reductions/reduction.py`.

The gradients of the bodies take 1.5 to 80 times as long, for few elements. That of `std` is NaN where all elements are
equal.
"""

import math
from typing import Any

from emberharmony.core.options import is_number
from emberharmony.ops.arrays.creation import arange, ones_like
from emberharmony.ops.arrays.indexing import get_item, where
from emberharmony.ops.arrays.shape import broadcast_to, concatenate, expand_dims, flip, moveaxis, reshape
from emberharmony.ops.elementwise.complex_numbers import conj
from emberharmony.ops.elementwise.elementary import exp
from emberharmony.ops.logic.comparison import equal, greater, greater_equal, isfinite
from emberharmony.ops.math import add, divide, divide_no_nan, multiply, subtract
from emberharmony.ops.reductions.reduction import any as any_
from emberharmony.ops.reductions.reduction import cummax, cumprod, cumsum, mean
from emberharmony.ops.reductions.reduction import sum as sum_
from emberharmony.rules.arrays.scatter_back import scatter_add

T = Any


def _nonnegative_axes(x: T, axis: Any) -> tuple[int, ...]:
    rank = len(x.shape)
    if axis is None:
        return tuple(range(rank))
    return tuple([i % rank for i in (axis if isinstance(axis, (tuple, list)) else (axis,))])


def _with_reduced_axes(g: T, x: T, axis: Any) -> T:
    """Returns the result of a reduction in a shape that broadcasts like the one it has with `keepdims=True`."""
    if not g.shape or len(g.shape) == len(x.shape):
        return g
    shape = [*x.shape]
    for i in _nonnegative_axes(x, axis):
        shape[i] = 1
    return reshape(g, tuple(shape))


def _broadcast_reduction(g: T, x: T, axis: Any) -> T:
    return broadcast_to(_with_reduced_axes(g, x, axis), x.shape)


def _element_count(x: T, axis: Any) -> int:
    return math.prod([x.shape[i] for i in _nonnegative_axes(x, axis)])


def _var_gradient(g: T, _y: T, x: T, axis: Any = None, keepdims: bool = False, correction: float = 0) -> T:
    centred_x = conj(subtract(x, mean(x, axis, True)))
    return multiply(
        _with_reduced_axes(g, x, axis), multiply(centred_x, _divide_by_freedom(2, _element_count(x, axis) - correction))
    )


def _std_gradient(g: T, y: T, x: T, axis: Any = None, keepdims: bool = False, correction: float = 0) -> T:
    centred_x = conj(subtract(x, mean(x, axis, True)))
    scaled_cotangent = divide_no_nan(_with_reduced_axes(g, x, axis), _with_reduced_axes(y, x, axis))
    return multiply(scaled_cotangent, multiply(centred_x, _divide_by_freedom(1, _element_count(x, axis) - correction)))


def _divide_by_freedom(share: float, freedom: Any) -> Any:
    """Returns a number divided by the degrees of freedom, which are a tensor if `correction` is one."""
    return divide(float(share), freedom) if not is_number(freedom) else share / freedom if freedom else math.nan


def _correction_rule(share: float) -> Any:
    """Returns the rule of a variance (share 1) or standard deviation (share 1/2) for its argument `correction`."""
    return lambda g, y, x, axis=None, keepdims=False, correction=0: multiply(
        g, multiply(y, _divide_by_freedom(share, _element_count(x, axis) - correction))
    )


def extreme_gradient(g: T, y: T, x: T, axis: Any = None, keepdims: bool = False, initial: Any = None) -> T:
    """Returns the gradient of max or min: equal shares of the cotangent for the elements that equal the extreme."""
    is_extreme = equal(x, _with_reduced_axes(y, x, axis))
    extreme_count = sum_(is_extreme, axis=axis, keepdims=True)
    if initial is not None:
        # The result is `maximum(reduced, initial)`, which shares the cotangent evenly if both are equal.
        g = where(equal(y, initial), multiply(g, 0.5), g)
    return where(
        is_extreme, divide_no_nan(_with_reduced_axes(g, x, axis), where(equal(extreme_count, 0), 1, extreme_count)), 0.0
    )


def _initial_gradient(g: T, y: T, x: T, axis: Any = None, keepdims: bool = False, initial: Any = None) -> T:
    """Returns the gradient of max or min by `initial`: half of the cotangent where an element is equal to it."""
    has_extreme = any_(equal(x, _with_reduced_axes(y, x, axis)), axis, keepdims)
    return where(equal(y, initial), where(has_extreme, multiply(g, 0.5), g), 0.0)


def _logsumexp_gradient(g: T, y: T, x: T, axis: Any = None, keepdims: bool = False) -> T:
    logsumexp_result = _with_reduced_axes(y, x, axis)
    # If y is -inf, so are all elements of x, and x - y would be NaN.
    return multiply(
        _with_reduced_axes(g, x, axis), exp(subtract(x, where(isfinite(logsumexp_result), logsumexp_result, 0.0)))
    )


def products_before(rows: T) -> T:
    """Returns for each element of the last axis the product of those before it (1 for the first)."""
    first_elements, leading_elements = get_item(rows, (..., slice(1))), get_item(rows, (..., slice(-1)))
    return cumprod(concatenate([ones_like(first_elements), leading_elements], -1), -1)


def _prod_gradient(g: T, y: T, x: T, axis: Any = None, keepdims: bool = False, dtype: Any = None) -> T:
    axes = _nonnegative_axes(x, axis)
    end_axes = tuple(range(-len(axes), 0))
    x_axes_last = moveaxis(x, axes, end_axes)
    shape = x_axes_last.shape
    first_axis = len(shape) - len(axes)
    # The length is not -1, which does not fit an empty tensor.
    x_rows = reshape(x_axes_last, (*shape[:first_axis], math.prod(shape[first_axis:])))
    # Not y / x, which is NaN for an element that is zero.
    product_after = flip(products_before(flip(x_rows, -1)), -1)
    products_of_others = moveaxis(reshape(multiply(products_before(x_rows), product_after), shape), end_axes, axes)
    return multiply(_with_reduced_axes(g, x, axis), products_of_others)


def _accept_no_axis(rule: Any) -> Any:
    """Returns a rule that also accepts `axis=None`, which flattens `x`, from a rule along one axis."""

    def flatten_first(g: T, y: T, x: T, axis: int | None = None, *options: Any) -> T:
        if axis is not None:
            return rule(g, y, x, axis)
        return reshape(rule(g, y, reshape(x, (-1,)), 0), x.shape)

    return flatten_first


def _cumsum_gradient(g: T, _y: T, _x: T, axis: int) -> T:
    return flip(cumsum(flip(g, axis), axis), axis)


def _cumprod_gradient(g: T, y: T, x: T, axis: int) -> T:
    if not any_(equal(x, 0)):  # emberlint: ignore[tensor-truth] -- the code below needs O(n**2) memory
        return divide(_cumsum_gradient(multiply(g, y), y, x, axis), x)
    x_last, g_last = moveaxis(x, axis, -1), moveaxis(g, axis, -1)
    positions = arange(x_last.shape[-1])
    is_later = greater(expand_dims(positions, 0), expand_dims(positions, 1))
    # after[..., k, j] is the product of the elements k + 1 to j. Times the product of the elements before k, it is
    # the derivative of y[j] by x[k].
    products_after = cumprod(where(is_later, expand_dims(x_last, -2), 1.0), -1)
    products_after = where(greater_equal(expand_dims(positions, 0), expand_dims(positions, 1)), products_after, 0.0)
    return moveaxis(
        multiply(products_before(x_last), sum_(multiply(products_after, expand_dims(g_last, -2)), axis=-1)), -1, axis
    )


def _cumulative_extreme_gradient(g: T, y: T, x: T, axis: int) -> T:
    """Returns the gradient of cummax or cummin: each cotangent goes to the latest element that equals the extreme."""
    rank = len(x.shape)
    positions_on_axis = reshape(arange(x.shape[axis]), [-1 if i == axis % rank else 1 for i in range(rank)])
    latest_positions = cummax(where(equal(x, y), positions_on_axis, 0), axis)
    stride = math.prod(x.shape[axis % rank + 1 :])
    flat_positions = reshape(arange(math.prod(x.shape)), x.shape)
    return scatter_add(g, add(flat_positions, multiply(subtract(latest_positions, positions_on_axis), stride)), x.shape)


RULES: dict[str, Any] = {
    "sum": (lambda g, _y, _x, axis=None, *_: _broadcast_reduction(g, _x, axis),),
    "prod": (_prod_gradient,),
    "mean": (lambda g, _y, _x, axis=None, *_: _broadcast_reduction(divide(g, _element_count(_x, axis)), _x, axis),),
    "var": (_var_gradient, None, None, _correction_rule(1.0)),
    "std": (_std_gradient, None, None, _correction_rule(0.5)),
    "max": (extreme_gradient, None, None, _initial_gradient),
    "min": (extreme_gradient, None, None, _initial_gradient),
    "cumsum": (_accept_no_axis(_cumsum_gradient),),
    "cumprod": (_accept_no_axis(_cumprod_gradient),),
    "cummax": (_accept_no_axis(_cumulative_extreme_gradient),),
    "cummin": (_accept_no_axis(_cumulative_extreme_gradient),),
    "logsumexp": (_logsumexp_gradient,),
}
