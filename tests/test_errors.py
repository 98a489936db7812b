"""Bad input raises the same error class on every backend; the message names op, backend and the bad value."""

from collections.abc import Callable

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.backend.discovery import BUILTIN, is_installed
from emberharmony.core.errors import (
    ArgumentError,
    ArgumentTypeError,
    AxisError,
    BackendMismatchError,
    DeviceError,
    DTypeError,
    EmberError,
    IndexOutOfBoundsError,
    LinAlgError,
    OutOfMemoryError,
    RangeError,
    ShapeError,
)
from tests.together import together

INSTALLED = [name for name in BUILTIN if is_installed(name)]
X = np.ones((2, 3), np.float32)
V = np.arange(4, dtype=np.float32)
S = np.ones((3, 3), np.float32)
N = np.arange(6).reshape(2, 3)
Z = X[:0]
NAN = float("nan")
FAR = 2**60
PILE = np.ones((2, 1, 3), np.float32)


def _checked(call: Callable[[], object]) -> object:
    """Calls in checked mode: only there MLX reads tensors of indices back and checks them."""
    with ops.checked():
        return call()


Row = tuple[str, Callable[[], object], type[EmberError], tuple[str, ...]]
BAD: dict[str, list[Row]] = {
    "broadcast": [
        ("add", lambda: ops.add(X, V), ShapeError, ("(2, 3)", "(4,)")),
        ("maximum", lambda: ops.maximum(X, V), ShapeError, ("(2, 3)", "(4,)")),
        ("equal", lambda: ops.equal(X, V), ShapeError, ("(2, 3)", "(4,)")),
        ("arctan2", lambda: ops.arctan2(X, V), ShapeError, ("(2, 3)", "(4,)")),
        ("power", lambda: ops.power(X, V), ShapeError, ("(2, 3)", "(4,)")),
        ("bitwise_and", lambda: ops.bitwise_and(N, N[:, :2]), ShapeError, ("(2, 3)", "(2, 2)")),
        ("logical_or", lambda: ops.logical_or(X, V), ShapeError, ("(2, 3)", "(4,)")),
        ("floor_divide", lambda: ops.floor_divide(N, N[:, :2]), ShapeError, ("(2, 3)", "(2, 2)")),
        ("where", lambda: ops.where(X > 0, V, X), ShapeError, ("(4,)", "(2, 3)")),
        ("where", lambda: ops.where(V > 0, X, X), ShapeError, ("(4,)", "(2, 3)")),
        ("clip", lambda: ops.clip(X, V, None), ShapeError, ("(2, 3)",)),
        ("broadcast_to", lambda: ops.broadcast_to(X, (2, 4)), ShapeError, ("(2, 3)", "(2, 4)")),
        ("broadcast_to", lambda: ops.broadcast_to(X, (3,)), ShapeError, ("(2, 3)", "(3,)")),
        ("broadcast_arrays", lambda: ops.broadcast_arrays(X, V), ShapeError, ("(2, 3)", "(4,)")),
        ("broadcast_shapes", lambda: ops.broadcast_shapes((2, 3), (4,)), ShapeError, ("(2, 3)", "(4,)")),
        ("isclose", lambda: ops.isclose(X, V), ShapeError, ("(2, 3)", "(4,)")),
        ("divide", lambda: ops.divide(X, V[:2]), ShapeError, ("ops.expand_dims(x2, -1) would fit",)),
        ("concatenate", lambda: ops.concatenate([X, X[:, :1]]), ShapeError, ("with axis=1 they would fit",)),
        (
            "concatenate",
            lambda: ops.concatenate([X, X[0]]),
            ShapeError,
            ("ops.expand_dims(xs[1], 0) has the axis that is missing",),
        ),
        (
            "concatenate",
            lambda: ops.concatenate([X[:, 0], X], axis=-1),
            ShapeError,
            ("ops.expand_dims(xs[0], 1) has the axis that is missing",),
        ),
        (
            "reshape",
            lambda: ops.reshape(X, (2, 4)),
            ShapeError,
            ("8 elements, the tensor 6; (2, -1) keeps the 2 rows, with 3 elements each",),
        ),
        (
            "reshape",
            lambda: ops.reshape(X, (4, -1)),
            ShapeError,
            ("the 6 elements are no multiple of the 4 of the other axes",),
        ),
        (
            "linear",
            lambda: ops.linear(X, np.ones((6, 5))),
            ShapeError,
            ("for one sample model(ops.expand_dims(x, 0))",),
        ),
    ],
    "matmul": [
        ("matmul", lambda: ops.matmul(X, X), ShapeError, ("(2, 3)", "length 3", "last but one axis of the second 2")),
        ("matmul", lambda: ops.matmul(N, N), ShapeError, ("(2, 3)", "length 3")),
        ("matmul", lambda: ops.matmul(X, V), ShapeError, ("(2, 3)", "(4,)", "only axis of the second 4")),
        ("matmul", lambda: ops.matmul(X, 1.0), ShapeError, ("(2, 3)", "()", "ops.multiply")),
        (
            "matmul",
            lambda: ops.matmul(PILE, np.ones((3, 3, 1))),
            ShapeError,
            ("(2, 1, 3)", "(3, 3, 1)", "(2,) and (3,) do not broadcast"),
        ),
        ("dot", lambda: ops.dot(X, X), ShapeError, ("(2, 3)",)),
        ("inner", lambda: ops.inner(X, V), ShapeError, ("(2, 3)", "(4,)")),
        ("vdot", lambda: ops.vdot(X, V), ShapeError, ("(6,)", "(4,)")),
        ("vecdot", lambda: ops.vecdot(X, V), ShapeError, ("-1", "3")),
        ("tensordot", lambda: ops.tensordot(X, X, 1), ShapeError, ("(1,)", "(0,)")),
        ("tensordot", lambda: ops.tensordot(X, X, 3), AxisError, ("3", "2")),
        ("cross", lambda: ops.cross(X, X[:, :2]), ShapeError, ("-1", "3")),
    ],
    "concatenate": [
        ("concatenate", lambda: ops.concatenate([X, np.ones((3, 4))]), ShapeError, ("(2, 3)", "(3, 4)")),
        ("concatenate", lambda: ops.concatenate([X, V]), ShapeError, ("(2, 3)", "(4,)")),
        ("concatenate", lambda: ops.concatenate([]), ShapeError, ("at least one tensor",)),
        ("concatenate", lambda: ops.concatenate(X, X), ArgumentTypeError, ("as in concatenate([x1, x2])",)),
        ("concatenate", lambda: ops.concatenate([X], [X]), ArgumentTypeError, ("as in concatenate([x1, x2])",)),
        ("stack", lambda: ops.stack(X, X), ArgumentTypeError, ("as in stack([x1, x2])",)),
        ("concatenate", lambda: ops.concatenate([1.0, 2.0]), ShapeError, ()),
        ("concatenate", lambda: ops.concatenate([X, X], axis=2), AxisError, ("2",)),
    ],
    "stack": [
        ("stack", lambda: ops.stack([X, V]), ShapeError, ("(2, 3)", "(4,)")),
        ("stack", lambda: ops.stack([]), ShapeError, ("at least one tensor",)),
        ("stack", lambda: ops.stack([X, X], axis=3), AxisError, ("(2, 3)",)),
        ("vstack", lambda: ops.vstack([X, V]), ShapeError, ("(2, 3)",)),
        ("hstack", lambda: ops.hstack([X, V]), ShapeError, ("(2, 3)", "(4,)")),
    ],
    "reshape": [
        ("reshape", lambda: ops.reshape(X, (4, 2)), ShapeError, ("(2, 3)", "(4, 2)")),
        ("reshape", lambda: ops.reshape(X, (4, -1)), ShapeError, ("6", "4")),
        ("reshape", lambda: ops.reshape(X, (-1, -1)), ShapeError, ("-1",)),
        ("reshape", lambda: ops.reshape(X, (-2, 3)), ShapeError, ("-2", "3")),
        ("reshape", lambda: ops.reshape(Z, (0, -1)), ShapeError, ("0", "-1")),
        ("reshape", lambda: ops.reshape(X, (2.0, 3)), ArgumentTypeError, ("(2, 3)",)),
        ("reshape", lambda: ops.reshape(X, 3, 2), ArgumentTypeError, ("not 2", "one argument", "reshape(x, (2, 3))")),
    ],
    "axis": [
        ("sum", lambda: ops.sum(X, axis=2), AxisError, ("2",)),
        ("sum", lambda: ops.sum(X, axis=-3), AxisError, ("-3",)),
        ("mean", lambda: ops.mean(X, axis=2), AxisError, ("2",)),
        ("max", lambda: ops.max(X, axis=2), AxisError, ("2",)),
        ("argmax", lambda: ops.argmax(X, axis=2), AxisError, ("2",)),
        ("cumsum", lambda: ops.cumsum(X, axis=2), AxisError, ("2",)),
        ("sort", lambda: ops.sort(X, axis=2), AxisError, ("2",)),
        ("argsort", lambda: ops.argsort(X, axis=2), AxisError, ("2",)),
        ("flip", lambda: ops.flip(X, 5), AxisError, ("5",)),
        ("roll", lambda: ops.roll(X, 1, 5), AxisError, ("5",)),
        ("expand_dims", lambda: ops.expand_dims(X, 7), AxisError, ("7",)),
        ("squeeze", lambda: ops.squeeze(X, 7), AxisError, ("7",)),
        ("moveaxis", lambda: ops.moveaxis(X, 0, 5), AxisError, ("5",)),
        ("swapaxes", lambda: ops.swapaxes(X, 0, 5), AxisError, ("5",)),
        ("softmax", lambda: ops.softmax(X, axis=5), AxisError, ("5",)),
        ("take", lambda: ops.take(X, [0], axis=5), AxisError, ("5",)),
        ("take_along_axis", lambda: ops.take_along_axis(X, N, axis=5), AxisError, ("5",)),
        ("unstack", lambda: ops.unstack(X, axis=5), AxisError, ("5",)),
        ("split", lambda: ops.split(X, 1, axis=5), AxisError, ("5",)),
        ("repeat", lambda: ops.repeat(X, 2, axis=5), AxisError, ("5",)),
        ("diff", lambda: ops.diff(X, axis=5), AxisError, ("5",)),
        ("fft", lambda: ops.fft.fft(X, axis=5), AxisError, ("5",)),
        ("vector_norm", lambda: ops.vector_norm(X, axis=5), AxisError, ("5",)),
        ("norm", lambda: ops.norm(X, axis=5), AxisError, ("5",)),
        ("quantile", lambda: ops.quantile(X, 0.5, axis=5), AxisError, ("5",)),
        ("median", lambda: ops.median(X, axis=5), AxisError, ("5",)),
        ("logsumexp", lambda: ops.logsumexp(X, axis=5), AxisError, ("5",)),
        ("cumulative_sum", lambda: ops.cumulative_sum(X), AxisError, ("(2, 3)",)),
        ("diagonal", lambda: ops.diagonal(X, 0, 0, 5), AxisError, ("5",)),
        ("any", lambda: ops.any(X, axis=5), AxisError, ("5",)),
        ("sum", lambda: ops.sum(X, axis=1.5), ArgumentTypeError, ("(2, 3)",)),
    ],
    "duplicate axes": [
        ("sum", lambda: ops.sum(X, axis=(0, 0)), AxisError, ("(0, 0)",)),
        ("sum", lambda: ops.sum(X, axis=(1, -1)), AxisError, ("1",)),
        ("max", lambda: ops.max(X, axis=(0, 0)), AxisError, ("(0, 0)",)),
        ("std", lambda: ops.std(X, axis=(0, 0)), AxisError, ("(0, 0)",)),
        ("all", lambda: ops.all(X, axis=(0, 0)), AxisError, ("(0, 0)",)),
        ("flip", lambda: ops.flip(X, (0, 0)), AxisError, ("(0, 0)",)),
        ("expand_dims", lambda: ops.expand_dims(X, (0, 0)), AxisError, ("(0, 0)",)),
        ("squeeze", lambda: ops.squeeze(X[None], (0, 0)), AxisError, ("(0, 0)",)),
        ("moveaxis", lambda: ops.moveaxis(X, (0, 0), (0, 1)), AxisError, ("(0, 0)",)),
        ("diagonal", lambda: ops.diagonal(X, 0, 1, 1), AxisError, ("1",)),
    ],
    "permutation": [
        ("transpose", lambda: ops.transpose(X, (0, 0)), AxisError, ("(2, 3)", "(0, 0)")),
        ("transpose", lambda: ops.transpose(X, (0,)), AxisError, ("(2, 3)", "(0,)")),
        ("transpose", lambda: ops.transpose(X, (0, 2)), AxisError, ("(2, 3)", "(0, 2)")),
        ("transpose", lambda: ops.permute_dims(X, (0, 1, 2)), AxisError, ("(2, 3)", "(0, 1, 2)")),
    ],
    "squeeze": [
        ("squeeze", lambda: ops.squeeze(X, 0), ShapeError, ("2", "0")),
        ("squeeze", lambda: ops.squeeze(X, (0, 1)), ShapeError, ("2", "0")),
    ],
    "split": [
        ("split", lambda: ops.split(X, 4, 1), ShapeError, ("3", "4")),
        ("split", lambda: ops.split(X, 0), ShapeError, ("2", "0")),
        ("array_split", lambda: ops.array_split(X, 0), ShapeError, ("2", "0")),
        ("unstack", lambda: ops.unstack(X, 3), ShapeError, ("0", "2")),
    ],
    "dtype": [
        ("cast", lambda: ops.cast(X, "flaot32"), DTypeError, ("'flaot32'", "'float32'")),
        ("zeros", lambda: ops.zeros(2, dtype="int7"), DTypeError, ("'int7'", "'int8'")),
        ("zeros", lambda: ops.zeros(2, 3), DTypeError, ("3 is not a dtype", "as in zeros((2, 3))")),
        ("ones", lambda: ops.ones(2, 3), DTypeError, ("3 is not a dtype", "as in ones((2, 3))")),
        ("empty", lambda: ops.empty(2, 3), DTypeError, ("3 is not a dtype", "as in empty((2, 3))")),
        ("sin", lambda: ops.sin("text"), DTypeError, ("'text'",)),
        ("add", lambda: ops.add(X, "text"), DTypeError, ("'text'",)),
        ("sin", lambda: ops.sin(None), DTypeError, ("None",)),
        ("subtract", lambda: ops.subtract([True], [False]), DTypeError, ("bool",)),
        ("negative", lambda: ops.negative([True]), DTypeError, ("bool",)),
        ("bitwise_and", lambda: ops.bitwise_and([1.0], [2.0]), DTypeError, ("float32",)),
        ("bitwise_not", lambda: ops.bitwise_not([1.0]), DTypeError, ("float32",)),
        ("bitwise_left_shift", lambda: ops.bitwise_left_shift([1.0], 1), DTypeError, ("float32",)),
        ("less", lambda: ops.less([1j], [1j]), DTypeError, ("complex64",)),
        ("max", lambda: ops.max([1j]), DTypeError, ("complex64",)),
        ("sort", lambda: ops.sort([1j]), DTypeError, ("complex64",)),
        ("floor", lambda: ops.floor([1j]), DTypeError, ("complex64",)),
        ("floor_divide", lambda: ops.floor_divide([1j], [1j]), DTypeError, ("complex64",)),
        ("arctan2", lambda: ops.arctan2([1j], [1j]), DTypeError, ("complex64",)),
        ("hypot", lambda: ops.hypot([1j], [1j]), DTypeError, ("complex64",)),
        ("erf", lambda: ops.erf([1j]), DTypeError, ("complex64",)),
        ("argmax", lambda: ops.argmax([1j]), DTypeError, ("complex64",)),
        ("gcd", lambda: ops.gcd([1.0], [2.0]), DTypeError, ("float32",)),
        ("finfo", lambda: ops.finfo("int8"), DTypeError, ("int8",)),
        ("iinfo", lambda: ops.iinfo("float32"), DTypeError, ("float32",)),
        ("rfft", lambda: ops.fft.rfft([1j, 2]), DTypeError, ("complex64",)),
        ("ldexp", lambda: ops.ldexp([1.0], [1.5]), DTypeError, ("float32",)),
        ("bincount", lambda: ops.bincount([1.5]), DTypeError, ("float32",)),
    ],
    "index out of bounds": [
        ("take", lambda: ops.take(X, [99], 0), IndexOutOfBoundsError, ("99", "2")),
        ("take", lambda: ops.take(X, [-3], 0), IndexOutOfBoundsError, ("-3", "2")),
        ("take", lambda: ops.take(X, 99), IndexOutOfBoundsError, ("99", "6", "from -n to n - 1")),
        ("take", lambda: ops.take(Z, [0], 0), IndexOutOfBoundsError, ("0",)),
        ("take_along_axis", lambda: ops.take_along_axis(X, [[9]], 1), IndexOutOfBoundsError, ("9", "3")),
        ("get_item", lambda: ops.get_item(X, 2), IndexOutOfBoundsError, ("2",)),
        ("get_item", lambda: ops.get_item(X, (0, -4)), IndexOutOfBoundsError, ("-4", "3")),
        ("get_item", lambda: ops.get_item(X, [0, 5]), IndexOutOfBoundsError, ("5", "2")),
        ("get_item", lambda: ops.get_item(X, (0, 0, 0)), AxisError, ("2", "3")),
        ("get_item", lambda: ops.get_item(X, np.array([True, False, True])), ShapeError, ("(3,)",)),
        ("get_item", lambda: ops.get_item(X, 1.5), ArgumentTypeError, ("None", "1.5")),
        ("get_item", lambda: ops.get_item(X, (..., ...)), ArgumentError, ("ellipsis",)),
        ("take", lambda: ops.take(X, [0.5], 0), ArgumentTypeError, ("float64",)),
        ("scatter_update", lambda: ops.scatter_update(X, [[5, 0]], [1.0]), IndexOutOfBoundsError, ("5", "2")),
        ("scatter", lambda: ops.scatter([[5]], [1.0], (4,)), IndexOutOfBoundsError, ("5", "4")),
        ("unravel_index", lambda: ops.unravel_index([9], (2, 3)), IndexOutOfBoundsError, ("(2, 3)",)),
    ],
    "tensors of indices out of bounds": [
        ("take", lambda: _checked(lambda: ops.take(X, ops.array([99]), 0)), IndexOutOfBoundsError, ("99", "2")),
        ("take", lambda: _checked(lambda: ops.take(X, ops.array([[-3]]), 0)), IndexOutOfBoundsError, ("-3", "2")),
        (
            "take_along_axis",
            lambda: _checked(lambda: ops.take_along_axis(X, ops.array([[9]]), 1)),
            IndexOutOfBoundsError,
            ("9", "3"),
        ),
        ("get_item", lambda: _checked(lambda: ops.get_item(X, ops.array([0, 5]))), IndexOutOfBoundsError, ("5", "2")),
        (
            "scatter_update",
            lambda: _checked(lambda: ops.scatter_update(X, ops.array([[5, 0]]), [1.0])),
            IndexOutOfBoundsError,
            ("5", "2"),
        ),
    ],
    "slice": [
        ("slice", lambda: ops.slice(X, [1, 1], [2, 2]), IndexOutOfBoundsError, ("(2, 2)", "(2, 3)")),
        ("slice", lambda: ops.slice(X, [0], [1]), ShapeError, ("(2, 3)", "(1,)")),
        ("slice", lambda: ops.slice(X, [0, 0], [-1, 1]), IndexOutOfBoundsError, ("(2, 3)",)),
        (
            "slice_update",
            lambda: ops.slice_update(X, [1, 2], np.ones((2, 2), np.float32)),
            IndexOutOfBoundsError,
            ("(2, 2)", "(2, 3)"),
        ),
        ("get_item", lambda: ops.get_item(X, slice(None, None, 0)), ArgumentError, ("0",)),
        ("get_item", lambda: ops.get_item(X, slice(0.5, None)), ArgumentTypeError, ("None", "0.5")),
    ],
    "singular matrices": [
        ("inv", lambda: ops.inv(S), LinAlgError, ("(3, 3)",)),
        ("inv", lambda: ops.inv(np.stack([np.eye(3, dtype=np.float32), S])), LinAlgError, ("(2, 3, 3)",)),
        ("solve", lambda: ops.solve(S, X[0]), LinAlgError, ("(3, 3)", "(3,)")),
        ("solve", lambda: ops.solve(S, S), LinAlgError, ("(3, 3)",)),
        ("matrix_power", lambda: ops.matrix_power(S, -1), LinAlgError, ("(3, 3)", "singular")),
        ("solve_triangular", lambda: ops.solve_triangular(np.triu(S) * 0, S), LinAlgError, ("singular",)),
    ],
    "positive-definite": [
        ("cholesky", lambda: ops.cholesky([[1.0, 2.0], [2.0, 1.0]]), LinAlgError, ("(2, 2)",)),
        ("cholesky", lambda: ops.cholesky([[0.0, 0.0], [0.0, 0.0]]), LinAlgError, ("(2, 2)",)),
        ("cholesky", lambda: ops.cholesky([[NAN, 0.0], [0.0, 1.0]]), LinAlgError, ("positive-definite",)),
    ],
    "square matrices": [
        ("inv", lambda: ops.inv(X), ShapeError, ("(2, 3)",)),
        ("inv", lambda: ops.inv(V), ShapeError, ("(4,)",)),
        ("det", lambda: ops.det(X), ShapeError, ("(2, 3)",)),
        ("slogdet", lambda: ops.slogdet(X), ShapeError, ("(2, 3)",)),
        ("cholesky", lambda: ops.cholesky(X), ShapeError, ("(2, 3)",)),
        ("eigh", lambda: ops.eigh(X), ShapeError, ("(2, 3)",)),
        ("eig", lambda: ops.eig(X), ShapeError, ("(2, 3)",)),
        ("solve", lambda: ops.solve(X, X), ShapeError, ("(2, 3)",)),
        ("solve", lambda: ops.solve(np.eye(3), X), ShapeError, ("(3, 3)", "(2, 3)")),
        ("svd", lambda: ops.svd(V), ShapeError, ("(4,)",)),
        ("qr", lambda: ops.qr(V), ShapeError, ("(4,)",)),
        ("svd", lambda: ops.svd([[NAN, 1.0], [1.0, 2.0]]), LinAlgError, ("(2, 2)",)),
    ],
    "empty reductions": [
        ("max", lambda: ops.max(Z, axis=0), ShapeError, ("(0, 3)",)),
        ("min", lambda: ops.min(Z), ShapeError, ("(0, 3)",)),
        ("argmax", lambda: ops.argmax(Z), ShapeError, ("(0, 3)",)),
        ("argmin", lambda: ops.argmin(Z, axis=0), ShapeError, ("(0, 3)",)),
        ("ptp", lambda: ops.ptp(Z), ShapeError, ("(0, 3)",)),
        ("nanargmax", lambda: ops.nanargmax(Z), ShapeError, ("(0, 3)",)),
    ],
    "einsum": [
        ("einsum", lambda: ops.einsum("ij,jk->ik", X, X), ShapeError, ("'j'", "'ij,jk->ik'")),
        ("einsum", lambda: ops.einsum("i$->i", X), ArgumentError, ("'i$->i'",)),
        ("einsum", lambda: ops.einsum("ijk->i", X), ShapeError, ("(2, 3)",)),
        ("einsum", lambda: ops.einsum("ij->k", X), ArgumentError, ("'ij->k'",)),
        ("einsum", lambda: ops.einsum("ij,jk->ik", X), ArgumentError, ("'ij,jk->ik'", "2")),
        ("einsum", lambda: ops.einsum("ij->ii", X), ArgumentError, ("'ij->ii'",)),
        ("einsum", lambda: ops.einsum("ii->i", X), ShapeError, ("'i'", "'ii->i'")),
    ],
    "Python ints out of range": [
        ("add", lambda: ops.add(np.int8([1]), 300), RangeError, ("300", "int8")),
        ("subtract", lambda: ops.subtract(np.uint8([1]), -1), RangeError, ("-1", "uint8")),
        ("multiply", lambda: ops.multiply(np.int64([1]), 2**70), RangeError, ("1180591620717411303424", "int64")),
        ("less", lambda: ops.less(np.int8([1]), 300), RangeError, ("300", "int8")),
        ("nan_to_num", lambda: ops.nan_to_num(X, "a"), ArgumentTypeError, ("nan is a real number or a tensor, not",)),
        ("nan_to_num", lambda: ops.nan_to_num(X, 0.0, 1j), ArgumentTypeError, ("posinf is a real number or a", "1j")),
        ("full", lambda: ops.full((3,), np.ones((1,) * 33)), ShapeError, ("(3,)",)),
        ("full", lambda: ops.full((3,), np.ones((1, 3))), ShapeError, ("(3,)",)),
        ("full_like", lambda: ops.full_like(V, np.ones((1, 4))), ShapeError, ("(4,)",)),
        ("full", lambda: ops.full((2,), 300, dtype="int8"), RangeError, ("300", "int8")),
        ("full", lambda: ops.full((2,), 2**70), RangeError, ("1180591620717411303424", "int64")),
        ("maximum", lambda: ops.maximum(np.int8([1]), 300), RangeError, ("300", "int8")),
        ("where", lambda: ops.where(X > 0, np.int8(1), 300), RangeError, ("300", "int8")),
        ("convert_to_tensor", lambda: ops.convert_to_tensor([2**70]), RangeError, ("1180591620717411303424", "64")),
        ("convert_to_tensor", lambda: ops.convert_to_tensor([300], dtype="uint8"), RangeError, ("300", "uint8")),
        ("clip", lambda: ops.clip(np.int8([1]), 0, 300), RangeError, ("300", "int8")),
        ("full_like", lambda: ops.full_like(np.int8([1]), 300), RangeError, ("300", "int8")),
        ("power", lambda: ops.power(np.int8([1]), 300), RangeError, ("300", "int8")),
        ("arange", lambda: ops.arange(0, 300, dtype="int8"), RangeError, ("299", "int8")),
        ("bitwise_and", lambda: ops.bitwise_and(np.int8([1]), 300), RangeError, ("300", "int8")),
    ],
    "repeats": [
        ("repeat", lambda: ops.repeat(X, -1), ArgumentError, ("-1",)),
        ("repeat", lambda: ops.repeat(X, [1, 2], axis=1), ShapeError, ("(2,)",)),
        ("repeat", lambda: ops.repeat(X, [1, -2, 1], axis=1), ArgumentError, ("-2",)),
        ("repeat", lambda: ops.repeat(X, 1.5), ArgumentTypeError, ("float64",)),
        ("tile", lambda: ops.tile(X, -1), ShapeError, ("-1",)),
    ],
    "pad": [
        ("pad", lambda: ops.pad(X, 1, "nonsense"), ArgumentError, ("'nonsense'",)),
        ("pad", lambda: ops.pad(X, -1), ShapeError, ("-1",)),
        ("pad", lambda: ops.pad(X, [(1, 1)] * 3), ShapeError, ("(1, 1)",)),
        ("pad", lambda: ops.pad(Z, 1, "reflect"), ShapeError, ("empty axis", "reflect")),
        ("pad", lambda: ops.pad(X, 1, "edge", 1.0), ArgumentError, ("'constant'", "'edge'")),
    ],
    "negative sizes": [
        ("zeros", lambda: ops.zeros((-1, 2)), ShapeError, ("-1", "2")),
        ("ones", lambda: ops.ones(-1), ShapeError, ("-1",)),
        ("full", lambda: ops.full((2, -3), 1.0), ShapeError, ("2", "-3")),
        ("empty", lambda: ops.empty((-1,)), ShapeError, ("-1",)),
        ("eye", lambda: ops.eye(-1), ShapeError, ("-1",)),
        ("eye", lambda: ops.eye(2, -1), ShapeError, ("2", "-1")),
        ("tri", lambda: ops.tri(-2), ShapeError, ("(-2, -2)",)),
        ("broadcast_to", lambda: ops.broadcast_to(X, (-2, 3)), ShapeError, ("-2", "3")),
        ("linspace", lambda: ops.linspace(0, 1, -1), ArgumentError, ("-1", "0")),
        ("random_uniform", lambda: ops.random_uniform((-1,)), ShapeError, ("(-1,)",)),
        ("random_normal", lambda: ops.random_normal((-1,), seed=0), ShapeError, ("-1",)),
        ("one_hot", lambda: ops.one_hot([0], -1), ArgumentError, ("0", "-1")),
        ("fft", lambda: ops.fft.fft(V, n=0), ArgumentError, ("0",)),
        ("fft", lambda: ops.fft.fft(V, n=-1), ArgumentError, ("-1",)),
        ("zeros", lambda: ops.zeros((1.5,)), ArgumentTypeError, ("1.5",)),
    ],
    "sizes beyond the memory": [
        ("zeros", lambda: ops.zeros((2**31 - 1, 2**31 - 1, 4)), OutOfMemoryError, ()),
        ("zeros", lambda: ops.zeros(2**70), OutOfMemoryError, ()),
        ("ones", lambda: ops.ones((FAR,)), OutOfMemoryError, ()),
        ("empty", lambda: ops.empty((FAR,)), OutOfMemoryError, ()),
        ("full", lambda: ops.full((FAR,), 1.5), OutOfMemoryError, ()),
        ("full", lambda: ops.full((FAR,), ops.ones(())), OutOfMemoryError, ()),
        ("eye", lambda: ops.eye(2**31 - 1), OutOfMemoryError, ()),
        ("tri", lambda: ops.tri(2**31 - 1), OutOfMemoryError, ()),
        ("diag", lambda: ops.diag(V, 2**31), OutOfMemoryError, ()),
        ("arange", lambda: ops.arange(FAR), OutOfMemoryError, ()),
        ("linspace", lambda: ops.linspace(0.0, 1.0, FAR), OutOfMemoryError, ()),
        ("linspace", lambda: ops.linspace(V, V, FAR), OutOfMemoryError, ()),
        ("hanning", lambda: ops.hanning(FAR), OutOfMemoryError, ()),
        ("vander", lambda: ops.vander(V, FAR), OutOfMemoryError, ()),
        ("tril_indices", lambda: ops.tril_indices(2**50), OutOfMemoryError, ()),
        ("pad", lambda: ops.pad(PILE, 2**20), OutOfMemoryError, ()),
        ("pad", lambda: ops.pad(V, FAR, "edge"), OutOfMemoryError, ()),
        ("tile", lambda: ops.tile(V, (2**30, 2**30)), OutOfMemoryError, ()),
        ("repeat", lambda: ops.repeat(V, FAR), OutOfMemoryError, ()),
        ("repeat", lambda: ops.repeat(V, [2**58] * 4), OutOfMemoryError, ()),
        ("one_hot", lambda: ops.one_hot([1], FAR), OutOfMemoryError, ()),
        ("scatter", lambda: ops.scatter([[0]], [1.0], (FAR,)), OutOfMemoryError, ()),
        ("segment_sum", lambda: ops.segment_sum(V, [0, 1, 2, 3], FAR), OutOfMemoryError, ()),
        ("bincount", lambda: ops.bincount([1], minlength=FAR), OutOfMemoryError, ()),
        ("histogram", lambda: ops.histogram(V, FAR), OutOfMemoryError, ()),
        ("fft", lambda: ops.fft.fft(V, FAR), OutOfMemoryError, ()),
        ("conv_transpose", lambda: ops.conv_transpose(PILE, PILE, FAR), OutOfMemoryError, ()),
        ("random_uniform", lambda: ops.random_uniform((FAR,)), OutOfMemoryError, ()),
        ("random_normal", lambda: ops.random_normal((FAR,), seed=0), OutOfMemoryError, ()),
    ],
    "integers beyond 64 bits": [
        ("sum", lambda: ops.sum(X, 2**70), AxisError, ("1180591620717411303424",)),
        ("concatenate", lambda: ops.concatenate([X, X], -(2**40)), AxisError, ("-1099511627776",)),
        ("moveaxis", lambda: ops.moveaxis(X, 2**31, 0), AxisError, ("2147483648",)),
        ("expand_dims", lambda: ops.expand_dims(X, 2**63), AxisError, ("9223372036854775808",)),
        ("transpose", lambda: ops.transpose(X, (0, 2**40)), AxisError, ("1099511627776",)),
        ("take", lambda: ops.take(V, [2**64 - 1]), IndexOutOfBoundsError, ("18446744073709551615",)),
        (
            "take",
            lambda: ops.take(V, np.array([2**64 - 4], np.uint64)),
            IndexOutOfBoundsError,
            ("18446744073709551612",),
        ),
        ("take", lambda: ops.take(V, [-(2**70)]), IndexOutOfBoundsError, ("-1180591620717411303424",)),
        ("repeat", lambda: ops.repeat(V, [2**63]), IndexOutOfBoundsError, ("9223372036854775808",)),
    ],
    "axes and flags of other types": [
        ("sum", lambda: ops.sum(X, True), ArgumentTypeError, ("True",)),
        ("argmax", lambda: ops.argmax(X, False), ArgumentTypeError, ("False",)),
        ("concatenate", lambda: ops.concatenate([X], 5), AxisError, ("5",)),
        ("concatenate", lambda: ops.concatenate([X], True), ArgumentTypeError, ("True",)),
        ("sum", lambda: ops.sum(X, 1, "yes"), ArgumentTypeError, ("keepdims", "'yes'")),
        ("searchsorted", lambda: ops.searchsorted(V, V, sorter=[0, 1]), ShapeError, ("(2,)",)),
        ("searchsorted", lambda: ops.searchsorted(V, V, sorter=[0, 1, 2, 4]), IndexOutOfBoundsError, ("4",)),
    ],
    "ragged lists": [
        ("sin", lambda: ops.sin([[1], [2, 3]]), ShapeError, ("(2,)",)),
    ],
    "other arguments": [
        ("arange", lambda: ops.arange(0, 5, 0), ArgumentError, ("0",)),
        ("to_device", lambda: ops.to_device(X, "tpu"), DeviceError, ("'tpu'", "'cpu'")),
        ("random_uniform", lambda: ops.random_uniform((2,), seed=-1), ArgumentError, ("0", "-1")),
        ("quantile", lambda: ops.quantile(X, 1.5), ArgumentError, ("0", "1")),
        ("searchsorted", lambda: ops.searchsorted(V, 1.0, side="middle"), ArgumentError, ("'left'", "'right'")),
        ("qr", lambda: ops.qr(S, mode="raw"), ArgumentError, ("'reduced'", "'complete'")),
        ("matrix_norm", lambda: ops.matrix_norm(X, ord="max"), ArgumentError, ("'fro'", "'nuc'")),
        ("meshgrid", lambda: ops.meshgrid(V, indexing="ji"), ArgumentError, ("'xy'", "'ij'")),
        ("fft", lambda: ops.fft.fft(V, norm="other"), ArgumentError, ("'backward'", "'ortho'")),
        ("top_k", lambda: ops.top_k(V, 9), ShapeError, ("(4,)",)),
        ("tril", lambda: ops.tril(V), ShapeError, ("(4,)",)),
        ("diag", lambda: ops.diag(np.ones((1, 1, 1))), ShapeError, ("(1, 1, 1)",)),
        ("matrix_transpose", lambda: ops.matrix_transpose(V), ShapeError, ("(4,)",)),
    ],
}
"""For each kind of error: the op, a call that fails, the class of the error, and parts of its message."""
ROWS = [(f"{kind}: {row[0]} {place}", row) for kind, rows in BAD.items() for place, row in enumerate(rows)]


