"""Sample rows of `ops/algebra/products.py`."""

from typing import Any

import numpy as np

from emberharmony.core.errors import ArgumentError, ShapeError
from emberharmony.testing.left_out import DIFFERENCE
from emberharmony.testing.refused import ONES_3_3, ONES_3_4
from emberharmony.testing.sample import COMPLEX, FLOATS, HALVES, Sample, case, grid

_A, _B = grid(-2, 3, 12).reshape(3, 4), grid(-1, 2, 20).reshape(4, 5)
_BATCH = grid(-2, 2, 24).reshape(2, 3, 4)
_V = grid(1, 2, 4)
_EMPTY, _SQUARE = np.ones((0, 4)), grid(-2, 3, 16).reshape(4, 4)
D: dict[str, Any] = {
    "dtypes": FLOATS + HALVES + COMPLEX,
    "integers": ("int8", "int32", "int64", "uint8"),
    "floor": 16,
    "differentiable": True,
}


def _oracle_in_operand_dtype(oracle: Any) -> Any:
    """Returns an oracle whose integer results are cast to the operands' dtype, so that they wrap as the op's do."""

    def call_oracle(*args: Any, **kwargs: Any) -> Any:
        result = np.asarray(oracle(*args, **kwargs))
        arrays = [a for a in args if isinstance(a, np.ndarray)]
        return result.astype(arrays[0].dtype) if arrays[0].dtype.kind in "iu" else result

    return call_oracle


SAMPLES = [
    Sample(
        "matmul",
        np.matmul,
        (
            case(_A, _B),
            case(_BATCH, _B),
            case(_V, _B),
            case(_A, _V),
            case(_V, _V),
            case(_BATCH[:, None], _BATCH.transpose(0, 2, 1)),
            case(_EMPTY, _B),
            case(_EMPTY.T, _EMPTY),
        ),
        **D,
        tolerance=2,
        refuses=((ShapeError, case(ONES_3_4, ONES_3_4)),),
    ),
    Sample(
        "dot",
        _oracle_in_operand_dtype(np.dot),
        (case(_A, _B), case(_V, _V), case(_A, _BATCH.transpose(0, 2, 1))),
        **D,
        tolerance=3,
        refuses=((ShapeError, case(ONES_3_4, ONES_3_4)),),
    ),
    Sample(
        "tensordot",
        _oracle_in_operand_dtype(np.tensordot),
        (
            case(_A, _B, 1),
            case(_BATCH, _A, ([1, 2], [0, 1])),
            case(_BATCH, _V, (-1, 0)),
            case(_V, _V, 0),
            case(_A, _A),
        ),
        **D,
        tolerance=3,
        refuses=((ShapeError, case(ONES_3_4, ONES_3_4, 1)),),
    ),
    Sample("vdot", _oracle_in_operand_dtype(np.vdot), (case(_A, _A), case(_EMPTY, _EMPTY)), **D, tolerance=2),
    Sample(
        "vecdot",
        _oracle_in_operand_dtype(
            lambda a, b, axis=-1: np.sum(np.conj(np.moveaxis(a, axis, -1)) * np.moveaxis(b, axis, -1), -1)
        ),
        (case(_A, _A), case(_A, _A, 0), case(_BATCH, _V), case(_A, _A[0]), case(_V, _SQUARE, 0), case(_EMPTY, _V)),
        **D,
        tolerance=2,
        refuses=((ShapeError, case(ONES_3_4, ONES_3_3)),),
    ),
    Sample(
        "inner",
        _oracle_in_operand_dtype(np.inner),
        (case(_A, _A), case(_V, _V), case(_A, _BATCH)),
        **D,
        tolerance=3,
        refuses=((ShapeError, case(ONES_3_4, ONES_3_3)),),
    ),
    Sample("outer", np.outer, (case(_V, _A), case(_V, _V[:0])), **D, tolerance=1),
    Sample(
        "einsum",
        _oracle_in_operand_dtype(lambda s, *x: np.einsum(s, *x)),
        (
            case("ij,jk->ik", _A, _B),
            case("ij,jk", _A, _B),
            case("bij->bji", _BATCH),
            case("...i,i", _BATCH, _V),
            case("...ij,...jk->...ik", _BATCH, _B),
            case("ii", _SQUARE),
            case("ii->i", _SQUARE),
            case("ij->", _A),
            case("i,j->ij", _V, _V),
            case("ij,jk,k->i", _A / 2, _B, grid(0, 1, 5)),
            case("ij,jk->ik", _EMPTY, _B),
        ),
        **(D | {"floor": 32}),
        tolerance=2,
        refuses=((ShapeError, case("ij,jk", ONES_3_4, ONES_3_4)), (ArgumentError, case("ij->k", ONES_3_4))),
    ),
    Sample(
        "multi_dot",
        lambda arrays: np.linalg.multi_dot(arrays),
        (case([_A, _B]), case([_A, _B, _B.T]), case([_V, _SQUARE, _SQUARE, _V]), case([_V, _V])),
        **(D | {"floor": 200}),
        tolerance=2,
        refuses=((ShapeError, case([ONES_3_4, ONES_3_4])),),
    ),
    Sample("kron", np.kron, (case(_V, _V), case(_A, _B), case(_A, _V), case(_V, _A)), **D, tolerance=1),
    Sample(
        "trace",
        np.trace,
        (case(_A), case(_BATCH, 1, 1, 2), case(_BATCH, -1, 0, -1)),
        **(D | {"result": "sum"}),
        tolerance=1,
    ),
    Sample(
        "cross",
        np.cross,
        (
            case(_A.T, _A.T[::-1]),
            case(_A.T, _V[:3]),
            case(_A, _A[::-1], axis=0),
            case(_A, _A[::-1].T, 0, 1, 0),
            case(_A.T, _A, axisb=0),
        ),
        **D,
        tolerance=1,
        left_out={"large offsets": DIFFERENCE},
        refuses=((ShapeError, case(ONES_3_4, ONES_3_4)),),
    ),
]
