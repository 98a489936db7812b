"""Beam search over label sequences, on the host: which labels explain the steps of an output best."""

from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]
Labels = tuple[int, ...]


class _Beam(NamedTuple):
    """Holds label sequences, the likeliest first, with the logarithms of two probabilities each.

    `closed` is that of all alignments that end in a blank, `open` that of those that end in the last label.
    """

    labels: list[Labels]
    closed: Array
    open: Array


def beam_search(logits: Array, lengths: Array, beam_width: int, top_paths: int, blank: int) -> tuple[Array, Array]:
    """Returns the likeliest sequences, (top_paths, batch, steps) with -1 after their ends, and their scores.

    A score, of (batch, top_paths), is the logarithm of the probability of all alignments found of a sequence, or -inf
    where there are fewer sequences than asked for. Of equal ones the one met first comes first.

    Source: Graves and Jaitly, Towards end-to-end speech recognition with recurrent neural networks, 2014, algorithm 1.
    """
    batch, steps, _ = logits.shape
    paths = np.full((top_paths, batch, steps), -1, np.int64)
    scores = np.full((batch, top_paths), -np.inf)
    for item, (rows, length) in enumerate(zip(logits, lengths, strict=True)):
        beam = _Beam([()], np.zeros(1), np.full(1, -np.inf))
        for row in rows[: max(int(length), 0)]:
            beam = _advanced(beam, row - np.logaddexp.reduce(row), beam_width, blank)
        found = len(beam.labels[:top_paths])
        scores[item, :found] = np.logaddexp(beam.closed, beam.open)[:found]
        for place, labels in enumerate(beam.labels[:found]):
            paths[place, item, : len(labels)] = labels
    return paths, scores


def _advanced(beam: _Beam, row: Array, width: int, blank: int) -> _Beam:
    """Returns the beam after one more step, with these logarithms of the classes' probabilities."""
    count, classes = len(beam.labels), len(row)
    total = np.logaddexp(beam.closed, beam.open)
    last = np.array([labels[-1] if labels else blank for labels in beam.labels])
    longer = total[:, None] + row
    # A label that repeats the last one needs a blank between them.
    longer[np.arange(count), last] = beam.closed + row[last]
    longer[:, blank] = -np.inf
    closed, still = total + row[blank], np.where(last == blank, -np.inf, beam.open + row[last])
    places = {labels: place for place, labels in enumerate(beam.labels)}
    for place, labels in enumerate(beam.labels):
        shorter = places.get(labels[:-1]) if labels else None
        if shorter is not None:
            still[place] = np.logaddexp(still[place], longer[shorter, labels[-1]])
            longer[shorter, labels[-1]] = -np.inf
    both = np.concatenate([closed, np.full(longer.size, -np.inf)]), np.concatenate([still, longer.ravel()])
    best = _largest(np.logaddexp(*both), width)
    chosen = []
    for place in best.tolist():
        start, label = divmod(place - count, classes)
        chosen.append(beam.labels[place] if place < count else (*beam.labels[start], label))
    return _Beam(chosen, both[0][best], both[1][best])


def _largest(values: Array, count: int) -> Array:
    """Returns the places of the largest values, these first; of equal ones the first; none of -inf."""
    if count < len(values):
        places = np.flatnonzero(~(values < np.partition(values, -count)[-count]))
    else:
        places = np.arange(len(values))
    places = places[values[places] != -np.inf]
    return places[np.argsort(-values[places], kind="stable")][:count]
