"""Gradient rules of the ops in `ops/neural/quantization.py`.

The product is a composite, which needs no rule. It has one because with the body alone the tape would keep the values
of each matrix until the gradients are computed.
"""

import math
from typing import Any

from emberharmony.ops.algebra.products import matmul
from emberharmony.ops.arrays.creation import ones, zeros
from emberharmony.ops.arrays.shape import matrix_transpose, reshape
from emberharmony.ops.dtype import dtype, widen
from emberharmony.ops.math import multiply
from emberharmony.ops.neural.quantization import dequantize, quantized_matmul
from emberharmony.ops.reductions.reduction import sum as sum_

T = Any


def _x_gradient(
    g: T, _y: T, _x: T, w: T, scales: T, biases: T, transpose: bool = True, group_size: int = 64, bits: int = 4
) -> T:
    return quantized_matmul(g, w, scales, biases, transpose=not transpose, group_size=group_size, bits=bits)


def _group_gradients(g: T, x: T, scales: T, transpose: bool, group_size: int) -> T:
    """Returns the gradient by the values of the matrix, of shape (rows, groups, group_size)."""
    left_operand, right_operand = (g, x) if transpose else (x, g)
    product = matmul(matrix_transpose(_as_rows(left_operand)), _as_rows(right_operand))
    return reshape(product, (*scales.shape, group_size))


def _as_rows(x: T) -> T:
    widened_x = widen(x)
    return reshape(widened_x, (math.prod(x.shape[:-1]), x.shape[-1]))


def _scales_gradient(
    g: T, _y: T, x: T, w: T, _scales: T, _biases: T, transpose: bool = True, group_size: int = 64, bits: int = 4
) -> T:
    products_by_group = _group_gradients(g, x, _scales, transpose, group_size)
    ones_of_groups, zeros_of_groups = (
        filled_with(_scales.shape, dtype(products_by_group)) for filled_with in (ones, zeros)
    )
    integer_levels = dequantize(w, ones_of_groups, zeros_of_groups, group_size=group_size, bits=bits)
    return sum_(multiply(products_by_group, reshape(integer_levels, products_by_group.shape)), -1)


def _biases_gradient(
    g: T, _y: T, x: T, _w: T, _scales: T, _biases: T, transpose: bool = True, group_size: int = 64, bits: int = 4
) -> T:
    return sum_(_group_gradients(g, x, _scales, transpose, group_size), -1)


RULES: dict[str, Any] = {"quantized_matmul": (_x_gradient, None, _scales_gradient, _biases_gradient)}
