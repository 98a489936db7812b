"""Sample rows of `ops/arrays/shape.py`."""

from typing import Any

import numpy as np

from emberharmony.core.errors import ArgumentError, ArgumentTypeError, AxisError, ShapeError
from emberharmony.testing.refused import ONES_3_3, ONES_3_4, ONES_4
from emberharmony.testing.sample import COMPLEX, FLOATS, HALVES, WHOLE, Sample, case, grid

_X = grid(-3, 3, 24).reshape(2, 3, 4)
_V = grid(0, 1, 4)
_EMPTY = np.zeros((0, 3))
D: dict[str, Any] = {
    "dtypes": FLOATS + HALVES + COMPLEX,
    "integers": (*WHOLE, "uint16", "uint32", "uint64"),
    "differentiable": True,
}
_WIDTHS = ((1, 2), (0, 1), (2, 0))
_MODES = ("reflect", "symmetric", "edge", "wrap")


def _pad_oracle(x, widths, mode="constant", value=0):
    return np.pad(x, widths, constant_values=value) if mode == "constant" else np.pad(x, widths, mode)


SAMPLES = [
    Sample(
        "reshape",
        np.reshape,
        (case(_X, (6, 4)), case(_X, (-1, 2)), case(_X, -1), case(_EMPTY, (3, -1))),
        **D,
        refuses=(
            (ShapeError, case(ONES_3_4, (5,))),
            (ShapeError, case(ONES_3_4, (-1, -1))),
            (ArgumentTypeError, case(ONES_3_4, (12, True))),
        ),
    ),
    Sample("ravel", np.ravel, (case(_X), case(np.asarray(1.0))), **D),
    Sample(
        "transpose",
        np.transpose,
        (case(_X), case(_X, (1, 0, 2)), case(_X, (1, 2, 0))),
        **D,
        refuses=((AxisError, case(ONES_3_4, (0, 0))),),
    ),
    Sample("matrix_transpose", lambda x: np.swapaxes(x, -1, -2), (case(_X),), **D),
    Sample("swapaxes", np.swapaxes, (case(_X, 0, -1),), **D, refuses=((AxisError, case(ONES_3_4, 0, 7)),)),
    Sample(
        "moveaxis",
        np.moveaxis,
        (case(_X, 0, -1), case(_X, (0, 1), (2, 0))),
        **D,
        refuses=((AxisError, case(ONES_3_4, 0, 7)),),
    ),
    Sample("expand_dims", np.expand_dims, (case(_X, 1), case(_X, (0, -1))), **D),
    Sample(
        "squeeze",
        np.squeeze,
        (case(_X[:1]), case(_X[:1, :, :1], 0), case(_X[:1, :, :1], (0, 2))),
        **D,
        refuses=((ShapeError, case(ONES_3_4, 0)),),
    ),
    *(
        Sample(name, getattr(np, name), (case(np.asarray(2.0)), case(_V), case(_X[0]), case(_X)), **D)
        for name in ("atleast_1d", "atleast_2d", "atleast_3d")
    ),
    Sample(
        "broadcast_to",
        np.broadcast_to,
        (case(_V, (3, 4)), case(np.asarray(2.0), (2,))),
        **D,
        refuses=((ShapeError, case(ONES_3_4, (2, 4))), (ArgumentTypeError, case(ONES_4, (True, 4)))),
    ),
    Sample("broadcast_arrays", lambda *a: list(np.broadcast_arrays(*a)), (case(_V, _X),), **D),
    Sample("broadcast_shapes", np.broadcast_shapes, (case((2, 1), (3,)),), dtypes=("float32",), result="any"),
    Sample(
        "concatenate",
        np.concatenate,
        (case([_X, _X]), case([_X, _X[:, :1]], 1), case([_X, _V], None)),
        **D,
        refuses=((ShapeError, case([ONES_3_4, ONES_3_3], 0)), (ShapeError, case([], 0))),
    ),
    Sample("append", np.append, (case(_V, _V), case(_X, _X, 2)), **D),
    Sample(
        "stack",
        np.stack,
        (case([_V, _V]), case([_X, _X], -1)),
        **D,
        refuses=((ShapeError, case([ONES_3_4, ONES_3_3])),),
    ),
    Sample("hstack", np.hstack, (case([_V, _V]), case([_X, _X]), case([np.asarray(1.0), _V])), **D),
    Sample(
        "vstack", np.vstack, (case([_V, _V]), case([_X, _X])), **D, refuses=((ShapeError, case([ONES_3_4, ONES_3_3])),)
    ),
    Sample("dstack", np.dstack, (case([_V, _V]), case([_X[0], _X[1]]), case([_X, _X])), **D),
    Sample(
        "split",
        np.split,
        (case(_V, 2), case(_X, [1, 3], -1), case(_X, (1,), 1), case(_V, [3, 1]), case(_V, [-9, 9])),
        **D,
        refuses=((ShapeError, case(ONES_4, 3)),),
    ),
    Sample(
        "array_split",
        np.array_split,
        (case(_X, 2, 1), case(_V, 3), case(_V, 6), case(_V, [1, 3])),
        **D,
        refuses=((ShapeError, case(ONES_4, 0)),),
    ),
    Sample("hsplit", np.hsplit, (case(_V, 2), case(_X, [1])), **D),
    Sample("vsplit", np.vsplit, (case(_X, 2),), **D),
    Sample("dsplit", np.dsplit, (case(_X, 2), case(_X, [1, 2, 9])), **D),
    Sample(
        "unstack",
        lambda x, num=None, axis=0: list(np.moveaxis(x, axis, 0)),
        (case(_X), case(_X, 4, -1)),
        **D,
        left_out={"results of empty axes": "`num` must equal the length of the axis"},
    ),
    Sample(
        "tile",
        np.tile,
        (case(_V, 2), case(_X, (2, 1)), case(_V, (2, 2))),
        **D,
        refuses=((ShapeError, case(ONES_3_4, -1)),),
    ),
    Sample(
        "repeat",
        np.repeat,
        (case(_V, 2), case(_X, 2, 1), case(_V, [1, 0, 2, 1], 0), case(_X, [2], 1), case(_V, np.array([0, 1, 0, 3]))),
        **D,
        refuses=((ArgumentError, case(ONES_4, -1)),),
    ),
    Sample("flip", np.flip, (case(_X), case(_X, 1), case(_X, (0, 2))), **D),
    Sample(
        "roll",
        np.roll,
        (
            case(_X, 2),
            case(_X, 1, 1),
            case(_X, (1, -2), (0, 2)),
            case(_X, (1, 2)),
            case(_X, 1, (0, 1)),
            case(_X, (1, 1), 2),
            case(_EMPTY, 1, 0),
        ),
        **D,
    ),
    Sample(
        "pad",
        _pad_oracle,
        (
            case(_V, 2),
            case(_X, _WIDTHS),
            case(_X, (1, 1), "constant", 7.0),
            *(case(_X, _WIDTHS, mode) for mode in _MODES),
            *(case(_V[:2], 5, mode) for mode in _MODES),
        ),
        **D,
        refuses=((ShapeError, case(ONES_3_4, -1)),),
    ),
]
