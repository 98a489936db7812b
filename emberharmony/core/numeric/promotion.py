"""The promotion table: JAX's lattice with 64-bit types. Within a kind it is the table of the array API standard.

A float or complex dtype combined with any integer dtype keeps its width. Python numbers are weak: they take the
tensor's dtype, or the default dtype of their own kind if that kind is higher.
"""

from itertools import combinations_with_replacement

from emberharmony.core.dtypes import (
    ALL,
    DEFAULTS,
    DType,
    as_dtype,
    bfloat16,
    complex64,
    complex128,
    default_complex,
    default_float,
    float16,
    float32,
    float64,
    int16,
    int32,
    int64,
    python_dtype,
)
from emberharmony.core.errors import ArgumentError, RangeError

_SIGNED_ABOVE = {8: int16, 16: int32, 32: int64}
_COMPLEX_OF = {float16: complex64, bfloat16: complex64, float32: complex64, float64: complex128}
_RANK = {"bool": 0, "signed": 1, "unsigned": 1, "float": 2, "complex": 3}


def _promote_pair(a: DType, b: DType) -> DType:
    if a is b:
        return a
    lower_dtype, higher_dtype = sorted((a, b), key=lambda d: (_RANK[d.kind], d.bits))
    if _RANK[lower_dtype.kind] < _RANK[higher_dtype.kind]:
        if lower_dtype.kind == "float":
            complex_dtype = _COMPLEX_OF[lower_dtype]
            return complex_dtype if complex_dtype.bits > higher_dtype.bits else higher_dtype
        return higher_dtype
    if lower_dtype.kind == higher_dtype.kind:
        # Neither float16 nor bfloat16 contains the numbers of the other.
        return float32 if {lower_dtype, higher_dtype} == {float16, bfloat16} else higher_dtype
    signed, unsigned = (lower_dtype, higher_dtype) if lower_dtype.kind == "signed" else (higher_dtype, lower_dtype)
    if signed.bits > unsigned.bits:
        return signed
    # No integer dtype contains both uint64 and a signed dtype, so the result is float64, as in JAX with 64-bit types.
    return _SIGNED_ABOVE.get(unsigned.bits, float64)


TABLE: dict[tuple[DType, DType], DType] = {}
for _a, _b in combinations_with_replacement(ALL, 2):
    TABLE[_a, _b] = TABLE[_b, _a] = _promote_pair(_a, _b)


def check_fits(number: object, dtype: DType) -> None:
    """Checks that `dtype`, if it is an integer dtype, can hold a Python integer; other numbers are not checked.

    Raises:
        RangeError: if it cannot; the message has the range of the dtype.
    """
    if type(number) is not int or not dtype.is_integer:
        return
    low = -(1 << (dtype.bits - 1)) if dtype.kind == "signed" else 0
    high = (1 << (dtype.bits - (dtype.kind == "signed"))) - 1
    if not low <= number <= high:
        raise RangeError(f"the integer {number} does not fit {dtype.name}, which holds {low} to {high}")


def promote(*dtypes: DType) -> DType:
    """Returns the dtype to which tensors of these dtypes promote; their order does not matter."""
    # Ignore integers if any operand is floating: int64 with uint64 would give float64 and widen a float32.
    dtypes = tuple(dtype for dtype in dtypes if _RANK[dtype.kind] >= 2) or dtypes
    promoted_dtype = dtypes[0]
    for dtype in dtypes[1:]:
        promoted_dtype = TABLE[promoted_dtype, dtype]
    return promoted_dtype


def promote_weak(dtype: DType, number: type) -> DType:
    """Returns the dtype of a tensor of `dtype` combined with a Python number of class `number`."""
    if number is bool or dtype.is_complex:
        return dtype
    if number is int:
        return DEFAULTS.int if dtype.kind == "bool" else dtype
    if number is float:
        return dtype if dtype.is_floating else default_float()
    if dtype.is_floating:
        return _COMPLEX_OF[dtype]
    return default_complex()


def as_inexact(dtype: DType) -> DType:
    """Returns `dtype` itself if it is floating or complex, else the default float: the rule of float functions."""
    return dtype if _RANK[dtype.kind] >= 2 else default_float()


def result_type(*operands: object) -> DType:
    """Returns the dtype that dtypes and (weak) Python numbers promote to.

    Raises:
        ArgumentError: if there are no operands.
    """
    if not operands:
        raise ArgumentError("result_type needs at least one operand")
    number_classes = [_number_class(x) for x in operands]
    weak_classes = [number_class for number_class in number_classes if number_class is not None]
    strong_dtypes = [
        _strong_dtype(x) for x, number_class in zip(operands, number_classes, strict=True) if number_class is None
    ]
    dtype = promote(*strong_dtypes) if strong_dtypes else python_dtype(weak_classes[0])
    for weak_class in weak_classes:
        dtype = promote_weak(dtype, weak_class)
    return dtype


def _number_class(x: object) -> type | None:
    """Returns the Python type of a number; None for other objects, and for scalars of NumPy, which have a dtype."""
    if hasattr(x, "dtype"):
        return None
    return next((number_class for number_class in (bool, int, float, complex) if isinstance(x, number_class)), None)


def _strong_dtype(x: object) -> DType:
    return as_dtype(x if isinstance(x, type) else getattr(x, "dtype", x))
