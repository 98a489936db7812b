"""Sample rows of `ops/bitwise.py`."""

from typing import Any

import numpy as np

from emberharmony.testing.sample import Sample, binary, case, unary

INTS: dict[str, Any] = {"dtypes": (), "integers": ("int8", "int32", "int64", "uint8")}
_BITS = (np.array([1, 5, 7], np.int32), np.array([1, 40, -1], np.int32))

SAMPLES = [
    binary("bitwise_and", np.bitwise_and, 0, 60, **INTS),
    binary("bitwise_or", np.bitwise_or, 0, 60, **INTS),
    binary("bitwise_xor", np.bitwise_xor, 0, 60, **INTS),
    unary("bitwise_not", np.bitwise_not, 0, 60, **INTS),
    Sample(
        "bitwise_left_shift",
        lambda a, b: np.array([a[0] << 1, 0, 0]),
        (case(*_BITS),),
        dtypes=("float32",),
        result="int32",
    ),
    Sample(
        "bitwise_right_shift",
        lambda a, b: np.array([a[0] >> 1, 0, 0]),
        (case(*_BITS),),
        dtypes=("float32",),
        result="int32",
    ),
]
