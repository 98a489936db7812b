"""The bodies of linear algebra and of Fourier transforms."""

from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.backend import OPS
from emberharmony.errors import ArgumentError, DTypeError

MATRIX = [[4.0, 1.0], [1.0, 3.0]]


def leaves(result: Any) -> list[Any]:
    return list(result) if isinstance(result, tuple) else [result]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *((name, ()) for name in ("det", "slogdet", "inv", "lu_factor", "qr", "eigh", "eig", "svd", "cholesky")),
        *(("cholesky", (True,)), ("svd", (False,)), ("svd", (True, False)), ("fft", (3,)), ("rfft", ()), ("irfft", ())),
    ],
)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32"])
def test_a_body_gives_what_the_op_gives(name: str, options: tuple[Any, ...], dtype: Any) -> None:
    with ops.use_backend("numpy"):
        x = ops.convert_to_tensor(MATRIX, dtype)
        found, wanted = (leaves(f(x, *options)) for f in (OPS[name].composed, OPS[name].function))
        assert [ops.dtype(each) for each in found] == [ops.dtype(each) for each in wanted]
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-3 if dtype == "float16" else 1e-5, atol=1e-6)


def test_dtypes_and_options_are_checked() -> None:
    with ops.use_backend("numpy"):
        with pytest.raises(DTypeError):
            OPS["rfft"].composed(ops.convert_to_tensor([1j]))
        with pytest.raises(ArgumentError, match="names of one option"):
            OPS["rfft"].composed(ops.zeros(4), 2, fft_length=4)


@pytest.mark.parametrize("lower", [False, True])
def test_triangular_systems_have_the_derivatives_of_the_op(lower: bool) -> None:
    a, b = np.array(MATRIX), np.array([[1.0, 2.0], [3.0, -1.0]])
    with ops.use_backend("numpy"):
        for place in (0, 1):
            slopes = [
                ops.grad(
                    lambda x, f=f, place=place: ops.sum(ops.square(f(*((x, b) if place == 0 else (a, x)), lower)))
                )((a, b)[place])
                for f in (OPS["solve_triangular"].composed, ops.solve_triangular)
            ]
            np.testing.assert_allclose(slopes[0], slopes[1], rtol=1e-11, atol=1e-13)
