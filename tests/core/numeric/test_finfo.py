"""The limits of dtypes, compared with NumPy's."""

import numpy as np
import pytest

from emberharmony.core.dtypes import ALL, INTEGERS, bfloat16, float32
from emberharmony.core.errors import DTypeError
from emberharmony.core.numeric.finfo import FloatInfo, IntegerInfo


@pytest.mark.parametrize("dtype", sorted({*ALL} - {bfloat16, *INTEGERS, "bool"}), ids=str)
def test_floating_limits(dtype):
    found, wanted = FloatInfo.of_dtype(dtype), np.finfo(dtype.name)
    assert (found.bits, found.eps, found.max, found.min) == (wanted.bits, wanted.eps, wanted.max, wanted.min)
    assert found.smallest_normal == wanted.smallest_normal
    assert found.dtype == np.zeros(0, dtype.name).real.dtype


def test_limits_of_bfloat16():
    found = FloatInfo.of_dtype(bfloat16)
    assert (found.bits, found.eps, found.smallest_normal) == (16, 2.0**-7, FloatInfo.of_dtype(float32).smallest_normal)
    assert found.max == -found.min == (2 - 2.0**-7) * 2.0**127


@pytest.mark.parametrize("dtype", [dtype for dtype in ALL if dtype.is_integer], ids=str)
def test_integer_limits(dtype):
    found, wanted = IntegerInfo.of_dtype(dtype), np.iinfo(dtype.name)
    assert (found.bits, found.max, found.min, found.dtype) == (wanted.bits, wanted.max, wanted.min, dtype)


def test_a_dtype_of_the_wrong_kind():
    for info, name in ((FloatInfo, "int8"), (IntegerInfo, "float32"), (FloatInfo, "bool"), (IntegerInfo, "bool")):
        with pytest.raises(DTypeError, match="takes"):
            info.of_dtype(next(dtype for dtype in ALL if dtype == name))
