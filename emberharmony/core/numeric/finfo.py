"""The numeric limits of dtypes, with the names of the array API standard."""

from emberharmony.core import op_globals
from emberharmony.core.dtypes import DType, bfloat16, complex64, complex128, float16, float32, float64
from emberharmony.core.errors import DTypeError
from emberharmony.core.named_tuple import Record

KINDS: dict[str, tuple[str, ...]] = {
    "bool": ("bool",),
    "signed integer": ("signed",),
    "unsigned integer": ("unsigned",),
    "integral": ("signed", "unsigned"),
    "real floating": ("float",),
    "complex floating": ("complex",),
    "numeric": ("signed", "unsigned", "float", "complex"),
}
"""The kinds of `isdtype`, and the values of `DType.kind` that each includes."""

_MANTISSA = {float16: (10, 15), bfloat16: (7, 127), float32: (23, 127), float64: (52, 1023)}
"""The number of stored mantissa bits and the largest exponent."""


class FloatInfo(Record):
    """The limits of a floating dtype: bits, spacing of the numbers at 1, largest, least and smallest normal number."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType

    @classmethod
    def of_dtype(cls, dtype: DType) -> "FloatInfo":
        """Returns the limits of a floating dtype, or those of the parts of a complex one.

        Raises:
            DTypeError: if the dtype is neither floating nor complex.
        """
        limits = _FLOATS.get(dtype)
        if limits is None:
            raise DTypeError(f"finfo takes a floating or complex dtype, not {dtype.name}; use iinfo for integers")
        return limits


def _float_limits(part: DType) -> FloatInfo:
    mantissa_bits, exponent = _MANTISSA[part]
    largest_number = (2.0 - 2.0**-mantissa_bits) * 2.0**exponent
    return FloatInfo(part.bits, 2.0**-mantissa_bits, largest_number, -largest_number, 2.0 ** (1 - exponent), part)


_FLOATS = {part: _float_limits(part) for part in _MANTISSA}
_FLOATS |= {complex64: _FLOATS[float32], complex128: _FLOATS[float64]}


class IntegerInfo(Record):
    """The limits of an integer dtype: bits, largest and least number."""

    bits: int
    max: int
    min: int
    dtype: DType

    @classmethod
    def of_dtype(cls, dtype: DType) -> "IntegerInfo":
        """Returns the limits of an integer dtype.

        Raises:
            DTypeError: if the dtype is not an integer dtype.
        """
        if not dtype.is_integer:
            raise DTypeError(f"iinfo takes an integer dtype, not {dtype.name}; use finfo for floating dtypes")
        is_signed = dtype.kind == "signed"
        largest_number: int = (1 << (dtype.bits - is_signed)) - 1
        return cls(dtype.bits, largest_number, -largest_number - 1 if is_signed else 0, dtype)


op_globals.publish(FloatInfo=FloatInfo, IntegerInfo=IntegerInfo)
