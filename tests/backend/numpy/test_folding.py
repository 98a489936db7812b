"""Reductions on NumPy have the digits of float64 along every axis, in every layout, also in blocks and in folds."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.backend.numpy.folding import fold, reduction_rows


@pytest.fixture(autouse=True)
def on_numpy() -> Iterator[None]:
    with ops.use_backend("numpy"):
        yield


def f(*shape: int, dtype: str = "float32") -> Any:
    return np.random.default_rng([*shape]).uniform(0.5, 2.0, shape).astype(dtype)


SHAPES = [
    (4096,),
    (4097,),
    (64, 64),
    (64, 65),
    (65, 64),
    (2100, 2),
    (2080, 3),
    (128, 600),
    (130, 600),
    (3, 96, 20),
    (70, 0),
]
LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "rows": lambda x: x,
    "columns": np.asfortranarray,
    "strided": lambda x: np.repeat(x, 2, axis=0)[::2],
    "reversed": lambda x: x[::-1],
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "complex64"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_fold_equals_the_reduction_in_float64(layout: str, dtype: str) -> None:
    for shape in SHAPES:
        x = LAYOUTS[layout](f(*shape, dtype=dtype))
        axes: list[Any] = [None, 0, -1, *([(0, 1), [0, -1], (0, 2)] if len(shape) > 2 else [])]
        for axis, keepdims in [(axis, keepdims) for axis in axes for keepdims in (False, True)]:
            total = fold(np.add, x, axis, keepdims)
            wide = x.astype("complex128" if dtype == "complex64" else "float64")
            wanted = np.add.reduce(wide, tuple(axis) if isinstance(axis, list) else axis, keepdims=keepdims)
            assert (np.asarray(total).dtype, np.shape(total)) == (x.dtype, wanted.shape)
            limit = 5e-7 if dtype in ("float32", "complex64") else 1e-14
            np.testing.assert_allclose(np.asarray(total, wide.dtype), wanted, rtol=limit)
            if x.size and dtype != "complex64":
                largest = fold(np.maximum, x, axis, keepdims)
                wanted = np.maximum.reduce(x, tuple(axis) if isinstance(axis, list) else axis, keepdims=keepdims)
                assert np.asarray(largest).dtype == x.dtype
                assert np.array_equal(largest, wanted)


def test_long_rows_are_the_last_axes_of_large_contiguous_real_tensors() -> None:
    x = f(4, 2**14)
    for axis, shape in (
        (-1, (4, 2**14)),
        (1, (4, 2**14)),
        ((0, 1), (1, 2**16)),
        (None, (1, 2**16)),
        ((-1, 0), (1, 2**16)),
    ):
        rows = reduction_rows(x, axis)
        assert rows is not None
        assert rows.shape == shape
    for other, axis in (
        (f(4, 2**14 - 1), -1),
        (x, 0),
        (np.asfortranarray(x), -1),
        (x.astype("complex64"), -1),
        (x.astype("int64"), -1),
        (x.astype("float64"), -1),
        (f(2**16, 1), -1),
        (f(8, 4, 2**11), (0, 2)),
    ):
        assert reduction_rows(other, axis) is None
    wide = reduction_rows(f(1, 2**16, dtype="float64"), -1)
    assert wide is not None
    assert wide.shape == (1, 2**16)


@pytest.mark.parametrize("name", ["var", "std"])
def test_the_spread_of_long_rows_has_the_digits_of_float64(name: str) -> None:
    for x, axis in (
        (f(4, 2**14), -1),
        (f(2**15, 2), -1),
        (f(2, 2**16 + 7), -1),
        (f(2, 2**16 + 7, dtype="float64"), -1),
        (f(3, 30000) + np.float32(1000), -1),
        (f(2, 70000) * 0 + np.float32(7), -1),
        (f(2, 40000, dtype="float16"), None),
        (np.asfortranarray(f(40, 2**12)), 1),
    ):
        for correction in (0, 1):
            found = getattr(ops, name)(x, axis=axis, correction=correction)
            wanted = getattr(np, name)(x.astype("float64"), axis=axis, ddof=correction)
            np.testing.assert_allclose(
                found, wanted, rtol=2e-3 if x.dtype == "float16" else 2e-6 if x.itemsize < 8 else 1e-12
            )
