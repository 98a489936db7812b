"""Quantised matrices: 4 or 8 bits for each value, and a scale and a bias for each group of values in a row.

The format is MLX's, in its mode "affine": a value is `scale * q + bias`, where q is an integer of 4 or 8 bits. The
integers are packed in uint32 from the lowest bits up, so n values take n * bits / 32 numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import op
from emberharmony.core.errors import DTypeError
from emberharmony.core.types import Tensor, TensorLike
from emberharmony.ops.arrays.creation import full_like
from emberharmony.ops.arrays.indexing import get_item, where
from emberharmony.ops.arrays.shape import expand_dims, reshape, stack
from emberharmony.ops.dtype import dtype, result_type, to_inexact, widen
from emberharmony.ops.elementwise.rounding import round as round_
from emberharmony.ops.flow.transforms import stop_gradient
from emberharmony.ops.logic.bitwise import bitwise_and, bitwise_left_shift, bitwise_or, bitwise_right_shift
from emberharmony.ops.logic.comparison import equal, greater
from emberharmony.ops.math import absolute, add, divide, maximum, minimum, multiply, negative, subtract
from emberharmony.ops.neural.layers import linear
from emberharmony.ops.reductions.reduction import max as max_
from emberharmony.ops.reductions.reduction import min as min_
from emberharmony.ops.tensor import cast, view

if TYPE_CHECKING:
    from emberharmony.backend.shared.neural import quantization as shared_quantization
else:
    shared_quantization = Deferred("emberharmony.backend.shared.neural.quantization")

_LEAST = 1e-7
"""The least scale, which groups of equal values have."""


@op
def quantize(w: TensorLike, *, bits: int = 4, group_size: int = 64) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the values of `w` as packed integers, with the scale and the bias of each group.

    A group has `group_size` values that are adjacent on the last axis. Its bias is the value that is farthest from 0,
    and its scale is the range of the values divided by 2**bits - 1, a little changed so that 0 becomes 0 exactly if it
    is in the range. The error of a value is at most half a scale, except at the other end of the range, where it is at
    most a scale. If an element of a group is NaN or infinite, the group is undefined.

    The results are those of `mlx.core.quantize`, to the bit. There is no gradient.

    Args:
        w: matrices (..., n), where `group_size` divides n; not complex.

    Shape: (..., n) to (..., n * bits / 32), (..., n / group_size) and (..., n / group_size).

    Dtype: uint32 for the integers; that of `w` for scales and biases. Integers become the default float.

    Raises:
        ArgumentError: if `bits` or `group_size` has another value.
        DTypeError: if `w` is complex.
        ShapeError: if `group_size` does not divide the last axis.

    See also: `dequantize`, the inverse; `nn.quantize`, for a whole model; `quantized_matmul`, to multiply.

    Example:
        >>> packed, scales, biases = ops.quantize(ops.arange(32.0), bits=8, group_size=32)
        >>> tuple(packed.shape), biases.tolist()
        ((8,), [31.0])
    """
    shared_quantization.check_options(group_size, bits)
    shared_quantization.check_divisible(w.shape, group_size)
    if dtype(w).is_complex:
        raise DTypeError(f"expected real values, got {dtype(w).name}; quantise the real and the imaginary part")
    w = stop_gradient(to_inexact(w))
    w_dtype, groups = dtype(w), reshape(widen(w), (*w.shape[:-1], w.shape[-1] // group_size, group_size))
    low, high = min_(groups, -1), max_(groups, -1)
    is_low_larger = greater(absolute(low), absolute(high))
    # A number as the divisor might become a factor, its reciprocal, which rounds in another way.
    level_step = maximum(divide(subtract(high, low), full_like(low, 2.0**bits - 1)), _LEAST)
    level_step = where(is_low_larger, level_step, negative(level_step))
    larger_end = where(is_low_larger, low, high)
    level_of_zero = round_(divide(larger_end, level_step))
    has_no_zero_level = equal(level_of_zero, 0.0)
    group_scale = where(has_no_zero_level, level_step, divide(larger_end, where(has_no_zero_level, 1.0, level_of_zero)))
    group_bias = where(has_no_zero_level, 0.0, larger_end)
    level_numbers = round_(divide(subtract(groups, expand_dims(group_bias, -1)), expand_dims(group_scale, -1)))
    # A NaN is not greater than 0 either, so that no NaN is cast.
    level_numbers = minimum(where(greater(level_numbers, 0.0), level_numbers, 0.0), 2.0**bits - 1)
    level_bytes = reshape(cast(level_numbers, "uint8"), w.shape)
    if bits == 4:
        even_columns, odd_columns = (
            get_item(level_bytes, (..., slice(0, None, 2))),
            get_item(level_bytes, (..., slice(1, None, 2))),
        )
        level_bytes = bitwise_or(even_columns, bitwise_left_shift(odd_columns, 4))
    return view(level_bytes, "uint32"), cast(group_scale, w_dtype), cast(group_bias, w_dtype)


@op
def dequantize(w: TensorLike, scales: TensorLike, biases: TensorLike, *, bits: int = 4, group_size: int = 64) -> Tensor:
    """Returns the values `scale * q + bias` of packed integers q.

    Args:
        w: uint32 (..., n * bits / 32): the packed integers, as `quantize` returned them.
        scales: (..., n / group_size): the scale of each group, as `quantize` returned it.
        biases: (..., n / group_size): the bias of each group, as `quantize` returned it.

    Shape: (..., n * bits / 32), (..., n / group_size) and (..., n / group_size) to (..., n).

    Dtype: that of scales and biases, promoted. The gradients are those by the scales and biases.

    Raises:
        ArgumentError: if `bits` or `group_size` has a value that `quantize` does not take.
        DTypeError: if `w` is not uint32.
        ShapeError: if the shapes do not fit together.

    See also: `quantize`, the inverse.

    Example:
        >>> packed = ops.quantize(ops.arange(32.0), bits=8, group_size=32)
        >>> float(ops.max(ops.abs(ops.dequantize(*packed, bits=8, group_size=32) - ops.arange(32.0)))) < 0.07
        True
    """
    shared_quantization.check_options(group_size, bits)
    shared_quantization.check_packed(dtype(w).name, w.shape, scales.shape, biases.shape, group_size, bits)
    result_dtype = result_type(scales, biases)
    weight_bytes = view(stop_gradient(w), "uint8")
    if bits == 4:
        weight_bytes = stack([bitwise_and(weight_bytes, 15), bitwise_right_shift(weight_bytes, 4)], -1)
    level_groups = cast(reshape(weight_bytes, (*scales.shape, group_size)), result_dtype)
    weight_values = add(multiply(level_groups, expand_dims(scales, -1)), expand_dims(biases, -1))
    return reshape(weight_values, (*scales.shape[:-1], scales.shape[-1] * group_size))


@op
def quantized_matmul(
    x: TensorLike,
    w: TensorLike,
    scales: TensorLike,
    biases: TensorLike,
    *,
    transpose: bool = True,
    group_size: int = 64,
    bits: int = 4,
) -> Tensor:
    """Returns `x @ matrix.T`, or `x @ matrix`, with a quantised matrix.

    MLX multiplies by the packed integers: the result is that of `mlx.core.quantized_matmul`, except for half precision
    on the CPU, where MLX 0.32 also adds in half precision, and the op in float32. NumPy and PyTorch compute the values
    of some rows at a time, in float32, for the product and again for the gradient; they keep no copy of them.

    Args:
        x: (..., columns), or (..., rows) without `transpose`, of a floating dtype.
        w, scales, biases: what `quantize` returned for a matrix. Layers on PyTorch pass the integers by columns.
        transpose: whether `x` is multiplied by the transposed matrix; else by the matrix itself.

    Shape: x (..., columns), with a matrix (rows, columns), to (..., rows); if not `transpose`, (..., rows) to
    (..., columns).

    Dtype: that of `x`, scales and biases, promoted. The gradients are those by `x`, the scales and the biases.

    Raises:
        ArgumentError: if `bits` or `group_size` has a value that `quantize` does not take.
        DTypeError: if `w` is not uint32.
        ShapeError: if the shapes do not fit together.

    See also: `nn.QuantizedLinear`, the layer; `quantize`, before it; `linear`, without quantisation.

    Example:
        >>> packed = ops.quantize(ops.ones((3, 64)))
        >>> ops.quantized_matmul(ops.ones((2, 64)), *packed).tolist()
        [[64.0, 64.0, 64.0], [64.0, 64.0, 64.0]]
    """
    shared_quantization.check_options(group_size, bits)
    shared_quantization.check_packed(dtype(w).name, w.shape, scales.shape, biases.shape, group_size, bits)
    shared_quantization.check_product(x.shape, w.shape, transpose, bits)
    result_dtype = result_type(x, scales, biases)
    weight_matrix = dequantize(w, widen(scales), widen(biases), group_size=group_size, bits=bits)
    return cast(linear(widen(x), weight_matrix, None, transpose), result_dtype)
