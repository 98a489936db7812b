"""What NumPy remembers of the gradients and the parameters that an optimizer computes in each step."""

import sys
import weakref
from collections.abc import Sequence
from operator import attrgetter, call, is_
from typing import Any

import numpy as np

_SHAPE, _DTYPE = attrgetter("shape"), attrgetter("dtype")


class Flat:
    """A vector with the elements of several arrays, and arrays that are its parts.

    An op then computes all of them by one call. Each part keeps the whole vector in memory.

    Args:
        arrays: arrays of one dtype.

    Attributes:
        vector: the vector.
        buffer: a vector for the gradients.
    """

    def __init__(self, arrays: Sequence[np.ndarray]) -> None:
        self.vector = np.concatenate(arrays, axis=None)
        self.buffer = np.empty_like(self.vector)
        self._references = sys.getrefcount(self.vector)
        self._parts: list[weakref.ref[np.ndarray]] = []

    def parted(self, likes: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Returns its parts, in the shapes of other arrays."""
        found, start = [], 0
        for like in likes:
            found.append(self.vector[start : start + like.size].reshape(like.shape))
            start += like.size
        self._parts = list(map(weakref.ref, found))
        return found

    def is_alone(self, arrays: Sequence[np.ndarray]) -> bool:
        """Returns whether these are its parts, and nothing else refers to the vector."""
        # Each part refers to the vector, and so does each view of a part.
        alone = len(self._parts) == len(arrays) == sys.getrefcount(self.vector) - self._references
        return alone and all(map(is_, arrays, map(call, self._parts)))


class Likeness:
    """Says whether arrays are like others; see `Backend.likeness`.

    Args:
        arrays: gradients, and as many parameters.
        seen: whether somebody has kept a parameter from before a step.

    Attributes:
        flat: has the parameters as its parts, if it is not None.
        may_join: whether parameters may become parts of a vector, which who keeps one of them would keep.
    """

    def __init__(self, arrays: Sequence[np.ndarray], seen: bool) -> None:
        self._dtype, self._shapes = arrays[0].dtype, list(map(_SHAPE, arrays))
        self._memory: list[np.ndarray] = []
        self.flat: Flat | None = None
        self.may_join = not seen

    def __call__(self, *arrays: np.ndarray) -> bool:
        """Returns whether these have the class, the shapes and the dtype of those."""
        shapes = self._shapes
        if self.flat is not None and arrays[-1].base is self.flat.vector:
            # `owns` has found that the parameters are those parts.
            arrays, shapes = arrays[: len(shapes) // 2], shapes[: len(shapes) // 2]
        alike = {*map(type, arrays)} == {np.ndarray} and list(map(_SHAPE, arrays)) == shapes
        return alike and list(map(_DTYPE, arrays)).count(self._dtype) == len(arrays)

    def owns(self, arrays: Sequence[Any]) -> bool:
        """Returns whether arrays are the parts of a vector that nothing else refers to."""
        return self.flat is not None and self.flat.is_alone(arrays)

    def memory(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Returns an array like each of the parameters, or of their blocks, all in one memory that the cache keeps."""
        if not self._memory:
            shared = np.empty(max(x.size for x in arrays), self._dtype)
            self._memory = [shared[: x.size].reshape(x.shape) for x in arrays]
        return self._memory

    def joined(self, arrays: Sequence[np.ndarray]) -> tuple[Flat, list[np.ndarray] | None]:
        """Returns the vector of the parameters, and its parts if they have just become that."""
        flat = self.flat
        if flat is not None and arrays[-1].base is flat.vector:
            return flat, None
        flat = self.flat = Flat(arrays)
        return flat, flat.parted(arrays)
