"""Sample rows of `ops/solver.py`.

Signs and phases of vectors are not unique; the ops choose them by a convention, which the oracles apply too.
"""

from typing import Any

import numpy as np

from emberharmony.core.errors import LinAlgError, ShapeError
from emberharmony.testing.gradient_row import MATRICES, RANK, TALL, GradientRow, hermitian_row
from emberharmony.testing.refused import ONES_3_3, ONES_3_4, ONES_4, SADDLE
from emberharmony.testing.sample import COMPLEX, FLOATS, Sample, case

_RNG = np.random.default_rng(3)
_A = _RNG.standard_normal((4, 4)) + 3 * np.eye(4)
_BATCH = _RNG.standard_normal((2, 3, 3)) + 3 * np.eye(3)
_TALL = _RNG.standard_normal((5, 3))
_SPD = _A @ _A.T
_B = _RNG.standard_normal((4, 2))
_LOW = np.ones((4, 1)) * [[1.0, 2.0, 3.0]] + np.outer(np.arange(4.0), [1.0, 0.0, -1.0])  # rank 2
_NONE, _NO_BATCH = np.ones((0, 0)), np.ones((0, 3, 3))
_Z = _A + 1j * _RNG.standard_normal((4, 4))
_HERMITIAN = _Z @ np.conj(_Z.T)
_TALL_Z = _TALL + 1j * _TALL[::-1]
_HALVES = (*FLOATS, "float16")  # not bfloat16: its eps is so large that every result would pass
F: dict[str, Any] = {"dtypes": _HALVES, "differentiable": True, "result": "float", "fixed": True}
ANY: dict[str, Any] = {"result": "any", "reference": "tests"}


def _phase_factors(columns: Any) -> Any:
    """Returns factors that make the first of the (almost) largest components of each column positive."""
    phase_factors = []
    for column in columns.T:
        first_large_component = next(c for c in column if abs(c) >= 0.999 * max(abs(column)))
        phase_factors.append(np.conj(first_large_component) / abs(first_large_component))
    return np.array(phase_factors, columns.dtype)


def _loop_over_batch(function: Any) -> Any:
    """Returns an oracle that loops over the leading axes of its first argument."""

    def map_over_batch(x: Any, *args: Any, **kwargs: Any) -> Any:
        if x.ndim == 2:
            return function(x, *args, **kwargs)
        if not len(x):
            sample_result = map_over_batch(np.ones(x.shape[1:], x.dtype), *args, **kwargs)
            return tuple(np.stack([sample_array])[:0] for sample_array in sample_result)
        results_of_batch = [map_over_batch(matrix, *args, **kwargs) for matrix in x]
        return tuple(np.stack(part) for part in zip(*results_of_batch, strict=True))

    return map_over_batch


@_loop_over_batch
def _svd_oracle(x: Any, full_matrices: bool = True) -> Any:
    u, s, vh = np.linalg.svd(x, full_matrices)
    singular_count = len(s)
    phase_factors = _phase_factors(u[:, :singular_count])
    u[:, :singular_count] *= phase_factors
    vh[:singular_count] *= np.conj(phase_factors)[:, None]
    return u, s, vh


@_loop_over_batch
def _eigh_oracle(x: Any) -> Any:
    values, vectors = np.linalg.eigh(x)
    return values, vectors * _phase_factors(vectors)


@_loop_over_batch
def _qr_oracle(x: Any, mode: str = "reduced", positive: bool = True) -> Any:
    q, r = np.linalg.qr(x, mode)
    if not positive:
        return q, r
    column_signs = np.ones(q.shape[1], q.dtype)
    diagonal = np.diagonal(r)
    column_signs[: len(diagonal)] = diagonal / abs(diagonal)
    return q * column_signs, r * np.conj(column_signs)[: len(r), None]


def _rank_oracle(x: Any, tol: Any = None, rtol: Any = None) -> Any:
    singular_values = np.linalg.svd(x, compute_uv=False)
    if tol is not None:
        return np.count_nonzero(singular_values > np.asarray(tol)[..., None], -1)
    tolerance = 1e-6 if rtol is None else np.asarray(rtol)[..., None]
    return np.count_nonzero(singular_values > tolerance * singular_values.max(-1, keepdims=True, initial=0.0), -1)


