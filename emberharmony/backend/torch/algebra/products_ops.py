"""Products of tensors, on PyTorch."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

from emberharmony.backend.shared.solver import check_equal_lengths
from emberharmony.backend.torch.dtypes import promotion
from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import fast

if TYPE_CHECKING:
    from emberharmony.backend.shared.algebra import products as shared_products
else:
    shared_products = Deferred("emberharmony.backend.shared.algebra.products")

_NO_KERNEL = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.uint16, torch.uint32, torch.uint64)


def _compute_dtype(dtype: torch.dtype) -> torch.dtype:
    """Returns the dtype to multiply in: int64 for the integer dtypes that lack a kernel in some product."""
    return torch.int64 if dtype in _NO_KERNEL else dtype


# PyTorch 2.13 rejects mixed dtypes by itself, except in an empty batch; so the fast path must compare the dtypes.
@fast(torch.matmul, promotion.same)
def _matmul(x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
    shared_products.check_factors(x1.shape, x2.shape)
    a, b = promotion.common(x1, x2)
    wide_dtype = _compute_dtype(a.dtype)
    return torch.matmul(a.to(wide_dtype), b.to(wide_dtype)).to(a.dtype)


class TorchProductsOps:
    """Holds the ops of `ops/algebra/products.py`.

    The bodies take 1.1 to 2.7 times as long, for few elements; `einsum` lets PyTorch choose the order of the products.
    """

    composed: Callable[[str], Callable[..., torch.Tensor]]

    matmul = staticmethod(_matmul)

    @fast(torch.matmul, f"{promotion.same} and {{0}}.ndim and 0 < {{1}}.ndim < 3")
    def dot(self, x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
        return self.composed("dot")(x1, x2)

    @staticmethod
    def vecdot(x1: torch.Tensor, x2: torch.Tensor, axis: int = -1) -> torch.Tensor:
        check_equal_lengths(x1, x2, axis)
        a, b = (x.movedim(axis, -1) for x in promotion.common(x1, x2))
        # torch.linalg.vecdot sums in the dtype of the products, so half precision would overflow.
        wide_dtype = torch.float32 if a.dtype in (torch.float16, torch.bfloat16) else _compute_dtype(a.dtype)
        if a.is_floating_point() or a.is_complex():
            return torch.linalg.vecdot(a.to(wide_dtype), b.to(wide_dtype)).to(a.dtype)
        return (a.to(wide_dtype) * b.to(wide_dtype)).sum(-1).to(a.dtype)

    @staticmethod
    def einsum(subscripts: str, *operands: torch.Tensor) -> torch.Tensor:
        shared_products.check_subscripts(subscripts, *(x.shape for x in operands))
        tensors = promotion.common(*operands)
        wide_dtype = _compute_dtype(tensors[0].dtype)
        return torch.einsum(subscripts, *[x.to(wide_dtype) for x in tensors]).to(tensors[0].dtype)
