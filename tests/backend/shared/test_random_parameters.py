"""The checks of what random draws take."""

import math

import numpy as np
import pytest

from emberharmony.backend.shared.random_parameters import check_shape_first, floating_dtype, largest_below
from emberharmony.core.dtypes import float16, float32, float64
from emberharmony.errors import ArgumentError, DTypeError


def test_draws_have_floating_dtypes_only() -> None:
    assert floating_dtype(None).name == "float32"
    assert floating_dtype("float16") is float16
    with pytest.raises(DTypeError):
        floating_dtype("int32")


@pytest.mark.parametrize("high", [1.0, -1.0, 0.1, 0.0, 1e30, -1e-30])
def test_below_gives_a_slightly_smaller_number(high: float) -> None:
    for dtype, native in ((float32, np.float32), (float64, np.float64)):
        high = float(native(high))
        found = native(largest_below(high, dtype))
        assert found < high
        assert high - found <= max(2 * np.spacing(native(abs(high))), math.ulp(0.0)) or high == 0.0


@pytest.mark.parametrize("shape", [0, 0.0])
@pytest.mark.parametrize("second", [1, -0.5, None, (2, 3)])
def test_a_mean_in_the_place_of_the_shape_is_refused(shape: float, second: object) -> None:
    with pytest.raises(ArgumentError, match="the order is normal\\(shape, mean\\)"):
        check_shape_first("normal(shape, mean)", shape, second)


@pytest.mark.parametrize(("shape", "second"), [(0, 0), (0, 0.0), (3, 1), ((), 1.0), ((0,), 2.0), ([], 1)])
def test_other_shapes_come_first(shape: object, second: object) -> None:
    check_shape_first("normal(shape, mean)", shape, second)
