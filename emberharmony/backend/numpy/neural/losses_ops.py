"""Losses, on NumPy: the logarithm of the softmax at the labels alone."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from emberharmony.backend.numpy.dtypes import DTYPES
from emberharmony.core.axes import as_index
from emberharmony.core.deferred import Deferred

if TYPE_CHECKING:
    from emberharmony.backend.shared.neural import losses as shared_losses
else:
    shared_losses = Deferred("emberharmony.backend.shared.neural.losses")


def mean_cross_entropy_with_slope(
    input: np.ndarray,
    target: np.ndarray,
    weight: np.ndarray | None,
    reduction: str,
    ignore_index: int,
    label_smoothing: float,
    axis: int,
) -> tuple[np.ndarray, np.ndarray] | None:
    """Returns a mean of cross-entropies and its derivative by the logits; see `Backend.value_and_slope`."""
    option_classes = reduction.__class__, ignore_index.__class__, label_smoothing.__class__, axis.__class__
    if option_classes != (str, int, float, int) or weight is not None or reduction != "mean" or label_smoothing:
        return None
    if not (input.__class__ is target.__class__ is np.ndarray and input.size):
        return None
    if input.dtype.char not in "fd" or target.dtype.char not in "lq" or target.shape != input.shape[:-1]:
        return None
    class_count = input.shape[-1]
    if (
        axis not in (-1, target.ndim)
        or 0 <= ignore_index < class_count
        or np.maximum.reduce(target.view(np.uint64), None) >= class_count
    ):
        return None  # as unsigned integers, negative ids are too large
    rows = input.reshape(-1, class_count)
    rows = rows - np.maximum.reduce(rows, -1, keepdims=True)
    target_indices = np.arange(len(rows)), target.reshape(-1)
    target_scores = rows[target_indices]
    np.exp(rows, rows)
    exponential_sums = np.add.reduce(rows, -1, keepdims=True)
    rows /= exponential_sums
    rows[target_indices] -= 1.0
    rows *= np.divide(1.0, len(rows), dtype=rows.dtype)
    losses = np.log(exponential_sums, exponential_sums).reshape(-1)
    losses -= target_scores
    loss = np.add.reduce(losses, keepdims=True)
    loss /= len(rows)
    return loss.reshape(()), rows.reshape(input.shape)


class NumpyLossesOps:
    """Holds the ops of `ops/neural/losses.py`.

    The bodies take 2.3 to 3.9 times as long, for few elements; training calls these in each step.
    """

    composed: Callable[[str], Callable[..., np.ndarray]]

    def sparse_categorical_crossentropy(
        self, target: np.ndarray, output: np.ndarray, from_logits: bool = False, axis: int = -1
    ) -> np.ndarray:
        is_supported = output.dtype.char in "fd" and target.dtype.kind == "i" and target.shape == output.shape[:-1]
        if not (is_supported and from_logits and axis == -1 and output.size):
            return self.composed("sparse_categorical_crossentropy")(target, output, from_logits, axis)
        class_count = output.shape[-1]
        rows, labels = output.reshape(-1, class_count), target.reshape(-1)
        is_valid = (labels >= 0) & (labels < class_count)
        logits = rows - rows.max(-1, keepdims=True)
        target_scores = logits[np.arange(len(rows)), np.where(is_valid, labels, 0)]
        np.exp(logits, logits)
        losses = np.log(logits.sum(-1))
        losses -= target_scores
        return np.where(is_valid, losses, losses.dtype.type(0)).reshape(target.shape)

    def cross_entropy(
        self,
        input: np.ndarray,
        target: np.ndarray,
        weight: np.ndarray | None = None,
        reduction: str = "mean",
        ignore_index: int = -100,
        label_smoothing: float = 0.0,
        axis: int = -1,
    ) -> np.ndarray:
        if input.dtype.char not in "fd" or not (weight is None or weight.dtype == input.dtype) or not input.size:
            return self.composed("cross_entropy")(input, target, weight, reduction, ignore_index, label_smoothing, axis)
        class_axis = shared_losses.check_cross_entropy(
            lambda x: DTYPES.neutral[x.dtype], input, target, weight, reduction, label_smoothing, axis
        )
        class_count = input.shape[class_axis]
        is_kept = shared_losses.unignored_mask(target, class_count, as_index(ignore_index))
        labels = (target if is_kept is None else np.where(is_kept, target, 0)).reshape(-1)
        rows = (input if class_axis == input.ndim - 1 else np.moveaxis(input, class_axis, -1)).reshape(-1, class_count)
        logits = rows - rows.max(-1, keepdims=True)
        losses = logits[np.arange(len(rows)), labels]
        score_sums = None if not label_smoothing else np.add.reduce(logits, -1) if weight is None else logits @ weight
        np.exp(logits, logits)
        log_sums = np.log(np.add.reduce(logits, -1))
        losses = np.subtract(log_sums, losses, losses)
        label_weights = None if weight is None else weight[labels]
        if label_weights is not None:
            losses *= label_weights
        if score_sums is not None:
            # All terms of the smoothed loss are positive, so none cancels another.
            log_sums *= class_count if weight is None else np.add.reduce(weight)
            log_sums -= score_sums
            log_sums *= label_smoothing / class_count
            losses *= 1.0 - label_smoothing
            losses += log_sums
        if is_kept is not None:
            is_kept = is_kept.reshape(-1)
            losses[~is_kept] = 0.0
            zero = losses.dtype.type(0)
            label_weights = is_kept if label_weights is None else np.where(is_kept, label_weights, zero)
        if reduction == "none":
            return losses.reshape(target.shape)
        loss = np.add.reduce(losses, keepdims=True)
        if reduction == "mean":
            if label_weights is None:
                loss /= len(losses)
            else:
                with np.errstate(invalid="ignore"):  # no position counts
                    loss /= np.add.reduce(label_weights, dtype=losses.dtype)
        return loss.reshape(())
