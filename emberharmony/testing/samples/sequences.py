"""Sample rows of `ops/sequences.py`: the oracle adds up all alignments one by one."""

import itertools
from typing import Any

import numpy as np
from scipy import special

from emberharmony.testing.sample import FLOATS, Sample, case, grid


def _ctc(target: Any, output: Any, target_length: Any, output_length: Any, mask_index: int = 0) -> Any:
    losses = []
    for labels, logits, n, steps in zip(target, output, target_length, output_length, strict=True):
        log = special.log_softmax(logits, -1)
        total = 0.0
        for path in itertools.product(range(logits.shape[-1]), repeat=int(steps)):
            merged = [label for label, _ in itertools.groupby(path) if label != mask_index]
            if merged == [int(label) for label in labels[: int(n)]]:
                total += np.exp(sum(log[t, label] for t, label in enumerate(path)))
        losses.append(-np.log(total))
    return np.array(losses)


_LOGITS = np.sin(grid(2, 40, 3 * 5 * 3)).reshape(3, 5, 3)

SAMPLES = [
    Sample(
        "ctc_loss",
        _ctc,
        (
            case(np.array([[1, 2], [1, 1], [2, 0]]), _LOGITS, np.array([2, 2, 1]), np.array([5, 4, 5])),
            case(np.array([[1, 0], [1, 1], [0, 1]]), _LOGITS, np.array([2, 2, 1]), np.array([5, 5, 3]), 2),
        ),
        dtypes=FLOATS,
        tolerance=16,
        differentiable=True,
    ),
]
