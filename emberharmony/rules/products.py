"""Rules of `ops/products.py`."""

import math
from typing import Any

from emberharmony.ops.creation import eye, ones
from emberharmony.ops.dtype import dtype as dtype_of
from emberharmony.ops.products import einsum, matmul
from emberharmony.ops.shape import expand_dims, matrix_transpose, reshape

T = Any


def _as_matrices(g: T, a: T, b: T) -> tuple[T, T, T]:
    """Returns `(g, a, b)` with vectors turned into matrices, and `g` in the shape of the product of these matrices."""
    if len(b.shape) == 1:
        b, g = expand_dims(b, -1), expand_dims(g, -1)
    if len(a.shape) == 1:
        a, g = expand_dims(a, 0), expand_dims(g, -2)
    return g, a, b


def _left(g: T, y: T, x1: T, x2: T) -> T:
    g, _, b = _as_matrices(g, x1, x2)
    gradient = matmul(g, matrix_transpose(b))
    return reshape(gradient, gradient.shape[:-2] + x1.shape) if len(x1.shape) == 1 else gradient


def _right(g: T, y: T, x1: T, x2: T) -> T:
    g, a, _ = _as_matrices(g, x1, x2)
    if len(x2.shape) == 2 and len(a.shape) > 2:  # one product of all rows is faster than a batch that is then summed
        a, g = (reshape(m, (math.prod(m.shape[:-1]), m.shape[-1])) for m in (a, g))
    gradient = matmul(matrix_transpose(a), g)
    return reshape(gradient, gradient.shape[:-2] + x2.shape) if len(x2.shape) == 1 else gradient


def _labels(subscripts: str, operands: tuple[T, ...]) -> tuple[list[str], str]:
    """Returns the labels of each operand and of the result, with letters in place of each ellipsis."""
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    free = [c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" if c not in text]
    widths = [len(x.shape) - len(t.replace("...", "")) for t, x in zip(terms, operands, strict=True)]
    wide = max((w for t, w in zip(terms, widths, strict=True) if "..." in t), default=0)
    spelled = "".join(free[:wide])
    terms = [t.replace("...", spelled[wide - w :]) if "..." in t else t for t, w in zip(terms, widths, strict=True)]
    if arrow:
        return terms, right.replace("...", spelled)
    joined = "".join(terms)
    return terms, spelled + "".join(sorted(c for c in set(joined) - set(spelled) if joined.count(c) == 1))


def _einsum(g: T, y: T, subscripts: str, *operands: T) -> list[T | None]:
    terms, result = _labels(subscripts, operands)
    gradients: list[T | None] = [None]
    for i, (term, x) in enumerate(zip(terms, operands, strict=True)):
        others = [(t, o) for j, (t, o) in enumerate(zip(terms, operands, strict=True)) if j != i]
        known = set(result).union(*(t for t, _ in others))
        lengths = dict(zip(term, x.shape, strict=True))
        # A label that only this operand has was summed away: the gradient is constant along it, so multiply by ones.
        alone = "".join(c for c in lengths if c not in known)
        if alone:
            others = [*others, (alone, ones([lengths[c] for c in alone], dtype=dtype_of(g)))]
        once = "".join(lengths)
        gradient = einsum(",".join([result, *(t for t, _ in others)]) + "->" + once, g, *(o for _, o in others))
        gradients.append(gradient if once == term else _on_diagonals(gradient, once, term, lengths))
    return gradients


def _on_diagonals(gradient: T, once: str, term: str, lengths: dict[str, int]) -> T:
    """Returns the gradient of an operand with repeated labels, as in "ii": zero except where their indices agree."""
    spare = iter(c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" if c not in term)
    seen: set[str] = set()
    factors, labels = [once], ""
    tensors = [gradient]
    for c in term:
        label = next(spare) if c in seen else c
        if c in seen:
            factors.append(c + label)
            tensors.append(eye(lengths[c], dtype=dtype_of(gradient)))
        seen.add(c)
        labels += label
    return einsum(",".join(factors) + "->" + labels, *tensors)


RULES: dict[str, Any] = {"matmul": (_left, _right), "einsum": _einsum}
