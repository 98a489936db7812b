"""Products by quantised matrices, on NumPy: by blocks of rows whose values stay in the cache."""

from collections.abc import Callable
from typing import Any

import numpy as np

from emberharmony.backend.numpy.dtypes import DTYPES, promotion
from emberharmony.backend.shared.neural.quantization import NARROW, check_options, check_packed, check_product

_ROWS = 64
"""The values of so many rows are computed at a time: 512 KB for 2,048 columns, which the cache of a core holds."""

Array = np.ndarray[Any, Any]


class NumpyQuantizationOps:
    """Holds the ops of `ops/neural/quantization.py`.

    The body computes the values of the whole matrix, in 5 to 25 times the time.
    """

    composed: Callable[[str], Callable[..., Array]]

    def quantized_matmul(
        self,
        x: Array,
        w: Array,
        scales: Array,
        biases: Array,
        *,
        transpose: bool = True,
        group_size: int = 64,
        bits: int = 4,
    ) -> Array:
        check_options(group_size, bits)
        check_packed(DTYPES.neutral[w.dtype].name, w.shape, scales.shape, biases.shape, group_size, bits)
        check_product(x.shape, w.shape, transpose, bits)
        result_dtype = promotion.native_result_dtype(x, scales, biases)
        if DTYPES.neutral[result_dtype].name not in NARROW or not (x.size and w.size):
            composite = self.composed("quantized_matmul")
            return composite(x, w, scales, biases, transpose=transpose, group_size=group_size, bits=bits)
        vectors, scales, biases = (array.astype(np.float32, copy=False) for array in (x, scales, biases))
        product_function = _quantized_product if transpose else _transposed_product
        weight_bytes = np.ascontiguousarray(w).view(np.uint8)
        product = product_function(vectors.reshape(-1, x.shape[-1]), weight_bytes, scales, biases, bits)
        return product.reshape(*x.shape[:-1], product.shape[-1]).astype(result_dtype, copy=False)


def _quantized_product(x: Array, weight_bytes: Array, scales: Array, biases: Array, bits: int) -> Array:
    """Returns `x @ matrix.T`, for x (vectors, columns) and the bytes of a matrix (rows, columns * bits / 8)."""
    plane_count, group_count = 8 // bits, scales.shape[1]
    x_planes = np.ascontiguousarray(x.reshape(len(x), -1, plane_count).transpose(2, 1, 0))
    product = x.reshape(len(x), group_count, -1).sum(-1) @ biases.T
    for row_slice, scaled_values in _scaled_rows(weight_bytes, scales, bits):
        product[:, row_slice] += np.matmul(scaled_values, x_planes).sum(0).T
    return product


def _transposed_product(y: Array, weight_bytes: Array, scales: Array, biases: Array, bits: int) -> Array:
    """Returns `y @ matrix`, for y (vectors, rows) and the bytes of a quantised matrix."""
    plane_count, group_count = 8 // bits, scales.shape[1]
    plane_sums = np.zeros((plane_count, len(y), weight_bytes.shape[1]), np.float32)
    for row_slice, scaled_values in _scaled_rows(weight_bytes, scales, bits):
        plane_sums += np.matmul(y[:, row_slice], scaled_values)
    product = np.ascontiguousarray(plane_sums.transpose(1, 2, 0)).reshape(len(y), group_count, -1)
    product += (y @ biases)[..., None]
    return product.reshape(len(y), -1)


def _scaled_rows(weight_bytes: Array, scales: Array, bits: int) -> Any:
    """Yields slices of rows, and their integers times the scales, (planes, rows, columns / planes).

    A plane has the integers of the same bits of each byte: with 4 bits the even columns, then the odd ones. The array
    is the same for all blocks.
    """
    plane_count, (row_count, width) = 8 // bits, weight_bytes.shape
    scaled_buffer = np.empty((plane_count, min(_ROWS, row_count), width), np.float32)
    for start in range(0, row_count, _ROWS):
        row_slice = slice(start, start + _ROWS)
        block, value_block = weight_bytes[row_slice], scaled_buffer[:, : row_count - start]
        if plane_count == 1:
            value_block[0] = block
        else:
            value_block[0], value_block[1] = block & np.uint8(15), block >> np.uint8(4)
        value_block *= scales[row_slice].repeat(width // scales.shape[1], 1)
        yield row_slice, value_block
