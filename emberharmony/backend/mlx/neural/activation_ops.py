"""Activations, on MLX.

On the CPU `mx.softmax` (MLX 0.32) adds float32 sequentially, so it only computes short axes there.
"""

import math
from collections.abc import Callable
from typing import Any

import mlx.core as mx

from emberharmony.backend.mlx.derivatives import dispatch_on_transform, elementwise_function
from emberharmony.backend.mlx.dtypes import promotion
from emberharmony.backend.mlx.elementwise.elementary_ops import exp_double, logaddexp, on_cpu
from emberharmony.backend.mlx.math_ops import is_float
from emberharmony.backend.mlx.reductions.reduction_ops import detached_maximum
from emberharmony.backend.promote import nonnegative_axes
from emberharmony.core import op_globals
from emberharmony.core.dispatch import fast
from emberharmony.core.options import is_number

SHORT = 1024
"""The sequential sum of up to this many terms loses no more than a few eps."""
_FEW = 1024
"""Up to this many elements one call of mx.erf, 56 ns for each, takes less time than the calls of `ops.erf`."""
_ROWS = (
    "{1}.__class__ is int and {1} == -1 and {0}.dtype == native_float32 and {0}.ndim and {0}.size "
    f"and {{0}}.shape[-1] <= {SHORT}"
)
"""When an op reads short rows of float32."""
_HALVES = (mx.float16, mx.bfloat16)


def computes_in_float32(x: mx.array) -> bool:
    """Returns whether a tensor is float32, float16 or bfloat16, all of which are computed in float32."""
    return x.dtype == mx.float32 or x.dtype in _HALVES


def _log_softmax(x: mx.array, axes: int | tuple[int, ...]) -> mx.array:
    # Subtract the maximum first. If it were added to the logarithm of the sum, that would lose its digits.
    shifted_x = x - detached_maximum(x, axes)
    return shifted_x - mx.logsumexp(shifted_x, axes, True)


def _sigmoid_double(x: mx.array) -> mx.array:
    decay = exp_double(-mx.abs(x))
    return mx.where(x < 0, decay, mx.array(1, x.dtype)) / (1 + decay)


def _rectify(x: mx.array) -> mx.array:
    return mx.maximum(x, mx.array(0, x.dtype))


_relu = dispatch_on_transform(
    _rectify, elementwise_function(_rectify, lambda x, y: (x > 0).astype(y.dtype), chooses=True)
)
# `_sigmoid_double` uses the absolute value, whose derivative of 0 at 0 would make that of the sigmoid 0 there.
_sigmoid64 = elementwise_function(_sigmoid_double, lambda x, y: y * (1 - y))


class MLXActivationOps:
    """Holds the ops of `ops/neural/activation.py`.

    MLX's kernels take each element once: the bodies take up to 4.9 times as long, for few elements. Functions of ours
    give the derivatives at 0 and the digits that MLX's lack.
    """

    composed: Callable[[str], Callable[..., mx.array]]

    def relu(self, x: mx.array) -> mx.array:
        return _relu(x) if is_float(x) else self.composed("relu")(x)

    def sigmoid(self, x: mx.array) -> mx.array:
        x = promotion.floats(x)
        if x.dtype == mx.float32:
            return mx.sigmoid(x)
        if x.dtype == mx.float64:
            return _sigmoid64(x)
        # In half precision mx.sigmoid (MLX 0.32) gives 0 where its exponential overflows.
        return (
            mx.sigmoid(x.astype(mx.float32)).astype(x.dtype) if computes_in_float32(x) else self.composed("sigmoid")(x)
        )

    @staticmethod
    def softplus(x: mx.array) -> mx.array:
        x = promotion.floats(x)
        promotion.refuse(x, ("complex",))
        if op_globals.untransformed and x.dtype == mx.float32:
            return mx.logaddexp(x, 0.0)
        return logaddexp(x, mx.array(0, x.dtype))

    def elu(self, x: mx.array, alpha: Any = 1.0) -> mx.array:
        x = promotion.floats(x)
        if not op_globals.untransformed or x.dtype != mx.float32 or not is_number(alpha):
            return self.composed("elu")(x, alpha)
        expm1_of_x = mx.expm1(x)
        return mx.where(x > 0, x, expm1_of_x if alpha == 1 else expm1_of_x * alpha)

    def gelu(self, x: mx.array, approximate: bool = True) -> mx.array:
        x = promotion.floats(x)
        if approximate or not op_globals.untransformed or x.dtype != mx.float32 or x.size > _FEW:
            return self.composed("gelu")(x, approximate)
        # mx.erf (MLX 0.32) loses digits near zero, but none of those that 1 is added to.
        return x * 0.5 * (1 + mx.erf(x * math.sqrt(0.5)))

    @staticmethod
    def log_sigmoid(x: mx.array) -> mx.array:
        return -MLXActivationOps.softplus(-x)

    def silu(self, x: mx.array) -> mx.array:
        x = promotion.floats(x)
        if x.dtype == mx.float32:
            return x * mx.sigmoid(x)
        if not computes_in_float32(x):
            return self.composed("silu")(x)
        x_float32 = x.astype(mx.float32)
        return (x_float32 * mx.sigmoid(x_float32)).astype(x.dtype)

    def leaky_relu(self, x: mx.array, negative_slope: Any = 0.2) -> mx.array:
        x = promotion.floats(x)
        if not computes_in_float32(x) or not is_number(negative_slope):
            return self.composed("leaky_relu")(x, negative_slope)
        # For equal operands MLX 0.32 differentiates by the second, so the derivative at 0 is `negative_slope`.
        if 0 < negative_slope <= 1:
            return mx.maximum(x, x * negative_slope)
        return mx.maximum(x, 0) + mx.minimum(0, x) * negative_slope

    @fast(mx.softmax, _ROWS)
    def softmax(self, x: mx.array, axis: Any = -1) -> mx.array:
        x = promotion.floats(x)
        axes = nonnegative_axes(axis, x.ndim)
        if not computes_in_float32(x) or x.size == 0 or (on_cpu() and math.prod(x.shape[a] for a in axes) > SHORT):
            return self.composed("softmax")(x, axis)
        return mx.softmax(x, axes, precise=True)

    @fast(_log_softmax, _ROWS)
    def log_softmax(self, x: mx.array, axis: Any = -1) -> mx.array:
        x = promotion.floats(x)
        axes = nonnegative_axes(axis, x.ndim)
        if x.dtype != mx.float32 or x.size == 0 or (on_cpu() and math.prod(x.shape[a] for a in axes) > SHORT):
            return self.composed("log_softmax")(x, axis)
        return _log_softmax(x, axes)
