"""What a call of an op costs at least: arithmetic operations, and bytes read and written.

The counts follow from shapes and dtypes. A multiplication and an addition are two operations; a function of one
element, such as `exp`, is one. Views and shapes cost nothing.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from emberharmony.core.dtypes import ALL
from emberharmony.core.registry import OPS

Shape = Sequence[int]
_ITEMSIZE = {dtype.name: dtype.itemsize for dtype in ALL}
_ELEMENTWISE = frozenset(
    (
        *("activation", "bitwise", "comparison", "complex_numbers", "elementary", "losses", "math"),
        *("normalization", "rounding", "special"),
    )
)
"""Categories whose ops take at least one operation for each element of the largest tensor."""

_REDUCTIONS = frozenset(("norms", "pooling", "quantiles", "reduction", "segments", "statistics"))
"""Categories whose ops take at least one operation for each element of their arguments."""

_UNKNOWN = ("eval", "synchronize", "host_call")
"""Ops whose cost is not known."""


class Cost(NamedTuple):
    """The operations and bytes of a call.

    Attributes:
        operations: arithmetic operations.
        bytes: bytes that are read and written if each tensor is read, or written, once.
        whole: whether the cost is that of the whole op, so that the calls inside of it add nothing.
    """

    operations: int
    bytes: int
    whole: bool


_Formula: TypeAlias = Callable[[Sequence[Shape], Sequence[Shape]], int]
_PRODUCTS: dict[str, _Formula] = {}
"""By op, the operations from the shapes of the arguments and of the results."""


def _register_formula(*ops: str) -> Callable[[_Formula], _Formula]:
    """Returns a decorator of the formula that counts the operations of ops."""

    def decorate(formula: _Formula) -> _Formula:
        _PRODUCTS.update(dict.fromkeys(ops, formula))
        return formula

    return decorate


def _size(shape: Shape) -> int:
    return math.prod(shape)


@_register_formula("matmul", "dot", "vdot", "vecdot", "inner")
def _operations_of_contraction(shapes: Sequence[Shape], results: Sequence[Shape]) -> int:
    """Returns the operations of a product that sums over the last axis of its first operand."""
    return 2 * _size(results[0]) * (shapes[0][-1] if shapes[0] else 1)


@_register_formula("tensordot")
def _tensordot_operations(shapes: Sequence[Shape], results: Sequence[Shape]) -> int:
    # The operands and the result have m * k, k * n and m * n elements.
    result_size = _size(results[0])
    return 2 * result_size * math.isqrt(_size(shapes[0]) * _size(shapes[1]) // result_size) if result_size else 0


@_register_formula("outer")
def _outer_operations(shapes: Sequence[Shape], results: Sequence[Shape]) -> int:
    return _size(results[0])


@_register_formula("linear")
def _linear_operations(shapes: Sequence[Shape], results: Sequence[Shape]) -> int:
    return _operations_of_contraction(shapes, results) + (_size(results[0]) if len(shapes) > 2 else 0)


@_register_formula("conv")
def _conv_operations(shapes: Sequence[Shape], results: Sequence[Shape]) -> int:
    return 2 * _size(results[0]) * _size(shapes[1][:-1])  # the kernel has the shape (*size, in, out)


@_register_formula("depthwise_conv")
def _depthwise_operations(shapes: Sequence[Shape], results: Sequence[Shape]) -> int:
    return 2 * _size(results[0]) * _size(shapes[1][:-2])


@_register_formula("conv_transpose")
def _transposed_convolution_operations(shapes: Sequence[Shape], results: Sequence[Shape]) -> int:
    return 2 * _size(shapes[0]) * _size(shapes[1][:-1])  # the kernel has the shape (*size, out, in)


@_register_formula("dot_product_attention")
def _attention_operations(shapes: Sequence[Shape], results: Sequence[Shape]) -> int:
    # Queries and keys have the shape (batch, time, heads, width).
    return 4 * _size(shapes[0]) * (shapes[1][-3] if len(shapes[1]) > 2 else 1)


def known_products() -> list[str]:
    """Returns the products and convolutions whose operations are counted by a formula."""
    return sorted(_PRODUCTS)


def cost_of(
    op: str,
    shapes: Sequence[Shape],
    dtypes: Sequence[str],
    results: Sequence[Shape],
    result_dtypes: Sequence[str],
) -> Cost:
    """Returns what a call costs, if it computes the result by itself.

    Args:
        op: the name of the op.
        shapes: the shapes of the tensors among the arguments.
        dtypes: the names of their dtypes.
        results: the shapes of the tensors in the result.
        result_dtypes: the names of their dtypes.
    """
    spec = OPS.get(op)
    if not results or op in _UNKNOWN or (spec is not None and spec.facts.view):
        return Cost(0, 0, False)
    shape_dtype_pairs = [*zip(shapes, dtypes, strict=True), *zip(results, result_dtypes, strict=True)]
    moved_bytes = sum(_size(shape) * _ITEMSIZE[dtype] for shape, dtype in shape_dtype_pairs)
    count_operations = _PRODUCTS.get(op)
    if count_operations is not None:
        least_shape_count = 1 if op == "outer" else 2
        return Cost(count_operations(shapes, results) if len(shapes) >= least_shape_count else 0, moved_bytes, True)
    category = "" if spec is None else spec.category
    if category in _ELEMENTWISE:
        return Cost(max(map(_size, [*shapes, *results])), moved_bytes, False)
    if category in _REDUCTIONS:
        return Cost(sum(map(_size, shapes)), moved_bytes, False)
    return Cost(0, moved_bytes, False)
