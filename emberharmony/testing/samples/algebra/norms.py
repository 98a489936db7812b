"""Sample rows of `ops/algebra/norms.py`."""

from typing import Any

import numpy as np

from emberharmony.testing.gradient_row import GradientRow
from emberharmony.testing.left_out import NO_MAXIMUM
from emberharmony.testing.sample import COMPLEX, FLOATS, HALVES, Sample, case

_RNG = np.random.default_rng(5)
_X = _RNG.standard_normal((3, 4))
_BATCH = _RNG.standard_normal((2, 3, 3)) + 3 * np.eye(3)
_Y = _RNG.standard_normal((2, 4))
_INF = np.inf
N: dict[str, Any] = {
    "dtypes": FLOATS + HALVES + COMPLEX,
    "integers": ("int8", "int16", "int32", "uint8", "uint16"),
    "result": "float",
}


def _vector_norm_oracle(x: Any, axis: Any = None, keepdims: bool = False, ord: float = 2) -> Any:
    if x.size == 0 and ord > 0:
        return np.sum(np.abs(x), axis, keepdims=keepdims)
    return np.linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=ord)


def _normalize_oracle(x: Any, axis: Any = -1, order: float = 2, epsilon: float = 1e-7) -> Any:
    return x / np.maximum(np.linalg.vector_norm(x, axis=axis, keepdims=True, ord=order), epsilon)


SAMPLES = [
    Sample(
        "vector_norm",
        _vector_norm_oracle,
        (
            case(_X),
            case(_X, 1),
            case(_X, (0, 1), True),
            case(_X, 0, True, 1),
            case(_X, -1, False, _INF),
            case(_X, -1, False, -_INF),
            case(_X, 1, False, 3),
            case(_X, 1, False, 0),
            case(_X, 1, False, -2),
            case(_X, 1, False, 0.5),
            case(np.zeros(3)),
            case(np.array([_INF, 1.0])),
            case(np.array([np.nan, 1.0])),
            case(_X[:0]),
            case(_X[:0], 1),
            case(_X[:0], None, False, _INF),
            case(np.array(-2.0)),
        ),
        tolerance=6,
        differentiable=True,
        **(N | {"result": "float real"}),
        left_out={"results of empty axes": NO_MAXIMUM},
        gradient=GradientRow(skipped={10: "a norm is not differentiable at 0"}),
    ),
    Sample(
        "matrix_norm",
        lambda x, ord="fro", keepdims=False: np.linalg.matrix_norm(x, ord=ord, keepdims=keepdims),
        (*(case(_BATCH, o) for o in ("fro", "nuc", 1, -1, 2, -2, _INF, -_INF)), case(_X, 2, True), case(_X, 1, True)),
        tolerance=3,
        floor=8,
        **(N | {"dtypes": FLOATS + HALVES}),
        differentiable=True,
        left_out={
            "results of empty axes": NO_MAXIMUM,
            "large offsets": "the smallest singular value is a small difference of large numbers",
        },
    ),
    Sample(
        "norm",
        lambda x, ord=None, axis=None, keepdims=False: np.linalg.norm(x, ord, axis, keepdims),
        (
            case(_X),
            case(_X, axis=1),
            case(_X, 1, 1),
            case(_X, "fro", (0, 1), True),
            case(_X, "nuc"),
            case(_BATCH, 2, (0, 2)),
            case(_BATCH, 1, (2, 0), True),
            case(_BATCH),
            case(_X[0], 3),
        ),
        tolerance=6,
        differentiable=True,
        **(N | {"dtypes": FLOATS + HALVES}),
        left_out={"results of empty axes": NO_MAXIMUM},
    ),
    Sample(
        "normalize",
        _normalize_oracle,
        (case(_X), case(_X, 0), case(_X, None, 1), case(np.zeros((2, 2))), case(_X, (0, 1), 2, 10.0)),
        tolerance=3,
        differentiable=True,
        **(N | {"dtypes": FLOATS + HALVES}),
        gradient=GradientRow(skipped={3: "a norm equals its lower bound, where the derivative jumps"}),
    ),
    Sample(
        "cdist",
        lambda a, b, p=2.0: np.linalg.vector_norm(a[..., :, None, :] - b[..., None, :, :], axis=-1, ord=p),
        (case(_X, _Y), case(_X, _Y, 1.0), case(_X, _X, _INF), case(_BATCH, _BATCH[:1])),
        tolerance=3,
        floor=4,
        **(N | {"dtypes": FLOATS + HALVES}),
        differentiable=True,
        gradient=GradientRow(once=dict.fromkeys((2, 3), "two coordinates are equal, where the derivative jumps")),
    ),
]
