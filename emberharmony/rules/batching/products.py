"""Batching rules of `ops/algebra/products.py`.

The bodies take 1.5 to 5.4 times as long under `vmap`, for few elements.
"""

import math
from typing import Any

from emberharmony.rules.batching.forms import add_unit_axis, batches
from emberharmony.transforms.batch_tape import Mapped, Rows, align_ranks

T = Any


@batches("matmul")
def _matmul(m: Mapped, a: Any, b: Any) -> T:
    ops, ranks = m.bound, (len(a.shape), len(b.shape))
    if 0 in ranks:
        return NotImplemented
    if b.__class__ is not Rows and ranks[1] == 2:
        # One product of two matrices, because a product for each slice would call the library so often.
        length = a.shape[-1]
        if ranks[0] == 1:
            return m(a.whole, b)
        if length == b.shape[0]:
            matrix_of_all = ops.reshape(a.whole, (m.size * math.prod(a.shape[:-1]), length))
            return ops.reshape(m(matrix_of_all, b), (m.size, *a.shape[:-1], b.shape[-1]))
    if a.__class__ is not Rows and ranks == (2, 1):
        return m(b.whole, ops.matrix_transpose(a))
    vector_flags = ranks[0] == 1, ranks[1] == 1
    a = add_unit_axis(m, a, -2) if vector_flags[0] else a
    b = add_unit_axis(m, b, -1) if vector_flags[1] else b
    product = _product_per_slice(m, *align_ranks(m, (a, b)))
    dropped_axes = tuple(axis for axis, is_vector in zip((-2, -1), vector_flags, strict=True) if is_vector)
    return ops.squeeze(product, dropped_axes) if dropped_axes else product


def _product_per_slice(m: Mapped, a: T, b: T) -> T:
    """Returns a product of matrices; one of a column and a row in one call and not in one for each slice."""
    if a.shape[-1] == b.shape[-2] == 1 and a.dtype == b.dtype and m.bound.dtype(a).kind in ("float", "complex"):
        return m.bound.multiply(a, b)
    return m(a, b)


@batches("outer")
def _outer(m: Mapped, a: Any, b: Any) -> T:
    # The op is a composite, whose body would make three mapped calls.
    ops = m.bound
    column = ops.reshape(a.whole, (m.size, -1, 1)) if a.__class__ is Rows else ops.reshape(a, (-1, 1))
    row = ops.reshape(b.whole, (m.size, 1, -1)) if b.__class__ is Rows else ops.reshape(b, (1, -1))
    return ops.multiply(column, row)


@batches("einsum")
def _einsum(m: Mapped, subscripts: str, *operands: Any) -> T:
    if not isinstance(subscripts, str):
        return NotImplemented
    spaceless_subscripts = subscripts.replace(" ", "")
    operand_letters, arrow, output_letters = spaceless_subscripts.partition("->")
    batch_letter = next(
        c for c in "zyxwvutsrqponmlkjihgfedcbaZYXWVUTSRQPONMLKJIHGFEDCBA" if c not in spaceless_subscripts
    )
    letters_of_operands = operand_letters.split(",")
    if len(letters_of_operands) != len(operands):
        return NotImplemented
    if not arrow:
        letters = operand_letters.replace(",", "").replace(".", "")
        output_letters = "..." * ("..." in operand_letters) + "".join(
            sorted(c for c in set(letters) if letters.count(c) == 1)
        )
    mapped_flags = [x.__class__ is Rows for x in operands]
    letters_of_operands = [
        batch_letter + term if is_mapped else term
        for term, is_mapped in zip(letters_of_operands, mapped_flags, strict=True)
    ]
    whole_tensors = [x.whole if is_mapped else x for x, is_mapped in zip(operands, mapped_flags, strict=True)]
    return m(f"{','.join(letters_of_operands)}->{batch_letter}{output_letters}", *whole_tensors)


@batches("vecdot")
def _vecdot(m: Mapped, a: Any, b: Any, axis: int) -> T:
    ranks = {len(a.shape), len(b.shape)}
    if axis.__class__ is not int or 0 in ranks or (axis >= 0 and len(ranks) > 1):
        return NotImplemented
    return m(*align_ranks(m, (a, b)), axis - max(ranks) if axis >= 0 else axis)
