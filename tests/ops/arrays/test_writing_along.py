"""Writing along an axis: values that broadcast, where a library's function writes and where the composite does."""

import itertools
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.errors import AxisError, ShapeError
from tests.together import together

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
MODES = ("set", "add", "multiply", "min", "max")
LONG = [(True, False, True), (False, True, False), (False, False, False), (True, True, False)]
"""Which axes of the values have a length above 1."""


@together("mode, axis, long", itertools.product(MODES, (0, 1, 2), LONG), share=2)
def test_values_that_broadcast_are_written_like_those_that_were_broadcast(
    mode: Any, axis: int, long: tuple[bool, ...], backend: str
) -> None:
    order = ops.argsort(ops.array(np.sin(5.0 * np.arange(24)).reshape(X.shape)), axis=axis)
    at = ops.take(order, [0, -1], axis=axis)  # two places on each line, in any order
    kept = tuple(slice(length if each else 1) for each, length in zip(long, at.shape, strict=True))
    values = np.cos(np.arange(24.0, dtype="f4")).reshape(X.shape)[kept]

    def written(x: Any, values: Any) -> Any:
        return ops.put_along_axis(x, at, values, axis, mode)

    def general(x: Any, values: Any) -> Any:
        return written(x, ops.broadcast_to(values, at.shape))

    assert written(X, values).tolist() == general(X, values).tolist()
    gradients = [
        ops.grad(lambda x, values, f=f: ops.sum(ops.square(f(x, values))), argnums=(0, 1))(X, values)
        for f in (written, general)
    ]
    for got, want in zip(*gradients, strict=True):
        np.testing.assert_allclose(ops.to_numpy(got), ops.to_numpy(want), rtol=1e-5)


@pytest.mark.parametrize("axis", [3, 4, 5, -4, -5, -6])
def test_an_axis_out_of_range_is_refused(axis: int, backend: str) -> None:
    x = ops.array(X)
    for values in (1.0, ops.ones((2, 3, 4)), ops.ones(4)):
        with pytest.raises(AxisError):
            ops.put_along_axis(x, ops.zeros((2, 3, 4), dtype="int64"), values, axis)


@pytest.mark.parametrize("mode", ["set", "add", "multiply", "max"])
def test_values_of_as_many_elements_in_another_shape_are_refused(mode: Any, backend: str) -> None:
    x, rows = ops.ones((4, 3)), ops.convert_to_tensor([2, 0])
    places = ops.convert_to_tensor([[2, 0, 1], [1, 1, 0]])
    for shape in [(6,), (3, 2), (2, 3, 1), (6, 1), (2, 2, 3)]:
        for key in (rows, (rows,), [2, 0], slice(0, 2)):
            with pytest.raises(ShapeError, match="broadcast"):
                ops.set_item(x, key, ops.ones(shape), mode)
        with pytest.raises(ShapeError, match="broadcast"):
            ops.put_along_axis(x, places, ops.ones(shape), 0, mode)
