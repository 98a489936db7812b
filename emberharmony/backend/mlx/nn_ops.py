"""Activations, normalisations and losses, on MLX: the fused kernels where they keep their digits.

On the CPU `mx.fast.layer_norm` and `mx.fast.rms_norm` add float32 one after the other, and so does `mx.softmax` along
an axis: there the composites stay, but for short axes of a softmax.
"""

import math
from collections.abc import Callable
from typing import Any

import mlx.core as mx

from emberharmony.backend.mlx.derivatives import elementwise, where_transformed
from emberharmony.backend.mlx.dtypes import promotion
from emberharmony.backend.mlx.elementary_ops import exp_double, logaddexp, on_cpu
from emberharmony.backend.mlx.math_ops import is_float
from emberharmony.backend.promote import normalized

_SHORT = 1024
"""So many terms lose no more than a few eps when they are added one after the other."""
_HALVES = (mx.float16, mx.bfloat16)


def _is_single(x: mx.array) -> bool:
    """Returns whether a tensor is of a dtype that MLX computes in float32."""
    return x.dtype == mx.float32 or x.dtype in _HALVES


def _is_row(x: mx.array, axis: Any, *weights: mx.array | None) -> bool:
    """Returns whether the fused normalisations take a tensor and what it is multiplied by and added to."""
    if axis != -1 or x.ndim == 0 or x.size == 0 or not _is_single(x) or on_cpu():
        return False
    return all(w is None or (w.dtype == x.dtype and w.shape == x.shape[-1:]) for w in weights)


def _looked_at(mask: mx.array | None, is_causal: bool, lengths: tuple[int, int]) -> mx.array | None:
    """Returns which keys each query looks at; None if it is all."""
    if mask is not None and mask.dtype != mx.bool_:
        mask = mask != 0
    if is_causal:
        earlier = mx.tri(*lengths, dtype=mx.bool_)
        mask = earlier if mask is None else mx.logical_and(mask, earlier)
    return mask


def _added(bias: mx.array | None, mask: mx.array | None, kind: mx.Dtype) -> mx.array | None:
    """Returns what is added to the products, so low where a key is not looked at that the product is lost in it."""
    if mask is None:
        return bias
    lowest = mx.array(mx.finfo(kind).min * 0.5, kind)
    return mx.where(mask, mx.array(0, kind) if bias is None else bias, lowest)


def _sigmoid_double(x: mx.array) -> mx.array:
    small = exp_double(-mx.abs(x))
    return mx.where(x < 0, small, mx.array(1, x.dtype)) / (1 + small)


# The slope of the absolute value at 0 would make its own 0 there.
def _rectified(x: mx.array) -> mx.array:
    return mx.maximum(x, mx.array(0, x.dtype))


_relu = where_transformed(_rectified, elementwise(_rectified, lambda x, y: (x > 0).astype(y.dtype), chooses=True))
_sigmoid64 = elementwise(_sigmoid_double, lambda x, y: y * (1 - y))


class MLXNnOps:
    """Holds the ops of `ops/nn.py` and `ops/activation.py`."""

    composed: Callable[[str], Callable[..., mx.array]]

    def relu(self, x: mx.array) -> mx.array:
        return _relu(x) if is_float(x) else self.composed("relu")(x)

    def sigmoid(self, x: mx.array) -> mx.array:
        x = promotion.floats(x)
        if x.dtype == mx.float64:
            return _sigmoid64(x)
        return mx.sigmoid(x) if _is_single(x) else self.composed("sigmoid")(x)

    @staticmethod
    def softplus(x: mx.array) -> mx.array:
        x = promotion.floats(x)
        promotion.refuse(x, ("complex",))
        return logaddexp(x, mx.array(0, x.dtype))

    @staticmethod
    def log_sigmoid(x: mx.array) -> mx.array:
        return -MLXNnOps.softplus(-promotion.floats(x))

    def silu(self, x: mx.array) -> mx.array:
        x = promotion.floats(x)
        return x * mx.sigmoid(x) if x.dtype == mx.float32 else self.composed("silu")(x)

    def leaky_relu(self, x: mx.array, negative_slope: float = 0.2) -> mx.array:
        x = promotion.floats(x)
        if not _is_single(x):
            return self.composed("leaky_relu")(x, negative_slope)
        # Where two are equal MLX derives by the second: at zero the slope is the negative one.
        return mx.maximum(x, 0) + mx.minimum(0, x) * float(negative_slope)

    def softmax(self, x: mx.array, axis: Any = -1) -> mx.array:
        x = promotion.floats(x)
        axes = normalized(axis, x.ndim)
        if not _is_single(x) or x.size == 0 or (on_cpu() and math.prod(x.shape[a] for a in axes) > _SHORT):
            return self.composed("softmax")(x, axis)
        return mx.softmax(x, axes, precise=True)

    def log_softmax(self, x: mx.array, axis: Any = -1) -> mx.array:
        x = promotion.floats(x)
        axes = normalized(axis, x.ndim)
        if x.dtype != mx.float32 or x.size == 0 or (on_cpu() and math.prod(x.shape[a] for a in axes) > _SHORT):
            return self.composed("log_softmax")(x, axis)
        # The largest is subtracted first: added to the logarithm of the sum, it would cost that its digits.
        shifted = x - mx.stop_gradient(mx.max(x, axes, True))
        return shifted - mx.logsumexp(shifted, axes, True)

    def layer_normalization(
        self,
        x: mx.array,
        gamma: mx.array | None = None,
        beta: mx.array | None = None,
        axis: Any = -1,
        epsilon: float = 1e-3,
    ) -> mx.array:
        if _is_row(x, axis, gamma, beta):
            return mx.fast.layer_norm(x, gamma, beta, epsilon)
        return self.composed("layer_normalization")(x, gamma, beta, axis, epsilon)

    def rms_normalization(
        self, x: mx.array, scale: mx.array | None = None, axis: Any = -1, epsilon: float = 1e-6
    ) -> mx.array:
        if _is_row(x, axis, scale):
            return mx.fast.rms_norm(x, scale, epsilon)
        return self.composed("rms_normalization")(x, scale, axis, epsilon)

    def dot_product_attention(
        self,
        query: mx.array,
        key: mx.array,
        value: mx.array,
        bias: mx.array | None = None,
        mask: mx.array | None = None,
        scale: float | None = None,
        is_causal: bool = False,
    ) -> mx.array:
        tensors = (query, key, value) if bias is None else (query, key, value, bias)
        fits = query.ndim == 4 and query.size and key.size and query.shape[2] % key.shape[2] == 0
        if not (fits and all(t.dtype == mx.float32 for t in tensors)) or (on_cpu() and key.shape[1] > _SHORT):
            return self.composed("dot_product_attention")(query, key, value, bias, mask, scale, is_causal)
        masked = _looked_at(mask, is_causal, (query.shape[1], key.shape[1]))
        queries = mx.swapaxes(query, 1, 2)
        if mask is not None and masked is not None:
            # A query without any key has no say: by its products, however low, it would have a gradient.
            queries = mx.where(mx.any(masked, -1, keepdims=True), queries, mx.array(0, query.dtype))
        result = mx.fast.scaled_dot_product_attention(
            queries,
            mx.swapaxes(key, 1, 2),
            mx.swapaxes(value, 1, 2),
            scale=query.shape[-1] ** -0.5 if scale is None else float(scale),
            mask=_added(bias, masked, query.dtype),
        )
        return mx.swapaxes(result, 1, 2)
