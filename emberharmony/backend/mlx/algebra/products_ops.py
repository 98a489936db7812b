"""Products of tensors, on MLX.

With `EMBERHARMONY_MLX_BLAS=numpy` NumPy multiplies large matrices on the CPU, where the packages of MLX 0.32 for Linux
have the reference BLAS. It reads the memory of the factors, which are computed at once, and its result is copied.

On Linux MLX 0.32 multiplies float32 by the reference BLAS, which adds the products of each element sequentially: for
equal terms the error is 21 eps at 256, 116 at 1024 and 413 at 4096. Up to 1024 terms are native, as NumPy and PyTorch
lose the same digits there in some shapes; a longer product is the sum of products of equal blocks of at most 256 terms.
It is computed in float64 if no number of blocks divides the length, if a matrix has fewer than 4 rows or columns, or if
the products of the blocks would need more memory. Blocks for a single row cost 14 times the native product where the
other matrix is transposed. A condition on `itemsize` would cost each small product 420 instructions and only keep
integers away, for which MLX raises an error that leads to the exact product.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import mlx.core as mx

from emberharmony.backend.mlx.derivatives import Arrays, with_own_derivatives
from emberharmony.backend.mlx.device_ops import check_memory, require_memory
from emberharmony.backend.mlx.dtypes import of_host, promotion
from emberharmony.backend.mlx.elementwise.elementary_ops import on_cpu
from emberharmony.backend.mlx.math_ops import is_complex, is_float
from emberharmony.backend.mlx.reductions.reduction_ops import wide_sum
from emberharmony.core import op_globals
from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import fast
from emberharmony.core.errors import SettingsError

if TYPE_CHECKING:
    import numpy as np

    from emberharmony.backend.shared.algebra import products as shared_products
else:
    np = Deferred("numpy")
    shared_products = Deferred("emberharmony.backend.shared.algebra.products")

LONG = 1024
"""Sums of more products than this are divided on the CPU, where MLX 0.32 adds float32 sequentially.

NumPy and PyTorch lose as many digits in some products of this length, which are added sequentially too.
"""
_BLOCK = 256
"""The largest number of products in a block of a longer sum."""
_NARROW = 4
"""Matrices with fewer rows or columns are multiplied in float64, because copying the blocks would cost more."""
_SHORT = f"({{0}}.size <= 256 or {{0}}.size * {{1}}.size >> 26 < {{0}}.shape[-1] <= {LONG})"
"""When MLX may compute a product at once: the sums are short, and the result has less than 2**26 elements.

