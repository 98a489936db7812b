"""The limits of dtypes, as the array API standard names them."""

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
"""The kinds of `isdtype` and what they hold."""

_MANTISSA = {float16: (10, 15), bfloat16: (7, 127), float32: (23, 127), float64: (52, 1023)}


class FloatInfo(Record):
    """Holds a floating dtype's width in bits, spacing at 1, extremes and least normal number."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType

    @classmethod
    def of(cls, dtype: DType) -> "FloatInfo":
        """Returns the limits of a dtype.

        Raises: DTypeError if it is neither floating nor complex.
        """
        found = _FLOATS.get(dtype)
        if found is None:
            raise DTypeError(f"{dtype.name} is no floating dtype; its limits are iinfo's")
        return found


def _limits(part: DType) -> FloatInfo:
    mantissa, exponent = _MANTISSA[part]
    largest = (2.0 - 2.0**-mantissa) * 2.0**exponent
    return FloatInfo(part.bits, 2.0**-mantissa, largest, -largest, 2.0 ** (1 - exponent), part)


_FLOATS = {part: _limits(part) for part in _MANTISSA}
_FLOATS |= {complex64: _FLOATS[float32], complex128: _FLOATS[float64]}


class IntegerInfo(Record):
    """Holds an integer dtype's width in bits and extremes."""

    bits: int
    max: int
    min: int
    dtype: DType

    @classmethod
    def of(cls, dtype: DType) -> "IntegerInfo":
        """Returns the limits of a dtype.

        Raises: DTypeError if it is no integer.
        """
        if not dtype.is_integer:
            raise DTypeError(f"{dtype.name} is no integer dtype; its limits are finfo's")
        signed = dtype.kind == "signed"
        highest: int = (1 << (dtype.bits - signed)) - 1
        return cls(dtype.bits, highest, -highest - 1 if signed else 0, dtype)


op_globals.publish(FloatInfo=FloatInfo, IntegerInfo=IntegerInfo)
