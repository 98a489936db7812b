"""NumPy's dtypes by neutral name, and the promotion rule NumPy's ops are bound with."""

from typing import Any

import numpy as np

from emberharmony.backend.promote import Promotion
from emberharmony.core import dtypes as neutral
from emberharmony.core.dtypes import NativeDTypes


def _bfloat16() -> dict[neutral.DType, np.dtype[Any]]:
    """Returns bfloat16 where ml_dtypes is installed: NumPy has none of its own."""
    try:
        import ml_dtypes
    except ImportError:
        return {}
    return {neutral.bfloat16: np.dtype(ml_dtypes.bfloat16)}


DTYPES = NativeDTypes("numpy", {d: np.dtype(d.name) for d in neutral.ALL if d.name != "bfloat16"} | _bfloat16())


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
