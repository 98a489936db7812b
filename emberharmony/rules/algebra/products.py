"""Gradient rules of the ops in `ops/algebra/products.py`.

The gradient of the body of `einsum` takes 1.1 to 3 times as long, for few elements.
"""

import math
from typing import Any

from emberharmony.ops.algebra.products import einsum, matmul, outer, vecdot
from emberharmony.ops.arrays.creation import eye, ones
from emberharmony.ops.arrays.shape import expand_dims, matrix_transpose, reshape
from emberharmony.ops.dtype import dtype as dtype_of
from emberharmony.ops.math import multiply
from emberharmony.ops.reductions.reduction import sum as sum_

T = Any


def sum_of_products(x1: T, x2: T, axis: Any) -> T:
    """Returns the sum of the products of two tensors over axes, which stay with length 1."""
    if axis.__class__ is int and dtype_of(x1).is_floating:
        return expand_dims(vecdot(x1, x2, axis), axis)  # without a tensor of the products
    return sum_(multiply(x1, x2), axis, True)


def _left_gradient(g: T, _y: T, _x1: T, x2: T) -> T:
    if len(_x1.shape) > 1 < len(x2.shape) or (len(_x1.shape) == 1 and len(x2.shape) == 2):
        return matmul(g, matrix_transpose(x2))
    if len(_x1.shape) == len(x2.shape) == 1:
        return multiply(g, x2)
    if len(x2.shape) == 1:
        x2, g = expand_dims(x2, -1), expand_dims(g, -1)
    if len(_x1.shape) > 1:
        return matmul(g, matrix_transpose(x2))
    gradient = matmul(expand_dims(g, -2), matrix_transpose(x2))
    return reshape(gradient, gradient.shape[:-2] + _x1.shape)


def _right_gradient(g: T, _y: T, x1: T, _x2: T) -> T:
    if len(x1.shape) == len(_x2.shape) == 2:
        return matmul(matrix_transpose(x1), g)
    if len(x1.shape) == 1:
        if len(g.shape) == 1:
            return outer(x1, g)
        return multiply(x1, g) if len(_x2.shape) == 1 else multiply(expand_dims(x1, -1), expand_dims(g, -2))
    if len(_x2.shape) == 1:
        g = expand_dims(g, -1)
    if len(_x2.shape) == 2 and len(x1.shape) > 2:  # one product of all rows is faster than a batch that is then summed
        x1, g = (reshape(m, (math.prod(m.shape[:-1]), m.shape[-1])) for m in (x1, g))
    gradient = matmul(matrix_transpose(x1), g)
    return reshape(gradient, gradient.shape[:-2] + _x2.shape) if len(_x2.shape) == 1 else gradient


def _einsum_labels(subscripts: str, operands: tuple[T, ...]) -> tuple[list[str], str]:
    """Returns the labels of each operand and of the result, with letters in place of each ellipsis."""
    spaceless_subscripts = subscripts.replace(" ", "")
    operand_labels, arrow, result_labels = spaceless_subscripts.partition("->")
    labels_of_operands = operand_labels.split(",")
    free_letters = [c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" if c not in spaceless_subscripts]
    ellipsis_widths = [
        len(x.shape) - len(t.replace("...", "")) for t, x in zip(labels_of_operands, operands, strict=True)
    ]
    widest_ellipsis = max(
        (w for t, w in zip(labels_of_operands, ellipsis_widths, strict=True) if "..." in t), default=0
    )
    ellipsis_letters = "".join(free_letters[:widest_ellipsis])
    labels_of_operands = [
        t.replace("...", ellipsis_letters[widest_ellipsis - w :]) if "..." in t else t
        for t, w in zip(labels_of_operands, ellipsis_widths, strict=True)
    ]
    if arrow:
        return labels_of_operands, result_labels.replace("...", ellipsis_letters)
    all_letters = "".join(labels_of_operands)
    return labels_of_operands, ellipsis_letters + "".join(
        sorted(c for c in set(all_letters) - set(ellipsis_letters) if all_letters.count(c) == 1)
    )


def _einsum_gradients(g: T, y: T, subscripts: str, *operands: T) -> list[T | None]:
    labels_of_operands, result_labels = _einsum_labels(subscripts, operands)
    gradients: list[T | None] = [None]
    for i, (operand_labels, x) in enumerate(zip(labels_of_operands, operands, strict=True)):
        labelled_operands = [
            (t, o) for j, (t, o) in enumerate(zip(labels_of_operands, operands, strict=True)) if j != i
        ]
        needed_letters = set(result_labels).union(*(t for t, _ in labelled_operands))
        length_by_letter = dict(zip(operand_labels, x.shape, strict=True))
        # A label that only this operand has was summed away: the gradient is constant along it, so multiply by ones.
        summed_letters = "".join(c for c in length_by_letter if c not in needed_letters)
        if summed_letters:
            labelled_operands = [
                *labelled_operands,
                (summed_letters, ones([length_by_letter[c] for c in summed_letters], dtype=dtype_of(g))),
            ]
        distinct_labels = "".join(length_by_letter)
        gradient = einsum(
            ",".join([result_labels, *(t for t, _ in labelled_operands)]) + "->" + distinct_labels,
            g,
            *(o for _, o in labelled_operands),
        )
        gradients.append(
            gradient
            if distinct_labels == operand_labels
            else _diagonal_gradient(gradient, distinct_labels, operand_labels, length_by_letter)
        )
    return gradients


def _diagonal_gradient(gradient: T, distinct_labels: str, operand_labels: str, lengths: dict[str, int]) -> T:
    """Returns the gradient of an operand with repeated labels, as in "ii": zero except where their indices agree."""
    free_letters = iter(
        letter for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" if letter not in operand_labels
    )
    seen_letters: set[str] = set()
    labels_of_factors, result_labels = [distinct_labels], ""
    factor_tensors = [gradient]
    for letter in operand_labels:
        label = next(free_letters) if letter in seen_letters else letter
        if letter in seen_letters:
            labels_of_factors.append(letter + label)
            factor_tensors.append(eye(lengths[letter], dtype=dtype_of(gradient)))
        seen_letters.add(letter)
        result_labels += label
    return einsum(",".join(labels_of_factors) + "->" + result_labels, *factor_tensors)


RULES: dict[str, Any] = {"matmul": (_left_gradient, _right_gradient), "einsum": _einsum_gradients}
