"""The helpers that the programs of fuzzed calls are written with."""

from typing import Any

import numpy as np

from emberharmony import ops

Array = np.ndarray[Any, Any]
NAMES = ("Below", "Hostile", "filled", "frozen", "nested", "poked", "tensor")


def frozen(array: Array) -> Array:
    """Returns a copy that cannot be written to."""
    copied = array.copy()
    copied.flags.writeable = False
    return copied


def poked(array: Array, place: int, value: Any) -> Array:
    """Returns a copy with one element, counted in the flat order from any start, replaced; an empty array as it is."""
    copied = array.copy()
    if copied.size:
        with np.errstate(all="ignore"):
            copied.reshape(-1)[place % copied.size] = np.asarray(value).astype(copied.dtype)
    return copied


def filled(shape: tuple[int, ...], dtype: Any) -> Array:
    """Returns an array of any size whose elements count up modulo 7 from -3, or from 0 in an unsigned dtype."""
    size = int(np.prod(shape, dtype=object))
    low = 0 if np.dtype(dtype).kind in "bu" else -3
    return (np.arange(size, dtype=np.int8 if size < 128 else np.int64) % 7 + low).reshape(shape).astype(dtype)


def nested(depth: int) -> list[Any]:
    """Returns a number in so many lists."""
    value: Any = 1.0
    for _ in range(depth):
        value = [value]
    return list(value)


def tensor(array: Any) -> Any:
    """Returns a host array as a native tensor, or as it is where the backend lacks its dtype."""
    try:
        return ops.convert_to_tensor(array)
    except TypeError:
        return array


class Below:
    """Answers "whether to go on" a limited number of times with True, whatever it is asked about."""

    def __init__(self, count: int) -> None:
        self.left = count

    def __call__(self, *_: Any) -> bool:
        """Returns True as often as was agreed."""
        self.left -= 1
        return self.left >= 0


class Hostile:
    """Raises `ValueError` from every protocol by which a library may look into an argument."""

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise ValueError("hostile")

    __array__ = __len__ = __iter__ = __getitem__ = __index__ = __int__ = __float__ = __bool__ = __eq__ = _refuse
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return "Hostile()"
