"""Argument checks of DLPack import, copies and views."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from emberharmony.backend.host import to_host
from emberharmony.core.errors import ArgumentError, ArgumentTypeError, ShapeError
from emberharmony.core.tracing import require_untraced

NO_BITS = "the bits of a tensor that is being differentiated have no derivative; pass ops.stop_gradient(x)"


def exporter(x: Any, copy: bool | None = None) -> Any:
    """Returns what speaks the DLPack protocol: `x`, or of a NumPy array in the other byte order a copy in this one.

    Raises:
        ArgumentTypeError: for all else, and masked arrays.
        DTypeError: for a NumPy array of strings or objects.
        ArgumentError: if that copy is refused.
        TracedTensorError: for a tensor that is being differentiated.
    """
    require_untraced(x)
    if not hasattr(x, "__dlpack__"):
        raise ArgumentTypeError(f"{type(x).__qualname__} does not speak DLPack; use ops.convert_to_tensor")
    if not isinstance(x, np.ndarray):
        return x
    if not x.dtype.isnative:
        refuse_copy(copy)
    return to_host(x)


def refuse_copy(copy: bool | None) -> None:
    """Tells, where a copy must be made, that it was refused.

    Raises: ArgumentError if `copy` is False.
    """
    if copy is False:
        raise ArgumentError("this needs a copy, which copy=False refuses")


def check_view(shape: Sequence[int], width: int, wanted: int) -> None:
    """Checks that the bytes of the last axis divide into numbers of another width.

    Raises: ShapeError.
    """
    if width != wanted and (not shape or shape[-1] * width % wanted):
        raise ShapeError(
            f"the last axis of shape {tuple(shape)}, {width} bytes each, has no view of {wanted} bytes each"
        )