The first test is the cheaper one. The second divides the number of all products by the length of the sums.
"""
_DIGITS = 53
"""The bits of the largest integers that float64 represents exactly."""


def _multiply_if_it_fits(native: Callable[..., mx.array], tensors: list[mx.array], length: int) -> mx.array:
    """Returns a product of tensors, computed by `_multiply`, after a check that it fits into memory.

    Raises:
        OutOfMemoryError: if the result is larger than the memory of the machine.
    """
    return require_memory(_multiply(native, tensors, length))


def _multiply(native: Callable[..., mx.array], tensors: list[mx.array], length: int) -> mx.array:
    """Returns the product that `native` computes of tensors of one dtype, in a dtype that keeps its digits.

    Args:
        native: a product such as `mx.matmul`.
        tensors: the factors.
        length: the number of products that are summed for each element.
    """
    first_factor = tensors[0]
    if is_complex(first_factor):
        return native(*tensors)
    if not is_float(first_factor):
        return _integer_product(native, tensors, length)
    wide_dtype = mx.float32 if first_factor.dtype.size == 2 else first_factor.dtype
    if on_cpu() and length > LONG:
        wide_dtype = mx.float64
    return native(*(x.astype(wide_dtype) for x in tensors)).astype(first_factor.dtype)


@lru_cache(maxsize=256)
def _block_count(length: int) -> int:
    """Returns the smallest number of equal blocks into which a long sum can be divided, or 0 if there is none."""
    return next((n for n in range(-(-length // _BLOCK), length // 32 + 1) if length % n == 0), 0)


def _multiply_in_blocks(x1: mx.array, x2: mx.array) -> mx.array | None:
    """Returns a matrix product of float32 or half precision as the sum of products of blocks.

    Each block is short enough to keep its digits in float32. A product in float64 would be slower, because it converts
    both matrices. Returns None if the length has no suitable divisor, if a matrix is so narrow that copying the blocks
    costs more than that, or if the products of the blocks would need more memory.
    """
    if min(x1.ndim, x2.ndim) < 2 or min(x1.shape[-2], x2.shape[-1]) < _NARROW:
        return None
    block_count = _block_count(x1.shape[-1])
    if not block_count:
        return None
    block_length = x1.shape[-1] // block_count
    blocks = mx.swapaxes(mx.unflatten(x1.astype(mx.float32), -1, (block_count, block_length)), -2, -3)
    block_products = blocks @ mx.unflatten(x2.astype(mx.float32), -2, (block_count, block_length))
    if block_products.size > 2 * (x1.size + x2.size):
        return None
    return wide_sum(block_products, (block_products.ndim - 3,), False).astype(x1.dtype)


def _integer_product(native: Callable[..., mx.array], tensors: list[mx.array], length: int) -> mx.array:
    """Returns a product of integers modulo the range of their dtype. MLX 0.32 has no matrix products of integers.

    Each integer is split into limbs so short that float64 represents every sum of their products exactly. Only the CPU
    has float64.
    """
    dtype = tensors[0].dtype
    bit_width = 8 * dtype.size
    limb_bits = min(bit_width, (_DIGITS - length.bit_length()) // len(tensors))
    limb_count = -(-bit_width // limb_bits)
    with mx.stream(mx.cpu):
        wide_tensors = [x.astype(mx.int64) for x in tensors]
        limbs_of_factors = [
            [((x >> limb_bits * i) & (1 << limb_bits) - 1).astype(mx.float64) for i in range(limb_count)]
            for x in wide_tensors
        ]
        product = mx.array(0, mx.int64)
        for limb_indices in itertools.product(range(limb_count), repeat=len(tensors)):
            if sum(limb_indices) < limb_count:  # higher parts exceed the width of the dtype
                limb_product = native(
                    *(factor_limbs[i] for factor_limbs, i in zip(limbs_of_factors, limb_indices, strict=True))
                )
                product = product + (limb_product.astype(mx.int64) << limb_bits * sum(limb_indices))
        return product.astype(dtype)


def _matmul(x1: mx.array, x2: mx.array) -> mx.array:
    shared_products.check_factors(x1.shape, x2.shape)
    a, b = promotion.common(x1, x2)
    length = a.shape[-1]
    if length > LONG and is_float(a) and a.dtype.size < 8 and on_cpu():
        block_product = _multiply_in_blocks(a, b)
        if block_product is not None:
            return require_memory(block_product)
    return _multiply_if_it_fits(mx.matmul, [a, b], length)


ENVIRONMENT = "EMBERHARMONY_MLX_BLAS"
"""The environment variable that says who multiplies large matrices on the CPU."""
_LARGE = 2**16
"""From this number of products on, NumPy's result with the copy takes less time than MLX's."""


def numpy_matmul(x1: mx.array, x2: mx.array) -> mx.array:
    """Returns the matrix product computed by NumPy, or by MLX where the factors are traced and have no values."""
    try:
        a, b = np.asarray(x1), np.asarray(x2)
    except (RuntimeError, ValueError) as error:
        if "transformations" not in str(error):
            raise
        return mx.matmul(x1, x2)  # mx.compile or mx.vmap is tracing the program
    product = np.matmul(a, b)
    return of_host(product, x1.dtype)


def _product_tangent(primals: Arrays, outputs: Arrays, tangents: Arrays) -> Arrays:
    return (primals[0] @ tangents[1] + tangents[0] @ primals[1],)


_derived_by_numpy = with_own_derivatives(numpy_matmul, _product_tangent, hosted=True)


def _suits_numpy(x1: mx.array, x2: mx.array) -> bool:
    """Returns whether NumPy multiplies these factors faster than MLX: float32 matrices outside of transforms."""
    if not op_globals.untransformed or x1.dtype not in (mx.float32, mx.float64) or min(x1.ndim, x2.ndim) < 2:
        return False
    return x1.dtype == x2.dtype and x1.size * x2.shape[-1] >= _LARGE and on_cpu()


def _matmul_for_environment(
    matmul: Callable[..., mx.array], short: Callable[..., Any], named: str
) -> Callable[..., mx.array]:
    """Returns the function for products of matrices that an environment variable chooses: MLX's or NumPy's.

    Args:
        matmul: the product by MLX.
        short: the decorator of MLX's product for short sums.
        named: the value of the environment variable.

    Raises:
        SettingsError: if the environment names anything but "numpy".
    """
    if not named:
        return short("")(matmul)
    if named != "numpy":
        raise SettingsError(f"expected {ENVIRONMENT} to be 'numpy' or not set, got {named!r}")

    def multiply_by_numpy(x1: mx.array, x2: mx.array) -> mx.array:
        if not _suits_numpy(x1, x2):
            return matmul(x1, x2)
        shared_products.check_factors(x1.shape, x2.shape)
        return _derived_by_numpy(x1, x2)

    return short(" and {0}.size < 1024")(multiply_by_numpy)


class MLXProductsOps:
    """Holds the ops of `ops/algebra/products.py`.

    `outer` and `kron` are the bodies after a check of the memory, because MLX ends the process where it has too little.
    The body of `einsum` takes 4.3 times as long, for few elements.
    """

    composed: Callable[[str], Callable[..., mx.array]]

    matmul = staticmethod(
        _matmul_for_environment(
            _matmul,
            lambda further: fast(mx.matmul, f"{promotion.same} and {_SHORT}{further}"),
            os.environ.get(ENVIRONMENT, ""),
        )
    )

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
        length = shared_products.check_subscripts(subscripts, *(x.shape for x in operands))
        tensors = promotion.common(*operands)
        if not all(x.size for x in tensors):
            # Return zeros for operands without elements, because MLX 0.32 can hang when it reduces an empty array.
            result_shape = np.einsum(subscripts, *(np.broadcast_to(np.zeros((), bool), x.shape) for x in tensors)).shape
            return mx.zeros(result_shape, tensors[0].dtype)
        return _multiply_if_it_fits(lambda *tensors: mx.einsum(subscripts, *tensors), tensors, length)
