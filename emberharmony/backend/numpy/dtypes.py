"""NumPy's dtypes by neutral name, and the promotion rules with which NumPy's ops are bound."""

from importlib.util import find_spec
from typing import Any

import numpy as np

from emberharmony.backend.host import bfloat16_of_numpy
from emberharmony.backend.promote import FLOAT, SAME, Promotion
from emberharmony.core import dtypes as neutral
from emberharmony.core.dtypes import NativeDTypes

_NATIVE: dict[neutral.DType, Any] = {d: np.dtype(d.name) for d in neutral.ALL if d is not neutral.bfloat16}
if find_spec("ml_dtypes") is not None:  # pragma: no branch  # the tests of another environment lack it
    # NumPy has no bfloat16 of its own. The package that adds it is imported when the dtype is used for the first time.
    _NATIVE[neutral.bfloat16] = None

DTYPES = NativeDTypes("numpy", _NATIVE, on_first_use={neutral.bfloat16: bfloat16_of_numpy})


def cast(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Returns `x` in a dtype; a complex tensor gives its real part, except to bool, which tests for non-zero."""
    if x.dtype.kind == "c" and dtype.kind != "c":
        # NumPy's astype would warn about the discarded imaginary part.
        x = x.astype(bool) if dtype.kind == "b" else x.real
    return x.astype(dtype, copy=False)


# NumPy has one object per dtype of its own, with rare exceptions, so test `is`, which is faster than `==`. The
# exceptions only miss the fast path.
_NUMBER = "{1}.__class__ is float or {1}.__class__ is int"
_SCALAR = "{1}.__class__ is {0}.dtype.type"
"""The condition for a scalar of NumPy with the dtype of the tensor: elements of an array are such scalars."""

ORDERED = f"({FLOAT} or {{0}}.dtype.kind in 'biufV')"
"""The condition for native order comparisons: NumPy orders complex numbers and strings too, which must be refused."""

EQUATED = f"({FLOAT} or {{0}}.dtype.kind in 'biufcV')"
"""The condition for native equality: NumPy compares strings and objects too, which are not tensors."""

NUMBERS = f"({FLOAT} or {{0}}.dtype.kind in 'fiu')"
"""The condition for native division with remainder: NumPy divides booleans too, which must be refused."""

# A Python int from 0 to 127 fits every integer dtype. NumPy's own dtypes have isbuiltin == 1; bfloat16 has 2.
promotion = Promotion(
    DTYPES,
    cast,
    lambda number, dtype: np.asarray(number, dtype),
    same=SAME,
    weak=f"(({_NUMBER}) and ({FLOAT}) or {{1}}.__class__ is int and -1 < {{1}} < 128 and {{0}}.dtype.isbuiltin == 1"
    f" or {_SCALAR})",
    inexact=f"{FLOAT} or {{0}}.dtype.kind == 'c'",
    weak_inexact=f"({_NUMBER} or {_SCALAR}) and ({FLOAT})",
    element="{0}.__class__ is native_float64.type or {0}.__class__ is native_float32.type",
    guards={"real": ORDERED, "real numeric": NUMBERS},
)
