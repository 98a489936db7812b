"""The loss of sequences: it is a probability's, and what cannot be aligned costs much."""

import numpy as np

from emberharmony import ops

LOGITS = np.sin(np.arange(12.0)).reshape(1, 4, 3)


def test_all_targets_together_are_certain(backend: str) -> None:
    targets = [[], [1], [2], [1, 1], [1, 2], [2, 1], [2, 2]]
    targets += [[a, b, c] for a in (1, 2) for b in (1, 2) for c in (1, 2)]
    targets += [[a, b, a, b] for a, b in ((1, 2), (2, 1))]
    total = 0.0
    for target in targets:
        padded = np.array([target + [0] * (4 - len(target))])
        loss = ops.ctc_loss(padded, LOGITS, np.array([len(target)]), np.array([4]))
        total += float(np.exp(-ops.to_numpy(loss)[0]))
    assert np.isclose(total, 1.0, atol=1e-5)


def test_a_target_that_is_too_long_costs_much(backend: str) -> None:
    loss = ops.to_numpy(ops.ctc_loss(np.array([[1, 1, 1]]), LOGITS, np.array([3]), np.array([4])))
    assert loss[0] > 1e6
