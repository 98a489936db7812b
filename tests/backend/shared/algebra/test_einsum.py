"""The body of `einsum`: values and derivatives are NumPy's."""

from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.backend import OPS

CASES = {
    "ij,jk->ik": ((3, 4), (4, 2)),
    "ii->i": ((3, 3),),
    "iii->i": ((3, 3, 3),),
    "ijij->": ((2, 3, 2, 3),),
    "iij->ji": ((3, 3, 2),),
    "...ii->...": ((4, 3, 3),),
    "...i,...i->...": ((2, 3, 4), (3, 4)),
    "ii,jj->ij": ((3, 3), (2, 2)),
    "ij,ij,jk": ((2, 3), (2, 3), (3, 2)),
}


@pytest.mark.parametrize("subscripts", CASES)
def test_sums_of_products(subscripts: str) -> None:
    source, body = np.random.default_rng(0), OPS["einsum"].composed
    first, *others = (source.normal(size=shape) for shape in CASES[subscripts])
    with ops.use_backend("numpy"):
        np.testing.assert_allclose(body(subscripts, first, *others), np.einsum(subscripts, first, *others), rtol=1e-12)
        slopes = [
            ops.grad(lambda x, f=f: ops.sum(ops.square(f(subscripts, x, *others))))(first) for f in (body, ops.einsum)
        ]
        np.testing.assert_allclose(slopes[0], slopes[1], rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize(("dtype", "found"), [("bool", True), ("float16", 3.0), ("int8", 3)])
def test_booleans_and_half_precision_are_added_in_wider_dtypes(dtype: Any, found: float) -> None:
    with ops.use_backend("numpy"):
        ones = ops.ones((3,), dtype)
        result = OPS["einsum"].composed("i,i->", ones, ones)
        assert (ops.dtype(result), result.tolist()) == (dtype, found)
