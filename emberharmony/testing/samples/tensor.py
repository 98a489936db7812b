"""Sample rows of `ops/tensor.py`."""

from typing import Any

import numpy as np

from emberharmony.core.errors import DTypeError, ShapeError
from emberharmony.testing.refused import ONES_4
from emberharmony.testing.sample import COMPLEX, FLOATS, HALVES, INTEGERS, WHOLE, Sample, case, grid

_X = grid(-2, 2, 12).reshape(3, 4)
ANY: dict[str, Any] = {"dtypes": FLOATS + HALVES + COMPLEX, "integers": (*WHOLE, "uint16", "uint32", "uint64")}
ANY_REAL: dict[str, Any] = {"dtypes": FLOATS + HALVES, "integers": INTEGERS}
ONCE: dict[str, Any] = {"dtypes": ("float32",), "result": "any"}

SAMPLES = [
    Sample("convert_to_tensor", lambda x: x, (case(np.abs(_X)),), **ANY, differentiable=True),
    Sample("to_numpy", lambda x: x, (case(np.abs(_X)),), FLOATS + HALVES + COMPLEX, INTEGERS, result="any"),
    Sample(
        "cast",
        lambda x, dtype: x.astype(dtype) if x.dtype.kind in "iu" else np.trunc(x),
        (case(_X, "int32"),),
        **ANY_REAL,
        result="int32",
        refuses=((DTypeError, case(ONES_4, "nope")),),
        left_out={
            "special values": "the standard leaves the integers open that NaN and infinities become",
            "complex refusals": "a complex tensor gives its real part, which `tests/ops` check",
        },
    ),
    Sample(
        "astype", lambda x, dtype, copy=True: np.trunc(x), (case(_X, "int32"), case(_X, "int32", False)), result="int32"
    ),
    Sample(
        "view",
        lambda x, dtype: x.copy().view(dtype),
        (
            case(np.arange(8, dtype=np.uint8).reshape(2, 4), "int32"),
            case(np.arange(8, dtype=np.uint8).reshape(4, 2).T, "int16"),
            case(np.array([[1, -1]], np.int64), "int8"),
            case(np.array(7, np.uint32), "int32"),
        ),
        **ONCE,
        refuses=((ShapeError, case(np.ones(3, np.int32), "int64")),),
    ),
    Sample(
        "from_dlpack",
        lambda x: x,
        (case(np.abs(_X)), case(np.abs(_X)[::-1, ::-2])),
        (*FLOATS, "float16", *COMPLEX),
        INTEGERS,
    ),
    Sample("copy", lambda x: x, (case(np.abs(_X)),), **ANY, differentiable=True),
    Sample("array", lambda x: x, (case(np.abs(_X)),), **ANY, differentiable=True),
    Sample("is_tensor", lambda x: False, (case(_X),), reference="tests", **ONCE),
    Sample("is_traced", lambda x: False, (case(_X),), reference="tests", **ONCE),
    Sample("shape", np.shape, (case(_X),), **ONCE),
    Sample("ndim", np.ndim, (case(_X),), **ONCE),
    Sample("size", np.size, (case(_X),), **ONCE),
    Sample("eval", lambda x: None, (case(_X),), reference="tests", **ONCE),
]
