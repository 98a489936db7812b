"""Sample rows of `ops/arrays/creation.py`; ops that take no tensor are run once, in the dtype of their row."""

from typing import Any

import numpy as np
from scipy import linalg

from emberharmony.core.errors import ArgumentError, ArgumentTypeError, ShapeError
from emberharmony.testing.refused import LINE
from emberharmony.testing.sample import COMPLEX, FLOATS, HALVES, INTEGERS, WHOLE, Sample, case, grid

_X = grid(-3, 3, 12).reshape(3, 4)
_LENGTHS = tuple(case(n) for n in (7, 6, 1, 0))
ALL: dict[str, Any] = {"dtypes": FLOATS + HALVES + COMPLEX, "integers": (*WHOLE, "uint16", "uint32", "uint64")}
D: dict[str, Any] = {**ALL, "differentiable": True}
F: dict[str, Any] = {"dtypes": FLOATS + HALVES, "named": True}
N: dict[str, Any] = {**ALL, "named": True}


def _full_like_oracle(x, value):
    return np.full(x.shape, value)


SAMPLES = [
    Sample(
        "zeros",
        np.zeros,
        (case((2, 3)), case(0), case(()), case([2, 0])),
        **N,
        refuses=((ShapeError, case((-1,))), (ArgumentTypeError, case((True, 4))), (ArgumentTypeError, case(True))),
    ),
    Sample("ones", np.ones, (case((2, 3)), case(4)), **N),
    Sample(
        "full",
        np.full,
        (case((2, 3), 1.5), case((), 2.5), case((2, 4), _X[0])),
        **F,
        differentiable=True,
        refuses=((ShapeError, case((2,), np.ones(3))), (ArgumentTypeError, case((2, True), 1.0))),
    ),
    Sample("empty", np.zeros, (case((2, 3)),), reference="tests", **F),
    Sample("zeros_like", np.zeros_like, (case(_X),), **ALL),
    Sample("ones_like", np.ones_like, (case(_X),), **ALL),
    Sample("empty_like", np.zeros_like, (case(_X),), reference="tests"),
    Sample(
        "full_like",
        _full_like_oracle,
        (case(_X, 2), case(_X[:0], 1)),
        **(ALL | {"integers": INTEGERS}),
        differentiable=True,
    ),
    Sample(
        "eye",
        np.eye,
        (case(3), case(2, 4, 1), case(3, k=-1), case(2, 3, 9), case(0), case(2, 0)),
        **N,
        refuses=((ShapeError, case(-1)),),
    ),
    Sample("identity", np.identity, (case(3),), **N),
    Sample(
        "arange",
        np.arange,
        (case(5.0), case(1.0, 2.0, 0.25), case(3.0, -1.0, -1.5), case(2.0, 1.0)),
        **F,
        refuses=((ArgumentError, case(0, 1, 0)),),
    ),
    Sample(
        "linspace",
        np.linspace,
        (
            case(0, 1, 7),
            case(2, -3, 5, endpoint=False),
            case(0, 1, 4, True, True),
            case(_X, _X[::-1] * 2, 5),
            case(_X[0], 2, 3, axis=-1),
        ),
        **F,
        tolerance=2,
        refuses=((ArgumentError, case(0, 1, -1)),),
    ),
    Sample(
        "block_diag",
        linalg.block_diag,
        (
            case(_X, _X[:1] * 2),
            case(_X, _X[0], np.asarray(2.0)),
            case(_X[:0], _X[:2], _X[:, :0]),
            case(_X),
            case(np.stack([_X, -_X]), np.stack([_X, 2 * _X])[:, :2]),
        ),
        **D,
        refuses=((ArgumentError, case()), (ShapeError, case(np.ones((2, 1, 1)), np.ones((3, 1, 1))))),
    ),
    Sample(
        "logspace",
        np.logspace,
        (case(0, 2, 5), case(0, 3, 4, base=2), case(0, 1, 3, False), case(_X[0], 1, 3)),
        tolerance=1,
        **F,
    ),
    Sample(
        "geomspace",
        np.geomspace,
        (case(1, 1000, 4), case(-1, -0.01, 5), case(8, 1, 3, endpoint=False)),
        **F,
        tolerance=1,
    ),
    Sample(
        "meshgrid",
        lambda *xi, indexing="xy": np.meshgrid(*xi, indexing=indexing),
        (case(_X[0], _X[:, 0]), case(_X[0], _X[:, 0], _X[1, :2], indexing="ij"), case(_X[0]), case()),
        **D,
    ),
    Sample("tri", np.tri, (case(3), case(2, 4, 1)), **N),
    Sample("tril", np.tril, (case(_X), case(_X, 1), case(_X.reshape(3, 2, 2), -1), case(_X[:0])), **D),
    Sample("triu", np.triu, (case(_X), case(_X, -1), case(_X.reshape(3, 2, 2), 1), case(_X[:0])), **D),
    Sample(
        "diag", np.diag, (case(_X), case(_X[0], 1), case(_X, -2), case(_X, 9)), **D, refuses=((ShapeError, case(LINE)),)
    ),
    Sample("diagflat", np.diagflat, (case(_X[:2, :2]), case(_X[0], -1)), **D),
    Sample(
        "vander",
        np.vander,
        (case(_X[0]), case(_X[0], 2), case(_X[0], 5, True), case(_X[0], 0)),
        dtypes=FLOATS + COMPLEX,
        tolerance=16,
        differentiable=True,
    ),
    Sample("bartlett", np.bartlett, _LENGTHS, **F, tolerance=1),
    Sample("blackman", np.blackman, _LENGTHS, **F, tolerance=1),
    Sample("hamming", np.hamming, _LENGTHS, **F, tolerance=1),
    Sample("hanning", np.hanning, _LENGTHS, **F, tolerance=1),
    Sample("kaiser", np.kaiser, (case(7, 14.0), case(6, 0.5), case(1, 2.0), case(0, 1.0)), **F, tolerance=1),
]
