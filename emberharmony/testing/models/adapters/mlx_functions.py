"""Versions in float64 of the MLX functions that compute in float32 for arrays of float64 (MLX 0.32)."""

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import mlx.core as mx
import numpy as np

from emberharmony.backend.mlx.elementwise.elementary_ops import MLXElementaryOps
from emberharmony.testing.models.patching import set_attributes

NARROW = (mx.float32, mx.float16, mx.bfloat16)
_cast = mx.array.astype


def to_float64(x: Any) -> Any:
    """Returns a floating array in float64."""
    return _cast(x, mx.float64) if isinstance(x, mx.array) and x.dtype in NARROW else x


@contextlib.contextmanager
def compute_in_float64() -> Iterator[None]:
    """Makes MLX's functions compute in float64 while a `with` block runs; casts to other floats give float64."""

    def astype(x: Any, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        is_narrowing = dtype in NARROW and mx.issubdtype(x.dtype, mx.floating)
        return _cast(x, mx.float64 if is_narrowing else dtype, *args, **kwargs)

    function_by_name: dict[str, Any] = {"erf": _erf, "sin": _sin, "cos": _cos}
    function_by_name |= {"exp": _exp, "sigmoid": _sigmoid, "softmax": _softmax, "logsumexp": _logsumexp}
    function_by_name |= {"logaddexp": _logaddexp}
    function_by_name |= {f"conv{n}d": _conv for n in (1, 2, 3)} | {
        f"conv_transpose{n}d": _conv_transpose for n in (1, 2, 3)
    }
    fast_function_by_name = {
        "rms_norm": _rms_norm,
        "layer_norm": _layer_norm,
        "rope": _rope,
        "scaled_dot_product_attention": _attention,
    }
    method_by_name = {"astype": astype, "exp": _exp, "sin": _sin, "cos": _cos}
    with (
        set_attributes(mx, function_by_name),
        set_attributes(mx.fast, fast_function_by_name),
        set_attributes(mx.array, {**method_by_name, "logsumexp": _logsumexp}),
    ):
        yield


def _erf(x: Any, **_: Any) -> Any:
    return MLXElementaryOps.erf(to_float64(x))


def _sin(x: Any, **_: Any) -> Any:
    tangent_of_half = mx.tan(to_float64(x) * 0.5)
    return 2.0 * tangent_of_half / (1.0 + mx.square(tangent_of_half))


def _cos(x: Any, **_: Any) -> Any:
    squared_tangent = mx.square(mx.tan(to_float64(x) * 0.5))
    return (1.0 - squared_tangent) / (1.0 + squared_tangent)


def _exp(x: Any, **_: Any) -> Any:
    return mx.power(mx.array(np.e, dtype=mx.float64), to_float64(mx.array(x)))


def _sigmoid(x: Any, **_: Any) -> Any:
    return 0.5 + 0.5 * mx.tanh(to_float64(x) * 0.5)


def _softmax(x: Any, axis: Any = None, **_: Any) -> Any:
    x = to_float64(x)
    exponentials = _exp(x - mx.max(x, axis=axis, keepdims=True))
    return exponentials / mx.sum(exponentials, axis=axis, keepdims=True)


def _logsumexp(x: Any, axis: Any = None, keepdims: bool = False, **_: Any) -> Any:
    x = to_float64(x)
    maximum = mx.max(x, axis=axis, keepdims=True)
    log_sum = mx.log(mx.sum(_exp(x - maximum), axis=axis, keepdims=True)) + maximum
    return log_sum if keepdims else mx.reshape(log_sum, mx.sum(x, axis=axis).shape)


def _logaddexp(a: Any, b: Any, **_: Any) -> Any:
    a, b = to_float64(mx.array(a)), to_float64(mx.array(b))
    return mx.maximum(a, b) + mx.log1p(_exp(-mx.abs(a - b)))


def _rms_norm(x: Any, weight: Any = None, eps: float = 1e-5, **_: Any) -> Any:
    x = to_float64(x)
    normalized_array = x * mx.rsqrt(mx.mean(mx.square(x), axis=-1, keepdims=True) + eps)
    return normalized_array if weight is None else normalized_array * weight


def _layer_norm(x: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5, **_: Any) -> Any:
    x = to_float64(x)
    normalized_array = x - mx.mean(x, axis=-1, keepdims=True)
    normalized_array = normalized_array * mx.rsqrt(mx.mean(mx.square(normalized_array), axis=-1, keepdims=True) + eps)
    normalized_array = normalized_array if weight is None else normalized_array * weight
    return normalized_array if bias is None else normalized_array + bias


def _rope(
    x: Any, dims: int, *, traditional: bool, base: Any, scale: float, offset: Any, freqs: Any = None, **_: Any
) -> Any:
    x = to_float64(x)
    half_length = dims // 2
    frequencies = (
        base ** (-np.arange(half_length) / half_length) if freqs is None else 1.0 / np.array(to_float64(freqs))
    )
    first_positions = np.array(offset, np.float64)
    positions = np.arange(x.shape[-2]) + first_positions.reshape(
        *first_positions.shape, *[1] * (x.ndim - 1 if first_positions.ndim else 1)
    )
    angles = (positions * scale)[..., None] * frequencies
    if first_positions.ndim:
        angles = angles.reshape(*first_positions.shape, *[1] * (x.ndim - 3), x.shape[-2], half_length)
    cos, sin = (mx.array(f(angles), dtype=mx.float64) for f in (np.cos, np.sin))
    rotary_part, plain_part = x[..., :dims], x[..., dims:]
    if traditional:
        a, b = rotary_part[..., 0::2], rotary_part[..., 1::2]
        rotated_part = mx.stack([a * cos - b * sin, a * sin + b * cos], axis=-1).reshape(rotary_part.shape)
    else:
        a, b = rotary_part[..., :half_length], rotary_part[..., half_length:]
        rotated_part = mx.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1)
    return mx.concatenate([rotated_part, plain_part], axis=-1) if plain_part.shape[-1] else rotated_part


