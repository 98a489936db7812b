"""Sample rows of `ops/logic/bitwise.py`."""

from typing import Any

import numpy as np

from emberharmony.testing.sample import Sample, binary, case, grid, unary

INTS: dict[str, Any] = {
    "dtypes": (),
    "integers": ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
}
BITS: dict[str, Any] = INTS | {"integers": ("bool", *INTS["integers"])}
# Shifts by less than the width of the dtype; `tests/ops/logic/test_bitwise.py` tests larger ones.
_SHIFTS = (case(np.array([1.0, 5.0, 7.0, 0.0]), np.array([1.0, 0.0, 3.0, 6.0])), case(grid(0, 60), np.array(1.0)))

SAMPLES = [
    binary("bitwise_and", np.bitwise_and, 0, 60, **BITS),
    binary("bitwise_or", np.bitwise_or, 0, 60, **BITS),
    binary("bitwise_xor", np.bitwise_xor, 0, 60, **BITS),
    unary("bitwise_not", np.bitwise_not, 0, 60, **BITS),
    Sample("bitwise_left_shift", np.left_shift, _SHIFTS, **INTS),
    Sample("bitwise_right_shift", np.right_shift, _SHIFTS, **INTS),
]