@together("row", [pytest.param(row, id=label) for label, row in ROWS])
def test_bad_input_raises_a_typed_error_that_names_what_it_saw(row: Row, backend: str) -> None:
    op, call, typed, seen = row
    with pytest.raises(EmberError) as caught:
        ops.eval(call())
    assert type(caught.value) is typed, caught.value
    head, _, message = str(caught.value).partition(f"{op}() on backend '{backend}': ")
    assert not head
    assert message
    assert all(part.lower() in message.lower() for part in seen), message


FOREIGN: dict[str, Callable[[object, object], object]] = {
    "add": lambda x, alien: ops.add(x, alien),
    "sin": lambda x, alien: ops.sin(alien),
    "matmul": lambda x, alien: ops.matmul(x, alien),
    "sum": lambda x, alien: ops.sum(alien),
    "concatenate": lambda x, alien: ops.concatenate([x, alien]),
    "stack": lambda x, alien: ops.stack([alien, x]),
    "where": lambda x, alien: ops.where(x, alien, 0.0),
    "convert_to_tensor": lambda x, alien: ops.convert_to_tensor(alien),
    "reshape": lambda x, alien: ops.reshape(alien, (-1,)),
    "inv": lambda x, alien: ops.inv(alien),
    "einsum": lambda x, alien: ops.einsum("ij,ij->i", x, alien),
    "maximum": lambda x, alien: ops.maximum(alien, 1.0),
    "take": lambda x, alien: ops.take(x, alien),
    "to_numpy": lambda x, alien: ops.to_numpy(alien),
    "cast": lambda x, alien: ops.cast(alien, "float64"),
    "mean": lambda x, alien: ops.mean([alien]),
}


