"""Quantised matrices on MLX: its own kernels."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import mlx.core as mx

from emberharmony.backend.mlx.dtypes import DTYPES, promotion
from emberharmony.backend.mlx.elementwise.elementary_ops import on_cpu
from emberharmony.backend.mlx.tracing import is_mapped
from emberharmony.core.deferred import Deferred

if TYPE_CHECKING:
    from emberharmony.backend.shared.neural import quantization as shared_quantization
else:
    shared_quantization = Deferred("emberharmony.backend.shared.neural.quantization")

_KINDS = (mx.float32, mx.float16, mx.bfloat16)
"""The dtypes that the kernels take; the composites compute the others."""


class MLXQuantizationOps:
    """Holds the ops of `ops/neural/quantization.py`.

    MLX has kernels that read the packed integers; the bodies make the values of the whole matrix, in up to 23 times the
    time, for few elements.
    """

    composed: Callable[[str], Callable[..., Any]]

    def quantize(self, w: mx.array, *, bits: int = 4, group_size: int = 64) -> tuple[mx.array, mx.array, mx.array]:
        shared_quantization.check_options(group_size, bits)
        shared_quantization.check_divisible(w.shape, group_size)
        if w.dtype not in _KINDS or w.ndim < 2 or not w.size:
            quantized_parts: tuple[mx.array, mx.array, mx.array] = self.composed("quantize")(
                w, bits=bits, group_size=group_size
            )
            return quantized_parts
        packed, scales, biases = mx.quantize(mx.stop_gradient(w), group_size, bits)
        return packed, mx.stop_gradient(scales), mx.stop_gradient(biases)

    def quantized_matmul(
        self,
        x: mx.array,
        w: mx.array,
        scales: mx.array,
        biases: mx.array,
        *,
        transpose: bool = True,
        group_size: int = 64,
        bits: int = 4,
    ) -> mx.array:
        shared_quantization.check_options(group_size, bits)
        shared_quantization.check_packed(
            DTYPES.neutral[w.dtype].name, w.shape, scales.shape, biases.shape, group_size, bits
        )
        shared_quantization.check_product(x.shape, w.shape, transpose, bits)
        operands = promotion.common(x, scales, biases)
        dtype = operands[0].dtype
        # The kernel of MLX 0.32 divides by the number of rows, and `vmap` of it is not implemented.
        if dtype not in _KINDS or not (x.size and w.size) or is_mapped():
            composed_op = self.composed("quantized_matmul")
            product: mx.array = composed_op(x, w, scales, biases, transpose=transpose, group_size=group_size, bits=bits)
            return product
        if dtype != mx.float32 and on_cpu():
            # MLX 0.32 adds in half precision on the CPU: the products of 4096 float16 have an error of 1 %.
            operands = [operand.astype(mx.float32) for operand in operands]
        # Multiply a vector as a matrix of one row, because MLX 0.32 has no gradient by the scales for a vector.
        rows = operands[0] if x.ndim > 1 else operands[0][None]
        native_product = mx.quantized_matmul(
            rows, w, operands[1], operands[2], transpose=transpose, group_size=group_size, bits=bits
        )
        native_product = native_product if x.ndim > 1 else native_product[0]
        return native_product if native_product.dtype == dtype else native_product.astype(dtype)

    def dequantize(
        self, w: mx.array, scales: mx.array, biases: mx.array, *, bits: int = 4, group_size: int = 64
    ) -> mx.array:
        shared_quantization.check_options(group_size, bits)
        shared_quantization.check_packed(
            DTYPES.neutral[w.dtype].name, w.shape, scales.shape, biases.shape, group_size, bits
        )
        scales, biases = promotion.common(scales, biases)
        if scales.dtype in _KINDS and w.ndim > 1 and w.size:
            return mx.dequantize(w, scales, biases, group_size, bits)
        weights: mx.array = self.composed("dequantize")(w, scales, biases, bits=bits, group_size=group_size)
        return weights
