"""The shape and dtype of a tensor, without its values."""

import math
from collections.abc import Sequence
from typing import Any

from emberharmony.core.axes import as_length
from emberharmony.core.dtypes import DType, as_dtype, default_float
from emberharmony.core.errors import ArgumentTypeError, ShapeError, brief


class TensorSpec:
    """The shape and dtype of a tensor that does not exist yet; in a tree it is a leaf.

    `ops.eval_shape` takes and returns specs. They can be compared, hashed and pickled.

    Args:
        shape: one length or a sequence of lengths; every length must be known.
        dtype: a dtype, its name, or a native dtype; None for the default float.

    Raises:
        ArgumentTypeError: if a length is not an integer.
        DTypeError: if the dtype is unknown.
        ShapeError: if a length is negative.

    Example:
        >>> from emberharmony import TensorSpec
        >>> TensorSpec((2, 3), "int32")
        TensorSpec((2, 3), 'int32')
    """

    __slots__ = ("dtype", "shape")
    shape: tuple[int, ...]
    dtype: DType

    def __init__(self, shape: int | Sequence[int], dtype: Any = None) -> None:
        try:
            lengths = tuple(as_length(n) for n in (shape if isinstance(shape, Sequence) else (shape,)))
        except TypeError as error:
            raise ArgumentTypeError(
                f"the shape of a TensorSpec is an integer or a sequence of integers, not {brief(shape)}"
            ) from error
        if any(n < 0 for n in lengths):
            raise ShapeError(f"the shape {lengths} of a TensorSpec has a negative length")
        object.__setattr__(self, "shape", lengths)
        object.__setattr__(self, "dtype", default_float() if dtype is None else as_dtype(dtype))

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The size of all elements in bytes."""
        return self.size * self.dtype.itemsize

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a TensorSpec cannot be changed: make a new one instead of setting {name!r}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TensorSpec):
            return NotImplemented
        return self.shape == other.shape and self.dtype is other.dtype

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))

    def __repr__(self) -> str:
        return f"TensorSpec({self.shape}, {self.dtype.name!r})"

    def __reduce__(self) -> tuple[type["TensorSpec"], tuple[tuple[int, ...], str]]:
        return TensorSpec, (self.shape, self.dtype.name)
