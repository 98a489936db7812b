"""Operators of ATen that multiply matrices and vectors, computed by ops."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from emberharmony import ops
from emberharmony.interop.torch.aten.elementwise import scale
from emberharmony.interop.torch.aten.table import aten, register_names

aten("matmul", "mm", "bmm", "mv")(ops.matmul)
aten("dot", "inner")(ops.inner)
aten("linalg_vecdot")(lambda x, other, dim=-1: ops.vecdot(x, other, axis=dim))
aten("outer", "ger")(ops.outer)
aten("vdot")(lambda x, other: ops.vdot(x, other))


@aten("linear")
def linear(x: Any, weight: Any, bias: Any = None) -> Any:
    """Returns `x @ weight.T + bias`."""
    return ops.linear(x, weight, bias, transposed=True)


@aten("addmm")
def addmm(x: Any, first: Any, second: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    """Returns `beta * x + alpha * first @ second`."""
    if beta == alpha == 1 and len(x.shape) == 1 and x.shape[0] == second.shape[1]:
        return ops.linear(first, second, x)
    return _weighted_sum(x, ops.matmul(first, second), beta, alpha)


@aten("addmv")
def addmv(x: Any, matrix: Any, vector: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    """Returns `beta * x + alpha * matrix @ vector`."""
    return _weighted_sum(x, ops.matmul(matrix, vector), beta, alpha)


@aten("addr")
def addr(x: Any, first: Any, second: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    """Returns `beta * x + alpha * outer(first, second)`."""
    return _weighted_sum(x, ops.outer(first, second), beta, alpha)


@aten("baddbmm")
def baddbmm(x: Any, first: Any, second: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    """Returns `beta * x + alpha * first @ second` for batches of matrices."""
    return _weighted_sum(x, ops.matmul(first, second), beta, alpha)


@aten("addbmm")
def addbmm(x: Any, first: Any, second: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    """Returns `beta * x` plus `alpha` times the sum of the matrix products of a batch."""
    return _weighted_sum(x, ops.sum(ops.matmul(first, second), axis=0), beta, alpha)


def _weighted_sum(x: Any, product: Any, beta: Any, alpha: Any) -> Any:
    """Returns `beta * x + alpha * product`; with the weight 0 for `beta`, NaN in `x` is ignored."""
    product = scale(product, alpha)
    return ops.broadcast_to(product, tuple(product.shape)) if beta == 0 else ops.add(scale(x, beta), product)


@aten("einsum")
def einsum(equation: str, tensors: Sequence[Any], path: object = None) -> Any:
    """Returns the sum of products that an equation describes."""
    return ops.einsum(equation, *tensors)


@aten("tensordot")
def tensordot(x: Any, other: Any, dims_self: Sequence[int], dims_other: Sequence[int]) -> Any:
    """Returns the tensor contraction: the sums of products along pairs of axes of two tensors."""
    return ops.tensordot(x, other, (list(dims_self), list(dims_other)))


@aten("bilinear")
def bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Any:
    """Returns `input1 @ weight[k] @ input2` for each k, plus a bias."""
    product = ops.einsum("...i,kij,...j->...k", input1, weight, input2)
    return product if bias is None else ops.add(product, bias)


@aten("linalg_cross")
def cross(x: Any, other: Any, dim: int = -1) -> Any:
    """Returns cross products along an axis."""
    return ops.cross(x, other, axis=dim)


@aten("linalg_multi_dot", "chain_matmul")
def multi_dot(tensors: Sequence[Any]) -> Any:
    """Returns the product of several matrices."""
    return ops.multi_dot(list(tensors))


@aten("cdist", "_cdist_forward")
def cdist(x1: Any, x2: Any, p: float = 2.0, compute_mode: int | None = None) -> Any:
    """Returns the distances between the rows of two matrices."""
    return ops.cdist(x1, x2, p)


@register_names("transformers.grouped_mm_fallback", "aten._grouped_mm")
def grouped_mm(x: Any, weight: Any, offs: Any, bias: object = None, out_dtype: object = None) -> Any:
    """Returns the product of each group of rows with the group's own matrix, as mixtures of experts need it."""
    group_bounds = [0, *(int(end) for end in ops.to_numpy(offs))]
    products = [ops.matmul(x[start:end], weight[i]) for i, (start, end) in enumerate(pairwise(group_bounds))]
    return ops.concatenate(products, axis=0)
