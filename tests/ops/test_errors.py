"""Bad input raises the same typed error on every backend, naming op and backend."""

from collections.abc import Callable

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.core import errors

X = np.ones((2, 3), np.float32)
SQUARE = np.ones((3, 3), np.float32)

CASES: list[tuple[str, Callable[[], object], type[Exception]]] = [
    ("add", lambda: ops.add(X, np.ones(4, np.float32)), errors.ShapeError),
    ("maximum", lambda: ops.maximum(X, np.ones(4, np.float32)), errors.ShapeError),
    ("matmul", lambda: ops.matmul(X, X), errors.ShapeError),
    ("concatenate", lambda: ops.concatenate([X, np.ones((3, 4))]), errors.ShapeError),
    ("concatenate", lambda: ops.concatenate([]), errors.ShapeError),
    ("stack", lambda: ops.stack([X, X[:1]]), errors.ShapeError),
    ("reshape", lambda: ops.reshape(X, (4, 2)), errors.ShapeError),
    ("reshape", lambda: ops.reshape(X, (4, -1)), errors.ShapeError),
    ("broadcast_to", lambda: ops.broadcast_to(X, (2, 4)), errors.ShapeError),
    ("squeeze", lambda: ops.squeeze(X, 0), errors.ShapeError),
    ("split", lambda: ops.split(X, 4, 1), errors.ShapeError),
    ("zeros", lambda: ops.zeros((-1, 2)), errors.ShapeError),
    ("sum", lambda: ops.sum(X, axis=2), errors.AxisError),
    ("sum", lambda: ops.sum(X, axis=(0, 0)), errors.AxisError),
    ("transpose", lambda: ops.transpose(X, (0, 0)), errors.AxisError),
    ("flip", lambda: ops.flip(X, 5), errors.AxisError),
    ("expand_dims", lambda: ops.expand_dims(X, 7), errors.AxisError),
    ("take", lambda: ops.take(X, [99], 0), errors.IndexOutOfBoundsError),
    ("take", lambda: ops.take(X, [-3], 0), errors.IndexOutOfBoundsError),
    ("take_along_axis", lambda: ops.take_along_axis(X, [[9]], 1), errors.IndexOutOfBoundsError),
    ("get_item", lambda: ops.get_item(X, 2), errors.IndexOutOfBoundsError),
    ("slice", lambda: ops.slice(X, [1, 1], [2, 2]), errors.IndexOutOfBoundsError),
    ("scatter_update", lambda: ops.scatter_update(X, [[5, 0]], [1.0]), errors.IndexOutOfBoundsError),
    ("max", lambda: ops.max(X[:0], axis=0), errors.ShapeError),
    ("argmax", lambda: ops.argmax(X[:0]), errors.ShapeError),
    ("inv", lambda: ops.inv(X), errors.ShapeError),
    ("inv", lambda: ops.inv(SQUARE), errors.LinAlgError),
    ("solve", lambda: ops.solve(SQUARE, X[0]), errors.LinAlgError),
    ("cholesky", lambda: ops.cholesky([[1.0, 2.0], [2.0, 1.0]]), errors.LinAlgError),
    ("einsum", lambda: ops.einsum("ij,jk->ik", X, X), errors.ShapeError),
    ("einsum", lambda: ops.einsum("i$->i", X), errors.ArgumentError),
    ("subtract", lambda: ops.subtract([True], [False]), errors.DTypeError),
    ("negative", lambda: ops.negative([True]), errors.DTypeError),
    ("bitwise_and", lambda: ops.bitwise_and([1.0], [2.0]), errors.DTypeError),
    ("cast", lambda: ops.cast(X, "flaot32"), errors.DTypeError),
    ("add", lambda: ops.add(np.int8([1]), 300), errors.RangeError),
    ("sin", lambda: ops.sin("text"), errors.DTypeError),
    ("sin", lambda: ops.sin(None), errors.DTypeError),
    ("sin", lambda: ops.sin([[1], [2, 3]]), errors.ShapeError),
    ("arange", lambda: ops.arange(0, 5, 0), errors.ArgumentError),
    ("pad", lambda: ops.pad(X, 1, "nonsense"), errors.ArgumentError),
    ("to_device", lambda: ops.to_device(X, "tpu"), errors.DeviceError),
    ("random_uniform", lambda: ops.random_uniform((2,), seed=-1), errors.ArgumentError),
]


@pytest.mark.parametrize(("op", "call", "typed"), CASES, ids=[f"{i}-{c[0]}" for i, c in enumerate(CASES)])
def test_bad_input(op: str, call: Callable[[], object], typed: type[Exception], backend: str) -> None:
    with pytest.raises(typed, match=rf"{op}\(\) on backend '{backend}'"):
        call()


def test_integer_division_by_zero_and_minus_one(backend: str) -> None:
    lowest = np.array([-(2**31), 7, -7], np.int32)
    assert ops.to_numpy(ops.floor_divide(lowest, np.int32(-1))).tolist() == [-(2**31), -7, 7]
    assert ops.to_numpy(ops.mod(lowest, np.int32(-1))).tolist() == [0, 0, 0]
    assert ops.to_numpy(ops.floor_divide(lowest, np.int32(0))).tolist() == [0, 0, 0]
    assert ops.to_numpy(ops.mod(lowest, np.int32(0))).tolist() == [0, 0, 0]


def test_floor_divide_of_floats_is_exact(backend: str) -> None:
    assert ops.to_numpy(ops.floor_divide(np.float32([1.0, 7.5, -1.0]), np.float32([0.1, 2.0, np.inf]))).tolist() == [
        9.0,
        3.0,
        -1.0,
    ]


def test_long_reductions_keep_their_digits(backend: str) -> None:
    n = 10**6
    far = (1e4 + np.random.default_rng(0).standard_normal(n)).astype(np.float32)
    assert float(ops.std(far)) == pytest.approx(float(far.astype(np.float64).std()), rel=1e-6)
    tenth = np.full(n, 0.1, np.float32)
    assert float(ops.sum(tenth)) == pytest.approx(float(tenth.astype(np.float64).sum()), rel=1e-6)
    assert float(ops.erf(1e-6)) == pytest.approx(1.1283791670951e-06, rel=1e-6)
    pairs = ops.mean(tenth.reshape(-1, 2), axis=0)
    assert ops.to_numpy(pairs).tolist() == pytest.approx([0.1, 0.1], rel=1e-6)


def test_half_precision_is_accumulated_wide(backend: str) -> None:
    for dtype in ("float16", "bfloat16"):
        x = ops.cast(ops.full((10000,), 0.1), dtype)
        assert float(ops.cast(ops.mean(x), "float32")) == pytest.approx(0.1, rel=1e-2)


def test_float64_is_never_narrowed(backend: str) -> None:
    x = np.array([1 / 3])
    assert ops.dtype(ops.convert_to_tensor(x)) == "float64"
    assert ops.to_numpy(ops.multiply(x, 3.0)).tolist() == [1.0]
