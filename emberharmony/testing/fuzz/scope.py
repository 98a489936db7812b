"""Functions and classes that the source of fuzzed calls uses."""

from typing import Any

import numpy as np

from emberharmony import ops

Array = np.ndarray[Any, Any]
NAMES = ("Below", "Hostile", "counting_array", "nested_list", "as_read_only", "tensor", "with_element")


def as_read_only(array: Array) -> Array:
    """Returns a read-only copy of an array."""
    read_only_copy = array.copy()
    read_only_copy.flags.writeable = False
    return read_only_copy


def with_element(array: Array, place: int, value: Any) -> Array:
    """Returns a copy of an array with one element replaced; an empty array is copied unchanged.

    Args:
        place: the index of the element in the flattened array, modulo its size.
    """
    changed_copy = array.copy()
    if changed_copy.size:
        with np.errstate(all="ignore"):
            changed_copy.reshape(-1)[place % changed_copy.size] = np.asarray(value).astype(changed_copy.dtype)
    return changed_copy


def counting_array(shape: tuple[int, ...], dtype: Any) -> Array:
    """Returns an array with the elements -3, -2, …, 3, -3, …; with 0, 1, …, 6, 0, … for bool and unsigned dtypes."""
    size = int(np.prod(shape, dtype=object))
    smallest_number = 0 if np.dtype(dtype).kind in "bu" else -3
    return (
        (np.arange(size, dtype=np.int8 if size < 128 else np.int64) % 7 + smallest_number).reshape(shape).astype(dtype)
    )


def nested_list(depth: int) -> list[Any]:
    """Returns a number inside `depth` nested lists."""
    nested_value: Any = 1.0
    for _ in range(depth):
        nested_value = [nested_value]
    return list(nested_value)


def tensor(array: Any) -> Any:
    """Returns a host array as a native tensor, or unchanged if the backend lacks its dtype."""
    try:
        return ops.convert_to_tensor(array)
    except TypeError:
        return array


class Below:
    """A condition for loops: it returns True for the first `count` calls, whatever the arguments."""

    def __init__(self, count: int) -> None:
        self.left = count

    def __call__(self, *_: Any) -> bool:
        """Returns whether this is one of the first `count` calls."""
        self.left -= 1
        return self.left >= 0


class Hostile:
    """An object that raises `ValueError` from every special method by which a library may inspect an argument."""

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise ValueError("hostile")

    __array__ = __len__ = __iter__ = __getitem__ = __index__ = __int__ = __float__ = __bool__ = __eq__ = _refuse
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return "Hostile()"
