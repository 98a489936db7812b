"""Test inputs of ops that are not plain host arrays: foreign tensors and tensors that are not contiguous."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from emberharmony import ops


class Stranger:
    """An object that looks like a tensor of a library which no backend knows."""

    def __dlpack__(self) -> None:
        """Makes the object look like an array; returns nothing."""

    def __repr__(self) -> str:
        return "Stranger()"


@dataclass(frozen=True)
class Strided:
    """A host array that is passed to the op as a native tensor that is not contiguous."""

    array: np.ndarray[Any, Any]


def holds_strided(value: Any) -> bool:
    """Returns whether an argument is, or holds, a `Strided`."""
    return isinstance(value, Strided) or (isinstance(value, (list, tuple)) and any(map(holds_strided, value)))


def non_contiguous_tensor(array: Any) -> Any:
    """Returns an array as a native tensor that is not contiguous.

    It is a view of every second element of a longer tensor, with the first and the last axis swapped.
    """
    if array.ndim == 0:
        return ops.convert_to_tensor(array)
    doubled_array = np.repeat(array if array.ndim == 1 else np.swapaxes(array, 0, -1), 2, axis=-1)
    view = ops.get_item(ops.convert_to_tensor(np.ascontiguousarray(doubled_array)), (Ellipsis, slice(None, None, 2)))
    return view if array.ndim == 1 else ops.swapaxes(view, 0, -1)


def as_argument(value: Any) -> Any:
    """Returns an argument of a sample row in the form in which the op receives it."""
    if isinstance(value, (list, tuple)):
        return type(value)(as_argument(item) for item in value)
    return non_contiguous_tensor(value.array) if isinstance(value, Strided) else value


def host_data(value: Any) -> Any:
    """Returns an argument of a sample row as host data, such as the array of a `Strided`."""
    if isinstance(value, (list, tuple)):
        return type(value)(host_data(item) for item in value)
    return value.array if isinstance(value, Strided) else value
