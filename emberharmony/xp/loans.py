"""Loans: host memory of an array that is given to NumPy, for backends whose tensors only the library may change.

A function with `output=`, and compiled code that takes only memory that may be written to, get a copy on the host. As
long as somebody holds it, or a view of it, the copy is the memory of the array: the tensor is read from it whenever it
is needed, and what is written into the array goes into it. So `np.asarray(x)` means the same on every backend.
"""

from typing import Any
from weakref import ref

import numpy as np


class _BufferOwner:
    """The owner of memory lent to NumPy; it is alive as long as any NumPy array or buffer uses the memory."""

    __slots__ = ("__array_interface__", "__weakref__", "memory")

    def __init__(self, memory: np.ndarray) -> None:
        self.memory, self.__array_interface__ = memory, memory.__array_interface__


class Loan:
    """The memory on the host of an array, and whether somebody outside holds it.

    Args:
        memory: the values of the tensor, in memory that nobody else has.
        dtype: the dtype of the tensor in the library.
        device: the name of its device.
    """

    __slots__ = ("_owner_reference", "attributes", "device", "memory")

    def __init__(self, memory: np.ndarray, dtype: Any, device: Any) -> None:
        self.memory, self.device = memory, device
        self.attributes = {"shape": memory.shape, "ndim": memory.ndim, "dtype": dtype}
        self._owner_reference: Any = lambda: None

    @property
    def is_open(self) -> bool:
        """Whether somebody may still write into the memory."""
        return self._owner_reference() is not None

    def lent_array(self) -> np.ndarray:
        """Returns a NumPy array that shares the lent memory."""
        buffer_owner = self._owner_reference()
        if buffer_owner is None:
            # The array interface of NumPy cannot name bfloat16, so it describes bytes.
            buffer_owner = _BufferOwner(self.memory.reshape(-1).view(np.uint8))
            self._owner_reference = ref(buffer_owner)
        return np.asarray(buffer_owner).view(self.memory.dtype).reshape(self.memory.shape)


def view_at(memory: np.ndarray, key: Any) -> np.ndarray:
    """Returns a view of memory at a key of integers and slices, also of one element, for which NumPy gives a scalar."""
    key_parts = key if key.__class__ is tuple else (key,)
    view: np.ndarray = memory[key_parts if any(part is ... for part in key_parts) else (*key_parts, ...)]
    return view


def elements_at(memory: np.ndarray, positions: np.ndarray) -> np.ndarray | None:
    """Returns a strided view of the elements at the given positions of contiguous memory; None if no strides fit.

    Args:
        memory: contiguous memory.
        positions: for each element of the view, its place in the flat memory.
    """
    if not positions.size:
        return None
    lengths = np.array(positions.shape)
    first_position = int(positions[(0,) * positions.ndim])
    unit_vectors = np.eye(positions.ndim, dtype=int) * (lengths > 1)
    steps = [int(positions[tuple(neighbour)]) - first_position for neighbour in unit_vectors]
    offset_grid = np.ix_(*(np.arange(length) * step for length, step in zip(lengths, steps, strict=True)))
    has_repeated_element = any((lengths > 1) & (np.array(steps) == 0))
    if has_repeated_element or not np.array_equal(positions, sum(offset_grid, start=np.asarray(first_position))):
        return None
    flat_memory, strides = memory.reshape(-1)[first_position:], [step * memory.itemsize for step in steps]
    return np.lib.stride_tricks.as_strided(flat_memory, positions.shape, strides)
