"""Argument checks of DLPack import, copies and views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from emberharmony.backend.host import to_host
from emberharmony.core.deferred import Deferred
from emberharmony.core.dtypes import DType
from emberharmony.core.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError
from emberharmony.core.tracing import require_untraced

if TYPE_CHECKING:
    import numpy as np
else:
    np = Deferred("numpy")

NO_BITS = "the bits of a tensor that is being differentiated have no derivative; pass ops.stop_gradient(x)"

DLPACK_ERRORS = (
    (RuntimeError, "Unsupported dtype in DLTensor", DTypeError),
    (BufferError, "", ArgumentError),
)
"""Which typed error takes the place of one that NumPy or the other library raises in `from_dlpack`."""


def dlpack_exporter(x: Any, copy: bool | None = None) -> Any:
    """Returns `x`, which has the DLPack protocol, or a copy if it is a NumPy array in non-native byte order.

    Raises:
        ArgumentError: if `x` must be copied, but `copy` is False.
        ArgumentTypeError: if `x` does not support DLPack, or is a masked array.
        DTypeError: if `x` is a NumPy array of strings or objects.
        TracedTensorError: if `x` is being differentiated.
    """
    require_untraced(x)
    if not hasattr(x, "__dlpack__"):
        raise ArgumentTypeError(f"{type(x).__qualname__} does not support DLPack; use ops.convert_to_tensor")
    if not isinstance(x, np.ndarray):
        return x
    if not x.dtype.isnative:
        refuse_copy(copy)
    return to_host(x)


def import_tensor(x: Any, copy: bool | None) -> np.ndarray:
    """Returns a tensor of another library as a NumPy array on the host.

    Raises:
        EmberError: as `dlpack_exporter` does, or if a copy is refused.
    """
    exported_array = dlpack_exporter(x, copy)
    refuse_copy(copy)
    return np.from_dlpack(exported_array)


def refuse_copy(copy: bool | None) -> None:
    """Checks that the option `copy` allows a copy, where one is necessary.

    Raises:
        ArgumentError: if `copy` is False.
    """
    if copy is False:
        raise ArgumentError("this conversion needs a copy, which copy=False refuses; leave out copy to allow it")


def check_view(shape: Sequence[int], width: int, target_width: int) -> None:
    """Checks that a tensor can be viewed as elements of another width.

    Args:
        shape: of the tensor.
        width: the bytes of one element.
        target_width: the bytes of one element of the view.

    Raises:
        ShapeError: if the bytes of the last axis are not a multiple of `target_width`.
    """
    if width != target_width and (not shape or shape[-1] * width % target_width):
        raise ShapeError(
            f"the last axis of shape {tuple(shape)} has elements of {width} bytes, which do not divide into elements "
            f"of {target_width} bytes"
        )


def view_bits(x: np.ndarray, target_dtype: DType) -> np.ndarray:
    """Returns the bits of an array as elements of another dtype.

    Raises:
        ShapeError: if the last axis does not divide into such elements.
    """
    check_view(x.shape, x.itemsize, target_dtype.itemsize)
    return np.ascontiguousarray(x).reshape(x.shape).view(target_dtype.name)


def complex_of_pairs(pairs: np.ndarray) -> np.ndarray:
    """Returns the complex numbers whose real and imaginary parts lie along the last axis."""
    complex_name, part_dtype = ("complex128", np.float64) if pairs.dtype == np.float64 else ("complex64", np.float32)
    return np.ascontiguousarray(pairs.astype(part_dtype)).view(complex_name)[..., 0]
