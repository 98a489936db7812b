"""The states of many small parameters, stored in joined vectors from which buffers copy their part when read.

The next step joins the state anew after anything else than the last step: another backend, a loaded state, a parameter
without a gradient. Each new parameter has memory of its own, because a view would keep the whole vector alive for
whoever keeps one small parameter.
"""

import math
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from emberharmony import Buffer
from emberharmony.core.cells.blocks import Held
from emberharmony.core.cells.moves import Journey


class Vectors(SimpleNamespace):
    """The states of several parameters, as one immutable joined vector for each name.

    Attributes:
        tensors: the vectors by name.
        shapes: the shape of each parameter.
        home: the ops of the backend of the vectors.
    """

    tensors: Mapping[str, Any]
    shapes: Sequence[tuple[int, ...]]
    home: Any

    def copy_of_part(self, name: str, place: int) -> Any:
        """Returns a copy of the elements of a joined vector that belong to one parameter."""
        start_element = sum(map(math.prod, self.shapes[:place]))
        shape = self.shapes[place]
        elements = self.home.get_item(self.tensors[name], slice(start_element, start_element + math.prod(shape)))
        tensor = self.home.copy(self.home.reshape(elements, shape))
        self.home.eval(tensor)  # evaluated so that other threads can read it
        return tensor


class SharedBuffer(Buffer):
    """A buffer whose value is a tensor of its own, or a part of joined `Vectors`, which is copied when it is read."""

    __slots__ = ()

    def __init__(self) -> None:
        # The attribute `_held` is assigned by the first step of the optimizer.
        self.name, self.persistent, self._grad, self._journey = "", True, None, Journey()

    def convert_held(self, held: Held, home: Any) -> Any:
        """Returns the stored tensor, or a copy of the part of a joined vector, as a tensor of a backend."""
        start_or_place, source = held
        if source.__class__ is not Vectors:
            return super().convert_held(held, home)
        tensor = source.copy_of_part(*start_or_place)
        return tensor if source.home is home else super().convert_held((tensor, source.home), home)

    def tensor_and_home(self) -> Held:
        """Returns the tensor of the buffer with the backend that it belongs to."""
        held_tensor = self._held
        if held_tensor[1].__class__ is Vectors:
            self._move_slot("_held", held_tensor, held_tensor[1].home.backend.bound)
        return self._held

    def __getstate__(self) -> dict[str, Any]:
        self.tensor_and_home()
        return super().__getstate__()

    def __deepcopy__(self, memo: dict[int, Any]) -> "SharedBuffer":
        self.tensor_and_home()
        return super().__deepcopy__(memo)

    def __repr__(self) -> str:
        self.tensor_and_home()
        return super().__repr__().replace("SharedBuffer", "Buffer", 1)
