"""Reductions and cumulative ops, on JAX; half precision is combined in float32."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from emberharmony.backend.jax.dtypes import compile_by_jit, is_complex, promotion, widen, widen_for_sum
from emberharmony.backend.promote import nonnegative_axes
from emberharmony.core.options import is_number, require_scalar

_COMPLEX = ("complex",)


def _element_count(x: jax.Array, axes: tuple[int, ...]) -> int:
    return math.prod(x.shape[a] for a in axes)


@compile_by_jit("axes", "keepdims")
def _average(x: jax.Array, axes: tuple[int, ...], keepdims: bool) -> jax.Array:
    element_count = _element_count(x, axes)
    sum_of_x = jnp.sum(widen_for_sum(x, element_count), axes, keepdims=keepdims)
    return (sum_of_x / element_count if element_count else sum_of_x * math.nan).astype(x.dtype)


def _mean(x: jax.Array, axis: Any = None, keepdims: bool = False) -> jax.Array:
    return _average(promotion.floats(x), nonnegative_axes(axis, x.ndim), bool(keepdims))


@compile_by_jit("axes", "keepdims")
def _variance(x: jax.Array, axes: tuple[int, ...], keepdims: bool, degrees_of_freedom: Any) -> jax.Array:
    if is_complex(x):
        return _variance(x.real, axes, keepdims, degrees_of_freedom) + _variance(
            x.imag, axes, keepdims, degrees_of_freedom
        )
    widened_x = x.astype(jnp.float64) if x.size else widen(x)
    # Two passes, because the mean of the squares minus the square of the mean would lose digits.
    deviations = (
        widened_x - jnp.sum(widened_x, axes, keepdims=True) / _element_count(x, axes)
        if _element_count(x, axes)
        else widened_x
    )
    divisor = jnp.where(degrees_of_freedom > 0, degrees_of_freedom, jnp.nan)
    return jnp.sum(deviations * deviations, axes, keepdims=keepdims) / divisor.astype(widened_x.dtype)


def _var(x: jax.Array, axis: Any, keepdims: bool, correction: Any) -> jax.Array:
    axes = nonnegative_axes(axis, x.ndim)
    if is_number(correction):
        degrees_of_freedom: Any = np.float64(_element_count(x, axes) - correction)
    else:
        degrees_of_freedom = _element_count(x, axes) - promotion.common(x, require_scalar("correction", correction))[
            1
        ].astype(jnp.float64)
    return _variance(x, axes, bool(keepdims), degrees_of_freedom)


@compile_by_jit("dtype")
def _standard_deviation(variance: jax.Array, dtype: Any) -> jax.Array:
    # The derivative of the square root is infinite at 0, which would make the gradient NaN.
    is_constant = variance == 0
    return jnp.where(is_constant, variance, jnp.sqrt(jnp.where(is_constant, 1, variance))).astype(dtype)


def _real_dtype(x: jax.Array) -> Any:
    return np.dtype(f"float{x.dtype.itemsize * 4}") if is_complex(x) else x.dtype


@compile_by_jit("axes", "keepdims")
def _logsumexp(x: jax.Array, axes: tuple[int, ...], keepdims: bool) -> jax.Array:
    widened_x = widen(x)
    # Subtract the maximum, so that no exponential overflows. It is a constant, because its derivative cancels out.
    maximum = jnp.max(lax.stop_gradient(widened_x), axes, keepdims=True, initial=-jnp.inf)
    shift = jnp.where(jnp.isfinite(maximum), maximum, 0)
    exp_sum = jnp.sum(widen_for_sum(jnp.exp(widened_x - shift), _element_count(x, axes)), axes, keepdims=True)
    # The derivative of the logarithm is infinite at 0, which would make the gradient NaN.
    is_empty_sum = exp_sum == 0
    log_sum = (
        jnp.where(is_empty_sum, -jnp.inf, jnp.log(jnp.where(is_empty_sum, 1, exp_sum))).astype(widened_x.dtype) + shift
    )
    return (log_sum if keepdims else jnp.squeeze(log_sum, axes)).astype(x.dtype)


class JAXReductionOps:
    """Holds the ops of `ops/reductions/reduction.py`.

    Each is one program of XLA; the bodies take 2.6 to 110 times as long, for few elements. Those
    of `cummax` and `cummin` stay: for 100,000 elements `lax.cummax` takes 35 times as long (JAX 0.10 on a CPU).
    """

    mean = staticmethod(_mean)

    @staticmethod
    def var(x: jax.Array, axis: Any = None, keepdims: bool = False, correction: Any = 0) -> jax.Array:
        x = promotion.floats(x)
        return _var(x, axis, keepdims, correction).astype(_real_dtype(x))

    @staticmethod
    def std(x: jax.Array, axis: Any = None, keepdims: bool = False, correction: Any = 0) -> jax.Array:
        x = promotion.floats(x)
        return _standard_deviation(_var(x, axis, keepdims, correction), _real_dtype(x))

    @staticmethod
    def logsumexp(x: jax.Array, axis: Any = None, keepdims: bool = False) -> jax.Array:
        x = promotion.floats(x)
        promotion.refuse(x, _COMPLEX)
        axes = nonnegative_axes(axis, x.ndim)
        return _logsumexp(x, axes, bool(keepdims)) if axes else x
