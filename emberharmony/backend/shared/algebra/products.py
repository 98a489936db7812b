"""Checks of matrix products and of einsum expressions, the same on every backend."""

from collections.abc import Sequence
from functools import lru_cache
from math import prod

from emberharmony.core.axes import broadcast_shape
from emberharmony.core.errors import ArgumentError, ShapeError


def check_factors(first: Sequence[int], second: Sequence[int]) -> None:
    """Checks that tensors of these shapes have a matrix product.

    Raises:
        ShapeError: if they do not; the message names both shapes and the lengths that differ.
    """
    shapes_text = f"shapes {tuple(first)} and {tuple(second)}"
    if not first or not second:
        raise ShapeError(f"{shapes_text} have no matrix product, which needs an axis of each; use ops.multiply")
    axis_text = "last but one" if len(second) > 1 else "only"
    if first[-1] != second[-min(len(second), 2)]:
        hint = "; ops.matrix_transpose(x2) would fit" if len(second) > 1 and first[-1] == second[-1] else ""
        raise ShapeError(
            f"{shapes_text} have no matrix product: the last axis of the first has length {first[-1]}, the {axis_text} "
            f"axis of the second {second[-min(len(second), 2)]}{hint}"
        )
    try:
        broadcast_shape([first[:-2], second[:-2]])
    except ShapeError as error:
        raise ShapeError(f"{shapes_text} have no matrix product: for their batch axes, {error}") from error


@lru_cache(maxsize=1024)
def check_subscripts(subscripts: str, *shapes: Sequence[int]) -> int:
    """Checks an einsum expression against the shapes of its operands.

    Returns:
        The number of products that are summed for each element of the result.

    Raises:
        ArgumentError: if the expression is malformed, or names another number of operands.
        ShapeError: if a term does not name the axes of its operand, the lengths of an index differ, or the output
            leaves out the axes of an ellipsis.
    """
    compact_subscripts = subscripts.replace(" ", "")
    operand_subscripts, arrow, result_subscripts = compact_subscripts.partition("->")
    terms = operand_subscripts.split(",")
    if len(terms) != len(shapes):
        raise ArgumentError(f"{subscripts!r} names {len(terms)} operands, {len(shapes)} were given")
    letters = operand_subscripts.replace(",", "").replace("...", "")
    if not (letters.isalpha() or not letters) or not letters.isascii():
        raise ArgumentError(f"{subscripts!r} has characters that are not index letters (a to z, A to Z)")
    output_letters = result_subscripts.replace("...", "")
    if arrow and (len(set(output_letters)) != len(output_letters) or not set(output_letters) <= set(letters)):
        raise ArgumentError(f"the output of {subscripts!r} has an index that repeats or that no operand has")
    length_by_letter: dict[str, int] = {}
    for term, shape in zip(terms, shapes, strict=True):
        term_letters = term.replace("...", "")
        if len(term_letters) > len(shape) or (len(term_letters) < len(shape) and "..." not in term):
            raise ShapeError(f"{term!r} does not name the axes of a tensor of shape {tuple(shape)}")
        if "..." in term:
            if arrow and "..." not in result_subscripts and len(shape) > len(term_letters):
                # PyTorch would sum over the axes of an ellipsis that the output leaves out.
                raise ShapeError(f"the output of {subscripts!r} leaves out the axes '...', which cannot be summed")
            head_length = term.index("...")
            tail_length = len(term_letters) - head_length
            letters_and_lengths = [*zip(term_letters[:head_length], shape[:head_length], strict=True)]
            letters_and_lengths += zip(term_letters[head_length:], shape[len(shape) - tail_length :], strict=True)
        else:
            letters_and_lengths = [*zip(term_letters, shape, strict=True)]
        term_length_by_letter = dict(letters_and_lengths)
        for letter, length in letters_and_lengths:
            if term_length_by_letter[letter] != length:
                # Axes of length 1 broadcast between operands, but not within one.
                raise ShapeError(
                    f"index {letter!r} of {subscripts!r} has lengths {length} and {term_length_by_letter[letter]}"
                )
            first_length = length_by_letter.setdefault(letter, length)
            if first_length != length and 1 not in (first_length, length):
                raise ShapeError(f"index {letter!r} of {subscripts!r} has lengths {first_length} and {length}")
            length_by_letter[letter] = max(first_length, length)
    kept_letters = output_letters if arrow else [letter for letter in length_by_letter if letters.count(letter) == 1]
    return prod([length for letter, length in length_by_letter.items() if letter not in kept_letters])
