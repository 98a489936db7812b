"""What conversion between libraries and between dtypes may do: whom DLPack takes from, when memory is shared."""

from collections.abc import Sequence
from typing import Any

from emberharmony.core.errors import ArgumentError, ArgumentTypeError, ShapeError
from emberharmony.core.tracing import require_untraced

NO_BITS = "the bits of a tensor that is being differentiated have no derivative; pass ops.stop_gradient(x)"


def exporter(x: Any) -> Any:
    """Returns what speaks the DLPack protocol.

    Raises: ArgumentTypeError for all else; TracedTensorError for a tensor that is being differentiated.
    """
    require_untraced(x)
    if not hasattr(x, "__dlpack__"):
        raise ArgumentTypeError(f"{type(x).__qualname__} does not speak DLPack; use ops.convert_to_tensor")
    return x


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