SAMPLES = [
    Sample(
        "det",
        np.linalg.det,
        (case(_A), case(_BATCH), case(_Z), case(_NONE), case(_NO_BATCH), case(np.ones((2, 2)))),
        floor=100,
        integers=("int32", "uint8"),
        **(F | {"dtypes": (*_HALVES, *COMPLEX)}),
        tolerance=4,
        gradient=GradientRow(once={5: "the second derivative divides by the determinant, which is 0"}),
        refuses=((ShapeError, case(ONES_3_4)),),
    ),
    Sample(
        "slogdet",
        np.linalg.slogdet,
        (case(_A), case(-_BATCH), case(_NONE), case(np.zeros((2, 2))), case(_NO_BATCH)),
        **F,
        tolerance=2,
        gradient=GradientRow(skipped={3: "the logarithm of the determinant of a singular matrix is infinite"}),
    ),
    Sample(
        "logdet",
        lambda x: np.linalg.slogdet(x)[1],
        (case(_SPD), case(_NONE)),
        **F,
        tolerance=1,
        gradient=hermitian_row("logdet"),
    ),
    Sample(
        "inv",
        np.linalg.inv,
        (case(_A), case(_BATCH), case(_Z), case(_NONE), case(_NO_BATCH)),
        **(F | {"dtypes": (*_HALVES, *COMPLEX)}),
        tolerance=1,
        refuses=((LinAlgError, case(ONES_3_3)), (ShapeError, case(ONES_3_4))),
    ),
    Sample(
        "solve",
        np.linalg.solve,
        (
            case(_A, _B),
            case(_A, _B[:, 0]),
            case(_BATCH, _BATCH),
            case(_BATCH, _TALL[:3]),
            case(_BATCH, _TALL[0]),
            case(_BATCH[0], _BATCH),
            case(np.stack([_A[:2, :2], _SPD[:2, :2]]), _B[:2]),
            case(_Z, _B),
            case(_NONE, _NONE),
        ),
        **(F | {"dtypes": (*_HALVES, *COMPLEX)}),
        tolerance=3,
        refuses=((LinAlgError, case(ONES_3_3, np.ones(3))),),
    ),
    Sample(
        "solve_triangular",
        lambda a, b, lower=False: np.linalg.solve(np.tril(a) if lower else np.triu(a), b),
        (
            case(_A, _B),
            case(_A, _B, lower=True),
            case(_A, _B[:, 0]),
            case(_BATCH, _TALL[:3]),
            case(_BATCH, _TALL[0]),
            case(_Z, _B),
            case(_NONE, _NONE),
        ),
        **(F | {"dtypes": (*_HALVES, *COMPLEX)}),
        tolerance=3,
        refuses=((LinAlgError, case(np.zeros((2, 2)), np.ones(2))),),
    ),
    Sample(
        "cholesky",
        lambda x, upper=False: np.conj(np.linalg.cholesky(x).T) if upper else np.linalg.cholesky(x),
        (case(_SPD), case(_SPD, upper=True), case(np.eye(3)), case(_HERMITIAN), case(_HERMITIAN, True), case(_NONE)),
        **(F | {"dtypes": (*_HALVES, *COMPLEX)}),
        tolerance=6,
        gradient=hermitian_row("cholesky"),
        refuses=((LinAlgError, case(SADDLE)), (ShapeError, case(ONES_3_4))),
    ),
    Sample(
        "cholesky_inverse",
        lambda x, upper=False: np.linalg.inv(
            np.conj(np.triu(x).T) @ np.triu(x) if upper else np.tril(x) @ np.conj(np.tril(x).T)
        ),
        (case(_A), case(_A, True), case(_BATCH[0]), case(_Z)),
        **(F | {"dtypes": (*_HALVES, *COMPLEX)}),
        tolerance=2,
    ),
    Sample(
        "lu_factor",
        lambda x: None,
        (case(_A),),
        **ANY,
        differentiable=True,
        gradient=GradientRow(cases=(*map(case, MATRICES), case(TALL), case(TALL.T.copy()))),
    ),
    Sample(
        "qr",
        _qr_oracle,
        (
            *map(case, (_A, _TALL, _TALL.T, _BATCH, _TALL_Z, _TALL[:, :0])),
            case(_A, "complete"),
            case(_TALL, "reduced", False),
            case(_TALL_Z, positive=False),
        ),
        **(F | {"dtypes": (*_HALVES, *COMPLEX)}),
        tolerance=16,
        refuses=((ShapeError, case(ONES_4)),),
    ),
    Sample(
        "svd",
        _svd_oracle,
        (
            case(_A),
            case(_TALL, False),
            case(_TALL.T, False),
            case(_BATCH),
            case(_Z),
            case(_TALL_Z, False),
            case(_NONE),
            case(np.array([[1.0, 1.0], [1.0, -1.0]]) @ np.diag([2.0, 1.0])),
        ),
        **(F | {"dtypes": (*_HALVES, *COMPLEX), "result": ("float", "float real", "float")}),
        tolerance=12,
        gradient=GradientRow(skipped={5: "the largest component, which determines the phase, is not unique"}),
        refuses=((ShapeError, case(ONES_4)),),
    ),
    Sample(
        "svdvals",
        lambda x: np.linalg.svd(x, compute_uv=False),
        (case(_TALL), case(_TALL.T), case(_BATCH), case(_Z), case(_NONE)),
        **(F | {"dtypes": (*_HALVES, *COMPLEX), "result": "real"}),
        tolerance=8,
    ),
    Sample(
        "eigh",
        _eigh_oracle,
        (case(_SPD), case(np.diag([1.0, 2.0, 4.0])), case(_HERMITIAN), case(np.array([[2.0, 1.0], [1.0, 2.0]]))),
        floor=30,
        **(F | {"dtypes": (*_HALVES, *COMPLEX), "result": ("float real", "float")}),
        tolerance=8,
        gradient=hermitian_row(
            "eigh", unmixed={"torch": "an internal error for complex eigenvalues and -vectors together"}
        ),
        refuses=((ShapeError, case(ONES_3_4)),),
    ),
    Sample(
        "eigvalsh",
        np.linalg.eigvalsh,
        (case(_SPD), case(_HERMITIAN), case(_NONE)),
        floor=30,
        **(F | {"dtypes": (*_HALVES, *COMPLEX), "result": "real"}),
        tolerance=4,
        gradient=hermitian_row("eigvalsh"),
    ),
    Sample(
        "eig",
        lambda x: None,
        (case(_A),),
        **ANY,
        differentiable=True,
        gradient=GradientRow(cases=tuple(map(case, MATRICES))),
    ),
    Sample("eigvals", lambda x: None, (case(_A),), **ANY, differentiable=True),
    Sample(
        "pinv",
        lambda x, rcond=1e-6, rtol=None: np.linalg.pinv(x, rcond=np.asarray(rcond if rtol is None else rtol)),
        (
            case(_TALL),
            case(_TALL.T),
            case(_BATCH),
            case(_LOW),
            case(_TALL_Z),
            case(_LOW, 0.3),
            case(_BATCH, [0.1, 0.6]),
            case(_TALL, rtol=0.01),
            case(np.ones((0, 3))),
        ),
        **(F | {"dtypes": (*_HALVES, *COMPLEX)}),
        tolerance=4,
        gradient=GradientRow(skipped=dict.fromkeys((3, 5), RANK)),
    ),
    Sample(
        "matrix_rank",
        _rank_oracle,
        (
            case(_TALL),
            case(np.ones((3, 3))),
            case(_LOW),
            case(_LOW, 3.0),
            case(_LOW, rtol=0.9),
            case(_BATCH, [3.0, 3.5]),
            case(_BATCH, rtol=[0.1, 0.6]),
        ),
        dtypes=FLOATS + COMPLEX,
        result="int64",
        fixed=True,
    ),
    Sample(
        "lstsq",
        lambda a, b: np.linalg.lstsq(a, b, rcond=1e-6)[0],
        (case(_TALL, _TALL[:, :2] * 2), case(_TALL, _TALL[:, 0]), case(_TALL.T, _B[:3]), case(_LOW, _B)),
        **F,
        tolerance=6,
        gradient=GradientRow(skipped={3: RANK}),
        refuses=((ShapeError, case(ONES_3_4, np.ones(5))),),
    ),
    Sample(
        "matrix_power",
        np.linalg.matrix_power,
        (case(_A, 3), case(_A, 0), case(_A, -2), case(_BATCH, 2), case(_BATCH, 0), case(_A, 1)),
        floor=200,
        **(F | {"dtypes": (*_HALVES, *COMPLEX)}),
        tolerance=2,
        refuses=((LinAlgError, case(ONES_3_3, -1)), (ShapeError, case(ONES_3_4, 2))),
    ),
]
