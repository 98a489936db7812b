"""Beam search on the host: the most probable label sequences for the outputs of a CTC model."""

from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]
Labels = tuple[int, ...]


class _Beam(NamedTuple):
    """Label sequences, the most probable first, each with the logarithms of two probabilities.

    `closed` is for all alignments that end in a blank, `open` for those that end in the last label.
    """

    labels: list[Labels]
    closed: Array
    open: Array


def beam_search(logits: Array, lengths: Array, beam_width: int, top_paths: int, blank: int) -> tuple[Array, Array]:
    """Returns the most probable label sequences and their scores.

    Args:
        logits: (batch, steps, classes).
        lengths: the number of steps of each item of the batch, (batch,).
        beam_width: the number of sequences to keep after each step.
        top_paths: the number of sequences to return.
        blank: the class of the blank.

    Returns:
        The sequences (top_paths, batch, steps), padded with -1, and their scores (batch, top_paths). A score is the
        logarithm of the probability of all alignments of the sequence that were found, or -inf if there are fewer
        sequences than `top_paths`. Sequences with equal scores keep the order in which they were found.

    Source: Graves and Jaitly, Towards end-to-end speech recognition with recurrent neural networks, 2014, algorithm 1.
    """
    batch, steps, _ = logits.shape
    paths = np.full((top_paths, batch, steps), -1, np.int64)
    scores = np.full((batch, top_paths), -np.inf)
    for item_index, (item_logits, length) in enumerate(zip(logits, lengths, strict=True)):
        beam = _Beam([()], np.zeros(1), np.full(1, -np.inf))
        for row in item_logits[: max(int(length), 0)]:
            beam = _next_beam(beam, row - np.logaddexp.reduce(row), beam_width, blank)
        path_count = len(beam.labels[:top_paths])
        scores[item_index, :path_count] = np.logaddexp(beam.closed, beam.open)[:path_count]
        for beam_row, labels in enumerate(beam.labels[:path_count]):
            paths[beam_row, item_index, : len(labels)] = labels
    return paths, scores


def _next_beam(beam: _Beam, row: Array, width: int, blank: int) -> _Beam:
    """Returns the most probable label sequences after one more time step of a CTC model's outputs.

    Args:
        beam: the beam before the step.
        row: the logarithms of the probabilities of the classes.
        width: the number of sequences to keep.
        blank: the class of the blank.
    """
    beam_count, class_count = len(beam.labels), len(row)
    beam_scores = np.logaddexp(beam.closed, beam.open)
    last_labels = np.array([labels[-1] if labels else blank for labels in beam.labels])
    longer_scores = beam_scores[:, None] + row
    # A label that repeats the last one needs a blank between them.
    longer_scores[np.arange(beam_count), last_labels] = beam.closed + row[last_labels]
    longer_scores[:, blank] = -np.inf
    closed_scores, open_scores = (
        beam_scores + row[blank],
        np.where(last_labels == blank, -np.inf, beam.open + row[last_labels]),
    )
    index_by_labels = {labels: index for index, labels in enumerate(beam.labels)}
    for beam_index, labels in enumerate(beam.labels):
        shorter_index = index_by_labels.get(labels[:-1]) if labels else None
        if shorter_index is not None:
            open_scores[beam_index] = np.logaddexp(open_scores[beam_index], longer_scores[shorter_index, labels[-1]])
            longer_scores[shorter_index, labels[-1]] = -np.inf
    all_scores = (
        np.concatenate([closed_scores, np.full(longer_scores.size, -np.inf)]),
        np.concatenate([open_scores, longer_scores.ravel()]),
    )
    best_indices = _largest_indices(np.logaddexp(*all_scores), width)
    chosen_labels = []
    for beam_index in best_indices.tolist():
        start_index, label = divmod(beam_index - beam_count, class_count)
        chosen_labels.append(beam.labels[beam_index] if beam_index < beam_count else (*beam.labels[start_index], label))
    return _Beam(chosen_labels, all_scores[0][best_indices], all_scores[1][best_indices])


def _largest_indices(scores: Array, count: int) -> Array:
    """Returns the indices of the `count` largest values, in descending order; equal values keep their order.

    Values of -inf are left out.
    """
    if count < len(scores):
        # A comparison by `>=` would be False for NaN, and would leave NaN out.
        largest_indices = np.flatnonzero(~(scores < np.partition(scores, -count)[-count]))
    else:
        largest_indices = np.arange(len(scores))
    largest_indices = largest_indices[scores[largest_indices] != -np.inf]
    return largest_indices[np.argsort(-scores[largest_indices], kind="stable")][:count]
