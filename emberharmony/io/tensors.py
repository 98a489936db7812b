"""Conversion between the bytes of a file and tensors of the active backend."""

import sys
from typing import Any

import numpy as np

from emberharmony import ops
from emberharmony.core.errors import EmberError, WeightFileError
from emberharmony.io.header import NAMES, TensorInfo

HOST = {name: np.dtype("uint16" if name == "bfloat16" else name).newbyteorder("<") for name in NAMES.values()}
"""The host's dtype for the bytes of each dtype; NumPy lacks bfloat16, so its bits are uint16 here."""


def as_array(buffer: Any, start: int, info: TensorInfo, path: str, name: str) -> np.ndarray[Any, Any]:
    """Returns the bytes of a tensor in a buffer as a NumPy array, which shares the buffer's memory if it is aligned.

    Raises:
        WeightFileError: if no backend has the dtype, or NumPy no such shape.
    """
    if info.dtype not in HOST:
        advice = "read its bytes with TensorFile.raw(name), or leave it out with io.load(..., names=...)"
        raise WeightFileError("dtype", path, f"no backend has its dtype {info.dtype}", name, advice)
    dtype = HOST[info.dtype]
    try:
        array: np.ndarray[Any, Any] = np.ndarray(info.shape, dtype, buffer if info.nbytes else None, start)
    except (ValueError, OverflowError) as error:
        raise WeightFileError("shape", path, f"NumPy has no array of shape {info.shape}: {error}", name) from error
    if info.dtype == "bool" and info.nbytes and array.view(np.uint8).max() > 1:
        array = array.view(np.uint8) != 0
    return array if array.flags.aligned else array.copy()


def as_tensor(array: np.ndarray[Any, Any], dtype: str, path: str, name: str) -> Any:
    """Converts a NumPy array to a tensor of the active backend, which shares the memory where the backend can.

    Raises:
        DTypeError: if the backend lacks the dtype.
    """
    try:
        tensor = ops.convert_to_tensor(array)
        return ops.view(tensor, "bfloat16") if dtype == "bfloat16" else tensor
    except EmberError as error:
        error_class = type(error)
        raise error_class(f"{path}, tensor {name!r}: {error}") from error


def as_bytes(array: np.ndarray[Any, Any]) -> memoryview:
    """Returns the elements of an array as contiguous bytes in little-endian order."""
    if sys.byteorder == "big" or array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
