"""Products of tensors, on MLX."""

import mlx.core as mx

from emberharmony.backend.einsum import check_subscripts
from emberharmony.backend.mlx.dtypes import promotion
from emberharmony.backend.mlx.elementary_ops import on_cpu
from emberharmony.backend.mlx.math_ops import is_complex, is_float
from emberharmony.core.errors import DTypeError

_LONG = 256
"""The length from which products summed one after the other lose digits on the CPU."""


def _computed(x: mx.array, length: int) -> mx.Dtype:
    """Returns the dtype products are computed in: MLX multiplies no integers, and adds long rows badly on the CPU."""
    if is_complex(x):
        return x.dtype
    if not is_float(x):
        if not on_cpu():
            raise DTypeError(f"MLX multiplies no matrices of integers on the GPU; cast {x.dtype} to a float first")
        return mx.float64
    if on_cpu() and length > _LONG:
        return mx.float64
    return mx.float32 if x.dtype.size == 2 else x.dtype


class MLXProductsOps:
    """Holds the ops of `ops/products.py`."""

    @staticmethod
    def matmul(x1: mx.array, x2: mx.array) -> mx.array:
        a, b = promotion.common(x1, x2)
        wide = _computed(a, a.shape[-1] if a.ndim else 1)
        return mx.matmul(a.astype(wide), b.astype(wide)).astype(a.dtype)

    @staticmethod
    def einsum(subscripts: str, *operands: mx.array) -> mx.array:
        check_subscripts(subscripts, [x.shape for x in operands])
        tensors = promotion.common(*operands)
        wide = _computed(tensors[0], max(x.size for x in tensors))
        return mx.einsum(subscripts, *(x.astype(wide) for x in tensors)).astype(tensors[0].dtype)
