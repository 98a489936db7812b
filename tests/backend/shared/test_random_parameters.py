"""The checks of what random draws take."""

import math

import numpy as np
import pytest

from emberharmony.backend.shared.random_parameters import floating, largest_below
from emberharmony.core.dtypes import float16, float32, float64
from emberharmony.errors import DTypeError


def test_draws_have_floating_dtypes_only() -> None:
    assert floating(None).name == "float32"
    assert floating("float16") is float16
    with pytest.raises(DTypeError):
        floating("int32")


@pytest.mark.parametrize("high", [1.0, -1.0, 0.1, 0.0, 1e30, -1e-30])
def test_below_gives_a_slightly_smaller_number(high: float) -> None:
    for dtype, native in ((float32, np.float32), (float64, np.float64)):
        high = float(native(high))
        found = native(largest_below(high, dtype))
        assert found < high
        assert high - found <= max(2 * np.spacing(native(abs(high))), math.ulp(0.0)) or high == 0.0
