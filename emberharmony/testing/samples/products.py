"""Sample rows of `ops/products.py`."""

from typing import Any

import numpy as np

from emberharmony.testing.sample import COMPLEX, FLOATS, HALVES, Sample, case, grid

_A, _B = grid(-2, 3, 12).reshape(3, 4), grid(-1, 2, 20).reshape(4, 5)
_BATCH = grid(-2, 2, 24).reshape(2, 3, 4)
_LONG = grid(-1, 1, 3000)
_V = grid(1, 2, 4)
D: dict[str, Any] = {
    "dtypes": FLOATS,
    "integers": ("int32", "int64", "uint8"),
    "tolerance": 8,
    "floor": 16,
    "differentiable": True,
}
M: dict[str, Any] = D | {"dtypes": FLOATS + HALVES + COMPLEX}
_ABS = (np.abs(_A), np.abs(_B))

SAMPLES = [
    Sample(
        "matmul",
        np.matmul,
        (case(*_ABS), case(_BATCH**2, _B**2), case(_V, _B**2), case(_A**2, _V), case(_LONG**2, _LONG**2)),
        **(M | {"floor": 600}),
    ),
    Sample("dot", np.dot, (case(_A**2, _B**2), case(_V, _V), case(_BATCH**2, _B**2)), **D),
    Sample(
        "tensordot",
        np.tensordot,
        (case(_A**2, _B**2, 1), case(_BATCH**2, _A**2, ([1, 2], [0, 1])), case(_V, _V, 0)),
        **D,
    ),
    Sample("vdot", np.vdot, (case(_A**2, _A**2), case(_LONG**2, _LONG**2)), **(D | {"floor": 600})),
    Sample(
        "vecdot",
        lambda a, b, axis=-1: np.sum(np.conj(a) * b, axis),
        (case(_A**2, _A**2), case(_A**2, _A**2, 0)),
        **(D | {"integers": ("int64",)}),
    ),
    Sample("inner", np.inner, (case(_A**2, _A**2), case(_V, _V)), **D),
    Sample("outer", np.outer, (case(_V, _A**2),), **D),
    Sample(
        "einsum",
        np.einsum,
        (
            case("ij,jk->ik", _A**2, _B**2),
            case("bij->bji", _BATCH),
            case("...i,i", _BATCH**2, _V),
            case("ii", (_A @ _B)[:3, :3] ** 2),
        ),
        **(D | {"integers": ("int64",)}),
    ),
    Sample("kron", np.kron, (case(_V, _V), case(_A**2, _B**2)), **D),
    Sample("trace", np.trace, (case(_A**2), case(_BATCH**2, 1, 1, 2)), **(D | {"integers": ("int64",)})),
    Sample("cross", np.cross, (case(_A.T.copy(), _A.T[::-1].copy()),), **(D | {"integers": ("int32",)})),
]
