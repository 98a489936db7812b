"""Rules of `ops/losses.py`.

The op is a composite, which needs no rule. It has one because training calls it in each step.
"""

from typing import Any

from emberharmony.ops.activation import softmax
from emberharmony.ops.comparison import greater_equal, less, less_equal, logical_and
from emberharmony.ops.dtype import dtype
from emberharmony.ops.indexing import one_hot, where
from emberharmony.ops.losses import EPSILON
from emberharmony.ops.math import divide, multiply, subtract
from emberharmony.ops.reduction import sum as sum_
from emberharmony.ops.shape import expand_dims
from emberharmony.ops.tensor import cast

T = Any


def _sparse(g: T, _y: T, target: T, output: T, from_logits: bool = False, axis: int = -1) -> T:
    count = output.shape[axis]
    known = logical_and(greater_equal(target, 0), less(target, count))
    labels = target if dtype(target).is_integer else cast(target, "int64")
    chosen = one_hot(labels, count, axis, dtype(output))
    if from_logits:
        lost = subtract(softmax(output, axis), chosen)
    else:
        # The loss is -log(p / s), with the sum s of the outputs; clipped shares have no gradient.
        total = sum_(output, axis, True)
        at = sum_(multiply(output, chosen), axis, True)
        share = divide(at, total)
        inside = logical_and(greater_equal(share, EPSILON), less_equal(share, 1.0 - EPSILON))
        safe = where(inside, at, 1.0)
        lost = where(inside, subtract(divide(1.0, total), divide(chosen, safe)), 0.0)
    return multiply(expand_dims(where(known, g, 0.0), axis), lost)


RULES: dict[str, Any] = {"sparse_categorical_crossentropy": (None, _sparse)}
