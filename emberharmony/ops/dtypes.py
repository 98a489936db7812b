"""Questions about dtypes."""

from __future__ import annotations

from emberharmony.core.dispatch import op
from emberharmony.core.dtypes import DType
from emberharmony.core.types import TensorLike


@op
def dtype(x: TensorLike) -> DType:
    """Returns the neutral dtype of a tensor, or the one a number or list would take.

    Example:
        >>> ops.dtype([1.0]) == ops.float32
        True
    """
    ...
