"""The types of op arguments as type checkers see them: the stubs `ops/*.pyi` use these names.

The declarations in `ops/` use the names of `core.types` instead: there an argument is typed as the tensor into which
dispatch has converted it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from emberharmony.core.dtypes import DTypeLike as DTypeLike
from emberharmony.core.types import Tensor

if TYPE_CHECKING:
    import numpy as np  # only for type checkers: nothing below the backends may depend on an array library

    from emberharmony.core.cells.cell import Cell

TensorLike: TypeAlias = "Tensor | Cell | np.generic | complex | list[Any] | tuple[Any, ...] | range"
"""A tensor, a parameter or buffer, a number, or (nested) lists and tuples of them."""

Operand: TypeAlias = TensorLike
CastTensorLike: TypeAlias = TensorLike
ComplexTensorLike: TypeAlias = TensorLike

RealTensorLike: TypeAlias = "Tensor | Cell | np.generic | float | list[Any] | tuple[Any, ...] | range"
"""A `TensorLike` for an op that takes no complex dtype: a complex number is an error."""

IntegerTensorLike: TypeAlias = "Tensor | Cell | np.generic | int | list[Any] | tuple[Any, ...] | range"
"""A `TensorLike` for an op that takes integers, and perhaps booleans: a floating or complex number is an error."""

RealOperand: TypeAlias = RealTensorLike
IntegerOperand: TypeAlias = IntegerTensorLike
Tensors: TypeAlias = "Sequence[TensorLike] | Tensor"

TensorOrDType: TypeAlias = "Tensor | DTypeLike"
"""A tensor, whose dtype is meant, or a dtype."""


class _WithType(Protocol):
    """A PyTorch or MLX device, which has a `type`."""

    @property
    def type(self) -> Any:
        """The kind of the device."""
        ...


DeviceLike: TypeAlias = str | _WithType
"""A device's name, or a native device."""
