"""Sample rows of `ops/neural/activation.py`."""

from typing import Any

import numpy as np
from scipy import special

from emberharmony.core.errors import ShapeError
from emberharmony.testing.refused import ONES_3_3
from emberharmony.testing.sample import COMPLEX, FLOATS, HALVES, Sample, case, grid, unary

D: dict[str, Any] = {"dtypes": FLOATS + HALVES, "result": "float", "differentiable": True}
A: dict[str, Any] = D | {"integers": ("int32", "uint8")}
C: dict[str, Any] = A | {"dtypes": FLOATS + HALVES + COMPLEX}
P: dict[str, Any] = A | {"result": "promoted"}
_X = grid(-4, 4, 24).reshape(2, 3, 4)


def _elu(x: Any, alpha: float = 1.0) -> Any:
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def _sparsemax_oracle(x: Any, axis: int = -1) -> Any:
    """Returns sparsemax: the positive parts of x minus a threshold, found by bisection, for which they add up to 1."""
    low, high = x.max(axis, keepdims=True) - 1, x.max(axis, keepdims=True)
    for _ in range(80):
        middle = (low + high) / 2
        is_too_low = np.maximum(x - middle, 0).sum(axis, keepdims=True) > 1
        low, high = np.where(is_too_low, middle, low), np.where(is_too_low, high, middle)
    return np.maximum(x - (low + high) / 2, 0)


_NORMAL = special.ndtr

SAMPLES = [
    unary("relu", lambda x: np.maximum(x, 0), **P),
    unary("relu6", lambda x: np.clip(x, 0, 6), **P),
    unary("leaky_relu", lambda x: np.where(x > 0, x, 0.2 * x), **A, tolerance=2),
    unary("elu", _elu, **A, tolerance=1),
    unary("selu", lambda x: 1.0507009873554805 * _elu(x, 1.6732632423543772), **A, tolerance=3),
    unary("celu", _elu, **A, tolerance=1),
    unary("sigmoid", special.expit, **A, tolerance=2),
    unary("log_sigmoid", special.log_expit, **A, tolerance=2),
    unary("softplus", lambda x: np.logaddexp(x, 0), **A, tolerance=2),
    unary("softsign", lambda x: x / (1 + np.abs(x)), **C, tolerance=2),
    unary("silu", lambda x: x * special.expit(x), **A, tolerance=3),
    Sample(
        "gelu",
        lambda x, approximate=True: (
            0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))) if approximate else x * _NORMAL(x)
        ),
        (case(_X), case(_X, False)),
        floor=2,
        **A,
        tolerance=4,
        left_out={"complex refusals": "only `erf` refuses complex numbers, so `approximate=False` does"},
    ),
    unary("hard_sigmoid", lambda x: np.clip(x / 6 + 0.5, 0, 1), **A, tolerance=1),
    unary("hard_silu", lambda x: x * np.clip(x / 6 + 0.5, 0, 1), **A, tolerance=3),
    unary("hard_tanh", lambda x: np.clip(x, -1, 1), **P | {"integers": ("int32",)}),
    unary("hard_shrink", lambda x: np.where(np.abs(x) <= 0.5, 0, x), **C | {"result": "promoted"}),
    unary(
        "soft_shrink",
        lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0),
        floor=10,
        **A,
        left_out={"extremes": "the row demands exact results, but the sum of a huge number and 0.5 is rounded"},
    ),
    unary("tanh_shrink", lambda x: x - np.tanh(x), **C, tolerance=2),
    Sample("threshold", lambda x, t, d: np.where(x <= t, d, x), (case(_X, 1.0, -2.0),), **P | {"integers": ()}),
    unary(
        "squareplus",
        lambda x: (x + np.sqrt(x**2 + 4)) / 2,
        floor=10,
        **C,
        tolerance=2,
        left_out={
            "extremes": "the result for a negative number is a small difference, for which the row has its floor"
        },
    ),
    Sample(
        "glu",
        lambda x, axis=-1: np.split(x, 2, axis)[0] * special.expit(np.split(x, 2, axis)[1]),
        (case(_X), case(_X, 0)),
        **A,
        tolerance=3,
        refuses=((ShapeError, case(ONES_3_3)),),
    ),
    Sample(
        "softmax",
        special.softmax,
        (case(_X, axis=-1), case(_X * 50, axis=1), case(_X, axis=(0, 2)), case(_X + 1e4, axis=-1)),
        **A,
        tolerance=3,
    ),
    Sample(
        "log_softmax",
        special.log_softmax,
        (case(_X, axis=-1), case(_X * 50, axis=1), case(_X, axis=(0, 2)), case(_X + 1e4, axis=-1)),
        floor=50,
        **A,
        tolerance=2,
    ),
    unary("sparse_plus", lambda x: np.where(x <= -1, 0, np.where(x >= 1, x, (x + 1) ** 2 / 4)), **A, tolerance=2),
    unary("sparse_sigmoid", lambda x: np.clip((x + 1) / 2, 0, 1), **A, tolerance=1),
    Sample(
        "sparsemax",
        _sparsemax_oracle,
        (case(_X, axis=-1), case(_X * 5, axis=1), case(_X + 100, axis=0)),
        tolerance=16,
        floor=8,
        **A,
    ),
]
