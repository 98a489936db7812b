"""Losses of sequences whose alignment is not known."""

from __future__ import annotations

from emberharmony.core.dispatch import op
from emberharmony.core.types import Tensor, TensorLike
from emberharmony.ops.activation import log_softmax
from emberharmony.ops.comparison import greater, less, logical_and, not_equal
from emberharmony.ops.creation import arange, full_like
from emberharmony.ops.indexing import get_item, take_along_axis, where
from emberharmony.ops.math import add, maximum, multiply, negative, subtract
from emberharmony.ops.reduction import logsumexp
from emberharmony.ops.shape import broadcast_to, concatenate, expand_dims, pad, reshape, stack

_NEVER = -1e30
"""Stands for the logarithm of 0: its gradients stay finite."""


@op
def ctc_loss(
    target: TensorLike,
    output: TensorLike,
    target_length: TensorLike,
    output_length: TensorLike,
    mask_index: int = 0,
) -> Tensor:
    """Returns `-log p` of each target, summed over all alignments of its labels with the steps of the output.

    Args:
        output: logits.
        mask_index: the class that stands for no label.

    Shape: target (batch, labels), output (batch, steps, classes), lengths (batch,) to (batch,).

    Source: Graves et al., Connectionist temporal classification, 2006, section 4.1.
    """
    batch, labels = target.shape
    blanks = full_like(target, mask_index)
    # A blank before, between and after the labels.
    mixed = reshape(stack([blanks, target], -1), (batch, 2 * labels))
    extended = concatenate([mixed, get_item(blanks, (slice(None), slice(0, 1)))], 1)
    states = 2 * labels + 1
    steps = output.shape[1]
    where_at = broadcast_to(expand_dims(extended, 1), (batch, steps, states))
    emitted = take_along_axis(log_softmax(output, -1), where_at, -1)
    later, earlier = (get_item(extended, (slice(None), part)) for part in (slice(2, None), slice(0, -2)))
    skips = logical_and(not_equal(later, mask_index), not_equal(later, earlier))
    skips = pad(skips, [(0, 0), (2, 0)])
    scores = where(less(arange(states), 2), get_item(emitted, (slice(None), 0)), _NEVER)
    for step in range(1, steps):
        ways = [scores, _delayed(scores, 1), where(skips, _delayed(scores, 2), _NEVER)]
        new = add(logsumexp(stack(ways, -1), -1), get_item(emitted, (slice(None), step)))
        scores = where(expand_dims(greater(output_length, step), -1), new, scores)
    end = expand_dims(multiply(target_length, 2), -1)
    final = take_along_axis(scores, end, -1)
    before = take_along_axis(scores, maximum(subtract(end, 1), 0), -1)
    both = concatenate([final, where(greater(end, 0), before, _NEVER)], -1)
    return negative(logsumexp(both, -1))


def _delayed(scores: Tensor, by: int) -> Tensor:
    """Returns the scores moved to later states; nothing comes into the first ones."""
    kept = get_item(scores, (slice(None), slice(0, scores.shape[1] - by)))
    return pad(kept, [(0, 0), (by, 0)], constant_values=_NEVER)
