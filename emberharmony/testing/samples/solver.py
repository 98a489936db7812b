"""Sample rows of `ops/solver.py`; signs and phases are fixed by our convention, which the oracle applies too."""

from typing import Any

import numpy as np

from emberharmony.testing.sample import FLOATS, Sample, case

_RNG = np.random.default_rng(3)
_A = _RNG.standard_normal((4, 4)) + 3 * np.eye(4)
_BATCH = _RNG.standard_normal((2, 3, 3)) + 3 * np.eye(3)
_TALL = _RNG.standard_normal((5, 3))
_SPD = _A @ _A.T
_B = _RNG.standard_normal((4, 2))
_LOWER = np.tril(_A)
L: dict[str, Any] = {"dtypes": FLOATS, "tolerance": 400, "differentiable": True}
_X = _RNG.standard_normal((3, 4))


def _positive(columns: Any) -> Any:
    largest = np.take_along_axis(columns, np.abs(columns).argmax(-2)[..., None, :], -2)
    return np.conj(largest) / np.abs(largest)


def _svd(x: Any, full_matrices: bool = False) -> Any:
    u, s, vh = np.linalg.svd(x, full_matrices=False)
    phase = _positive(u)
    return u * phase, s, vh * np.conj(phase).swapaxes(-1, -2)


def _eigh(x: Any) -> Any:
    values, vectors = np.linalg.eigh(x)
    return values, vectors * _positive(vectors)


def _qr(x: Any, mode: str = "reduced") -> Any:
    q, r = np.linalg.qr(x)
    sign = np.sign(np.diagonal(r, 0, -2, -1))
    return q * sign[..., None, :], r * sign[..., :, None]


def _vector_norm(x: Any, axis: Any = None, keepdims: bool = False, ord: float = 2) -> Any:
    return np.linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=ord)


SAMPLES = [
    Sample("det", np.linalg.det, (case(_A), case(_BATCH)), floor=100, **L),
    Sample("slogdet", np.linalg.slogdet, (case(_A), case(-_BATCH)), **L),
    Sample("logdet", lambda x: np.linalg.slogdet(x)[1], (case(_SPD),), **L),
    Sample("inv", np.linalg.inv, (case(_A), case(_BATCH)), **L),
    Sample("solve", np.linalg.solve, (case(_A, _B), case(_A, _B[:, 0]), case(_BATCH, _BATCH)), **L),
    Sample(
        "solve_triangular",
        lambda a, b, lower=False: np.linalg.solve(np.tril(a) if lower else np.triu(a), b),
        (case(_A, _B), case(_A, _B, lower=True), case(_A, _B[:, 0])),
        **L,
    ),
    Sample(
        "cholesky",
        lambda x, upper=False: np.linalg.cholesky(x).T if upper else np.linalg.cholesky(x),
        (case(_SPD), case(_SPD, upper=True), case(np.eye(3))),
        **L,
    ),
    Sample("qr", _qr, (case(_A), case(_TALL), case(_BATCH)), **L),
    Sample("svd", _svd, (case(_A), case(_TALL), case(_TALL.T.copy()), case(_BATCH)), **L),
    Sample("svdvals", lambda x: np.linalg.svd(x, compute_uv=False), (case(_TALL), case(_BATCH)), **L),
    Sample("eigh", _eigh, (case(_SPD), case(np.diag([1.0, 2.0, 4.0]))), floor=30, **L),
    Sample("eigvalsh", np.linalg.eigvalsh, (case(_SPD),), floor=30, **L),
    Sample("eig", lambda x: None, (case(_A),), reference="tests", result="any"),
    Sample("eigvals", lambda x: None, (case(_A),), reference="tests", result="any"),
    Sample("pinv", np.linalg.pinv, (case(_TALL), case(_BATCH)), **L),
    Sample("matrix_rank", np.linalg.matrix_rank, (case(_TALL), case(np.ones((3, 3)))), result="int64"),
    Sample(
        "lstsq", lambda a, b: np.linalg.lstsq(a, b)[0], (case(_TALL, _TALL[:, :2] * 2), case(_TALL, _TALL[:, 0])), **L
    ),
    Sample("matrix_power", np.linalg.matrix_power, (case(_A, 3), case(_A, 0), case(_A, -2)), floor=200, **L),
    Sample(
        "vector_norm",
        _vector_norm,
        (
            case(_X),
            case(_X, 1),
            case(_X, 0, True, 1),
            case(_X, -1, False, np.inf),
            case(_X, -1, False, -np.inf),
            case(_X, 1, False, 3),
            case(_X * 1e30, 1),
            case(_X, 1, False, 0),
        ),
        tolerance=16,
        differentiable=True,
    ),
    Sample(
        "matrix_norm",
        lambda x, ord="fro", keepdims=False: np.linalg.matrix_norm(x, ord=ord, keepdims=keepdims),
        tuple(case(_BATCH, o) for o in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)),
        tolerance=100,
    ),
    Sample(
        "norm",
        lambda x, ord=None, axis=None, keepdims=False: np.linalg.norm(x, ord, axis, keepdims),
        (case(_X), case(_X, axis=1), case(_X, 1, 1), case(_X, "fro", (0, 1), True), case(_X, "nuc")),
        tolerance=32,
    ),
]
