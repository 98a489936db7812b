"""Calls that an op must refuse, with the class of the error, which cannot be derived from its sample row."""

import numpy as np

from emberharmony.core.errors import (
    ArgumentError,
    ArgumentTypeError,
    AxisError,
    DTypeError,
    EmberError,
    IndexOutOfBoundsError,
    LinAlgError,
    ShapeError,
)
from emberharmony.testing.sample import Case, case

_EMPTY, _X, _V = np.zeros((0, 3)), np.ones((3, 4)), np.ones(4)
_ONES, _SADDLE = np.ones((3, 3)), np.array([[1.0, 2.0], [2.0, 1.0]])
_LINE = np.ones((1, 5, 2))

REFUSALS: dict[str, tuple[tuple[type[EmberError], Case], ...]] = {
    # Reductions of no elements; repeated axes.
    **{op: ((ShapeError, case(_EMPTY, 0)),) for op in ("min", "argmax", "argmin", "ptp")},
    "max": ((ShapeError, case(_EMPTY, 0)), (AxisError, case(_X, (1, -1)))),
    "sum": ((AxisError, case(_X, (0, 0))),),
    # Matrix products of tensors whose shapes do not fit together.
    **{op: ((ShapeError, case(_X, _X)),) for op in ("matmul", "dot", "cross")},
    "tensordot": ((ShapeError, case(_X, _X, 1)),),
    "inner": ((ShapeError, case(_X, _ONES)),),
    "vecdot": ((ShapeError, case(_X, _ONES)),),
    "multi_dot": ((ShapeError, case([_X, _X])),),
    "einsum": ((ShapeError, case("ij,jk", _X, _X)), (ArgumentError, case("ij->k", _X))),
    # Matrices: not square, singular, not positive-definite.
    **{op: ((ShapeError, case(_X)),) for op in ("det", "eigh")},
    **{op: ((ShapeError, case(_V)),) for op in ("qr", "svd")},
    "inv": ((LinAlgError, case(_ONES)), (ShapeError, case(_X))),
    "solve": ((LinAlgError, case(_ONES, np.ones(3))),),
    "solve_triangular": ((LinAlgError, case(np.zeros((2, 2)), np.ones(2))),),
    "cholesky": ((LinAlgError, case(_SADDLE)), (ShapeError, case(_X))),
    "expm": ((ShapeError, case(_X)),),
    "cho_solve": ((ShapeError, case(_X, _V)), (LinAlgError, case(np.zeros((2, 2)), np.ones(2)))),
    "lu": ((ShapeError, case(_V)),),
    "random_multivariate_normal": (
        (LinAlgError, case(np.ones(2), _SADDLE)),
        (ShapeError, case(np.ones(3), _SADDLE)),
        (ShapeError, case(np.ones((3, 2)), np.eye(2), (2,))),
    ),
    "lstsq": ((ShapeError, case(_X, np.ones(5))),),
    "matrix_power": ((LinAlgError, case(_ONES, -1)), (ShapeError, case(_X, 2))),
    # Shapes and axes.
    "reshape": (
        (ShapeError, case(_X, (5,))),
        (ShapeError, case(_X, (-1, -1))),
        (ArgumentTypeError, case(_X, (12, True))),
    ),
    "transpose": ((AxisError, case(_X, (0, 0))),),
    "squeeze": ((ShapeError, case(_X, 0)),),
    "concatenate": ((ShapeError, case([_X, _ONES], 0)), (ShapeError, case([], 0))),
    "stack": ((ShapeError, case([_X, _ONES])),),
    "vstack": ((ShapeError, case([_X, _ONES])),),
    "split": ((ShapeError, case(_V, 3)),),
    "array_split": ((ShapeError, case(_V, 0)),),
    "broadcast_to": ((ShapeError, case(_X, (2, 4))), (ArgumentTypeError, case(_V, (True, 4)))),
    "moveaxis": ((AxisError, case(_X, 0, 7)),),
    "swapaxes": ((AxisError, case(_X, 0, 7)),),
    "tile": ((ShapeError, case(_X, -1)),),
    "repeat": ((ArgumentError, case(_V, -1)),),
    "pad": ((ShapeError, case(_X, -1)),),
    "where": ((ShapeError, case(np.array([True, False]), _V, _V)),),
    "rearrange": ((ArgumentError, case(_X, "a b -> c")),),
    "full": ((ShapeError, case((2,), np.ones(3))), (ArgumentTypeError, case((2, True), 1.0))),
    "zeros": ((ShapeError, case((-1,))), (ArgumentTypeError, case((True, 4))), (ArgumentTypeError, case(True))),
    "eye": ((ShapeError, case(-1)),),
    "diag": ((ShapeError, case(_LINE)),),
    "linspace": ((ArgumentError, case(0, 1, -1)),),
    "arange": ((ArgumentError, case(0, 1, 0)),),
    # Indices out of bounds.
    "take": ((IndexOutOfBoundsError, case(_V, [99])), (IndexOutOfBoundsError, case(_V, [-5]))),
    "take_along_axis": ((IndexOutOfBoundsError, case(_X, np.array([[9]]))),),
    "get_item": ((IndexOutOfBoundsError, case(_X, 9)), (AxisError, case(_X, (0, 0, 0)))),
    "scatter": ((IndexOutOfBoundsError, case(np.array([[9]]), np.ones(1), (3,))),),
    "scatter_update": ((IndexOutOfBoundsError, case(_X, np.array([[9, 9]]), np.ones(1))),),
    "set_item": (
        (IndexOutOfBoundsError, case(_X, 9, 1.0)),
        (ShapeError, case(_X, 0, np.ones(3))),
        (DTypeError, case(np.ones(3, np.int32), 0, 0.5)),
    ),
    "put_along_axis": ((IndexOutOfBoundsError, case(_X, np.array([[9]]), 1.0)), (ShapeError, case(_X, [0], 1.0))),
    "slice": ((IndexOutOfBoundsError, case(_X, (0, 0), (9, 9))),),
    "slice_update": ((IndexOutOfBoundsError, case(_X, (0, 0), np.ones((9, 9)))),),
    "unravel_index": ((IndexOutOfBoundsError, case(np.array([99]), (2, 2))),),
    "segment_sum": ((IndexOutOfBoundsError, case(_X, np.array([-1, 0, 1]), 2)),),
    "partition": ((IndexOutOfBoundsError, case(_X, 9)),),
    "argpartition": ((IndexOutOfBoundsError, case(_X, 9)),),
    "top_k": ((ShapeError, case(_X, 9)),),
    "searchsorted": ((ShapeError, case(_X, _V)),),
    "interp": ((ShapeError, case(_X, _V, np.ones(3))), (ArgumentError, case(_X, _V, _V, period=0.0))),
    **{op: ((ShapeError, case(_X, _V)), (ArgumentError, case(_V, _V, "some"))) for op in ("convolve", "correlate")},
    "polyval": ((ShapeError, case(_X, _V)),),
    "block_diag": ((ArgumentError, case()), (ShapeError, case(np.ones((2, 1, 1)), np.ones((3, 1, 1))))),
    "logcumsumexp": ((AxisError, case(_X, 2)), (DTypeError, case(_V * 1j))),
    "bincount": ((ArgumentError, case(np.array([-1]))),),
    # Layers, convolutions, pooling and Fourier transforms.
    "conv": (
        (ShapeError, case(_LINE, np.ones((3, 3, 2)))),
        (ShapeError, case(_LINE, np.ones((3, 2, 2)), bias=np.ones(3))),
        (ArgumentError, case(_LINE, np.ones((3, 2, 2)), 1, "odd")),
    ),
    "conv_transpose": ((ShapeError, case(_LINE, np.ones((3, 3, 2)), bias=np.ones(2))),),
    "linear": ((ShapeError, case(_X, _X)), (ShapeError, case(_X, _X.T, None, True))),
    "quantize": (
        (ShapeError, case(np.ones((2, 33)))),
        (ArgumentError, case(np.ones((2, 64)), bits=3)),
        (ArgumentError, case(np.ones((2, 64)), group_size=16)),
    ),
    "dequantize": (
        (ShapeError, case(np.ones((2, 8), np.uint32), np.ones((2, 2)), np.ones((2, 2)))),
        (DTypeError, case(np.ones((2, 8), np.int32), np.ones((2, 1)), np.ones((2, 1)))),
    ),
    "quantized_matmul": (
        (ShapeError, case(np.ones((2, 32)), np.ones((3, 8), np.uint32), np.ones((3, 1)), np.ones((3, 1)))),
        (DTypeError, case(np.ones((2, 64)), np.ones((3, 8), np.int32), np.ones((3, 1)), np.ones((3, 1)))),
    ),
    "embedding": ((IndexOutOfBoundsError, case([3], _X)), (ShapeError, case([0], _V))),
    "group_normalization": (
        (ArgumentError, case(_X, 0)),
        (ArgumentError, case(_X, 1, axis=0)),
        (ShapeError, case(_X, 3)),
        (ShapeError, case(_X, 1, _X)),
    ),
    "local_response_normalization": ((ArgumentError, case(_X, 0)), (AxisError, case(_X, 1, axis=2))),
    **{op: ((ShapeError, case(_LINE, _X, _X)),) for op in ("gru", "lstm")},
    "rnn": ((ShapeError, case(_LINE, _X, _X)), (ArgumentError, case(_LINE, _X, _X, activation="gelu"))),
    "rope": ((ShapeError, case(_LINE, 3)), (ArgumentError, case(_LINE, 2, axis=-1))),
    "max_pool": ((ArgumentError, case(_LINE, 0)),),
    "average_pool": (
        (ArgumentError, case(_LINE, (2, 2))),
        (ArgumentError, case(_LINE, 2, 2, 2)),
        (ArgumentError, case(_LINE, 2, divisor_override=0)),
    ),
    "lp_pool": ((ArgumentError, case(_LINE, 0, 2)), (ArgumentError, case(_LINE, "two", 2))),
    "max_pool_indices": ((ArgumentError, case(_LINE, 3, 1, -1)),),
    "max_unpool": (
        (ShapeError, case(_LINE, np.zeros((1, 1, 2), np.int64), (3,))),
        (IndexOutOfBoundsError, case(np.ones((1, 1, 1)), np.array([[[3]]]), (3,))),
    ),
    "fft": ((ArgumentError, case(_V, 0)), (AxisError, case(np.array(1.0)))),
    "irfft": ((ArgumentError, case(_V, 0)),),
    "glu": ((ShapeError, case(_ONES)),),
    # Dtypes that the op does not accept.
    "cast": ((DTypeError, case(_V, "nope")),),
    "clip": ((DTypeError, case(_V, "a", 1)),),
    "view": ((ShapeError, case(np.ones(3, np.int32), "int64")),),
    **{op: ((DTypeError, case(_V * 1j)),) for op in ("sort", "floor", "erf")},
    "less": ((DTypeError, case(np.array([1j]), np.array([1j]))),),
    "bitwise_and": ((DTypeError, case(_V, _V)),),
    "gcd": ((DTypeError, case(_V, _V)),),
    "negative": ((DTypeError, case(np.array([True]))),),
}
