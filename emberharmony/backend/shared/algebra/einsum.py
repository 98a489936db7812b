"""The body of `einsum`, over matrix products, with the ops of the active backend."""

import math
from typing import Any

from emberharmony.backend.shared.algebra.products import check_subscripts
from emberharmony.backend.shared.bodies import cast_to_common
from emberharmony.core import op_globals

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def _index_letters(subscripts: str, ndims: list[int]) -> tuple[list[str], str]:
    """Returns the index letters of each operand and of the result, with letters in the place of an ellipsis."""
    operand_subscripts, arrow, result_subscripts = subscripts.replace(" ", "").partition("->")
    free_letters = [letter for letter in _LETTERS if letter not in subscripts]
    terms, most_letters = [], 0
    for term, ndim in zip(operand_subscripts.split(","), ndims, strict=True):
        hidden_count = ndim - len(term.replace("...", "")) if "..." in term else 0
        most_letters = max(most_letters, hidden_count)
        terms.append(term.replace("...", "".join(free_letters[:hidden_count][::-1])))
    ellipsis_letters = "".join(free_letters[:most_letters][::-1])
    if arrow:
        return terms, result_subscripts.replace("...", ellipsis_letters)
    letters = "".join(operand_subscripts.replace("...", "").split(","))
    return terms, ellipsis_letters + "".join(sorted(letter for letter in set(letters) if letters.count(letter) == 1))


class _Factor:
    """An operand, or product of operands, of `einsum`: a tensor with an index letter for each axis."""

    def __init__(self, tensor: Any, letters: str) -> None:
        self.tensor, self.letters = tensor, letters


def _take_diagonals(ops: Any, factor: _Factor) -> _Factor:
    """Returns a factor in which axes with the same letter are replaced by their diagonal."""
    tensor, letters = factor.tensor, factor.letters
    for letter in letters:
        while letters.count(letter) > 1:
            first_axis = letters.index(letter)
            second_axis = letters.index(letter, first_axis + 1)
            tensor = ops.diagonal(tensor, 0, first_axis, second_axis)
            letters = letters[:first_axis] + letters[first_axis + 1 : second_axis] + letters[second_axis + 1 :] + letter
    return _Factor(tensor, letters)


def _squeeze_broadcast_axes(ops: Any, factor: _Factor, lengths: dict[str, int]) -> _Factor:
    """Returns a factor without the axes of length 1 that broadcast against longer axes of other factors."""
    shape = tuple(factor.tensor.shape)
    kept_axes = [i for i, letter in enumerate(factor.letters) if shape[i] == lengths[letter]]
    if len(kept_axes) == len(shape):
        return factor
    tensor = ops.reshape(factor.tensor, tuple(shape[i] for i in kept_axes))
    return _Factor(tensor, "".join(factor.letters[i] for i in kept_axes))


def _sum_unneeded(ops: Any, factor: _Factor, needed_letters: set[str]) -> _Factor:
    """Returns a factor summed over the axes whose letters neither another factor nor the result has."""
    axes = tuple(i for i, letter in enumerate(factor.letters) if letter not in needed_letters)
    if not axes:
        return factor
    dtype = factor.tensor.dtype
    tensor = ops.sum(factor.tensor, axes, False, dtype)
    return _Factor(tensor, "".join(letter for letter in factor.letters if letter in needed_letters))


def _product_of_factors(ops: Any, a: _Factor, b: _Factor, needed_letters: set[str], lengths: dict[str, int]) -> _Factor:
    """Returns the product of two factors, summed over the letters that neither another factor nor the result has."""
    a, b = (
        _sum_unneeded(ops, a, needed_letters | set(b.letters)),
        _sum_unneeded(ops, b, needed_letters | set(a.letters)),
    )
    shared_letters = [letter for letter in a.letters if letter in b.letters]
    batch_letters, summed_letters = (
        [x for x in shared_letters if x in needed_letters],
        [x for x in shared_letters if x not in needed_letters],
    )
    row_letters = [letter for letter in a.letters if letter not in shared_letters]
    last_letters_of_b = [letter for letter in b.letters if letter not in shared_letters]

    def matrices(factor: _Factor, second_letters: list[str], last_letters: list[str]) -> Any:
        axis_order = tuple(factor.letters.index(letter) for letter in (*batch_letters, *second_letters, *last_letters))
        matrix_shape = (
            *(lengths[letter] for letter in batch_letters),
            math.prod(lengths[letter] for letter in second_letters),
            math.prod(lengths[letter] for letter in last_letters),
        )
        return ops.reshape(ops.transpose(factor.tensor, axis_order), matrix_shape)

    letters = "".join((*batch_letters, *row_letters, *last_letters_of_b))
    left_matrix, right_matrix = matrices(a, row_letters, summed_letters), matrices(b, summed_letters, last_letters_of_b)
    product = ops.matmul(left_matrix, right_matrix) if summed_letters else ops.multiply(left_matrix, right_matrix)
    return _Factor(ops.reshape(product, tuple(lengths[letter] for letter in letters)), letters)


def einsum(subscripts: str, *operands: Any) -> Any:
    """Returns the result of an einsum expression, which multiplies two operands at a time as matrices."""
    check_subscripts(subscripts, *(tuple(x.shape) for x in operands))
    ops = op_globals.active()
    tensors = cast_to_common(*operands)
    dtype = ops.backend.dtype_of(tensors[0])
    is_boolean = dtype.kind == "bool"
    if is_boolean or (dtype.is_floating and dtype.bits == 16):
        tensors = [ops.cast(x, "int32" if is_boolean else "float32") for x in tensors]
    terms, output_letters = _index_letters(subscripts, [len(x.shape) for x in tensors])
    factors = [_take_diagonals(ops, _Factor(x, term)) for x, term in zip(tensors, terms, strict=True)]
    length_by_letter: dict[str, int] = {}
    for factor in factors:
        for letter, length in zip(factor.letters, factor.tensor.shape, strict=True):
            length_by_letter[letter] = length if length_by_letter.get(letter, 1) == 1 else length_by_letter[letter]
    factors = [_squeeze_broadcast_axes(ops, factor, length_by_letter) for factor in factors]
    product = factors[0]
    for i, factor in enumerate(factors[1:], 2):
        needed_letters = set(output_letters).union(*(later_factor.letters for later_factor in factors[i:]))
        product = _product_of_factors(ops, product, factor, needed_letters, length_by_letter)
    product = _sum_unneeded(ops, product, set(output_letters))
    transposed_product = ops.transpose(
        product.tensor, tuple(product.letters.index(letter) for letter in output_letters)
    )
    return ops.not_equal(transposed_product, 0) if is_boolean else ops.cast(transposed_product, dtype)
