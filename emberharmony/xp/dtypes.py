"""The dtypes of the array API namespaces: one object for each name, the same for all backends.

They are no strings, as those of `ops` are, because the standard's `isdtype` takes strings for kinds of dtypes.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from emberharmony.core.dtypes import DType, as_dtype, native_name

_LETTERS = {"bool": "b", "unsigned": "u", "signed": "i", "float": "f", "complex": "c"}
_KNOWN: "dict[str, Dtype]" = {}


class Dtype:
    """A dtype; it equals the dtype of the same name of any library, but no string.

    Attributes:
        name: such as "float32".
        neutral: the dtype of `ops`.
    """

    __slots__ = ("name", "neutral")
    name: str
    neutral: DType

    def __new__(cls, neutral: DType) -> "Dtype":
        """Returns the only `Dtype` for a dtype of `ops`, and creates it the first time."""
        dtype_object = _KNOWN.get(neutral.name)
        if dtype_object is None:
            dtype_object = object.__new__(cls)
            dtype_object.name, dtype_object.neutral = neutral.name, neutral
            dtype_object = _KNOWN.setdefault(neutral.name, dtype_object)
        return dtype_object

    @property
    def itemsize(self) -> int:
        """The size of one element in bytes."""
        return self.neutral.itemsize

    @property
    def kind(self) -> str:
        """The letter that NumPy has for the kind of the dtype."""
        return _LETTERS[self.neutral.kind]

    @property
    def dtype(self) -> Any:
        """The dtype of NumPy, which `numpy.dtype(x)` asks for.

        Raises:
            TypeError: if NumPy has no such dtype.
        """
        return np.dtype(self.name)

    @property
    def type(self) -> Any:
        """NumPy's class of scalars of the dtype, such as `numpy.float32`."""
        return self.dtype.type

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if isinstance(other, str) and not isinstance(other, DType):
            return False
        return not isinstance(other, Dtype) and native_name(other) == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> "tuple[Callable[[DType], Dtype], tuple[DType]]":
        return Dtype, (self.neutral,)


def as_xp_dtype(dtype: Any) -> Dtype:
    """Returns the `Dtype` for anything that denotes a dtype, such as a name or a dtype of NumPy.

    Raises:
        DTypeError: if it denotes none.
    """
    return dtype if dtype.__class__ is Dtype else Dtype(as_dtype(dtype))
