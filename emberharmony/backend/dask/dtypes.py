"""Dask's dtypes, which are NumPy's, and the promotion rules that ops use before they join tensors."""

from importlib.util import find_spec
from typing import Any

import dask.array as da
import numpy as np

from emberharmony.backend.dask.blocks import apply_elementwise
from emberharmony.backend.host import bfloat16_of_numpy
from emberharmony.backend.promote import Promotion
from emberharmony.core import dtypes as neutral
from emberharmony.core.dtypes import NativeDTypes

_NATIVE: dict[neutral.DType, Any] = {d: np.dtype(d.name) for d in neutral.ALL if d is not neutral.bfloat16}
if find_spec("ml_dtypes") is not None:  # pragma: no branch  # the tests of another environment lack it
    _NATIVE[neutral.bfloat16] = None

DTYPES = NativeDTypes("dask", _NATIVE, on_first_use={neutral.bfloat16: bfloat16_of_numpy})


def cast(x: da.Array, dtype: np.dtype) -> da.Array:
    """Returns `x` in a dtype; a complex tensor gives its real part, except to bool, which tests for non-zero."""
    return x if x.dtype == dtype else apply_elementwise("cast", x, dtype)


promotion = Promotion(
    DTYPES,
    cast,
    lambda number, dtype: da.asarray(np.asarray(number, dtype)),
    same="{0}.dtype == {1}.dtype",
    weak="",
    inexact="{0}.dtype == native_float32",
    weak_inexact="",
)


def is_half(x: da.Array) -> bool:
    """Returns whether a tensor is floating and has 16 bits."""
    return DTYPES.neutral[x.dtype].is_floating and x.dtype.itemsize == 2


def widen(x: da.Array) -> da.Array:
    """Returns half precision as float32; other tensors unchanged."""
    return cast(x, DTYPES["float32"]) if is_half(x) else x
