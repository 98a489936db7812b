"""Sample rows of `ops/creation.py`; what takes no tensor is run once, in the dtype it names."""

from typing import Any

import numpy as np

from emberharmony.testing.sample import FLOATS, INTEGERS, Sample, case, grid

_X = grid(-3, 3, 12).reshape(3, 4)
F: dict[str, Any] = {"dtypes": ("float32",), "result": "float32"}


SAMPLES = [
    Sample("zeros", np.zeros, (case((2, 3)), case(0), case(())), **F),
    Sample("ones", np.ones, (case((2, 3)), case(4)), **F),
    Sample("full", np.full, (case((2, 3), 1.5), case((), 2.5)), **F),
    Sample("empty", np.zeros, (case((2, 3)),), reference="tests", **F),
    Sample("zeros_like", np.zeros_like, (case(_X),), dtypes=FLOATS, integers=INTEGERS),
    Sample("ones_like", np.ones_like, (case(_X),), dtypes=FLOATS, integers=INTEGERS),
    Sample("empty_like", np.zeros_like, (case(_X),), reference="tests"),
    Sample("full_like", lambda x, value: np.full(x.shape, value), (case(_X, 2),), dtypes=FLOATS, integers=("int32",)),
    Sample("eye", np.eye, (case(3), case(2, 4, 1), case(3, k=-1)), **F),
    Sample("identity", np.identity, (case(3),), **F),
    Sample("arange", np.arange, (case(5.0), case(1.0, 2.0, 0.25), case(3.0, -1.0, -1.5)), **F),
    Sample("linspace", np.linspace, (case(0, 1, 7), case(2, -3, 5, endpoint=False)), **F),
    Sample("logspace", np.logspace, (case(0, 2, 5), case(0, 3, 4, base=2)), tolerance=64, **F),
    Sample(
        "meshgrid",
        lambda *xi, indexing="xy": np.meshgrid(*xi, indexing=indexing),
        (case(_X[0], _X[:, 0]), case(_X[0], _X[:, 0], indexing="ij")),
    ),
    Sample("tri", np.tri, (case(3), case(2, 4, 1)), **F),
    Sample("tril", np.tril, (case(_X), case(_X, 1)), dtypes=FLOATS, integers=("int32",), differentiable=True),
    Sample("triu", np.triu, (case(_X), case(_X, -1)), dtypes=FLOATS, integers=("int32",), differentiable=True),
    Sample("diag", np.diag, (case(_X), case(_X[0], 1)), dtypes=FLOATS, integers=("int32",), differentiable=True),
]
