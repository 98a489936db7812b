"""Products of tensors, on NumPy."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from emberharmony.backend.numpy.dtypes import promotion
from emberharmony.backend.shared.solver import check_equal_lengths
from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import fast

if TYPE_CHECKING:
    from emberharmony.backend.shared.algebra import products as shared_products
else:
    shared_products = Deferred("emberharmony.backend.shared.algebra.products")

_COSTLY = 10**5
"""From this number of products on, einsum searches for a good order of contraction."""


def _compute_dtype(dtype: np.dtype) -> np.dtype:
    """Returns the dtype in which products are computed: float32 for half precision."""
    return np.dtype(np.float32) if dtype.itemsize == 2 and dtype.kind in "fV" else dtype


_FLOATS = "(dtype := {0}.dtype) is {1}.dtype and (dtype is native_float32 or dtype is native_float64)"
"""The condition for the functions of NumPy that call the BLAS."""


# With `out=...`, the product of two vectors is a 0-d array, not a scalar that would cost 3,000 instructions to convert.
@fast(np.matmul, _FLOATS, arguments="{0}, {1}, out=...")
def _matmul(x1: np.ndarray, x2: np.ndarray) -> np.ndarray:
    shared_products.check_factors(x1.shape, x2.shape)
    a, b = promotion.common(x1, x2)
    wide_dtype = _compute_dtype(a.dtype)
    return np.matmul(a.astype(wide_dtype, copy=False), b.astype(wide_dtype, copy=False)).astype(a.dtype, copy=False)


class NumpyProductsOps:
    """Holds the ops of `ops/algebra/products.py`.

    The bodies take up to 23 times as long, for few elements; `einsum` lets NumPy choose the order of the products.
    """

    composed: Callable[[str], Callable[..., np.ndarray]]

    matmul = staticmethod(_matmul)

    @fast(np.dot, _FLOATS)
    def dot(self, x1: np.ndarray, x2: np.ndarray) -> np.ndarray:
        return self.composed("dot")(x1, x2)

    @staticmethod
    def vecdot(x1: np.ndarray, x2: np.ndarray, axis: int = -1) -> np.ndarray:
        check_equal_lengths(x1, x2, axis)
        a, b = promotion.common(x1, x2)
        wide_dtype = _compute_dtype(a.dtype)
        product = np.vecdot(a.astype(wide_dtype, copy=False), b.astype(wide_dtype, copy=False), axis=axis)  # type: ignore[call-overload]
        return np.asarray(product).astype(a.dtype, copy=False)

    @staticmethod
    def einsum(subscripts: str, *operands: np.ndarray) -> np.ndarray:
        length = shared_products.check_subscripts(subscripts, *(x.shape for x in operands))
        tensors = promotion.common(*operands)
        wide_dtype = _compute_dtype(tensors[0].dtype)
        # The search for the best order of products takes 50 µs in NumPy 2.4, but einsum uses BLAS only after it.
        is_costly = len(tensors) > 2 or (len(tensors) == 2 and length * max(x.size for x in tensors) > _COSTLY)
        product = np.einsum(subscripts, *(x.astype(wide_dtype, copy=False) for x in tensors), optimize=is_costly)
        return np.asarray(product).astype(tensors[0].dtype, copy=False)
