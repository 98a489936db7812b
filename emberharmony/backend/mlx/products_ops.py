"""Products of tensors, on MLX."""

import itertools
from collections.abc import Callable

import mlx.core as mx
import numpy as np

from emberharmony.backend.mlx.device_ops import check_memory, fitting
from emberharmony.backend.mlx.dtypes import promotion
from emberharmony.backend.mlx.elementary_ops import on_cpu
from emberharmony.backend.mlx.math_ops import is_complex, is_float
from emberharmony.backend.shared.products import check_factors, check_subscripts
from emberharmony.core.dispatch import fast

_LONG = 256
"""Sums of more products than this lose digits on the CPU, where MLX adds float32 sequentially."""
_DIGITS = 53
"""The bits of the largest integers that float64 represents exactly."""


def _product(native: Callable[..., mx.array], tensors: list[mx.array], length: int) -> mx.array:
    """Returns the same as `_multiplied`, if it fits into memory.

    Raises:
        OutOfMemoryError: if the result is larger than the memory of the machine.
    """
    return fitting(_multiplied(native, tensors, length))


def _multiplied(native: Callable[..., mx.array], tensors: list[mx.array], length: int) -> mx.array:
    """Returns the product that `native` computes of tensors of one dtype, in a dtype that keeps its digits.

    Args:
        native: a product such as `mx.matmul`.
        tensors: the factors.
        length: the number of products that are summed for each element.
    """
    first = tensors[0]
    if is_complex(first):
        return native(*tensors)
    if not is_float(first):
        return _exact(native, tensors, length)
    wide = mx.float32 if first.dtype.size == 2 else first.dtype
    if on_cpu() and length > _LONG:
        wide = mx.float64
    return native(*(x.astype(wide) for x in tensors)).astype(first.dtype)


def _exact(native: Callable[..., mx.array], tensors: list[mx.array], length: int) -> mx.array:
    """Returns a product of integers modulo the range of their dtype. MLX 0.32 has no matrix products of integers.

    Each integer is split into limbs so short that float64 represents every sum of their products exactly. Only the CPU
    has float64.
    """
    dtype = tensors[0].dtype
    width = 8 * dtype.size
    bits = min(width, (_DIGITS - length.bit_length()) // len(tensors))
    count = -(-width // bits)
    with mx.stream(mx.cpu):
        wide = [x.astype(mx.int64) for x in tensors]
        limbs = [[((x >> bits * i) & (1 << bits) - 1).astype(mx.float64) for i in range(count)] for x in wide]
        total = mx.array(0, mx.int64)
        for places in itertools.product(range(count), repeat=len(tensors)):
            if sum(places) < count:  # higher parts exceed the width of the dtype
                part = native(*(limb[i] for limb, i in zip(limbs, places, strict=True)))
                total = total + (part.astype(mx.int64) << bits * sum(places))
        return total.astype(dtype)


class MLXProductsOps:
    """Holds the ops of `ops/products.py`."""

    composed: Callable[[str], Callable[..., mx.array]]

    @staticmethod
    @fast(mx.matmul, f"{promotion.same} and {{0}}.itemsize == 4 and {{0}}.size <= {_LONG}")
    def matmul(x1: mx.array, x2: mx.array) -> mx.array:
        check_factors(x1.shape, x2.shape)
        return _product(mx.matmul, promotion.common(x1, x2), x1.shape[-1])

    @staticmethod
    def outer(x1: mx.array, x2: mx.array) -> mx.array:
        a, b = promotion.common(x1, x2)
        check_memory((a.size, b.size), a.itemsize)
        return a.reshape(-1, 1) * b.reshape(1, -1)

    def kron(self, x1: mx.array, x2: mx.array) -> mx.array:
        check_memory((x1.size, x2.size), max(x1.itemsize, x2.itemsize))
        return self.composed("kron")(x1, x2)

    @staticmethod
    def einsum(subscripts: str, *operands: mx.array) -> mx.array:
        length = check_subscripts(subscripts, *(x.shape for x in operands))
        tensors = promotion.common(*operands)
        if not all(x.size for x in tensors):
            # MLX 0.32 can hang when it reduces an empty array.
            shape = np.einsum(subscripts, *(np.broadcast_to(np.zeros((), bool), x.shape) for x in tensors)).shape
            return mx.zeros(shape, tensors[0].dtype)
        return _product(lambda *tensors: mx.einsum(subscripts, *tensors), tensors, length)
