"""Values of a backend made from a namespace of the array API standard, where the standard leaves something open."""

from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.backend import OPS, Backend
from emberharmony.core.errors import ShapeError
from tests.backend.fast_paths.comparing import calls

xp = pytest.importorskip("array_api_strict")
ENDS = np.asarray([0.0, -0.0, 1.0, -1.0, 2.5, -7.0, np.inf, -np.inf, np.nan])
FLOATS = ("floor_divide", "mod", "divide", "power", "hypot", "arctan2", "logaddexp", "maximum", "minimum")
INTEGERS = ("floor_divide", "mod", "power", "maximum", "bitwise_and", "bitwise_left_shift", "bitwise_right_shift")


def test_plain_keys_make_one_slice(strict: Backend) -> None:
    with ops.use_backend("strict"):
        x = ops.convert_to_tensor(np.arange(24.0).reshape(2, 3, 4))
        for key in (1, -1, slice(None, None, 2), (0, slice(1, None)), (slice(None), -1, 3)):
            assert calls(ops.get_item, x, key) < calls(strict.composed("get_item"), x, key)
            assert ops.to_numpy(ops.get_item(x, key)).tolist() == ops.to_numpy(x)[key].tolist()


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_the_upper_factor_is_the_adjoint_of_the_lower(strict: Backend, dtype: str) -> None:
    root = np.asarray([[2, 1 - 1j], [3j, 4]]).astype(dtype) if dtype == "complex128" else np.asarray([[2.0, 1], [3, 4]])
    matrix = root @ root.conj().T
    with ops.use_backend("strict"):
        upper = ops.to_numpy(ops.cholesky(ops.convert_to_tensor(matrix), upper=True))
    np.testing.assert_allclose(upper.conj().T @ upper, matrix)


@pytest.mark.parametrize("dtype", ["bool", "int32", "float64", "complex64"])
def test_sums_and_products_of_booleans_are_those_of_numpy(strict: Backend, dtype: str) -> None:
    values = np.asarray([[0, 2, 3], [4, 5, 6]]).astype(dtype)
    with ops.use_backend("strict"):
        x = ops.convert_to_tensor(values)
        for op, native in [(ops.sum, np.sum), (ops.prod, np.prod)]:
            for axis, keepdims in [(None, False), (0, True), (1, False)]:
                found = ops.to_numpy(op(x, axis, keepdims, "bool"))
                wanted = native(values, axis=axis, keepdims=keepdims, dtype=bool)
                assert (found.tolist(), found.dtype) == (wanted.tolist(), wanted.dtype)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("op", "values"), [*((op, ENDS) for op in FLOATS), *((op, np.arange(-3, 70, 9)) for op in INTEGERS)]
)
def test_operators_at_the_ends_are_those_of_numpy(strict: Backend, op: str, values: Any) -> None:
    pair = np.repeat(values, len(values)), np.tile(values, len(values))
    results = []
    for name in ("numpy", "strict"):
        with ops.use_backend(name):
            results.append(ops.to_numpy(OPS[op].function(*map(ops.convert_to_tensor, pair))))
    np.testing.assert_array_equal(np.signbit(results[0]), np.signbit(results[1]))
    np.testing.assert_allclose(results[1], results[0], 1e-14)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_log1p_and_expm1_keep_the_digits_of_small_numbers(strict: Backend, dtype: str) -> None:
    x = np.asarray([0, 1e-30, -1e-6, 0.25, -0.75, 3.0]).astype(dtype)
    x = x + x[::-1] * np.asarray(1j, dtype) if dtype.startswith("complex") else x
    wide = "complex256" if dtype.startswith("complex") else "longdouble"
    with ops.use_backend("strict"):
        for op, native in ((ops.log1p, np.log1p), (ops.expm1, np.expm1)):
            found = ops.to_numpy(op(ops.convert_to_tensor(x)))
            assert found.dtype == dtype
            np.testing.assert_allclose(found, native(x.astype(wide)), 8 * np.finfo(dtype).eps)


@pytest.mark.parametrize("shape", [(2, -1), (-1, 4), (0, -1), (5, 1, 2)])
def test_a_shape_that_does_not_fit_is_refused(strict: Backend, shape: tuple[int, ...]) -> None:
    with ops.use_backend("strict"), pytest.raises(ShapeError, match=r"of shape \(5,\) cannot be reshaped to"):
        ops.reshape(ops.ones(5), shape)
