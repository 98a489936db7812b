"""What type checkers let users pass to ops: the stubs `ops/*.pyi` are written with these names.

The declarations in `ops/` use the names of `core.types` instead: there an argument is typed as the tensor that dispatch
has made of it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from emberharmony.core.dtypes import DType
from emberharmony.core.types import Tensor

if TYPE_CHECKING:
    import numpy as np  # for type checkers alone: nothing below the backends may depend on a library


class _WithItemsize(Protocol):
    """A dtype of NumPy or PyTorch."""

    @property
    def itemsize(self) -> int:
        """The bytes of one element."""
        ...


class _WithSize(Protocol):
    """A dtype of MLX."""

    @property
    def size(self) -> int:
        """The bytes of one element."""
        ...


TensorLike: TypeAlias = "Tensor | np.generic | complex | list[Any] | tuple[Any, ...] | range"
"""A tensor, a number, or (nested) lists and tuples of them."""

Operand: TypeAlias = TensorLike
CastTensorLike: TypeAlias = TensorLike
Tensors: TypeAlias = "Sequence[TensorLike] | Tensor"

_IntegerName: TypeAlias = Literal["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
_InexactName: TypeAlias = Literal["float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
_PythonType: TypeAlias = type[bool] | type[int] | type[float] | type[complex]
DTypeLike: TypeAlias = (
    "DType | Literal['bool'] | _IntegerName | _InexactName | _PythonType | type[np.generic] | _WithItemsize | _WithSize"
)
"""A neutral dtype, its name, a Python type of numbers, or a native dtype."""

DeviceLike: TypeAlias = Any
"""A device's name, or a native device."""
