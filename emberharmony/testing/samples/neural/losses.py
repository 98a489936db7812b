"""Sample rows of `ops/neural/losses.py`."""

from typing import Any

import numpy as np
from scipy import special

from emberharmony.testing.sample import FLOATS, HALVES, Sample, case, grid

D: dict[str, Any] = {"dtypes": FLOATS + HALVES, "result": "float", "differentiable": True}
_X = grid(-4, 4, 24).reshape(2, 3, 4)
_T, _P = grid(0, 1, 12).reshape(3, 4), grid(0.05, 0.95, 12).reshape(3, 4)


def _binary_crossentropy_oracle(t: Any, p: Any, from_logits: bool = False) -> Any:
    p = special.expit(p) if from_logits else p
    return -(t * np.log(p) + (1 - t) * np.log1p(-p))


def _categorical_crossentropy_oracle(t: Any, p: Any, from_logits: bool = False, axis: int = -1) -> Any:
    log_probabilities = special.log_softmax(p, axis) if from_logits else np.log(p / p.sum(axis, keepdims=True))
    return -(t * log_probabilities).sum(axis)


def _sparse_crossentropy_oracle(t: Any, p: Any, from_logits: bool = False, axis: int = -1) -> Any:
    one_hot = np.moveaxis(np.eye(p.shape[axis] + 1)[:, :-1][np.where(t < 0, -1, t).astype(int)], -1, axis)
    return np.where(t < 0, 0, _categorical_crossentropy_oracle(one_hot, p, from_logits, axis))


def _cross_entropy_oracle(
    x: Any, t: Any, w: Any = None, reduction: str = "mean", ignored: int = -100, smoothing: float = 0.0, axis: int = -1
) -> Any:
    x, t, count = np.moveaxis(x, axis, -1), t.astype(int), x.shape[axis]
    weight, is_counted = np.ones(count) if w is None else w, t != ignored
    one_hot = np.eye(count)[np.where(is_counted, t, 0)]
    losses = (
        -(((1 - smoothing) * one_hot + smoothing / count) * weight * special.log_softmax(x, -1)).sum(-1) * is_counted
    )
    if reduction == "none":
        return losses
    return (
        losses.sum() / (weight[np.where(is_counted, t, 0)] * is_counted).sum() if reduction == "mean" else losses.sum()
    )


_IDS, _HIDDEN = np.array([[0, 3, 1], [2, 2, 1]]), np.array([[0, 3, -100], [2, 2, 1]])
_W = grid(0.25, 2.0, 4)

SAMPLES = [
    Sample(
        "binary_crossentropy",
        _binary_crossentropy_oracle,
        (case(_T, _P), case(_T, _X[0], True)),
        floor=4,
        **D,
        tolerance=1,
        left_out={"large offsets": "the output is a probability"},
    ),
    Sample(
        "categorical_crossentropy",
        _categorical_crossentropy_oracle,
        (case(_T, _P), case(_T, _X[0], True), case(_T, _X[0] + 1e4, True)),
        floor=4,
        **D,
        tolerance=3,
    ),
    Sample(
        "sparse_categorical_crossentropy",
        _sparse_crossentropy_oracle,
        (
            case(np.array([0, 3, 1]), _P),
            case(np.array([0, 3, 1]), _X[0], True),
            case(np.array([0, 3, 1]), _X[0] + 1e4, True),
            case(np.array([[0, 3, -1], [2, 2, 1]]), _X, True),
            case(np.array([[0, -2, 1, 2], [2, 2, 1, 0]]), _X, True, 1),
            case(np.array([0, 2, 1, -1]), _P, False, 0),
        ),
        floor=4,
        **D,
        tolerance=1,
    ),
    Sample(
        "cross_entropy",
        _cross_entropy_oracle,
        (
            case(_X, _IDS),
            case(_X[0], _IDS[0], None, "none"),
            case(_X + 1e4, _HIDDEN, None, "sum"),
            case(_X, _HIDDEN),
            case(_X, _HIDDEN, _W),
            case(_X, _IDS, _W, "mean", 2, 0.25),
            case(_X, _HIDDEN, None, "none", -100, 0.5),
            case(_X, np.array([[0, 2, 1, 1], [2, 0, 0, 1]]), None, "mean", 1, 0.1, 1),
            case(_X[0, 0], np.array(3), None, "sum", -100, 0.0, 0),
        ),
        floor=4,
        **D,
        tolerance=1,
    ),
    Sample(
        "psnr",
        lambda a, b, top: 20 * np.log10(top) - 10 * np.log10(((a - b) ** 2).mean()),
        (case(_X, _X[::-1].copy(), 4.0),),
        floor=12,
        **D,
        tolerance=3,
    ),
]