@pytest.mark.parametrize("op", sorted(FOREIGN))
def test_a_tensor_of_another_backend_is_refused(op: str, backend: str) -> None:
    x = ops.ones((2, 2))
    # NumPy is left out, because every backend accepts NumPy arrays.
    for other in set(INSTALLED) - {"numpy", backend}:
        ops.set_backend(other)
        alien = ops.ones((2, 2), dtype="int64" if op == "take" else None)
        ops.set_backend(backend)
        with pytest.raises(BackendMismatchError, match=rf"^{op}\(\) on backend '{backend}': .*{other}.*to_numpy"):
            FOREIGN[op](x, alien)


def test_an_error_in_an_inner_op_names_both_ops(backend: str) -> None:
    with pytest.raises(ShapeError, match=rf"^dot\(\) on backend '{backend}': in matmul\(\): "):
        ops.dot(X, X)
    with pytest.raises(ShapeError, match=rf"^ptp\(\) on backend '{backend}': in max\(\): "):
        ops.ptp(Z)


HINTS: list[tuple[Callable[[], object], str]] = [
    (lambda: ops.zeros(2, 3), "; a shape of several lengths is one argument, as in zeros((2, 3))"),
    (lambda: ops.cast(2, 3), ""),
    (lambda: ops.zeros((2, 3), 3), ""),
    (lambda: ops.where(X > 0), "; where takes three tensors, and ops.nonzero(condition) gives the indices"),
    (lambda: ops.where(X > 0, V, X), ""),
    (lambda: ops.concatenate(X, X), "; several tensors are one argument, as in concatenate([x1, x2])"),
    (lambda: ops.concatenate([X, X], 5), ""),
    (lambda: ops.sum(X, X), ""),
]


