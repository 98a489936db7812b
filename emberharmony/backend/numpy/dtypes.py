"""NumPy's dtypes by neutral name, and the promotion rule NumPy's ops are bound with."""

from importlib.util import find_spec
from typing import Any

import numpy as np

from emberharmony.backend.host import bfloat16_of_numpy
from emberharmony.backend.promote import Promotion
from emberharmony.core import dtypes as neutral
from emberharmony.core.dtypes import NativeDTypes

_NATIVE: dict[neutral.DType, Any] = {d: np.dtype(d.name) for d in neutral.ALL if d is not neutral.bfloat16}
if find_spec("ml_dtypes") is not None:
    # NumPy has no bfloat16 of its own; the package that has is imported at its first use.
    _NATIVE[neutral.bfloat16] = None

DTYPES = NativeDTypes("numpy", _NATIVE, on_first_use={neutral.bfloat16: bfloat16_of_numpy})


def cast(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Returns `x` in that dtype; of a complex number the real part, without NumPy's warning."""
    if x.dtype.kind == "c" and dtype.kind != "c":
        x = x.astype(bool) if dtype.kind == "b" else x.real
    return x.astype(dtype, copy=False)


_FLOAT = "{0}.dtype is native_float32 or {0}.dtype is native_float64"
_NUMBER = "{1}.__class__ is float or {1}.__class__ is int"

promotion = Promotion(
    DTYPES,
    cast,
    lambda number, dtype: np.asarray(number, dtype),
    same="{0}.dtype is {1}.dtype",
    weak=f"(({_NUMBER}) and ({_FLOAT}) or {{1}}.__class__ is int and -1 < {{1}} < 128 and {{0}}.dtype.isbuiltin == 1)",
    inexact=f"{_FLOAT} or {{0}}.dtype.kind == 'c'",
    weak_inexact=f"({_NUMBER}) and ({_FLOAT})",
)

ORDERED = f"({_FLOAT} or {{0}}.dtype.kind in 'biufV')"
"""When the native ops that compare may be called: complex numbers, which NumPy orders, have no order."""

EQUATED = f"({_FLOAT} or {{0}}.dtype.kind in 'biufcV')"
"""When the native ops of equality may be called: strings and objects, which NumPy compares, are no tensors."""

NUMBERS = f"({_FLOAT} or {{0}}.dtype.kind in 'fiu')"
"""When the native ops that divide with remainder may be called: they have no complex numbers, and we no booleans."""
