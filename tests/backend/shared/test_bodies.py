"""What bodies share: promotion of operands that have options beside them, wide dtypes, and the way to the host."""

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.backend import OPS
from emberharmony.backend.shared import bodies
from emberharmony.errors import DTypeError, RangeError


def test_operands_beside_options_are_promoted(backend: str) -> None:
    x = ops.convert_to_tensor([100, -100], "int8")
    close = OPS["isclose"].composed
    assert close(x, 100, atol=0).tolist() == [True, False]
    assert close(x, ops.convert_to_tensor([100.0, -100.5], "float32"), 0.0, 1.0).tolist() == [True, True]
    with pytest.raises(RangeError, match="300 does not fit int8"):
        close(x, 300)


def test_the_distance_of_integers_does_not_wrap(backend: str) -> None:
    ends = [ops.convert_to_tensor([end], "int8") for end in (-128, 127)]
    assert OPS["isclose"].composed(*ends, atol=1.0).tolist() == [False]


@pytest.mark.parametrize("dtype", ["float16", "float32", "complex64", "int8"])
def test_the_widest_dtype_is_one_that_the_backend_has(dtype: str, backend: str) -> None:
    x = ops.convert_to_tensor([1, 2], dtype)
    wide = bodies.cast_to_widest(x)
    assert ops.dtype(wide).is_complex == ops.dtype(x).is_complex
    assert ops.dtype(wide).bits >= ops.dtype(x).bits
    assert wide.tolist() == x.tolist()
    assert OPS["isclose"].composed(x, x).tolist() == [True, True]


def test_kinds_of_dtypes_are_refused(backend: str) -> None:
    x = ops.convert_to_tensor([1j])
    with pytest.raises(DTypeError, match="not defined for dtype complex64"):
        bodies.cast_to_common(x, inexact=True, refused=("complex",))


def test_half_precision_goes_to_the_host_and_back(backend: str) -> None:
    for dtype in ("float16", "bfloat16"):
        x = ops.convert_to_tensor([1.5, -2.0], dtype)
        found = bodies.tensor_like_from_host(np.asarray([0.5, 3.0]), x)
        assert ops.dtype(found) == dtype
        assert ops.cast(found, "float32").tolist() == [0.5, 3.0]
        assert bodies.to_host_array(x).astype(np.float32).tolist() == [1.5, -2.0]