@together("call, hint", HINTS)
def test_a_call_in_the_form_of_another_library_is_corrected(
    call: Callable[[], object], hint: str, backend: str
) -> None:
    with pytest.raises(EmberError) as raised:
        call()
    assert hint in str(raised.value)
    assert ("one argument" in str(raised.value) or "three tensors" in str(raised.value)) == bool(hint)


WAYS_OUT: list[tuple[Callable[[], object], str]] = [
    (lambda: ops.sum(X, X), "but the order is sum(x, axis, keepdims, dtype)"),
    (lambda: ops.cast("float32", X), "is not a dtype; the dtype comes after the tensor, as in ops.cast(x, 'float32')"),
    (lambda: ops.sum(X, dtype=X), "is not a dtype; the dtype comes after the tensor, as in ops.cast(x, 'float32')"),
    (lambda: ops.reshape((2, 3), X), "but the order is reshape(x, shape, copy)"),
    (lambda: ops.reshape(X, (2.0, -1)), "shape is made of integers: int(n) makes one"),
    (lambda: ops.stack([X, X[0]]), "; pad them to one shape (ops.pad), or join them along an axis (ops.concatenate)"),
    (lambda: ops.split(ops.ones(5), 2), "; use ops.array_split"),
]


@together("call, way_out", WAYS_OUT)
def test_a_call_in_another_order_or_with_other_lengths_has_a_way_out(
    call: Callable[[], object], way_out: str, backend: str
) -> None:
    with pytest.raises(EmberError) as raised:
        call()
    assert way_out in str(raised.value)
