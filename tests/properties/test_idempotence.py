"""Ops that change nothing when they are applied a second time."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emberharmony import ops
from tests.properties.strategies import FLOATS, INSTALLED, INTEGERS, SHAPES, arrays, host, near, on, same

REAL = (*INTEGERS, *FLOATS)
ONCE: dict[str, tuple[Callable[[Any], Any], tuple[str, ...]]] = {
    "sort": (lambda x: ops.sort(x, axis=None), REAL),
    "sort descending": (lambda x: ops.sort(x, axis=None, descending=True), REAL),
    "clip": (lambda x: ops.clip(x, 1, 3), REAL),
    "abs": (ops.abs, REAL),
    "unique": (ops.unique, ("bool", *REAL)),
    "unique_values": (lambda x: ops.unique_values(ops.nan_to_num(x)), REAL),
    "floor": (ops.floor, REAL),
    "ceil": (ops.ceil, REAL),
    "trunc": (ops.trunc, REAL),
    "round": (ops.round, REAL),
    "sign": (ops.sign, REAL),
    "relu": (ops.relu, FLOATS),
    "nan_to_num": (ops.nan_to_num, FLOATS),
    "real": (ops.real, (*FLOATS, "complex64")),
    "positive": (ops.positive, REAL),
    "ravel": (ops.ravel, REAL),
    "squeeze": (ops.squeeze, REAL),
    "maximum of 0": (lambda x: ops.maximum(x, 0), REAL),
    "minimum with itself": (lambda x: ops.minimum(x, x), REAL),
    "cummax": (lambda x: ops.cummax(x), REAL),
    "cast": (lambda x: ops.cast(x, "int32"), ("int8", "int16", "uint8", "int64")),
}


@pytest.mark.parametrize("law", sorted(ONCE))
@given(data=st.data())
def test_applying_the_op_twice_equals_applying_it_once(law: str, data: st.DataObject) -> None:
    function, dtypes = ONCE[law]
    dtype = data.draw(st.sampled_from(dtypes))
    x = data.draw(arrays(dtype, special=dtype in FLOATS))
    for name in INSTALLED:
        with on(name):
            once = function(x)
            assert same(host(function(once)), host(once)), name


@given(data=st.data())
def test_triangles_of_a_matrix_agree_with_numpy_and_are_idempotent(data: st.DataObject) -> None:
    x = data.draw(arrays("int32", st.tuples(st.integers(0, 2), st.integers(0, 4), st.integers(0, 4))))
    k = data.draw(st.integers(-5, 5))
    for name in INSTALLED:
        with on(name):
            for part, wanted in ((ops.tril, np.tril(x, k)), (ops.triu, np.triu(x, k))):
                assert same(host(part(x, k)), wanted)
                assert same(host(part(part(x, k), k)), wanted)


@given(data=st.data())
def test_normalised_vectors_and_probabilities_stay_so(data: st.DataObject) -> None:
    x = data.draw(arrays(data.draw(st.sampled_from(FLOATS)), SHAPES.filter(lambda shape: shape and all(shape))))
    for name in INSTALLED:
        with on(name):
            unit = ops.normalize(x, axis=-1)
            assert near(host(ops.normalize(unit, axis=-1)), host(unit), 1.0, 8)
            weights = ops.softmax(x, axis=-1)
            assert near(host(ops.sum(weights, axis=-1)), np.ones(x.shape[:-1], x.dtype), 1.0, 32)
            shifted = ops.softmax(ops.subtract(x, ops.max(x, axis=-1, keepdims=True)), axis=-1)
            assert near(host(shifted), host(weights), 1.0, 32)
