"""Computations of metrics on the host, in float64 and in integers."""

from typing import Any

import numpy as np

from emberharmony.backend.host import plain_array
from emberharmony.core.errors import ArgumentTypeError, IndexOutOfBoundsError, ShapeError, brief

Array = np.ndarray[Any, Any]


def checked_numbers(name: str, value: Any) -> Array:
    """Returns host data as float64, integers or booleans.

    Raises:
        ArgumentTypeError: if it does not hold real numbers.
    """
    array = plain_array(value)
    if array.dtype.kind in "iub":
        return array
    if array.dtype.kind in "cOSUMmT":
        raise ArgumentTypeError(f"{name}: expected real numbers, got {brief(value)} of dtype {array.dtype}")
    return array.astype(np.float64)


def zeros(*shape: int) -> Array:
    """Returns an array of zeros in float64."""
    return np.zeros(shape)


def state_array(values: Any) -> Array:
    """Returns the numbers of a metric's saved state as an array of float64 or int64."""
    numbers = np.asarray(values)
    return numbers.astype(np.int64 if numbers.dtype.kind in "iu" else np.float64)


def concatenate(first: Array, second: Array) -> Array:
    """Returns two vectors, one after the other."""
    return np.concatenate([first, second])


def weighted_sums(values: Array, weights: Array) -> tuple[float, float]:
    """Returns the sum of numbers times their weights, and the sum of the weights.

    Raises:
        ShapeError: if the shapes do not broadcast.
    """
    try:
        values, weights = np.broadcast_arrays(values, weights)
    except ValueError as error:
        raise ShapeError(f"weight of shape {weights.shape} does not broadcast to values of {values.shape}") from error
    return float((values.astype(np.float64) * weights).sum()), float(weights.sum())


def require_shape(name: str, array: Array, expected_shape: tuple[int, ...], expected_name: str) -> None:
    """Checks that an array has an expected shape.

    Raises:
        ShapeError: if it is another.
    """
    if array.shape != expected_shape:
        raise ShapeError(f"{name} has shape {array.shape}, expected {expected_shape}, {expected_name}")


def predicted_classes(predictions: Array, target: Array, axis: int, threshold: float) -> Array:
    """Returns predicted classes: ids, those of the largest scores along an axis, or whether scores exceed a threshold.

    Raises:
        ShapeError: if the shapes do not fit.
    """
    if predictions.ndim == target.ndim + 1:
        scores = _move_classes_last(predictions, target, axis)
        return scores.argmax(-1)
    require_shape(
        "predictions",
        predictions,
        target.shape,
        "that of target, or one more axis for the classes; the order is (predictions, target)",
    )
    return (predictions > threshold).astype(np.int64) if predictions.dtype.kind == "f" else predictions


def checked_ids(name: str, values: Array, classes: int) -> Array:
    """Returns class ids as int64, checked to be whole numbers from 0 to the number of classes less 1.

    Raises:
        ArgumentTypeError: if they are not integers.
        IndexOutOfBoundsError: if one is not a class.
    """
    if values.dtype.kind == "b":
        return values.astype(np.int64)
    if values.dtype.kind == "f":
        integer_ids = values.astype(np.int64)
        if not np.array_equal(integer_ids, values):
            raise ArgumentTypeError(f"{name} holds class ids, so expected whole numbers, got {brief(values)}")
        values = integer_ids
    wrong_ids = values[(values < 0) | (values >= classes)]
    if wrong_ids.size:
        raise IndexOutOfBoundsError(f"{name}: class {wrong_ids.flat[0]} is out of range, expected 0 to {classes - 1}")
    return values


def confusion_matrix(predicted: Array, target: Array, classes: int) -> Array:
    """Returns how often each class (rows) was predicted as each class (columns)."""
    class_pairs = target.ravel().astype(np.int64) * classes + predicted.ravel().astype(np.int64)
    return np.bincount(class_pairs, minlength=classes**2).reshape(classes, classes)


def target_ranks(scores: Array, target: Array, axis: int) -> Array:
    """Returns, for each target class, how many classes rank before it by their scores, equal scores by their order."""
    scores = _move_classes_last(scores, target, axis)
    target_indices = checked_ids("target", target, scores.shape[-1])[..., None]
    target_score = np.take_along_axis(scores, target_indices, -1)
    is_earlier = np.arange(scores.shape[-1]) < target_indices
    ranks_higher = (scores > target_score) | ((scores == target_score) & is_earlier)
    return np.where(np.isnan(target_score[..., 0]), scores.shape[-1], ranks_higher.sum(-1))


def log_likelihood_sum(logits: Array, target: Array, axis: int, ignored: int) -> tuple[float, int]:
    """Returns the sum of the log-probabilities of the class ids that are not ignored, and the number of these ids."""
    logits = _move_classes_last(logits, target, axis)
    is_kept = target != ignored
    target_indices = checked_ids("target", np.where(is_kept, target, 0), logits.shape[-1])[..., None]
    shifted_logits = logits - logits.max(-1, keepdims=True, initial=-np.inf)
    target_log_probabilities = np.take_along_axis(shifted_logits, target_indices, -1)[..., 0] - np.log(
        np.exp(shifted_logits).sum(-1)
    )
    return float(target_log_probabilities[is_kept].sum()), int(is_kept.sum())


def area_under_curve(scores: Array, target: Array) -> float:
    """Returns the area under the curve of true over false positives: the share of pairs in the right order.

    A pair of equal scores counts as half. It is NaN if one of the classes is missing.
    """
    _, score_indices, tie_counts = np.unique(scores, return_inverse=True, return_counts=True)
    mean_ranks = np.cumsum(tie_counts) - (tie_counts - 1) / 2.0
    is_positive = target.astype(bool)
    positive_count, negative_count = int(is_positive.sum()), int((~is_positive).sum())
    if not positive_count or not negative_count or np.isnan(scores).any():
        return float("nan")
    return float(
        (mean_ranks[score_indices][is_positive].sum() - positive_count * (positive_count + 1) / 2.0)
        / positive_count
        / negative_count
    )


def ratio(top: Array, bottom: Array, otherwise: float) -> Array:
    """Returns quotients in float64; `otherwise` where the divisor is 0."""
    is_empty = bottom == 0
    return np.where(is_empty, otherwise, top / np.where(is_empty, 1, bottom))


def _move_classes_last(scores: Array, target: Array, axis: int) -> Array:
    """Returns scores in float64 with the axis of the classes at the end.

    Raises:
        ShapeError: if the other axes do not have the shape of the target.
    """
    if scores.ndim != target.ndim + 1 or not -scores.ndim <= axis < scores.ndim:
        raise ShapeError(
            f"predictions have shape {scores.shape}, expected that of target, {target.shape}, with one more axis "
            f"for the classes at {axis}"
        )
    scores_last = np.moveaxis(scores.astype(np.float64), axis, -1)
    require_shape("predictions", scores_last[..., 0], target.shape, "that of target, besides the axis of the classes")
    return scores_last