def _attention(q: Any, k: Any, v: Any, *, scale: float, mask: Any = None, sinks: Any = None, **_: Any) -> Any:
    q, k, v = to_float64(q), to_float64(k), to_float64(v)
    queries_per_key = q.shape[1] // k.shape[1]
    k, v = mx.repeat(k, queries_per_key, axis=1), mx.repeat(v, queries_per_key, axis=1)
    scores = (q * scale) @ mx.swapaxes(k, -1, -2)
    if isinstance(mask, str):
        row_count, column_count = scores.shape[-2:]
        mask = mx.array(np.tril(np.ones((row_count, column_count), bool), column_count - row_count))
    if mask is not None:
        scores = mx.where(mask, scores, -np.inf) if mask.dtype == mx.bool_ else scores + mask
    if sinks is None:
        return _softmax(scores, -1) @ v
    sink_scores = mx.broadcast_to(mx.reshape(to_float64(sinks), (1, -1, 1, 1)), (*scores.shape[:-1], 1))
    return _softmax(mx.concatenate([sink_scores, scores], axis=-1), -1)[..., 1:] @ v


def _values_per_axis(value: Any, axes: int) -> tuple[int, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * axes


def _conv(x: Any, weight: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1, **_: Any) -> Any:
    paddings = [(p, p) for p in _values_per_axis(padding, x.ndim - 2)]
    return _convolution(
        to_float64(x),
        to_float64(weight),
        _values_per_axis(stride, x.ndim - 2),
        paddings,
        _values_per_axis(dilation, x.ndim - 2),
        groups,
    )


def _conv_transpose(
    x: Any,
    weight: Any,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    output_padding: Any = 0,
    groups: int = 1,
    **_: Any,
) -> Any:
    x, axes = to_float64(x), x.ndim - 2
    strides, dilations = _values_per_axis(stride, axes), _values_per_axis(dilation, axes)
    for axis, axis_stride in enumerate(strides, 1):
        if axis_stride > 1:  # puts zeros between the elements, as many as the stride leaves out
            spaced_input = mx.expand_dims(x, axis + 1)
            spaced_input = mx.pad(
                spaced_input,
                [(0, axis_stride - 1) if dimension == axis + 1 else (0, 0) for dimension in range(spaced_input.ndim)],
            )
            x = mx.flatten(spaced_input, axis, axis + 1)
            x = mx.take(x, mx.arange(x.shape[axis] - axis_stride + 1), axis=axis)
    kernel_shape = weight.shape[1:-1]
    kernel_extents = [d * (k - 1) for d, k in zip(dilations, kernel_shape, strict=True)]
    paddings = [
        (s - p, s - p + o)
        for s, p, o in zip(
            kernel_extents, _values_per_axis(padding, axes), _values_per_axis(output_padding, axes), strict=True
        )
    ]
    flipped_weight = to_float64(weight)[(slice(None), *[slice(None, None, -1)] * axes)]
    return _convolution(x, flipped_weight, (1,) * axes, paddings, dilations, groups)


def _convolution(
    x: Any, weight: Any, stride: Sequence[int], pads: Sequence[tuple[int, int]], dilation: Sequence[int], groups: int
) -> Any:
    """Returns a convolution as a sum of products, one for each place of the kernel; paddings may be negative."""
    inner_slices = [slice(max(-a, 0), n - max(-b, 0)) for n, (a, b) in zip(x.shape[1:-1], pads, strict=True)]
    x = x[(slice(None), *inner_slices)]
    x = mx.pad(x, [(0, 0), *[(max(a, 0), max(b, 0)) for a, b in pads], (0, 0)])
    kernel_shape, output_channels = weight.shape[1:-1], weight.shape[0]
    output_sizes = [
        (n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip(x.shape[1:-1], kernel_shape, stride, dilation, strict=True)
    ]
    convolution_sum: Any = 0.0
    for kernel_position in itertools.product(*map(range, kernel_shape)):
        window_slices = [
            slice(p * d, p * d + (n - 1) * s + 1, s)
            for p, d, n, s in zip(kernel_position, dilation, output_sizes, stride, strict=True)
        ]
        input_window, weight_at_position = x[(slice(None), *window_slices)], weight[(slice(None), *kernel_position)]
        if groups == 1:
            convolution_sum = convolution_sum + input_window @ mx.transpose(weight_at_position)
        else:
            input_window = input_window.reshape(*input_window.shape[:-1], groups, 1, -1)
            weight_at_position = weight_at_position.reshape(groups, output_channels // groups, -1)
            convolution_sum = convolution_sum + (input_window @ mx.swapaxes(weight_at_position, -1, -2)).reshape(
                *input_window.shape[:-3], output_channels
            )
    return convolution_sum
